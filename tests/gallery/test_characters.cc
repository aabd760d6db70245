// The models of characters: probabilities that sum to 1, counts known by hand, nothing of what comes after.

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <gradus/nn/module.h>

#include <common/json_text.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "run_gallery.h"

#define main characters_main
#include "../../examples/gallery/characters.cc"
#undef main

namespace {

// Texts of one length side by side: i32 [L, B].
Tensor columns(const std::vector<std::string>& texts) {
  const int64_t L = std::ssize(texts[0]), B = std::ssize(texts);
  Tensor ids({L, B}, DType::i32);
  for (int64_t i = 0; i < L * B; ++i) ids.i32()[i] = static_cast<unsigned char>(texts[i % B][i / B]);
  return ids;
}

// p of the character after the text.
double p_after(const Model& model, const std::string& text, char next) {
  NoGrad no_tape;
  return softmax(model.logits(columns({text}))).value().row(std::ssize(text) - 1).at(next);
}

cli::Result characters(const cli::Arguments& options) { return cli::run_gallery("characters", options); }

}  // namespace

TEST_CASE("characters: n-grams of a text whose counts are known by hand") {
  NGrams model(256);
  CHECK(p_after(model, "a", 'b') == about(1.0 / 256, 1e-6));
  model.learn(columns({"aab"}), 0);
  // Nothing before: a, b once each. After a: a, b once each. After aa: b.
  const double p0 = 1.0 / 256, p1 = (1 + 2 * p0) / 4, p2 = (1 + 2 * p1) / 4, p3 = (1 + p2) / 2;
  CHECK(p_after(model, "x", 'b') == about(p1, 1e-6));
  CHECK(p_after(model, "xa", 'b') == about(p2, 1e-6));
  CHECK(p_after(model, "aa", 'b') == about(p3, 1e-6));
  CHECK(p_after(model, "aa", 'a') == about(p2 / 2, 1e-6));
  CHECK(p_after(model, "aa", 'c') == about(p0 / 8, 1e-6));
  NGrams twice(256);
  twice.learn(columns({"aab", "aac"}), 0);  // each column has its own past
  CHECK(twice.seen.at("aa").size() == 2);
  CHECK(twice.seen.at("").at('a') == 2);
  CHECK(twice.seen.count("ab") == 0);
}

TEST_CASE("characters: n-grams look at n - 1 characters, and their probabilities sum to 1") {
  NGrams model(256);
  Rng rng(1);
  Tensor text({400, 2}, DType::i32);
  for (int64_t i = 0; i < text.numel(); ++i) text.i32()[i] = static_cast<int32_t>('a' + rng.below(3));
  model.learn(text, 0);
  const Tensor p = exp(model.logits(text)).value();
  for (int64_t t = 0; t < 400; t += 7)
    for (int64_t b = 0; b < 2; ++b) CHECK(sum(p.row(t).row(b)).item() == about(1, 1e-5));
  const Tensor read = text.rows(0, 20), last = model.logits(read).value().row(19);
  auto difference = [&](int64_t t) {
    Tensor other = read.clone();  // letters that were never seen
    for (int64_t b = 0; b < 2; ++b) other.i32()[2 * t + b] ^= 'a' ^ 'z';
    return max_abs_difference(last, model.logits(other).value().row(19));
  };
  CHECK(difference(19 - (kOrder - 1)) == 0);
  CHECK(difference(19 - (kOrder - 2)) > 0.01);
}

TEST_CASE("characters: no model sees what comes after") {
  Rng rng(2);
  NoGrad no_tape;
  const Tensor text = columns({"the cat sat", "on the mat."}),
               other = columns({"the cut sat", "on she mat."});
  for (const char* kind : {"ngram", "rnn", "gru", "lstm", "gpt"}) {
    CAPTURE(kind);
    NGrams grams(256);
    grams.learn(text, 0);
    Network network(std::string(kind) == "ngram" ? "rnn" : kind, 256, rng);
    const Model& model = std::string(kind) == "ngram" ? static_cast<const Model&>(grams) : network;
    const Tensor a = model.logits(text).value(), b = model.logits(other).value();
    CHECK(max_abs_difference(a.rows(0, 3), b.rows(0, 3)) == 0);
    CHECK(max_abs_difference(a.rows(3, 6), b.rows(3, 6)) > 0.01);
  }
}

