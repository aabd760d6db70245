#include <doctest/doctest.h>

#include <cmath>

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>

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
