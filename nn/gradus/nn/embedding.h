#pragma once

#include <gradus/nn/module.h>
#include <gradus/random.h>

namespace gradus::nn {

struct EmbeddingLayerOptions {
  int32_t padding_idx = -1;  ///< row that starts at zero and receives no gradient; -1 for none
};

/// A table of vectors: ids i32 [...] -> [..., embedding_dim]. weight [num_embeddings, embedding_dim] starts
/// from N(0, 1), as torch.nn.Embedding.
struct Embedding {
  Parameter weight;
  int32_t padding_idx = -1;

  Embedding(int64_t num_embeddings, int64_t embedding_dim, const RngInput& rng,
            const EmbeddingLayerOptions& options = {});
  Var operator()(const Input& ids) const;
  void params(ParamVisitor& visit) { visit("weight", weight); }
};

}  // namespace gradus::nn
