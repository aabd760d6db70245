#pragma once

// Translators and a batch that the tests of the decoders share.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gradus/nn/seq2seq.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/random.h>

namespace small_models {

using gradus::Tensor;
using gradus::nn::Seq2Seq, gradus::nn::Seq2SeqBatch, gradus::nn::Seq2SeqConfig;
namespace nn = gradus::nn;

inline Seq2SeqConfig small(const std::string& attention, const std::string& decoder = "auto",
                           bool feeding = true) {
  Seq2SeqConfig c;
  c.source_vocabulary = 9;
  c.target_vocabulary = 8;
  c.embedding_dim = 3;
  c.hidden_size = 4;
  c.attention_size = 5;
  c.attention = attention;
  c.decoder = decoder;
  c.input_feeding = feeding;
  return c;
}

inline nn::TransformerConfig small_transformer(int64_t d_model = 8) {
  return {.source_vocabulary = 9, .target_vocabulary = 8, .d_model = d_model, .num_heads = 2, .num_layers = 2};
}

struct Sources {
  Tensor ids, lengths;
};

// B sentences of up to S words, of which there are so many; the first has S.
inline Sources sources_of(int64_t B, int64_t S, uint64_t words, uint64_t seed) {
  gradus::Rng rng(seed);
  Sources out{Tensor({S, B}, gradus::DType::i32), Tensor({B}, gradus::DType::i32)};
  out.ids.fill(nn::kPad);
  for (int64_t b = 0; b < B; ++b) {
    const int64_t length = b == 0 ? S : 1 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(S)));
    out.lengths.i32()[b] = static_cast<int32_t>(length);
    for (int64_t s = 0; s < length; ++s) out.ids.i32()[s * B + b] = 4 + static_cast<int32_t>(rng.below(words));
  }
  return out;
}

// Three sentences of 4, 2 and 3 source words (with </s>) and 3, 4 and 2 target words.
inline Seq2SeqBatch batch() {
  Seq2SeqBatch b;
  b.source = Tensor::from_ids({4, 3}, {5, 4, 8, 6, 3, 4, 5, 1, 3, 3, 1, 1});
  b.source_lengths = Tensor::from_ids({3}, {4, 2, 3});
  b.target_in = Tensor::from_ids({4, 3}, {2, 2, 2, 5, 6, 4, 7, 5, 1, 1, 4, 1});
  b.target_out = Tensor::from_ids({4, 3}, {5, 6, 4, 7, 5, 3, 3, 4, 1, 1, 3, 1});
  b.target_tokens = 9;
  b.alignment = Tensor::zeros({4, 3, 4});  // for the oracle: target word t looks at source words t and t + 1
  for (int64_t t = 0; t < 4; ++t)
    for (int64_t k = 0; k < 3; ++k)
      for (int64_t s = t; s < std::min<int64_t>(t + 2, b.source_lengths.i32()[k]); ++s)
        b.alignment.set((t * 3 + k) * 4 + s, 0.5);
  return b;
}

inline void set_fused(Seq2Seq& model, bool fused) {
  dynamic_cast<nn::RecurrentDecoder&>(*model.decoder).fused = fused;
}

/// The largest difference of two lists of tensors; infinite where lists cannot be compared, or are empty.
inline double worst(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double d = !a.empty() && a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    d = gradus::worse(d, gradus::max_abs_difference(a[i], b[i]));
  return d;
}

}  // namespace small_models
