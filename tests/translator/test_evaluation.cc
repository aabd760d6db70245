// What evaluate says, against the same figures taken sentence by sentence.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <translator/inference/evaluation.h>
#include <translator/inference/translation.h>

#include "../about.h"
#include "../check.h"
#include "tiny.h"

using namespace gradus;
using namespace translator;

namespace {

// More than two batches of 64.
std::vector<SentencePair> many() {
  std::vector<SentencePair> out;
  for (int i = 0; i < 150; ++i) out.push_back(tiny::pairs()[static_cast<size_t>(i * i % 6)]);
  return out;
}

CrossEntropy loss_of(const Model& model, const SentencePair& p) {
  NoGrad guard;
  return model.network->loss(make_batch(encode({p}, model), {0}));
}

// Weights of one sentence, teacher-forced: [T, S].
std::vector<std::vector<float>> weights_of(const Model& model, const SentencePair& p) {
  NoGrad guard;
  Tensor w = model.network->align(make_batch(encode({p}, model), {0}));
  std::vector<std::vector<float>> out;
  for (int64_t t = 0; t < w.size(0); ++t)
    out.emplace_back(w.f32() + t * w.size(2), w.f32() + (t + 1) * w.size(2));
  return out;
}

}  // namespace

TEST_CASE("the loss is that of the sentences one by one, on any number of threads") {
  Model model = tiny::model();
  auto pairs = many();
  double nll = 0;
  int64_t tokens = 0;
  for (const SentencePair& p : pairs) {
    CrossEntropy one = loss_of(model, p);
    nll += one.nll;
    tokens += static_cast<int64_t>(p.target.size()) + 1;
  }
  for (int threads : {1, 2, 5}) {
    CAPTURE(threads);
    Total all = total_loss(model, encode(pairs, model), {threads});
    CHECK(all.nats == about(nll, 1e-5));
    CHECK(all.tokens == tokens);
    Evaluation e = evaluate(model, pairs, {.threads = threads});
    CHECK(e.tokens == tokens);
    CHECK(e.nll == about(nll / static_cast<double>(tokens), 1e-5));
    CHECK(e.perplexity == about(std::exp(nll / static_cast<double>(tokens)), 1e-5));
    CHECK(e.sentences == 150);
    CHECK(e.translated == 150);
    CHECK(e.seconds > 0);
  }
}

TEST_CASE("the loss of many batches is the same to the bit on any number of threads") {
  Model model = tiny::model();
  std::vector<SentencePair> pairs;
  for (int i = 0; i < 10; ++i)
    for (const SentencePair& p : many()) pairs.push_back(p);
  const auto encoded = encode(pairs, model);
  const double alone = total_loss(model, encoded, {}).nats;
  for (int threads : {2, 3, 5}) {
    CAPTURE(threads);
    CHECK(total_loss(model, encoded, {threads}).nats == alone);
  }
}

TEST_CASE("the losses of tokens are those of the sentences, word for word, on any number of threads") {
  Model model = tiny::model();
  auto pairs = many();
  const auto encoded = encode(pairs, model);
  const auto alone = token_losses(model, encoded, {});
  REQUIRE(alone.size() == pairs.size());
  CHECK((token_losses(model, encoded, {.threads = 3}) == alone));
  for (size_t i = 0; i < 6; ++i) {
    const CrossEntropy one = loss_of(model, pairs[i]);
    CHECK(alone[i].size() == encoded[i].target.size() + 1);
    CHECK(std::accumulate(alone[i].begin(), alone[i].end(), 0.0) == about(one.nll, 1e-5));
  }
  // A word that cannot come costs what it is given, and no other word's place.
  tiny::set(model, "output.bias", model.target.id(pairs[1].target[2]), -20);
  const auto dearer = token_losses(model, encode({pairs[1]}, model), {});
  for (size_t t = 0; t < dearer[0].size(); ++t) CHECK((dearer[0][t] > alone[1][t] + 15) == (t == 2));
}

