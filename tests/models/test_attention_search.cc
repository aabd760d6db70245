// Beam search with every attention: what a hypothesis is said to cost is what its words cost under teacher
// forcing. A state that did not follow its row (previous weights, coverage, the fed-back vector) would show.

#include <gradus/nn/search.h>
#include <gradus/nn/seq2seq.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "attentions.h"
#include "small_models.h"

using namespace gradus;

TEST_CASE(
    "beam search's probabilities are those of the words it found, with every attention in both orders") {
  std::vector<std::string> names = nn::attention_names();
  names.push_back("none");
  int64_t compared = 0;
  for (const std::string& name : names)
    for (const char* order : {"bahdanau", "luong"}) {
      CAPTURE(name);
      CAPTURE(order);
      nn::Seq2SeqConfig c;
      c.source_vocabulary = 9;
      c.target_vocabulary = 7;
      c.embedding_dim = 4;
      c.hidden_size = 8;
      c.attention = name;
      c.decoder = order;
      Rng rng(41);
      nn::Seq2Seq model(c, rng);
      // Wider weights than a fresh model's, so that hypotheses differ and change places.
      for (auto& p : nn::named_parameters(model)) p.parameter->assign((p.parameter->var() * 3.0).value());
      Tensor source = Tensor::from_ids({4, 3}, {5, 4, 8, 6, 3, 4, 5, 1, 3, 3, 1, 1}),
             lengths = Tensor::from_ids({3}, {4, 2, 3});
      auto found =
          nn::translate(model, source, lengths, {.beam_size = 3, .length_penalty = 0, .max_length = 6});
      REQUIRE(found.size() == 3);
      for (int64_t b = 0; b < 3; ++b) {
        for (const nn::Hypothesis& h : found[static_cast<size_t>(b)]) {
          int64_t words = static_cast<int64_t>(h.tokens.size()), T = words + h.finished;
          if (T == 0) continue;
          nn::Seq2SeqBatch batch;
          int64_t n = lengths.i32()[b];
          batch.source = Tensor({n, 1}, DType::i32);
          for (int64_t s = 0; s < n; ++s) batch.source.i32()[s] = source.i32()[s * 3 + b];
          batch.source_lengths = Tensor::from_ids({1}, {static_cast<int32_t>(n)});
          batch.target_in = Tensor({T, 1}, DType::i32);
          batch.target_out = Tensor({T, 1}, DType::i32);
          for (int64_t t = 0; t < T; ++t) {
            batch.target_in.i32()[t] =
                t == 0 ? static_cast<int32_t>(nn::kBos) : h.tokens[static_cast<size_t>(t - 1)];
            batch.target_out.i32()[t] =
                t < words ? h.tokens[static_cast<size_t>(t)] : static_cast<int32_t>(nn::kEos);
          }
          batch.target_tokens = T;
          CHECK(-model.loss(batch).nll == about(h.log_probability, 1e-4));
          ++compared;
        }
      }
    }
  CHECK(compared > 200);
}

TEST_CASE("a sentence of no words, and an attention that takes its own steps: packed as composed") {
  Rng rng(3);
  const nn::Seq2Seq model(small_models::small("coverage"), rng);
  const Tensor source = small_models::batch().source, lengths = Tensor::from_ids({3}, {4, 0, 3});
  const auto composed = nn::composed_generator(model.encoder, *model.decoder, model.output);
  const auto a = nn::translate(model, source, lengths, {}), b = nn::translate(*composed, source, lengths, {});
  for (size_t i = 0; i < 3; ++i) {
    CHECK(a[i][0].tokens == b[i][0].tokens);
    CHECK(a[i][0].log_probability == about(b[i][0].log_probability, 1e-5));
  }
}
