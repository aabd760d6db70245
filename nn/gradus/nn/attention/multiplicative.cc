#include <gradus/nn/attention/multiplicative.h>

#include <cmath>

namespace gradus::nn {

DotAttention::DotAttention(const AttentionSizes& s, double factor)
    : FormedAttention(s.options), scale(factor) {
  if (s.query_size != s.annotation_size)
    fail("DotAttention", "query and annotations must have one size: " + std::to_string(s.query_size) +
                             " and " + std::to_string(s.annotation_size) +
                             " (general attention has a matrix between them)");
}

ScaledDotAttention::ScaledDotAttention(const AttentionSizes& s, const RngInput&)
    : DotAttention(s, 1 / std::sqrt(static_cast<double>(s.annotation_size))) {}

GeneralAttention::GeneralAttention(const AttentionSizes& s, const RngInput& rng)
    : FormedAttention(s.options), key(s.annotation_size, s.query_size, rng, {.bias = false}) {}

}  // namespace gradus::nn