TEST_CASE("each source length is in one range, and in the last one when it is long") {
  const auto& ranges = length_ranges();
  std::vector<SentencePair> pairs(100);
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i].source.assign(i + 1, "a");
  std::vector<int> seen(pairs.size());
  for (size_t r = 0; r < ranges.size(); ++r)
    for (size_t i : ranges[r].chosen(pairs)) {
      if (r + 1 == ranges.size())
        CHECK(i >= 20);
      else
        ++seen[i];
    }
  CHECK(std::count(seen.begin(), seen.end(), 1) == 100);
  CHECK(ranges.back().chosen(pairs).size() == 80);
}

TEST_CASE("translations, exact matches and BLEU are of the first so many sentences, in their order") {
  Model model = tiny::model();
  tiny::set(model, "output.bias", nn::kEos, -5);  // it says something, if only the longest it may
  auto pairs = many();
  std::vector<std::string> sources;
  for (const SentencePair& p : pairs) sources.push_back(p.source_text);
  auto found = translate(model, tiny::split(model, sources));
  int exact = 0, exact_in_own_spelling = 0;
  std::vector<std::string> hypotheses;
  std::vector<std::vector<std::string>> references;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (i % 3 == 0) {  // what the model says is right, but that every second of these files has other spaces
      pairs[i].target = found[i][0].tokens;
      pairs[i].target_text = (i % 2 ? "  " : "") + model.writes.join(pairs[i].target);
    }
    if (i % 5 == 1) pairs[i].further_targets = {"nothing like it", model.writes.join(found[i][0].tokens)};
    if (i >= 100) continue;
    hypotheses.push_back(model.writes.join(found[i][0].tokens));
    references.push_back({pairs[i].target_text});
    for (const std::string& text : pairs[i].further_targets) references.back().push_back(text);
    exact += std::count(references.back().begin(), references.back().end(), hypotheses.back()) > 0;
    exact_in_own_spelling += std::any_of(
        references.back().begin(), references.back().end(), [&](const std::string& reference) {
          return model.writes.join(model.writes.split(reference).pieces) == hypotheses.back();
        });
  }
  Evaluation e = evaluate(model, pairs, {.translate_at_most = 100});
  CHECK(e.sentences == 150);
  CHECK(e.translated == 100);
  CHECK(e.hypotheses == hypotheses);
  CHECK(e.references == references);
  CHECK(exact > 20);
  CHECK(e.exact_match == exact / 100.0);
  CHECK(e.exact_in_own_spelling == exact_in_own_spelling / 100.0);
  CHECK(e.exact_match != e.exact_in_own_spelling);
  CHECK(e.bleu.score == corpus_bleu(hypotheses, references, {.lowercase = true}).score);
  CHECK(e.bleu.signature.starts_with("nrefs:var|case:lc|"));
  CHECK(e.bleu.score > 0);
  Evaluation all = evaluate(model, pairs, {.translate_at_most = 1000});
  CHECK(all.translated == 150);
  CHECK(all.hypotheses.size() == 150);
}

TEST_CASE("a translation is exact when it is one of the references, letter for letter") {
  CHECK(is_exact("Il dort.", {"Elle dort.", "Il dort."}, false));
  CHECK_FALSE(is_exact("il dort.", {"Il dort."}, false));
  CHECK(is_exact("il dort.", {"Il dort."}, true));
  CHECK_FALSE(is_exact("il dort .", {"Il dort."}, true));
  CHECK_FALSE(is_exact("il dort", {"Il dort."}, true));
}

