// A search in which sentences take the rows of those that are done: each is translated as alone, to the bit.

#include <cmath>

#include <gradus/nn/ensemble.h>
#include <gradus/nn/search.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/parallel.h>

#include "../check.h"
#include "../quick_doctest.h"
#include "small_models.h"

namespace continuous_batching {

using namespace gradus;
using testing::error_of;
namespace nn = gradus::nn;

constexpr int64_t kSentences = 17, kLongest = 9;

struct Translator {
  std::string name;
  std::vector<std::unique_ptr<nn::TranslationModel>> models;
  std::unique_ptr<nn::Generator> generator;
  bool packed() const { return name.find("LSTM") == name.npos; }
};

std::unique_ptr<nn::TranslationModel> recurrent(const std::string& attention, const nn::CellType& cell = {}) {
  nn::Seq2SeqConfig c = small_models::small(attention);
  c.rnn.cell = cell;
  Rng rng(5);
  auto model = std::make_unique<nn::Seq2Seq>(c, rng);
  // Words that differ clearly, and ends that come at different times.
  model->output.weight.update([](const Tensor& w) {
    for (int64_t i = 0; i < w.numel(); ++i) w.set(i, 6 * w.at(i));
  });
  return model;
}

std::unique_ptr<nn::TranslationModel> transformer(const std::string& positions) {
  nn::TransformerConfig c = small_models::small_transformer();
  c.positions = positions;
  Rng rng(7);
  return std::make_unique<nn::TransformerSeq2Seq>(c, rng);
}

std::vector<Translator> translators() {
  std::vector<Translator> out;
  auto add = [&](const std::string& name, std::unique_ptr<nn::TranslationModel> model, bool int8 = false) {
    out.push_back({name, {}, model->generator({.int8 = int8})});
    out.back().models.push_back(std::move(model));
  };
  for (const char* attention : {"bahdanau", "general", "none", "multihead", "coverage"})
    add(attention, recurrent(attention));
  nn::CellType normalised;
  normalised.layer_norm = true;
  add("layer-normalised", recurrent("bahdanau", normalised));
  add("LSTM, which no packed decoder has", recurrent("bahdanau", {nn::CellKind::lstm}));
  add("8 bits", recurrent("bahdanau"), true);
  add("Transformer", transformer("sinusoidal"));
  add("Transformer with learned positions", transformer("learned"));
  Translator both{"two models", {}, {}};
  both.models.push_back(recurrent("general"));
  both.models.push_back(transformer("sinusoidal"));
  std::vector<nn::EnsembleMember> members;
  for (const auto& model : both.models) members.push_back({model->generator(), 1});
  both.generator = nn::ensemble_of(std::move(members), nn::EnsembleSpace::probability);
  out.push_back(std::move(both));
  return out;
}

struct Sources {
  Tensor ids{{kLongest, kSentences}, DType::i32}, lengths{{kSentences}, DType::i32};
};

// Of lengths in no order: those that join may be longer than those that are there.
Sources sources() {
  Rng rng(4);
  Sources out;
  out.ids.fill(nn::kPad);
  for (int64_t b = 0; b < kSentences; ++b) {
    const int64_t n = b == 9 ? kLongest : 1 + static_cast<int64_t>(rng.below(kLongest));
    out.lengths.i32()[b] = static_cast<int32_t>(n);
    for (int64_t s = 0; s < n; ++s) out.ids.i32()[s * kSentences + b] = 4 + static_cast<int32_t>(rng.below(5));
  }
  return out;
}

// Sentence b by itself, with the weights laid out as for so many rows.
std::vector<nn::Hypothesis> alone(const nn::Generator& generator, const Sources& in, int64_t b,
                                  nn::SearchOptions options, int64_t rows) {
  const int64_t n = in.lengths.i32()[b];
  Tensor ids({n, 1}, DType::i32);
  for (int64_t s = 0; s < n; ++s) ids.i32()[s] = in.ids.i32()[s * kSentences + b];
  if (!options.sentences.empty()) options.sentences = {options.sentences[static_cast<size_t>(b)]};
  const Tensor length = Tensor::from_ids({1}, {in.lengths.i32()[b]});
  auto decoder = generator.start(ids, length, {.rows_per_sentence = options.beam_size, .search_rows = rows});
  return nn::search(*decoder, length, options)[0];
}

void check_each_is_as_alone(const Translator& t, nn::SearchOptions options) {
  const Sources in = sources();
  for (int64_t together : {1, 2, 4, 7}) {
    CAPTURE(t.name);
    CAPTURE(together);
    options.together = together;
    const auto all = nn::translate(*t.generator, in.ids, in.lengths, options);
    REQUIRE(all.size() == kSentences);
    for (int64_t b = 0; b < kSentences; ++b) {
      CAPTURE(b);
      const auto own = alone(*t.generator, in, b, options, together * options.beam_size);
      const auto& found = all[static_cast<size_t>(b)];
      REQUIRE(found.size() == own.size());
      for (size_t k = 0; k < own.size(); ++k) {
        CHECK(found[k].tokens == own[k].tokens);
        CHECK(found[k].finished == own[k].finished);
        CHECK(std::abs(found[k].log_probability - own[k].log_probability) < 1e-5);
        REQUIRE(found[k].weights.size() == own[k].weights.size());
        if (!t.packed()) continue;  // OpenBLAS sums up otherwise with other rows beside
        CHECK(found[k].log_probability == own[k].log_probability);
        CHECK(found[k].score == own[k].score);
        CHECK(found[k].log_probabilities == own[k].log_probabilities);
        for (size_t w = 0; w < own[k].weights.size(); ++w) {
          std::vector<float> row = own[k].weights[w];
          row.resize(kLongest);
          CHECK(found[k].weights[w] == row);
        }
      }
    }
  }
}

TEST_CASE("continuous batching: who joins is translated as alone, greedily and by a beam") {
  for (const Translator& t : translators()) {
    CHECK(error_of([&] { nn::translate(*t.generator, sources().ids, sources().lengths, {.together = -1}); }) ==
          "[translate] min_length, max_length, no_repeat_ngram, exact_stop and together must be at least 0");
    check_each_is_as_alone(t, {.max_length = 8, .scores = false});
    check_each_is_as_alone(t, {.beam_size = 3, .weights = t.name != "none"});
  }
}

TEST_CASE("continuous batching: what is asked of each sentence is asked of it wherever it stands") {
  nn::SearchOptions options{.beam_size = 2, .min_length = 2, .no_repeat_ngram = 2, .max_length = 9};
  for (int32_t b = 0; b < kSentences; ++b) {
    nn::SentenceSearch own;
    if (b % 3 == 0) own.seed = static_cast<uint64_t>(b);
    if (b % 3 == 1) own.prefix = {4 + b % 4, 5};
    if (b % 3 == 2) own.forbidden = {{4 + b % 4}};
    if (b % 6 == 2) own.required = {{4 + (b + 1) % 4}};
    options.sentences.push_back(own);
  }
  for (const Translator& t : translators()) check_each_is_as_alone(t, options);
}

TEST_CASE("continuous batching: threads divide the sentences, and each lets them join") {
  ThreadPool pool(2);
  const Sources in = sources();
  for (const Translator& t : translators()) {
    CAPTURE(t.name);
    const nn::SearchOptions one{.beam_size = 2, .together = 4};
    nn::SearchOptions two = one;
    two.pool = &pool;
    const auto a = nn::translate(*t.generator, in.ids, in.lengths, one),
               b = nn::translate(*t.generator, in.ids, in.lengths, two);
    for (size_t i = 0; i < kSentences; ++i)
      for (size_t k = 0; k < a[i].size(); ++k) {
        CHECK(a[i][k].tokens == b[i][k].tokens);
        CHECK(std::abs(a[i][k].log_probability - b[i][k].log_probability) < (t.packed() ? 1e-300 : 1e-5));
      }
  }
}

TEST_CASE("rows join only a decoder that takes them, and no more than it has room for") {
  for (const Translator& t : translators()) {
    CAPTURE(t.name);
    const Tensor ids = Tensor::from_ids({1, 3}, {4, 5, 6}), lengths = Tensor::from_ids({3}, {1, 1, 1});
    auto decoder = t.generator->start(ids, lengths), further = t.generator->start(ids, lengths);
    CHECK(decoder->can_join() == t.packed());
    CHECK(error_of([&] { decoder->join(*further); }) ==
          (t.packed() ? "[join] at most 3 rows were planned for: 6"
                      : "[join] this decoder takes no further sentences"));
  }
}

}  // namespace continuous_batching
