// A search that is told something: first words, positions nobody may look at, words to be drawn; and one that
// is watched.

#include <cmath>
#include <map>
#include <numeric>

#include <gradus/nn/search.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/ops.h>
#include <gradus/parallel.h>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "small_models.h"

using namespace gradus;
using small_models::batch, small_models::nn::SearchStep;
using testing::error_of;

namespace {

using Found = std::vector<std::vector<nn::Hypothesis>>;

// A recurrent translator and a Transformer, decoded with packed weights and without.
std::vector<std::unique_ptr<nn::TranslationModel>> translators() {
  std::vector<std::unique_ptr<nn::TranslationModel>> out;
  for (const char* attention : {"bahdanau", "general", "multihead", "local-m"}) {
    Rng rng(5);
    out.push_back(std::make_unique<nn::Seq2Seq>(small_models::small(attention), rng));
  }
  Rng rng(7);
  out.push_back(std::make_unique<nn::TransformerSeq2Seq>(small_models::small_transformer(), rng));
  return out;
}

Found found(const nn::TranslationModel& model, const nn::SearchOptions& options) {
  return nn::translate(model, batch().source, batch().source_lengths, options);
}

// log p of a target under teacher forcing, for sentence b.
double log_probability(const nn::TranslationModel& model, int64_t b, const nn::Hypothesis& h) {
  Tensor one({4, 1}, DType::i32);
  for (int64_t s = 0; s < 4; ++s) one.i32()[s] = batch().source.i32()[s * 3 + b];
  std::vector<int32_t> in = {nn::kBos}, out = h.tokens;
  in.insert(in.end(), h.tokens.begin(), h.tokens.end());
  if (h.finished)
    out.push_back(nn::kEos);
  else
    in.pop_back();
  const int64_t T = static_cast<int64_t>(out.size());
  NoGrad guard;
  return -model
              .loss({one, Tensor::from_ids({1}, {batch().source_lengths.i32()[b]}),
                     Tensor::from_ids({T, 1}, in), Tensor::from_ids({T, 1}, out), T})
              .nll;
}

}  // namespace

TEST_CASE("a prefix is said, whatever its probability, and the search goes on from there") {
  for (const auto& model : translators())
    for (int64_t beam : {1, 3})
      for (bool scores : {true, false}) {
        nn::SearchOptions options{.beam_size = beam, .max_length = 6, .scores = scores};
        options.sentences = {{.prefix = {7, 7, 4}}, {}, {.prefix = {5}}};
        const Found forced = found(*model, options);
        options.sentences.clear();
        const Found free = found(*model, options);
        for (int64_t b = 0; b < 3; ++b)
          for (const nn::Hypothesis& h : forced[b]) {
            const std::vector<int32_t> first = b == 0   ? std::vector<int32_t>{7, 7, 4}
                                               : b == 2 ? std::vector<int32_t>{5}
                                                        : std::vector<int32_t>{};
            REQUIRE(h.tokens.size() >= first.size());
            CHECK(std::equal(first.begin(), first.end(), h.tokens.begin()));
            if (scores || beam > 1) CHECK(h.log_probability == about(log_probability(*model, b, h), 1e-4));
          }
        CHECK(forced[1][0].tokens == free[1][0].tokens);
        // What the search says anyway, forced, changes nothing.
        options.sentences.assign(3, {});
        for (int64_t b = 0; b < 3; ++b) {
          options.sentences[b].prefix = free[b][0].tokens;
          options.sentences[b].prefix.resize(std::min<size_t>(free[b][0].tokens.size(), 2));
        }
        const Found again = found(*model, options);
        for (int64_t b = 0; b < 3; ++b)
          if (beam == 1) CHECK(again[b][0].tokens == free[b][0].tokens);
      }
}

TEST_CASE("a prefix longer than a translation may be leaves room for ten words") {
  for (const auto& model : translators()) {
    nn::SearchOptions options{.eos = -1};  // nothing ends but by its limit
    const Found free = found(*model, options);
    for (size_t n : {1, 40}) {
      options.sentences.assign(3, {.prefix = std::vector<int32_t>(n, 5)});
      const Found told = found(*model, options);
      for (int64_t b = 0; b < 3; ++b)
        CHECK(told[b][0].tokens.size() == (n == 1 ? free[b][0].tokens.size() : n + 10));
    }
  }
}

TEST_CASE("a greedy search goes on with what is most probable after a prefix") {
  for (const auto& model : translators()) {
    nn::SearchOptions options{.max_length = 6};
    options.sentences.assign(3, {.prefix = {6, 4}});
    const Found forced = found(*model, options);
    for (int64_t b = 0; b < 3; ++b) {
      const nn::Hypothesis& h = forced[b][0];
      if (h.tokens.size() < 3) continue;
      // Any other third word is less probable under teacher forcing.
      nn::Hypothesis best{{6, 4, h.tokens[2]}, 0, 0, false, {}};
      for (int32_t v = 0; v < 8; ++v) {
        if (v == nn::kPad || v == nn::kBos || v == nn::kEos) continue;
        CHECK(log_probability(*model, b, {{6, 4, v}, 0, 0, false, {}}) <=
              log_probability(*model, b, best) + 1e-5);
      }
    }
  }
}

