#pragma once

#include <cstdint>
#include <vector>

#include <gradus/nn/data_parallel.h>
#include <translator/model.h>

// The heart of training: a batch of sentence pairs, its loss and its gradients.

namespace translator {

/// Everything that a step's loss and gradient depend on, besides the weights.
struct StepBatch {
  std::vector<gradus::nn::Seq2SeqBatch> parts;  ///< one for each thread's share
  gradus::nn::LossOptions loss;                 ///< of the whole batch
  uint64_t training_seed = 0;                   ///< of dropout, and of what a model draws
  int64_t step = 0;

  /// The same for one part, which weighs as much as it has target words.
  gradus::nn::LossOptions loss_of(size_t part) const;
};

/// The chosen pairs, padded, in `count` parts (fewer where there are fewer pairs).
std::vector<gradus::nn::Seq2SeqBatch> parts_of(const std::vector<EncodedPair>& pairs,
                                               const std::vector<size_t>& chosen, int count);

/// Loss and gradients of a step, each part differentiated by one thread, the output layer by all together.
gradus::nn::OutputGradients differentiate(const Model& model, const StepBatch& batch,
                                          gradus::ThreadPool& pool);

}  // namespace translator
