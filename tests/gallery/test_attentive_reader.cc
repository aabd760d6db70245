// The attentive reader: its stories, its gradients, and what it finds.

#include <string>
#include <vector>

#include <gradus/nn/module.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "run_gallery.h"

#define main attentive_reader_main
#include "../../examples/gallery/attentive_reader.cc"
#undef main

namespace {

const std::vector<std::string> kHeads = {"uniform", "none", "bahdanau", "general"};

// Who, which action, whom: a sentence without its filler and its stop.
std::vector<int> fact_of(const Batch& batch, int64_t b, int64_t begin, int64_t end) {
  std::vector<int> out;
  for (int64_t t = begin; t < end; ++t) {
    const int word = batch.words.row(t).i32()[b];
    if (word >= kVerb && word < kFiller) out.push_back((word - kVerb) / 2 + kVerb);
    if (word >= kMarker || word == kBlank) out.push_back(word);
  }
  REQUIRE(out.size() == 3);
  CHECK(batch.words.row(end - 1).i32()[b] == kStop);
  return out;
}

}  // namespace

TEST_CASE(
    "attentive reader: one sentence of the story answers the question, and it is the one that is marked") {
  Rng rng(1);
  const int64_t sentences = 8, B = 200;
  const Batch batch = stories(sentences, B, rng);
  REQUIRE(batch.words.shape() == Shape{kAsked + sentences * kSentence, B});
  std::vector<int> answers(kMarkers), said(sentences);
  for (int64_t b = 0; b < B; ++b) {
    std::vector<int> asked = fact_of(batch, b, 0, kAsked);
    const size_t blank = b % 2 == 0 ? 0 : 2;
    CHECK(asked[blank] == kBlank);
    int found = 0;
    for (int64_t i = 0; i < sentences; ++i) {
      const int64_t begin = kAsked + i * kSentence;
      const std::vector<int> fact = fact_of(batch, b, begin, begin + kSentence);
      CHECK(fact[0] != fact[2]);
      asked[blank] = fact[blank];
      const bool answers_it = fact == asked;
      for (int64_t s = i * kSentence; s < (i + 1) * kSentence; ++s)
        CHECK(batch.said.row(b).at(s) == (answers_it ? 1 : 0));
      if (!answers_it) continue;
      ++found;
      ++said[i];
      CHECK(fact[blank] - kMarker == batch.answers.i32()[b]);
    }
    CHECK(found == 1);
    ++answers[batch.answers.i32()[b]];
  }
  for (int count : answers) CHECK(count > 0);
  for (int count : said) CHECK(count > 0);
}

TEST_CASE("attentive reader: the most frequent marker is one that the question does not name") {
  auto most = [](const std::vector<int>& words) {
    return most_frequent(
        Tensor::from_ids({static_cast<int64_t>(words.size()), 1}, {words.begin(), words.end()}), 0);
  };
  const int a = kMarker + 3, b = kMarker + 5, c = kMarker + 9;
  CHECK(most({kBlank, kVerb, a, kStop, a, kVerb, b, a, kVerb, c, c, kVerb, a}) == 9);
  CHECK(most({a, kVerb, kBlank, kStop, a, kVerb, b}) == 5);
}

TEST_CASE("attentive reader: gradients of all parameters, whatever is made of the story") {
  for (const std::string& head : kHeads) {
    CAPTURE(head);
    Rng rng(2);
    const Batch batch = stories(2, 2, rng);
    Reader model(head, rng);
    CHECK_GRADIENTS(nn::gradcheck(
        model, [&] { return cross_entropy(model(batch.words).first, batch.answers).loss; }));
  }
}

TEST_CASE("attentive reader: weights over all words of the story sum to 1; uniform ones are what they say") {
  Rng rng(3);
  const Batch batch = stories(3, kTest, rng);
  for (const std::string& head : kHeads) {
    CAPTURE(head);
    Reader model(head, rng);
    const Tensor weights = model(batch.words).second;
    REQUIRE(weights.defined() == (head != "none"));
    if (head == "none") continue;
    REQUIRE(weights.shape() == Shape{kTest, 3 * kSentence});
    CHECK(sum(weights.row(7)).item() == about(1, 1e-5));
    if (head == "uniform") CHECK(score_of(model, batch).found == about(1.0 / 3, 1e-5));
  }
}

TEST_CASE("attentive reader: the general score finds the answer in a few hundred batches, a mean does not") {
  auto last_of = [](const char* head) { return cli::gallery_result("attentive_reader", {"--head", head}); };
  const auto general = last_of("general"), uniform = last_of("uniform");
  CHECK(general.at("right") > 0.7);
  CHECK(general.at("right").get<double>() ==
        about((general.at("before").get<double>() + general.at("behind").get<double>()) / 2, 1e-9));
  CHECK(general.at("found") > 0.5);
  CHECK(uniform.at("right") < 0.6);
  CHECK(uniform.at("found").get<double>() == about(1.0 / 3, 1e-5));
  CHECK(uniform.at("frequent") == general.at("frequent"));
}

TEST_CASE(
    "attentive reader: what it learns, the story with its weights, and what is wrong with a command line") {
  const cli::Result run = cli::run_gallery("attentive_reader", {"--quick"});
  CHECK(run.code == 0);
  for (const char* said : {"update   240", "  * ", "is answered"})
    CHECK(run.out.find(said) != std::string::npos);
  cli::check_gallery_refuses("attentive_reader", {"--head", "dot"}, "--head");
}

TEST_CASE("attentive reader: answers count by the blank's place") {
  Rng rng(4);
  const Reader model("uniform", rng);
  Batch batch = stories(3, kTest, rng);
  const Tensor best = argmax(model(batch.words).first);
  for (int32_t b = 0; b < kTest; ++b)  // as if all blanks behind the verb were wrong
    batch.answers.i32()[b] = (best.i32()[b] + b % 2) % kMarkers;
  CHECK(score_of(model, batch).before == 1);
  CHECK(score_of(model, batch).behind == 0);
}
