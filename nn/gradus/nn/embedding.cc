#include <gradus/nn/embedding.h>

#include <fmt/core.h>

#include <gradus/nn/check.h>
#include <gradus/ops/embedding.h>

namespace gradus::nn {

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, const RngInput& rng,
                     const EmbeddingLayerOptions& options)
    : padding_idx(options.padding_idx) {
  At at(rng.caller());
  must_be_positive("Embedding", "num_embeddings", num_embeddings);
  must_be_positive("Embedding", "embedding_dim", embedding_dim);
  if (padding_idx < -1 || padding_idx >= num_embeddings)
    fail("Embedding", fmt::format("padding_idx must be in 0 .. {}, or -1 for none: {}", num_embeddings - 1,
                                  padding_idx));
  Tensor table = Tensor::normal({num_embeddings, embedding_dim}, 0, 1, rng);
  if (padding_idx >= 0) table.row(padding_idx).fill(0);
  weight = Parameter(std::move(table), "weight");
}

Var Embedding::operator()(const Input& ids) const {
  At at(ids.caller());
  return embedding(weight, ids.value(), {.padding_idx = padding_idx});
}

}  // namespace gradus::nn
