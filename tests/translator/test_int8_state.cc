// The file form of weights in 8 bits.

#include <cmath>
#include <memory>
#include <vector>

#include <gradus/nn/seq2seq.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <translator/model/int8_state.h>

#include "../check.h"

namespace int8_state {

using namespace gradus;
using namespace translator;
using testing::error_of;

std::vector<std::unique_ptr<nn::TranslationModel>> rounded_kinds() {
  std::vector<std::unique_ptr<nn::TranslationModel>> out;
  for (const char* attention : {"bahdanau", "general", "none", "local-p"}) {
    nn::Seq2SeqConfig c;
    c.source_vocabulary = 9, c.target_vocabulary = 8;
    c.hidden_size = 24, c.embedding_dim = 20;
    c.attention = attention;
    Rng rng(out.size() + 1);
    out.push_back(std::make_unique<nn::Seq2Seq>(c, rng));
  }
  nn::TransformerConfig c;
  c.source_vocabulary = 9, c.target_vocabulary = 8;
  c.d_model = 16, c.num_heads = 2, c.num_layers = 2;
  Rng rng(7);
  out.push_back(std::make_unique<nn::TransformerSeq2Seq>(c, rng));
  return out;
}

TEST_CASE("a rounded module comes back from its state in 8 bits, to the bit") {
  for (const auto& model : rounded_kinds()) {
    const nn::StateDict snapshot = nn::state_dict(*model);
    const std::vector<double> unrounded = snapshot[0].second.to_vector();
    round_to_int8(*model);
    CHECK(snapshot[0].second.to_vector() == unrounded);
    const nn::StateDict before = nn::state_dict(*model), small = int8_state_dict(*model);
    CHECK(before[0].second.to_vector() != unrounded);
    const nn::StateDict after = widened(small);
    REQUIRE(after.size() == before.size());
    int64_t bytes = 0, all = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      CHECK(after[i].first == before[i].first);
      CHECK(after[i].second.to_vector() == before[i].second.to_vector());
      all += before[i].second.numel() * 4;
    }
    for (const auto& [name, tensor] : small) bytes += tensor.numel() * size_of(tensor.dtype());
    CHECK(bytes < all / 2);
    round_to_int8(*model);  // once more is the same
    const nn::StateDict again = nn::state_dict(*model);
    for (size_t i = 0; i < before.size(); ++i)
      CHECK(again[i].second.to_vector() == after[i].second.to_vector());
  }
}

TEST_CASE("a state in 8 bits that is damaged is refused") {
  const Tensor q({2, 3}, DType::u8);
  auto fault = [&](const Tensor& scale) {
    return error_of([&] { widened({{"w", q}, {"w.scale", scale}}); });
  };
  const char* text = "[int8] w.scale must be f32 [2] of finite numbers, none below 0";
  CHECK(fault(Tensor::zeros({3})).find(text) == 0);
  CHECK(fault(Tensor::from({2}, {1, NAN})).find(text) == 0);
  CHECK(fault(Tensor::from({2}, {1, -1})).find(text) == 0);
  CHECK(fault(Tensor::zeros({2}, DType::f64)).find(text) == 0);
  const nn::StateDict alone = widened({{"w", q}});
  CHECK(alone[0].second.dtype() == DType::u8);  // load_state_dict refuses it
  // A parameter may be called scale.
  CHECK(widened({{"norm.scale", Tensor::zeros({2})}}).size() == 1);
}

}  // namespace int8_state
