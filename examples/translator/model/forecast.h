#pragma once

#include <string>

#include <translator/model/model_config.h>

// What a network takes, told from the sizes before any memory is asked for. Numbers are doubles: no size that a
// file or an option can name makes them wrap.

namespace translator {

/// Bytes of a number.
constexpr double kFloatBytes = 4;

/// Parameters of the network, within some per cent.
double foretold_parameters(const ModelConfig& config);

/// Numbers that one word of the source and one of the target leave for the way back: each state, and what its
/// gates were.
struct StatesPerWord {
  double source, target;
};
StatesPerWord foretold_states(const ModelConfig& config);

/// "word vectors of 256 and 1 layer of 256 units".
std::string network_text(const ModelConfig& config);

/// "3.2 GB".
std::string format_bytes(double bytes);

/// Empty, or why a network of this kind does not fit here.
std::string why_too_large(const ModelConfig& config);

}  // namespace translator
