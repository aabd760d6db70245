// What a search may be told of the words it takes, against all sequences that there are: a vocabulary of three
// words and </s>, at most six words.

#include <cmath>
#include <set>

#include <gradus/nn/search.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/parallel.h>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "small_models.h"

namespace tiny_vocabulary {  // other tests of search call theirs by the same names

using namespace gradus;
using testing::error_of;
namespace nn = gradus::nn;

using Words = std::vector<int32_t>;
using Found = std::vector<nn::Hypothesis>;

constexpr int64_t kLongest = 6;
constexpr int64_t kAll = 729;  // hypotheses of six words

// The kinds that are decoded in ways of their own, by turns.
std::unique_ptr<nn::TranslationModel> tiny(uint64_t seed) {
  Rng rng(seed);
  if (seed % 4 == 3) {
    nn::TransformerConfig c = small_models::small_transformer();
    c.target_vocabulary = 6;
    c.num_layers = 1;
    return std::make_unique<nn::TransformerSeq2Seq>(c, rng);
  }
  nn::Seq2SeqConfig c = small_models::small(seed % 4 == 1 ? "general" : "bahdanau");
  c.target_vocabulary = 6;
  if (seed % 4 == 2) c.rnn.cell = {nn::CellKind::lstm};
  auto model = std::make_unique<nn::Seq2Seq>(c, rng);
  // Fresh weights find all words alike.
  for (const auto& [name, p] : nn::named_parameters(*model)) {
    Tensor x = p->value();
    for (int64_t i = 0; i < x.numel(); ++i) x.f32()[i] *= 3;
  }
  return model;
}

Tensor source() { return Tensor::from_ids({4, 1}, {5, 4, 8, 3}); }
Tensor length() { return Tensor::from_ids({1}, {4}); }

Found found(const nn::TranslationModel& model, nn::SearchOptions options, nn::SentenceSearch own = {}) {
  options.max_length = kLongest;
  options.sentences = {std::move(own)};
  return nn::translate(model, source(), length(), options)[0];
}

struct Sequence {
  Words words;
  bool finished;
  double log_probability;
};

// Every sequence with its probability under teacher forcing.
std::vector<Sequence> every(const nn::TranslationModel& model) {
  std::vector<Sequence> all;
  std::vector<Words> begun = {{}};
  for (int64_t n = 0; n <= kLongest; ++n) {
    std::vector<Words> longer;
    for (const Words& w : begun) {
      if (n < kLongest)
        all.push_back({w, true, 0});
      else
        all.push_back({w, false, 0});
      for (int32_t v : {0, 4, 5}) {
        longer.push_back(w);
        longer.back().push_back(v);
      }
    }
    begun = longer;
  }
  const auto B = static_cast<int64_t>(all.size());
  Tensor read({4, B}, DType::i32), lengths({B}, DType::i32), in({kLongest, B}, DType::i32),
      out({kLongest, B}, DType::i32);
  lengths.fill(4);
  in.fill(nn::kPad);
  out.fill(nn::kPad);
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t s = 0; s < 4; ++s) read.i32()[s * B + b] = source().i32()[s];
    Words said = all[b].words;
    if (all[b].finished) said.push_back(nn::kEos);
    for (size_t t = 0; t < said.size(); ++t) {
      out.i32()[static_cast<int64_t>(t) * B + b] = said[t];
      in.i32()[static_cast<int64_t>(t) * B + b] = t == 0 ? nn::kBos : said[t - 1];
    }
  }
  NoGrad guard;
  const Tensor cost = model.word_losses({read, lengths, in, out, B * kLongest});
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < kLongest; ++t) all[b].log_probability -= cost.f32()[t * B + b];
  return all;
}

double score(const Sequence& s, const nn::SearchOptions& o) {
  const double n = static_cast<double>(s.words.size()) + s.finished;
  return s.log_probability / (o.length_penalty ? std::pow((5 + n) / 6, *o.length_penalty) : n);
}

