// Copying and reversing: what is to be said, how it is counted, and who can do it at all.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "../about.h"
#include "../quick_doctest.h"
#include "run_gallery.h"

#define main copy_main
#include "../../examples/gallery/copy.cc"
#undef main

namespace {

std::vector<int32_t> column(const Tensor& ids, int64_t b) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < ids.size(0); ++i) out.push_back(ids.i32()[i * ids.size(1) + b]);
  return out;
}

// What a program that makes no mistake would say.
std::vector<nn::Hypothesis> faultless(const nn::Seq2SeqBatch& batch) {
  std::vector<nn::Hypothesis> out(batch.source.size(1));
  for (size_t b = 0; b < out.size(); ++b) {
    out[b].tokens = column(batch.target_out, static_cast<int64_t>(b));
    out[b].tokens.pop_back();  // </s>
  }
  return out;
}

double symbols_right(const char* length, const cli::Arguments& options) {
  return cli::gallery_result("copy", options).at(std::string("symbols_") + length).get<double>();
}

}  // namespace

TEST_CASE("copy: the target is the source's symbols in their order, or in the other one") {
  Rng rng(1);
  for (const std::string task : {"copy", "reverse"}) {
    CAPTURE(task);
    const nn::Seq2SeqBatch batch = draw(task, 7, 5, rng);
    CHECK(batch.target_tokens == 8 * 5);
    for (int64_t b = 0; b < 5; ++b) {
      std::vector<int32_t> said = column(batch.source, b), fed = column(batch.target_in, b);
      CHECK(batch.source_lengths.at(b) == 8);
      CHECK(said.back() == nn::kEos);
      for (size_t i = 0; i < 7; ++i) CHECK((said[i] >= kFirst && said[i] < kVocabulary));
      if (task == "reverse") std::reverse(said.begin(), said.end() - 1);
      CHECK(column(batch.target_out, b) == said);
      said.pop_back();
      said.insert(said.begin(), nn::kBos);
      CHECK(fed == said);
    }
  }
}

TEST_CASE("copy: a symbol counts in its place, a sequence as a whole and where it ends") {
  Rng rng(2);
  const nn::Seq2SeqBatch batch = draw("copy", 4, 2, rng);
  auto shares = [&](const std::vector<nn::Hypothesis>& said) {
    const Right r = right(said, batch.target_out);
    return std::vector<double>{r.symbols, r.sequences};
  };
  std::vector<nn::Hypothesis> said = faultless(batch);
  CHECK(shares(said) == std::vector<double>{1, 1});
  said[0].tokens.push_back(kFirst);  // does not end
  CHECK(shares(said) == std::vector<double>{1, 0.5});
  said[1].tokens.resize(1);  // ends too early
  CHECK(shares(said) == std::vector<double>{0.625, 0});
  CHECK(right(said, batch.target_out).places == std::vector<double>{1, 0.5, 0.5, 0.5});
  said[0].tokens = {-1, -1, -1, -1};
  CHECK(shares(said) == std::vector<double>{0.125, 0});
  CHECK(right(said, batch.target_out).places == std::vector<double>{0.5, 0, 0, 0});
}

TEST_CASE("copy: a test says the share of each place, which make up that of all") {
  const auto lines = cli::gallery_lines("copy", {"--model", "none", "--unidirectional"});
  int tests = 0;
  for (const auto& line : lines) {
    if (line.at("event") != "test") continue;
    const auto& places = line.at("right_by_place");
    const std::string length = std::to_string(line.at("length").get<int>());
    REQUIRE(std::to_string(places.size()) == length);
    CHECK(lines.back().at("symbols_" + length).get<double>() ==
          about(sum_of(places) / static_cast<double>(places.size())));
    ++tests;
  }
  CHECK(tests == 9);
}

TEST_CASE("copy: an encoder that reads one way has half the recurrent weights") {
  auto parameters = [](bool unidirectional) {
    Rng rng(3);
    return nn::num_parameters(*make_model({.model = "none", .unidirectional = unidirectional}, rng));
  };
  // Per direction a GRU of 32 inputs; every step's context and the bridge lose 64 of 128 inputs.
  CHECK(parameters(true) < parameters(false) - 3 * (32 + 64) * 64);
}

TEST_CASE("copy: attention learns it in seconds, a Transformer without positions cannot") {
  CHECK(symbols_right("6", {"--model", "location-aware"}) > 0.6);
  CHECK(symbols_right("6", {"--model", "transformer", "--positions", "none"}) < 0.4);
}

TEST_CASE("copy: people see the shares by length, and where it looked") {
  auto shown = [](const char* model) {
    return cli::run_gallery("copy", {"--quick", "--longest", "4", "--task", "reverse", "--model", model});
  };
  const cli::Result attends = shown("bahdanau"), none = shown("none");
  CHECK(attends.code == 0);
  CHECK(attends.out.find("trained up to 4") != std::string::npos);
  CHECK(attends.out.find("5 symbols above") != std::string::npos);
  std::set<std::string> rows;  // of weights, for each symbol others
  for (const std::string& line : cli::lines_of(attends.out.substr(attends.out.rfind("╭"))))
    rows.insert(line.substr(1));
  CHECK(rows.size() > 3);
  CHECK(none.code == 0);
  CHECK(none.out.find("no attention to be drawn") != std::string::npos);
}

TEST_CASE("copy: an option of the other kind of network is refused") {
  const std::string text = "--positions is of --model transformer, --unidirectional of the others";
  for (const cli::Arguments& words : {cli::Arguments{"--positions", "none"},
                                      cli::Arguments{"--model", "transformer", "--unidirectional"}})
    cli::check_gallery_refuses("copy", words, text);
}

TEST_CASE("copy: --help has the bounds of a number") {
  CHECK(cli::run_gallery("copy", {"--help"}).out.find("above 0 and at most 1") != std::string::npos);
}
