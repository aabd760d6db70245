#include <cmath>

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/scaled_dot_product_attention.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>

#include "../quick_doctest.h"
#include "golden.h"

using namespace gradus;
using golden::File;
using golden::Values;

namespace {

// Scaled dot-product attention of several heads (Vaswani et al. 2017), composed of matrix ops; batch first.
Values multi_head(const Values& in, const Var& queries, const Var& memory, int64_t heads,
                  const Tensor& mask) {
  int64_t B = queries.size(0), d = queries.size(2) / heads;
  auto project = [&](const Var& x, const std::string& which) {  // [B, T, model] -> [B, heads, T, d]
    Var y = linear(x, in.at("W_" + which), in.at("b_" + which));
    return permute(reshape(y, {B, x.size(1), heads, d}), {0, 2, 1, 3});
  };
  Var q = project(queries, "q"), k = project(memory, "k"), v = project(memory, "v");
  Var weights = softmax(matmul(q, transpose(k, 2, 3)) / std::sqrt(static_cast<double>(d)), {.mask = mask});
  Var joined = reshape(permute(matmul(weights, v), {0, 2, 1, 3}), {B, queries.size(1), heads * d});
  return {{"weights", weights}, {"output", linear(joined, in.at("W_o"), in.at("b_o"))}};
}

}  // namespace

TEST_CASE("golden: multi-head attention across sentences, padded memory") {
  CHECK_GOLDEN("multi_head_cross_attention", [](const Values& in, const File& file) {
    Tensor mask = length_mask(golden::ids(file, "memory_lengths"), in.at("x_memory").size(1));
    return multi_head(in, in.at("x_query"), in.at("x_memory"),
                      static_cast<int64_t>(file.config.at("heads").item()),
                      mask.reshape(Shape{mask.size(0), 1, 1, mask.size(1)}));
  });
}

TEST_CASE("golden: multi-head attention on itself, looking back only") {
  CHECK_GOLDEN("multi_head_causal_self_attention", [](const Values& in, const File& file) {
    const Var& x = in.at("x");
    int64_t T = x.size(1);
    Tensor mask = Tensor::zeros({T, T}, DType::u8);
    for (int64_t t = 0; t < T; ++t)
      for (int64_t s = 0; s <= t; ++s) mask.set(t * T + s, 1);
    return multi_head(in, x, x, static_cast<int64_t>(file.config.at("heads").item()), mask);
  });
}

namespace {

// The same by the fused op: time-major, one projection for what is projected from the same words.
Values fused(const Values& in, const Var& output, const Tensor& weights) {
  return {{"weights", weights}, {"output", transpose(linear(output, in.at("W_o"), in.at("b_o")), 0, 1)}};
}
Var joined(const Values& in, const std::string& prefix, const std::string& which) {
  std::vector<Var> parts;
  for (char c : which) parts.push_back(in.at(prefix + c));
  return concat(parts, 0);
}

}  // namespace

TEST_CASE("golden: fused attention across sentences, padded memory") {
  CHECK_GOLDEN("multi_head_cross_attention", [](const Values& in, const File& file) {
    Tensor mask = length_mask(golden::ids(file, "memory_lengths"), in.at("x_memory").size(1));
    Var q = linear(transpose(in.at("x_query"), 0, 1), in.at("W_q"), in.at("b_q"));
    Var kv = linear(transpose(in.at("x_memory"), 0, 1), joined(in, "W_", "kv"), joined(in, "b_", "kv"));
    ScaledDotProduct out = packed_cross_attention(
        q, kv,
        {.heads = static_cast<int64_t>(file.config.at("heads").item()), .mask = mask, .weights = true});
    return fused(in, out.output, out.weights);
  });
}

TEST_CASE("golden: fused attention on itself, looking back only") {
  CHECK_GOLDEN("multi_head_causal_self_attention", [](const Values& in, const File& file) {
    Var qkv = linear(transpose(in.at("x"), 0, 1), joined(in, "W_", "qkv"), joined(in, "b_", "qkv"));
    ScaledDotProduct out = packed_self_attention(
        qkv,
        {.heads = static_cast<int64_t>(file.config.at("heads").item()), .causal = true, .weights = true});
    return fused(in, out.output, out.weights);
  });
}