template <class Allowed>
Sequence best_of(const std::vector<Sequence>& all, const nn::SearchOptions& o, Allowed allowed) {
  const Sequence* best = nullptr;
  for (const Sequence& s : all)
    if (allowed(s) && (!best || score(s, o) > score(*best, o))) best = &s;
  REQUIRE(best);
  return *best;
}

int64_t times(const Words& words, const Words& phrase) {
  int64_t n = 0;
  for (auto at = words.begin();
       (at = std::search(at, words.end(), phrase.begin(), phrase.end())) != words.end(); ++at)
    ++n;
  return n;
}

// The same best of all that is allowed, unless two are as good.
void check_best(const nn::Hypothesis& h, const Sequence& best, const nn::SearchOptions& o) {
  CHECK(h.score == about(score(best, o), 1e-4));
  CHECK(h.finished == best.finished);
  CHECK(h.tokens == best.words);
}

TEST_CASE("an exact stop finds the best of all sequences, and takes fewer steps than to look at all") {
  int sooner = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto model = tiny(seed);
    const std::vector<Sequence> all = every(*model);
    for (int how = 0; how < 3; ++how) {
      nn::SearchOptions o{.beam_size = kAll, .exact_stop = 1};
      if (how == 1) o.length_penalty = 0;
      if (how == 2) o.length_penalty = 1;
      int64_t steps = 0;
      o.watch = [&](const nn::SearchStep&) { return ++steps > 0; };
      const Found list = found(*model, o);
      sooner += steps < kLongest;
      check_best(list[0], best_of(all, o, [](auto&) { return true; }), o);
    }
  }
  CHECK(sooner > 50);
}

TEST_CASE("an exact stop goes on where a beam that has finished does not, and finds no worse") {
  int better = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto model = tiny(seed);
    const double as_usual = found(*model, {.beam_size = 2})[0].score;
    const double exact = found(*model, {.beam_size = 2, .exact_stop = 1})[0].score;
    const double more = found(*model, {.beam_size = 2, .exact_stop = 2})[0].score;
    CHECK(exact == more);  // whoever wants two best has the same first
    CHECK(exact >= as_usual);
    better += exact > as_usual;
  }
  CHECK(better > 0);
}

TEST_CASE("the best translation with a phrase, and the best without") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto model = tiny(seed);
    const std::vector<Sequence> all = every(*model);
    for (const std::vector<Words>& phrases :
         std::vector<std::vector<Words>>{{{4}}, {{5, 4}}, {{4, 4, 5}, {0}}, {{5, 5}, {4}, {0}}}) {
      nn::SearchOptions o{.beam_size = 4 * kAll > 1000 ? 1000 : 4 * kAll};
      auto has = [&](const Sequence& s) {
        return std::all_of(phrases.begin(), phrases.end(), [&](auto& p) { return times(s.words, p) > 0; });
      };
      const Found with = found(*model, o, {.required = phrases});
      // What is cut off may have them or not: complete ones come first.
      CHECK(with[0].complete);
      check_best(with[0], best_of(all, o, has), o);
      for (const nn::Hypothesis& h : with)
        CHECK((!h.complete ||
               std::all_of(phrases.begin(), phrases.end(), [&](auto& p) { return times(h.tokens, p) > 0; })));
      auto lacks = [&](const Sequence& s) {
        return std::all_of(phrases.begin(), phrases.end(), [&](auto& p) { return times(s.words, p) == 0; });
      };
      const Found without = found(*model, o, {.forbidden = phrases});
      check_best(without[0], best_of(all, o, lacks), o);
      for (const nn::Hypothesis& h : without) CHECK(lacks({h.tokens, true, 0}));
    }
  }
}