TEST_CASE("nobody looks at a hidden position, and the others get its weight") {
  for (const auto& model : translators())
    for (int64_t beam : {1, 2}) {
      nn::SearchOptions options{.beam_size = beam, .max_length = 5, .weights = true};
      options.sentences = {{.hidden = {1, 3}}, {}, {.hidden = {0}}};
      const Found some = found(*model, options);
      for (int64_t b = 0; b < 3; ++b)
        for (const auto& row : some[b][0].weights) {
          for (int32_t s : options.sentences[b].hidden) CHECK(row[s] == 0);
          CHECK(std::accumulate(row.begin(), row.end(), 0.0) == about(1, 1e-5));
        }
      options.sentences.clear();
      const Found all = found(*model, options);
      CHECK(some[1][0].tokens == all[1][0].tokens);
      CHECK(all[0][0].weights[0][1] + all[0][0].weights[0][3] > 0);
    }
}

TEST_CASE("a seed draws the same words each time, others draw others") {
  for (const auto& model : translators()) {
    auto drawn = [&](uint64_t seed, double temperature) {
      nn::SearchOptions options{.max_length = 8};
      options.sentences.assign(3, {.seed = seed});
      options.sampling.temperature = temperature;
      return found(*model, options)[0][0].tokens;
    };
    CHECK(drawn(1, 1) == drawn(1, 1));
    std::map<std::vector<int32_t>, int> kinds;
    for (uint64_t seed = 0; seed < 12; ++seed) ++kinds[drawn(seed, 1.5)];
    CHECK(kinds.size() > 6);
    // What is hardly warm takes the most probable word.
    CHECK(drawn(3, 1e-6) == found(*model, {.max_length = 8})[0][0].tokens);
  }
}

TEST_CASE("words are drawn as often as they are probable") {
  const auto all = translators();
  const nn::TranslationModel& model = *all[0];
  std::vector<double> expected;
  nn::SearchOptions options{.max_length = 1};
  options.watch = [&](const SearchStep& s) {
    if (s.sentence != 0) return true;
    const float* x = s.logits.f32();
    double sum = 0;
    for (int32_t v = 0; v < 8; ++v) {
      expected.push_back(v == nn::kPad || v == nn::kBos ? 0 : std::exp(x[v] / 0.7));
      sum += expected.back();
    }
    for (double& p : expected) p /= sum;
    return true;
  };
  found(model, options);
  std::vector<int> times(8);
  const int kDraws = 2000;
  options.watch = [&](const SearchStep& s) {
    if (s.sentence == 0) ++times[s.considered[0].token];
    return true;
  };
  options.sampling.temperature = 0.7;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    options.sentences.assign(3, {.seed = seed});
    found(model, options);
  }
  // Four deviations of a binomial: once in 16,000 by chance, and the seeds are always these.
  for (int32_t v = 0; v < 8; ++v)
    CHECK(std::abs(times[v] - kDraws * expected[v]) <=
          4 * std::sqrt(kDraws * expected[v] * (1 - expected[v])));
}

TEST_CASE("who watches sees every hypothesis grow, and which are cut") {
  for (const auto& model : translators())
    for (int64_t beam : {1, 3}) {
      // Words of the rows of each sentence, built from what is told.
      std::vector<std::vector<std::vector<int32_t>>> rows(3, {{}});
      std::vector<std::vector<std::vector<int32_t>>> finished(3);
      nn::SearchOptions options{.beam_size = beam, .max_length = 5, .weights = true};
      options.watch = [&](const SearchStep& s) {
        auto& own = rows[s.sentence];
        CHECK(s.logits.shape() == Shape{static_cast<int64_t>(own.size()), 8});
        CHECK(s.weights.size(0) == static_cast<int64_t>(own.size()));
        std::vector<std::vector<int32_t>> next;
        double before = 0;
        size_t kept = 0;
        for (const SearchStep::Considered& c : s.considered) {
          CHECK(c.log_probability <= before);
          before = c.log_probability;
          std::vector<int32_t> words = own.at(c.parent);
          CHECK(static_cast<int64_t>(words.size()) == s.step);
          words.push_back(c.token);
          if (c.fate == SearchStep::Fate::kept) next.push_back(words);
          if (c.fate == SearchStep::Fate::finished) finished[s.sentence].push_back(own.at(c.parent));
          kept += c.fate == SearchStep::Fate::kept;
        }
        CHECK(kept <= static_cast<size_t>(beam));
        own = next;
        return true;
      };
      const Found watched = found(*model, options);
      options.watch = nullptr;
      const Found alone = found(*model, options);
      for (int64_t b = 0; b < 3; ++b) {
        REQUIRE(watched[b].size() == alone[b].size());
        for (size_t i = 0; i < alone[b].size(); ++i) {
          const nn::Hypothesis& h = alone[b][i];
          CHECK(watched[b][i].tokens == h.tokens);
          const auto& among = h.finished ? finished[b] : rows[b];
          CHECK(std::count(among.begin(), among.end(), h.tokens) == 1);
        }
      }
    }
}

