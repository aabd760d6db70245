#pragma once

#include <gradus/nn/check.h>
#include <gradus/nn/module.h>
#include <gradus/ops/embedding.h>
#include <gradus/random.h>

namespace gradus::nn {

/// A table of vectors: ids i32 [...] -> [..., embedding_dim]. weight [num_embeddings, embedding_dim] starts
/// from N(0, 1), as torch.nn.Embedding; a row padding_idx, which receives no gradient, at zero.
struct Embedding {
  Parameter weight;
  int32_t padding_idx = -1;

  Embedding(int64_t num_embeddings, int64_t embedding_dim, const RngInput& rng,
            const EmbeddingOptions& options = {})
      : padding_idx(options.padding_idx) {
    At at(rng.caller());
    must_be_positive("Embedding", "num_embeddings", num_embeddings);
    must_be_positive("Embedding", "embedding_dim", embedding_dim);
    if (padding_idx < -1 || padding_idx >= num_embeddings)
      fail("Embedding", "padding_idx must be in 0 .. " + std::to_string(num_embeddings - 1) +
                            ", or -1 for none: " + std::to_string(padding_idx));
    Tensor table = Tensor::normal({num_embeddings, embedding_dim}, 0, 1, rng);
    if (padding_idx >= 0) table.row(padding_idx).fill(0);
    weight = Parameter(std::move(table), "weight");
  }
  Var operator()(const Input& ids) const {
    At at(ids.caller());
    return embedding(weight, ids.value(), {.padding_idx = padding_idx});
  }
  void params(ParamVisitor& visit) { visit("weight", weight); }
};

}  // namespace gradus::nn
