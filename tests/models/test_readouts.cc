// Readouts of a step, for who has an output layer of his own: the model's own makes the model's logits of them.

#include <cmath>
#include <memory>

#include <gradus/nn/ensemble.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/ops.h>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "small_models.h"

namespace readouts {

using namespace gradus;
namespace nn = gradus::nn;

// Those that are packed, those that are not, and Transformers that normalise before a part and behind it.
std::vector<std::unique_ptr<nn::TranslationModel>> kinds() {
  std::vector<std::unique_ptr<nn::TranslationModel>> out;
  for (const char* attention : {"bahdanau", "general", "none", "local-p"})
    for (const auto cell : {nn::CellKind::gru, nn::CellKind::lstm}) {
      nn::Seq2SeqConfig c = small_models::small(attention);
      c.rnn.cell = {cell};
      Rng rng(out.size() + 1);
      out.push_back(std::make_unique<nn::Seq2Seq>(c, rng));
    }
  for (bool norm_first : {false, true}) {
    nn::TransformerConfig c = small_models::small_transformer();
    c.norm_first = norm_first;
    Rng rng(7);
    out.push_back(std::make_unique<nn::TransformerSeq2Seq>(c, rng));
  }
  return out;
}

Tensor source() { return Tensor::from_ids({3, 2}, {5, 4, 8, 3, 3, nn::kPad}); }
Tensor lengths() { return Tensor::from_ids({2}, {3, 2}); }

TEST_CASE("the output layer makes a step's logits of its readouts") {
  NoGrad guard;
  for (const auto& model : kinds()) {
    const auto generator = model->generator();
    const auto steps = generator->start(source(), lengths(), {.rows_per_sentence = 2}),
               reads = generator->start(source(), lengths(), {.rows_per_sentence = 2});
    const nn::OutputLayer layer = model->output_layer();
    std::vector<int32_t> words = {nn::kBos, nn::kBos};
    for (const std::vector<int64_t>& rows : {std::vector<int64_t>{0, 0, 1}, {2, 0}, {1}}) {
      const auto n = static_cast<int64_t>(words.size());
      const Tensor logits = steps->step(Tensor::from_ids({n}, words));
      const Tensor own =
          linear(reads->readouts(Tensor::from_ids({n}, words)), layer.weight, layer.bias).value();
      REQUIRE(own.shape() == logits.shape());
      for (int64_t i = 0; i < own.numel(); ++i) CHECK(own.at(i) == about(logits.at(i), 1e-5));
      steps->select(rows);
      reads->select(rows);
      words.assign(rows.size(), 4);
      for (size_t i = 0; i < rows.size(); ++i) words[i] = static_cast<int32_t>(4 + i);
    }
    // A step of the usual kind may follow.
    const std::vector<double> next = steps->step(Tensor::from_ids({1}, words)).to_vector();
    CHECK(reads->step(Tensor::from_ids({1}, words)).to_vector() == next);
  }
}

TEST_CASE("several models have no one output layer to read for") {
  const auto all = kinds();
  std::vector<nn::EnsembleMember> members;
  for (size_t i : {0, 1}) members.push_back({all[i]->generator(), 1});
  const auto together = nn::ensemble_of(std::move(members), nn::EnsembleSpace::probability);
  const auto decoder = together->start(source(), lengths());
  CHECK(testing::error_of([&] {
          decoder->readouts(Tensor::from_ids({2}, {nn::kBos, nn::kBos}));
        }).find("[readouts] there is no one output layer: this decoder is of several models") == 0);
}

}  // namespace readouts
