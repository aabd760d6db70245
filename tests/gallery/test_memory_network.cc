// The memory network: its stories, its gradients, and what one hop cannot do.

#include <set>
#include <string>
#include <vector>

#include <gradus/nn/module.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "run_gallery.h"

#define main memory_network_main
#include "../../examples/gallery/memory_network.cc"
#undef main

namespace {

constexpr int kUp = kPicked + 1;

// The answer by reading the story from its beginning: where persons are, who has what, where things have been.
int answer_by_reading(int64_t task, const Question& q) {
  std::vector<int> where(kPersons, -1), holder(kThings, -1);
  std::vector<std::vector<int>> places(kThings);
  for (const std::vector<int>& fact : q.facts) {
    const int who = fact[0], what = fact[4];
    if (fact[1] == kPicked) {
      CHECK(holder[what - kThing] == -1);
      CHECK(where[who] != -1);
      holder[what - kThing] = who;
      places[what - kThing].push_back(where[who]);
      continue;
    }
    CHECK(fact[1] == kWent);
    CHECK(where[who] != what);  // nobody goes where they are
    where[who] = what;
    for (int thing = 0; thing < kThings; ++thing)
      if (holder[thing] == who) places[thing].push_back(what);
  }
  if (task == 1) return where[q.asked[2]];
  const std::vector<int>& been = places[q.asked[3] - kThing];
  REQUIRE(static_cast<int64_t>(been.size()) >= task - 1);
  if (task == 3) CHECK(q.asked[6] == been.back());
  return been[been.size() - (task == 2 ? 1 : 2)];
}

// The story without the facts that the answer does not need.
Question needed_only(const Question& q) {
  Question out = q;
  out.facts.clear();
  std::set<int> support(q.support.begin(), q.support.end());
  for (int fact : support) out.facts.push_back(q.facts[fact]);
  return out;
}

Batch small_batch(int64_t task) {
  Rng rng(5);
  return stories(task, 3, rng);
}

}  // namespace

TEST_CASE(
    "memory network: an answer is what the story says, and follows from the facts that support it") {
  Rng rng(1);
  for (int64_t task = 1; task <= 3; ++task) {
    CAPTURE(task);
    std::set<int> answers;
    for (int i = 0; i < 300; ++i) {
      Question q = draw(task, rng);
      REQUIRE(q.facts.size() == static_cast<size_t>(kFacts[task - 1]));
      REQUIRE(q.asked.size() == static_cast<size_t>(kAsked[task - 1]));
      for (const std::vector<int>& fact : q.facts) {
        REQUIRE(fact.size() == 5);
        CHECK(fact[2] == (fact[1] == kPicked ? kUp : kWent + 1));
      }
      CHECK(answer_by_reading(task, q) == q.answer);
      CHECK(static_cast<int64_t>(q.support.size()) == task);
      Question part = needed_only(q);
      CHECK(part.facts.size() == q.support.size());
      for (const std::vector<int>& fact : part.facts) CHECK(fact[0] == part.facts[0][0]);  // one person's
      bool said = false;
      for (const std::vector<int>& fact : part.facts) said = said || fact[4] == q.answer;
      CHECK(said);
      answers.insert(q.answer);
    }
    CHECK(answers.size() == static_cast<size_t>(kPlaces));
  }
}

TEST_CASE("memory network: gradients of all parameters, with the softmax and in the linear start") {
  for (bool linear_start : {false, true}) {
    CAPTURE(linear_start);
    Rng rng(2);
    Batch batch = small_batch(3);
    MemoryNetwork model(2, batch.facts.size(0), rng);
    CHECK_GRADIENTS(nn::gradcheck(
        model, [&] { return cross_entropy(model(batch, linear_start).first, batch.answers).loss; }));
  }
}

TEST_CASE("memory network: hops see the weights of every fact, and they sum to 1") {
  Rng rng(3);
  Batch batch = small_batch(2);
  MemoryNetwork model(3, batch.facts.size(0), rng);
  auto [logits, weights] = model(batch);
  CHECK(logits.shape() == Shape{3, static_cast<int64_t>(kWords.size())});
  REQUIRE(weights.size() == 3);
  for (const Tensor& w : weights) {
    REQUIRE(w.shape() == Shape{3, kFacts[1]});
    for (int64_t b = 0; b < 3; ++b) CHECK(sum(w.row(b)).item() == about(1, 1e-5));
  }
}

TEST_CASE("memory network: one fact is found with one hop, two take two") {
  auto wrong = [](const char* task, const char* hops) {
    const auto last = cli::gallery_result("memory_network", {"--task", task, "--hops", hops});
    return last.at("wrong").get<double>();
  };
  CHECK(wrong("1", "1") < 0.05);
  CHECK(wrong("2", "1") > 0.4);
  CHECK(wrong("2", "2") < 0.1);
}

TEST_CASE("memory network: what it learns, a story with its weights, and what is wrong with a command line") {
  const cli::Result run = cli::run_gallery("memory_network", {"--quick", "--task", "1", "--hops", "1"});
  CHECK(run.code == 0);
  for (const char* said : {"epoch 30", "  * ", "is answered"}) CHECK(run.out.find(said) != std::string::npos);
  cli::check_gallery_refuses("memory_network", {"--hops", "0"}, "--hops");
}

TEST_CASE("memory network: stars stand at the facts that the answer follows from") {
  Rng rng(4);
  const Batch one = stories(2, 1, rng);
  const int64_t S = one.facts.size(0);
  const auto lines = cli::lines_of(picture(one, {Tensor::zeros({1, S})}));
  REQUIRE(std::ssize(lines) == S);
  for (int64_t s = 0; s < S; ++s) CHECK(lines[s].starts_with("  *") == (one.support.at(s) > 0));
}