TEST_CASE("characters: gradients of the networks' parameters") {
  const Tensor read = Tensor::from_ids({3, 2}, {0, 2, 1, 0, 2, 3}),
               next = Tensor::from_ids({3, 2}, {1, 0, 2, 3, 0, 1});
  for (const char* kind : {"gru", "gpt"}) {
    CAPTURE(kind);
    Rng rng(3);
    Network model(kind, 4, rng);
    CHECK_GRADIENTS(nn::gradcheck(model, [&] { return cross_entropy(model.logits(read), next).loss; }));
  }
}

TEST_CASE(
    "characters: the text lies in parts, whose windows overlap by the character that is predicted next") {
  std::string text;
  for (int64_t i = 0; i < kLeast; ++i) text += static_cast<char>('a' + i % 23);
  const Text parts(text + "\n\x1b");
  CHECK(parts.ids.size(0) == kLeast / kBatch);
  CHECK(parts.alphabet ==
        "\n\x1b"
        "abcdefghijklmnopqrstuvw");
  CHECK(parts.shown(parts.ids.rows(0, 5)) == "abcde");
  CHECK(parts.alphabet[parts.ids.row(0).i32()[1]] == text[kLeast / kBatch]);
  CHECK(parts.window(0).row(kSteps).i32()[0] == parts.window(1).row(0).i32()[0]);
  CHECK(parts.shown(Tensor::from_ids({4, 1}, {2, 0, 3, 1})) == "a/b\xEF\xBF\xBD");
}

TEST_CASE("characters: counts and a network learn in one loop; the end shows what surprised them") {
  const cli::Result run = characters({"--quick", "--json", "--models", "ngram,gru"});
  REQUIRE(run.code == 0);
  const std::vector<std::string> lines = cli::lines_of(run.out);
  CHECK(lines.size() == kReports + 1);
  const auto first = json_text::parse(lines.front()), last = json_text::parse(lines.back());
  REQUIRE(last.at("event") == "result");
  for (const char* name : {"ngram", "gru"}) {
    const double bits = last.at("bits").at(name).get<double>();
    CHECK(bits < first.at("bits").at(name).get<double>() - 0.5);
    CHECK(last.at("nats").at(name).get<double>() == about(bits * std::log(2), 1e-9));
  }
  CHECK(last.at("bits").at("ngram") < 1.5);
  CHECK(last.at("bits").at("gru") < 3.5);
  const cli::Result seen = characters({"--quick", "--models", "ngram"});
  CHECK(seen.out.find("how much each character surprises") != std::string::npos);
  CHECK(seen.out.find("█") != std::string::npos);
}

TEST_CASE("characters: a file to learn from, and files that are none") {
  std::string text;
  for (int64_t i = 0; i < 2 * kLeast; ++i) text += "\xff\x1b ab\n"[i % 6];
  cli::write_file("bytes", text);
  const cli::Result run = characters({"--quick", "--models", "ngram", "--text", "bytes"});
  CHECK(run.code == 0);
  CHECK(cli::acts_on_terminal(run.out) == "");
  cli::write_file("short", "a few words\n");
  CHECK(characters({"--text", "short"}).says("a text takes 50000 characters: 12"));
  CHECK(characters({"--text", "nowhere"}).says("nowhere: "));
  CHECK(characters({"--models", "gpt,markov"}).code == 2);
}

TEST_CASE("characters: what is tested was not learned from, and what is written follows what was") {
  // Each of the parts is regular as far as it is learned from, and then not.
  std::string text(kLeast, 'a');
  Rng rng(1);
  const int64_t L = kLeast / kBatch, learned = ((L - 1) / kSteps - kTest) * kSteps;
  for (int64_t i = 0; i < kLeast; ++i)
    text[i] = static_cast<char>('a' + (i % L > learned ? 2 + rng.below(20) : i % 2));
  cli::write_file("half-random", text);
  const cli::Result run = characters({"--quick", "--json", "--models", "ngram", "--text", "half-random"});
  CHECK(json_text::parse(cli::lines_of(run.out).back()).at("bits").at("ngram") > 3.0);
  NGrams model(2);
  Tensor alternating({1001, 1}, DType::i32);
  for (int32_t i = 0; i < 1001; ++i) alternating.i32()[i] = i % 2;
  model.learn(alternating, 0);
  const Tensor written = write(model, rng);
  double followed = 0;
  for (int64_t t = 1; t < kSteps; ++t) followed += written.i32()[t] != written.i32()[t - 1];
  CHECK(followed / (kSteps - 1) > 0.9);
}