TEST_CASE("a narrow beam, too, says what is required of it") {
  for (uint64_t seed = 0; seed < 40; ++seed)
    for (int64_t beam : {1, 2, 5}) {
      const Found list = found(*tiny(seed), {.beam_size = beam}, {.required = {{5, 4}, {0}}});
      CHECK(list[0].complete);
      CHECK(times(list[0].tokens, {5, 4}) > 0);
      CHECK(times(list[0].tokens, {0}) > 0);
    }
  // There is no room for it: the search says so.
  const Found list = found(*tiny(0), {.beam_size = 2}, {.required = {{4, 4, 4, 4}, {5, 5, 5}}});
  CHECK(!list[0].complete);
}

TEST_CASE("at least so many words, and none twice in a row") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto model = tiny(seed);
    const std::vector<Sequence> all = every(*model);
    for (int64_t n : {1, 2, 3}) {
      nn::SearchOptions o{.beam_size = kAll, .no_repeat_ngram = n};
      auto once = [&](const Sequence& s) {
        std::set<Words> seen;
        for (auto at = s.words.begin(); s.words.end() - at >= n; ++at)
          if (!seen.insert(Words(at, at + n)).second) return false;
        return true;
      };
      check_best(found(*model, o)[0], best_of(all, o, once), o);
      o = {.beam_size = kAll, .min_length = n + 1};
      check_best(found(*model, o)[0],
                 best_of(all, o, [&](const Sequence& s) { return static_cast<int64_t>(s.words.size()) > n; }),
                 o);
      for (const nn::Hypothesis& h : found(*model, {.min_length = n, .scores = false}))
        CHECK(static_cast<int64_t>(h.tokens.size()) >= n);
    }
  }
}

TEST_CASE("a coverage penalty is that of the weights") {
  for (uint64_t seed : {0, 1, 3}) {
    const auto model = tiny(seed);
    nn::SearchOptions o{.beam_size = 5, .coverage_penalty = 0.7, .weights = true};
    const Found list = found(*model, o);
    for (const nn::Hypothesis& h : list) {
      double expected = score({h.tokens, h.finished, h.log_probability}, o);
      for (size_t s = 0; s < 3; ++s) {  // the fourth is </s>
        double sum = 0;
        for (const auto& row : h.weights) sum += row[s];
        expected += 0.7 * std::log(std::min(sum, 1.0));
      }
      CHECK(h.score == about(expected, 1e-6));
    }
    o.weights = false;
    const Found again = found(*model, o);
    for (size_t i = 0; i < list.size(); ++i) {
      CHECK(again[i].score == list[i].score);
      CHECK(again[i].weights.empty());
    }
  }
  Rng rng(1);
  CHECK(error_of([&] {
          found(nn::Seq2Seq(small_models::small("none"), rng), {.coverage_penalty = 1});
        }).find("[translate] coverage_penalty needs a model with alignment weights") == 0);
}

TEST_CASE("ten thousand samples of a step are as the model's probabilities") {
  // Chi-square with 3 degrees of freedom (three words and </s>): above 11.345 once in a hundred.
  for (uint64_t kind : {0, 1, 2, 3}) {
    const auto model = tiny(kind);
    nn::SearchOptions o{.beam_size = 1000};
    o.sampling.temperature = 1.3;
    std::vector<double> p;
    std::vector<double> chi;
    for (uint64_t seed = 0; seed < 10; ++seed) {
      std::vector<double> count(6);
      for (uint64_t tenth = 0; tenth < 10; ++tenth) {
        o.watch = [&](const nn::SearchStep& s) {
          const float* x = s.logits.f32();
          p.assign(6, 0);
          double sum = 0;
          for (int32_t v : {0, 3, 4, 5}) sum += p[v] = std::exp(x[v] / 1.3);
          for (double& each : p) each /= sum;
          for (const auto& c : s.considered) ++count[c.token];
          return false;
        };
        found(*model, o, {.seed = 1000 * kind + 10 * seed + tenth});
      }
      double sum = 0, all = 0;
      for (int32_t v : {0, 3, 4, 5}) {
        sum += (count[v] - 10000 * p[v]) * (count[v] - 10000 * p[v]) / (10000 * p[v]);
        all += count[v];
      }
      CHECK(all == 10000);
      chi.push_back(sum);
    }
    std::sort(chi.begin(), chi.end());
    CHECK((chi[4] + chi[5]) / 2 < 11.345);
    CHECK((chi[4] + chi[5]) / 2 > 0.115);  // nor too well, which is as rare
  }
}

