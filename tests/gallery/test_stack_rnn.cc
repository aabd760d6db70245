// The stack RNN: its strings, its gradients, and weights by hand that count as the paper says.

#include <string>
#include <vector>

#include <gradus/nn/init.h>
#include <gradus/nn/module.h>

#include "../quick_doctest.h"
#include "run_gallery.h"

#define main stack_rnn_main
#include "../../examples/gallery/stack_rnn.cc"
#undef main

namespace {

// A column as text, '?' where nothing is known and '-' where nothing is there.
std::string column(const Tensor& x, int64_t b, char none) {
  std::string out;
  for (int64_t i = b; i < x.numel(); i += x.size(1)) out += x.i32()[i] == kNone ? none : "abc"[x.i32()[i]];
  return out;
}

double right_in_quick(const std::string& model) {
  return cli::gallery_result("stack_rnn", {"--model", model}).at("right").get<double>();
}

}  // namespace

TEST_CASE("stack RNN: the strings of each language, what comes next, and what of it is known") {
  const Strings ab = strings("anbn", 1, 3);
  REQUIRE(ab.symbols.shape() == Shape{6, 3});
  CHECK(column(ab.symbols, 2, '-') == "aaabbb");
  CHECK(column(ab.next, 2, '-') == "aabbba");
  CHECK(column(ab.known, 2, '?') == "???bba");
  CHECK(column(ab.next, 0, '-') == "ba----");
  CHECK(column(ab.known, 0, '?') == "?a????");
  CHECK(column(strings("anb2n", 2, 2).symbols, 0, '-') == "aabbbb");
  const Strings abc = strings("anbncn", 2, 2);
  CHECK(column(abc.symbols, 0, '-') == "aabbcc");
  CHECK(column(abc.known, 0, '?') == "??bcca");
}

TEST_CASE("stack RNN: gradients of all parameters") {
  for (const std::string& kind : kModels) {
    CAPTURE(kind);
    Rng rng(1);
    Model model(kind, rng);
    const Strings x = strings("anbncn", 1, 2);
    CHECK_GRADIENTS(nn::gradcheck(
        model, [&] { return cross_entropy(model(x.symbols), x.next, {.ignore_index = kNone}).loss; }));
  }
}

TEST_CASE("stack RNN: one that pushes for a, pops for b and sees the bottom counts to any n") {
  Rng rng(2);
  Model model("stack", rng);
  for (const NamedParameter& p : nn::named_parameters(model)) nn::init::zeros_(*p.parameter);
  auto set = [](Parameter& p, int64_t row, int64_t at, double value) {
    p.update([&](const Tensor& table) { Tensor(table).set(row * table.size(1) + at, value); });
  };
  set(model.in.weight, 0, 0, 40);  // unit 0 is on after a, unit 1 after b
  set(model.in.weight, 1, 1, 40);
  for (int64_t symbol = 0; symbol < kSymbols; ++symbol) {
    set(model.in.weight, symbol, 2, symbol == 1 ? 10 : -30);
    for (int64_t unit : {0, 1})
      if (unit != symbol) set(model.in.weight, symbol, unit, -40);
  }
  // Unit 2: b, and under the top of the first stack is nothing.
  set(model.stacks->seen.weight, 2, 1, -20);
  set(model.stacks->act.weight, 0, 0, 20);
  set(model.stacks->act.weight, 1, 1, 20);
  set(model.stacks->push.weight, 0, 0, 40);
  set(model.out.weight, 1, 1, 5);
  set(model.out.weight, 0, 2, 10);
  const Strings x = strings("anbn", 1, kTested);
  CHECK(share_right(model, x) == 1.0);
  CHECK(share_right(model, x, true) == 1.0);
  CHECK(share_right(model, strings("anb2n", 2, 20)) == 0.0);
  const std::string drawn = picture(model, strings("anbn", 3, 3));
  CHECK(drawn.find("stack 1  + + + - - -") != std::string::npos);
  CHECK(drawn.find("next     ? ? ? b b a") != std::string::npos);
}

TEST_CASE("stack RNN: stacks count where a plain RNN does not, and what is wrong with a command line") {
  const double stacks = right_in_quick("stack");
  CHECK(stacks > 1.0 / 3);
  CHECK(right_in_quick("rnn") < stacks);
  cli::check_gallery_refuses("stack_rnn", {"--language", "anbm"}, "--language");
}