TEST_CASE("alignment error and entropy are those of the weights, word by word") {
  Model model = tiny::model("local-p");  // whose weights sum to less than 1
  auto pairs = many();
  for (int64_t at_most : {0, 5}) {
    CAPTURE(at_most);
    double entropy = 0;
    int64_t words = 0, system = 0, sure = 0, hits = 0;
    for (size_t i = 0; i < pairs.size() && (at_most == 0 || i < 5); ++i) {
      const SentencePair& p = pairs[i];
      auto w = weights_of(model, p);
      std::set<std::pair<int, int>> gold;
      std::set<int> linked;
      for (const Link& link : p.alignment->sure) {
        gold.insert({link.source, link.target});
        linked.insert(link.target);
      }
      sure += static_cast<int64_t>(gold.size());
      for (size_t t = 0; t < p.target.size(); ++t, ++words) {
        double sum = 0;
        for (float x : w[t]) sum += x;
        for (float x : w[t]) entropy -= x > 0 ? x / sum * std::log(x / sum) : 0;
        auto best = static_cast<size_t>(std::max_element(w[t].begin(), w[t].end()) - w[t].begin());
        int target = static_cast<int>(t);
        if (best >= p.source.size() || !linked.count(target)) continue;
        ++system;
        hits += static_cast<int64_t>(gold.count({static_cast<int>(best), target}));
      }
    }
    Evaluation e = evaluate(model, pairs, {.align_at_most = at_most, .threads = 2});
    REQUIRE(e.entropy);
    REQUIRE(e.aer);
    CHECK(*e.entropy == about(entropy / static_cast<double>(words), 1e-4));
    CHECK(*e.aer == about(1 - 2.0 * static_cast<double>(hits) / static_cast<double>(system + sure)));
  }
  for (SentencePair& p : pairs) p.alignment.reset();
  Evaluation bare = evaluate(model, pairs);
  CHECK_FALSE(bare.aer);
  CHECK(bare.entropy);
  pairs[3].alignment.emplace();  // without a link
  CHECK_FALSE(evaluate(model, pairs).aer);
  pairs[3].alignment = tiny::pairs()[3].alignment;
  CHECK_FALSE(evaluate(model, pairs, {.align_at_most = 3}).aer);
  CHECK(evaluate(model, pairs, {.align_at_most = 4}).aer);
  Evaluation unwanted = evaluate(model, pairs, {.alignment = false});
  CHECK_FALSE(unwanted.entropy);
  CHECK_FALSE(evaluate(tiny::model("none"), pairs).entropy);
}

TEST_CASE("a model that is given the alignments looks where they say, and translates alone as in company") {
  Model model = tiny::model("oracle");
  auto pairs = many();
  Evaluation e = evaluate(model, pairs, {.threads = 2});
  REQUIRE(e.aer);
  CHECK(*e.aer == 0);  // no target word of tiny::pairs has two links
  // The longest of a batch says how long all may become: alone some are shorter.
  for (size_t i = 0; i < 6; ++i) {
    std::string alone = evaluate(model, {pairs[i]}).hypotheses[0];
    CHECK(alone.size() > 10);
    CHECK(e.hypotheses[i].substr(0, alone.size()) == alone);
  }
  tiny::set(model, "output.bias", nn::kEos, -50);  // never ends by itself
  for (size_t i = 0; i < 6; ++i) {
    std::string alone = evaluate(model, {pairs[i]}).hypotheses[0];
    long words = std::count(alone.begin(), alone.end(), ' ') + 1;
    CHECK(words == 2 * static_cast<long>(pairs[i].source.size() + 1) + 10);
  }
}

TEST_CASE("progress is told: what, how much of how much") {
  Model model = tiny::model();
  std::vector<std::string> told;
  EvaluationOptions options;
  options.translate_at_most = 70;
  options.align_at_most = 10;
  options.on_progress = [&](const char* what, int64_t done, int64_t total) {
    told.push_back(std::string(what) + " " + std::to_string(done) + "/" + std::to_string(total));
  };
  evaluate(model, many(), options);
  CHECK(told == std::vector<std::string>{"loss 64/150", "loss 128/150", "loss 150/150", "translating 17/70",
                                         "translating 33/70", "translating 49/70", "translating 65/70",
                                         "translating 70/70", "aligning 10/10"});
}

TEST_CASE("no sentences") {
  Evaluation e = evaluate(tiny::model(), {});
  CHECK(e.sentences == 0);
  CHECK(e.nll == 0);
  CHECK(e.exact_match == 0);
  CHECK_FALSE(e.aer);
}