TEST_CASE("each cut leaves the words that it should, and divides by their sum") {
  const std::vector<float> logits = {std::log(0.30f), 50, std::log(0.05f), std::log(0.40f), std::log(0.05f),
                                     std::log(0.20f)};
  auto drawn = [&](const nn::Sampling& how) {
    nn::Sampler sampler;
    Rng rng(3);
    std::vector<double> share(6);
    for (int i = 0; i < 20000; ++i) share[sampler.draw(how, logits.data(), 6, {1}, rng)] += 1 / 20000.0;
    return share;
  };
  auto check = [&](const nn::Sampling& how, const std::vector<double>& expected) {
    const std::vector<double> share = drawn(how);
    for (size_t v = 0; v < 6; ++v) {
      if (expected[v] == 0) CHECK(share[v] == 0);
      CHECK(std::abs(share[v] - expected[v]) < 0.015);
    }
  };
  check({}, {0.30, 0, 0.05, 0.40, 0.05, 0.20});
  check({.top_k = 2}, {3 / 7.0, 0, 0, 4 / 7.0, 0, 0});
  check({.top_k = 1}, {0, 0, 0, 1, 0, 0});
  check({.top_p = 0.69}, {3 / 7.0, 0, 0, 4 / 7.0, 0, 0});
  check({.top_p = 0.71}, {3 / 9.0, 0, 0, 4 / 9.0, 0, 2 / 9.0});
  check({.top_p = 0.01}, {0, 0, 0, 1, 0, 0});
  check({.min_p = 0.6}, {3 / 7.0, 0, 0, 4 / 7.0, 0, 0});
  check({.min_p = 0.49}, {3 / 9.0, 0, 0, 4 / 9.0, 0, 2 / 9.0});
  check({.top_k = 3, .top_p = 0.75}, {3 / 7.0, 0, 0, 4 / 7.0, 0, 0});  // 0.7 / 0.9 are enough
  const double a = std::sqrt(0.3), b = std::sqrt(0.4);
  check({.temperature = 2, .top_k = 2}, {a / (a + b), 0, 0, b / (a + b), 0, 0});
  nn::Sampler sampler;
  Rng rng(1);
  CHECK(sampler.draw({}, logits.data(), 2, {0, 1}, rng) == -1);
  const float none[] = {-INFINITY, -INFINITY};
  CHECK(sampler.draw({}, none, 2, {0}, rng) == 1);
  const float infinite[] = {0, 1, INFINITY, 0}, unknown[] = {NAN, NAN};
  CHECK(sampler.draw({}, infinite, 4, {}, rng) == 2);
  CHECK(sampler.draw({}, unknown, 2, {}, rng) >= 0);
}

TEST_CASE("samples of a sentence differ from each other, and do not depend on who stands beside it") {
  ThreadPool pool(2);
  for (uint64_t kind : {0, 1, 2, 3}) {
    const auto model = tiny(kind);
    const int64_t B = 10;
    Tensor read({4, B}, DType::i32), lengths({B}, DType::i32);
    for (int64_t i = 0; i < 4 * B; ++i) read.i32()[i] = static_cast<int32_t>(4 + i % 5);
    lengths.fill(4);
    nn::SearchOptions o{.beam_size = 8, .max_length = kLongest};
    for (uint64_t b = 0; b < B; ++b) o.sentences.push_back({.prefix = {4}, .seed = 7 + b});
    const auto together = nn::translate(*model, read, lengths, o);
    o.pool = &pool;
    const auto shared = nn::translate(*model, read, lengths, o);
    o.pool = nullptr;
    for (int64_t b = 0; b < B; ++b) {
      nn::SearchOptions own = o;
      own.sentences = {o.sentences[static_cast<size_t>(b)]};
      Tensor one({4, 1}, DType::i32);
      for (int64_t s = 0; s < 4; ++s) one.i32()[s] = read.i32()[s * B + b];
      const Found alone = nn::translate(*model, one, length(), own)[0];
      REQUIRE(together[b].size() == 8);
      REQUIRE(alone.size() == 8);
      std::set<Words> different;
      for (size_t i = 0; i < 8; ++i) {
        CHECK(together[b][i].tokens == alone[i].tokens);
        CHECK(shared[b][i].tokens == alone[i].tokens);
        CHECK(alone[i].tokens[0] == 4);
        different.insert(alone[i].tokens);
      }
      CHECK(different.size() > 1);
    }
  }
}