TEST_CASE("who watches may end a search") {
  const auto all = translators();
  int steps = 0;
  nn::SearchOptions options{.max_length = 50};
  options.watch = [&](const SearchStep&) { return ++steps < 4; };
  const Found ended = found(*all[0], options);
  CHECK(steps == 4);
  for (const auto& list : ended)
    for (const nn::Hypothesis& h : list) CHECK(h.finished);
}

TEST_CASE("threads share sentences that are told something") {
  ThreadPool pool(2);
  for (const auto& model : translators()) {
    const int64_t B = 12;
    Tensor source({4, B}, DType::i32), lengths({B}, DType::i32);
    for (int64_t i = 0; i < 4 * B; ++i) source.i32()[i] = static_cast<int32_t>(4 + i % 5);
    lengths.fill(4);
    nn::SearchOptions options{.max_length = 6, .weights = true};
    for (int32_t b = 0; b < B; ++b)
      options.sentences.push_back(
          {.prefix = {4 + b % 4}, .hidden = {b % 4}, .seed = 100 + static_cast<uint64_t>(b)});
    const Found one = nn::translate(*model, source, lengths, options);
    options.pool = &pool;
    const Found two = nn::translate(*model, source, lengths, options);
    for (int64_t b = 0; b < B; ++b) {
      CHECK(one[b][0].tokens == two[b][0].tokens);
      CHECK(two[b][0].tokens[0] == 4 + b % 4);
      CHECK(two[b][0].weights[0][b % 4] == 0);
    }
  }
}

TEST_CASE("what a search cannot be told is an error") {
  const auto all = translators();
  auto told = [&](std::vector<nn::SentenceSearch> sentences) {
    nn::SearchOptions options;
    options.sentences = std::move(sentences);
    return error_of([&] { found(*all[0], options); });
  };
  CHECK(told({{}, {}}).find("[translate] options.sentences has 2 entries for 3 sentences") == 0);
  ThreadPool pool(2);  // it is not about some thread's share
  nn::SearchOptions shared{.pool = &pool};
  shared.sentences.resize(7);
  CHECK(error_of([&] {
          nn::translate(*all[0], Tensor::full({4, 8}, 4, DType::i32), Tensor::full({8}, 4, DType::i32), shared);
        }).find("[translate] options.sentences has 7 entries for 8 sentences") == 0);
  CHECK(told({{.prefix = {nn::kPad}}, {}, {}}).find("[translate] no translation has the word 1") == 0);
  CHECK(told({{.prefix = {-1}}, {}, {}}).find("[translate] no translation has the word -1") == 0);
  CHECK(told({{.prefix = {8}}, {}, {}}).find("there is no word 8: the vocabulary has 8") !=
        std::string::npos);
  nn::SearchOptions few{.max_length = 2};
  few.sentences = {{}, {.prefix = {4, 5, 6}}, {}};
  CHECK(error_of([&] { found(*all[0], few); })
            .find("[translate] the prefix has 3 words, max_length is 2") == 0);
  CHECK(told({{.hidden = {4}}, {}, {}}).find("[start] hidden positions are 0 .. 3: 4") == 0);
}

TEST_CASE("who watches sees the weights of the sentence that is told of") {
  const auto all = translators();
  std::vector<std::vector<std::vector<float>>> seen(3);
  nn::SearchOptions o{.weights = true};
  o.watch = [&](const SearchStep& step) {
    const float* w = step.weights.f32();
    seen[step.sentence].emplace_back(w, w + step.weights.numel());
    return true;
  };
  const Found said = found(*all[0], o);
  for (size_t b = 0; b < 3; ++b) CHECK(seen[b] == said[b][0].weights);
}

TEST_CASE("positions are hidden from their own sentence, whenever that begins") {
  const auto all = translators();
  nn::SearchOptions o{.max_length = 5};
  o.sentences = {{.hidden = {1, 3}}, {}, {.hidden = {0}}};
  const Found at_once = found(*all[0], o);
  o.together = 1;
  const Found in_turn = found(*all[0], o);
  for (size_t b = 0; b < 3; ++b)
    CHECK(in_turn[b][0].log_probability == about(at_once[b][0].log_probability, 1e-5));
}

TEST_CASE("so many words as there must be are more than there else might be") {
  const auto all = translators();
  CHECK(found(*all[0], {.min_length = 40})[1][0].tokens.size() >= 40);
}
