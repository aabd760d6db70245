#pragma once

#include <string>

#include <translator/data.h>
#include <translator/model_config.h>

// What a network and its training take, told from the sizes before any memory is asked for. Numbers are
// doubles: no size that a file or an option can name makes them wrap.

namespace translator {

struct TrainOptions;

/// Parameters of the network, within some per cent.
double foretold_parameters(const ModelConfig& config);

/// Bytes that training takes at the least: weights, gradients, what the optimiser keeps, and the states of a
/// batch of the longest sentences, forward and backward.
double foretold_training(const ModelConfig& config, const TrainOptions& options,
                         const std::vector<SentencePair>& pairs);

/// "3.2 GB".
std::string format_bytes(double bytes);

/// Empty, or why a network of this kind does not fit here.
std::string why_too_large(const ModelConfig& config);
/// Empty, or why it cannot be trained here so.
std::string why_training_is_too_large(const ModelConfig& config, const TrainOptions& options,
                                      const std::vector<SentencePair>& pairs);

}  // namespace translator
