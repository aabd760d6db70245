#include <gradus/nn/attention/multiplicative.h>

#include <cmath>

namespace gradus::nn {

DotAttention::DotAttention(const AttentionSizes& s, double factor, Caller caller)
    : FormedAttention(s.options, caller), scale(factor) {
  At at(caller);
  if (s.query_size != s.annotation_size)
    fail("DotAttention", "query and annotations must have one size: " + std::to_string(s.query_size) +
                             " and " + std::to_string(s.annotation_size) +
                             " (general attention has a matrix between them)");
}

ScaledDotAttention::ScaledDotAttention(const AttentionSizes& s, Rng&, Caller caller)
    : DotAttention(s, 1 / std::sqrt(static_cast<double>(s.annotation_size)), caller) {}

GeneralAttention::GeneralAttention(const AttentionSizes& s, Rng& rng, Caller caller)
    : FormedAttention(s.options, caller), key(s.annotation_size, s.query_size, rng, {.bias = false}, caller) {}

}  // namespace gradus::nn