TEST_CASE("the score of a prefix and that of the rest are the score of the whole") {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const auto model = tiny(seed);
    nn::SearchOptions o{};
    double prefix = 0, rest = 0;
    o.watch = [&](const nn::SearchStep& s) {
      const nn::SearchStep::Considered& c = s.considered[0];
      double sum = 0;
      for (int32_t v = 0; v < 6; ++v) sum += std::exp(static_cast<double>(s.logits.f32()[v]));
      const double own = s.logits.f32()[c.token] - std::log(sum);
      (s.step < 2 ? prefix : rest) += own;
      if (s.step == 1) CHECK(c.log_probability == about(prefix, 1e-6));
      return true;
    };
    const nn::Hypothesis whole = found(*model, o, {.prefix = {5, 4}})[0];
    CHECK(whole.log_probability == about(prefix + rest, 1e-6));
  }
}

TEST_CASE("what cannot be asked of words is an error") {
  const auto model = tiny(0);
  auto told = [&](nn::SearchOptions o, nn::SentenceSearch own) {
    return error_of([&] { found(*model, o, own); });
  };
  CHECK(told({}, {.seed = 1, .required = {{4}}})
            .find("[translate] phrases can be required of a search, not of words that are drawn") == 0);
  CHECK(told({}, {.required = {{}}}).find("[translate] a phrase must have at least one token") == 0);
  CHECK(told({}, {.required = std::vector<Words>(65, {4})})
            .find("[translate] at most 64 phrases can be required: 65") == 0);
  CHECK(told({}, {.required = {{6}}}).find("[translate] there is no word 6: the vocabulary has 6") == 0);
  CHECK(told({.min_length = -1}, {})
            .find("[translate] min_length, max_length, no_repeat_ngram, exact_stop and together must") == 0);
  auto sampling = [&](nn::Sampling how) { return told({.sampling = how}, {.seed = 1}); };
  CHECK(sampling({.temperature = 0}).find("[translate] sampling.temperature must be above 0: 0") == 0);
  CHECK(sampling({.top_k = -1}).find("[translate] sampling.top_k must be at least 0: -1") == 0);
  CHECK(sampling({.top_p = 0}).find("[translate] sampling.top_p must be above 0 and at most 1: 0") == 0);
  CHECK(sampling({.min_p = NAN}).find("[translate] sampling.min_p must be from 0 to 1: nan") == 0);
}

TEST_CASE("the most probable word is left, however much of its probability others must have") {
  const float logits[] = {0, 1, 0.5f};
  nn::Sampler sampler;
  Rng rng(1);
  for (int i = 0; i < 20; ++i) CHECK(sampler.draw({.min_p = 1}, logits, 3, {}, rng) == 1);
}

TEST_CASE("a word of infinite weight is the one that cuts leave") {
  const float logits[] = {0, 1, INFINITY, 0};
  nn::Sampler sampler;
  Rng rng(1);
  CHECK(sampler.draw({.top_k = 1}, logits, 4, {}, rng) == 2);
  CHECK(sampler.draw({.top_p = 0.5}, logits, 4, {}, rng) == 2);
}

}  // namespace tiny_vocabulary
