#pragma once

#include <string>

#include <translator/model/data.h>
#include <translator/model/model_config.h>
#include <translator/training/train_options.h>

namespace translator {

/// Bytes that training takes at the least: weights, gradients, what the optimiser keeps, and the states of a
/// batch of the longest sentences, forward and backward.
double foretold_training(const ModelConfig& config, const TrainOptions& options,
                         const std::vector<SentencePair>& pairs);

/// Empty, or why the network cannot be trained here so.
std::string why_training_is_too_large(const ModelConfig& config, const TrainOptions& options,
                                      const std::vector<SentencePair>& pairs);

}  // namespace translator
