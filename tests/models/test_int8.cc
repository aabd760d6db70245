// Decoding with weights in 8 bits.

#include <cmath>

#include <gradus/nn/search.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/parallel.h>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "small_models.h"

namespace eight_bits {

using namespace gradus;
namespace nn = gradus::nn;

std::vector<std::unique_ptr<nn::TranslationModel>> kinds() {
  std::vector<std::unique_ptr<nn::TranslationModel>> out;
  for (const char* attention : {"bahdanau", "general", "none", "local-p"}) {
    nn::Seq2SeqConfig c = small_models::small(attention);
    c.hidden_size = 24;
    c.embedding_dim = 20;
    Rng rng(out.size() + 1);
    out.push_back(std::make_unique<nn::Seq2Seq>(c, rng));
  }
  Rng rng(7);
  out.push_back(std::make_unique<nn::TransformerSeq2Seq>(small_models::small_transformer(16), rng));
  return out;
}

using small_models::Sources;

Sources sources(int64_t B) {
  Sources out{Tensor({4, B}, DType::i32), Tensor({B}, DType::i32)};
  for (int64_t i = 0; i < 4 * B; ++i) out.ids.i32()[i] = static_cast<int32_t>(4 + i % 5);
  out.lengths.fill(4);
  return out;
}

TEST_CASE("decoding in 8 bits is near decoding in 32, and another thing") {
  const Sources in = sources(6);
  int different = 0;
  for (const auto& model : kinds()) {
    const auto exact = nn::translate(*model->generator(), in.ids, in.lengths, {.max_length = 1});
    const auto rounded =
        nn::translate(*model->generator({.int8 = true}), in.ids, in.lengths, {.max_length = 1});
    for (size_t b = 0; b < 6; ++b) {
      if (rounded[b][0].tokens != exact[b][0].tokens) continue;
      CHECK(rounded[b][0].log_probability == about(exact[b][0].log_probability, 0.05));
      different += rounded[b][0].log_probability != exact[b][0].log_probability;
    }
  }
  CHECK(different > 6);
}

TEST_CASE("neighbours and threads change no bit in 8 bits") {
  ThreadPool pool(3);
  const Sources in = sources(9);
  for (size_t kind : {0, 1}) {  // packed from the source on
    const auto model = std::move(kinds()[kind]);
    const auto g = model->generator({.int8 = true});
    nn::SearchOptions o{.beam_size = 2, .max_length = 6};
    const auto one = nn::translate(*g, in.ids, in.lengths, o);
    o.pool = &pool;
    const auto three = nn::translate(*g, in.ids, in.lengths, o);
    o.pool = nullptr;
    for (int64_t b = 0; b < 9; ++b) {
      Tensor own({4, 1}, DType::i32);
      for (int64_t s = 0; s < 4; ++s) own.i32()[s] = in.ids.i32()[s * 9 + b];
      const auto alone = nn::translate(*g, own, Tensor::from_ids({1}, {4}), o);
      CHECK(one[b][0].log_probability == three[b][0].log_probability);
      CHECK(one[b][0].log_probability == alone[0][0].log_probability);
      CHECK(one[b][0].tokens == alone[0][0].tokens);
    }
  }
}

}  // namespace eight_bits
