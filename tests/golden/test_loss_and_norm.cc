#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cross_entropy.h>
#include <gradus/ops/layer_norm.h>
#include <gradus/ops/output_loss.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>

#include "../quick_doctest.h"
#include "golden.h"

using namespace gradus;
using golden::File;
using golden::Values;

namespace {

Values outputs_of(const CrossEntropy& r, DType dtype) {
  double n = static_cast<double>(r.tokens);
  return {{"loss", r.loss},
          {"loss_sum", r.loss * n},
          {"nll", Tensor::scalar(r.nll / n, dtype)},
          {"tokens", Tensor::scalar(n, dtype)}};
}

CrossEntropyOptions options_of(const File& file) {
  return {.ignore_index = static_cast<int32_t>(file.config.at("pad").item()),
          .label_smoothing = file.config.at("label_smoothing").item()};
}

Tensor identity(int64_t n, DType dtype) {
  Tensor out = Tensor::zeros({n, n}, dtype);
  for (int64_t i = 0; i < n; ++i) out.set(i * n + i, 1);
  return out;
}

}  // namespace

TEST_CASE("golden: cross-entropy with label smoothing and padding") {
  CHECK_GOLDEN("cross_entropy_label_smoothing", [](const Values& in, const File& file) {
    const Var& logits = in.at("logits");
    return outputs_of(cross_entropy(logits, golden::ids(file, "targets"), options_of(file)), logits.dtype());
  });
}

TEST_CASE("golden: the same through the loss that multiplies too") {
  CHECK_GOLDEN("cross_entropy_label_smoothing", [](const Values& in, const File& file) {
    const Var& logits = in.at("logits");
    return outputs_of(linear_cross_entropy(logits, identity(5, logits.dtype()), {},
                                           golden::ids(file, "targets"), options_of(file)),
                      logits.dtype());
  });
}

TEST_CASE("golden: layer norm") {
  auto f = [](const Values& in, const File& file) -> Values {
    return {{"y", layer_norm(in.at("x"), in.at("gamma"), in.at("beta"), file.config.at("eps").item())}};
  };
  CHECK_GOLDEN("layer_norm", f, {.in_float = false});

  // In float the inputs of rows 2 and 3 themselves are too coarse.
  File file = golden::load("layer_norm");
  Var x = variable(file.inputs.at("x").to(DType::f32));
  Var y = layer_norm(x, file.inputs.at("gamma").to(DType::f32), file.inputs.at("beta").to(DType::f32));
  Tensor dx = backward(y, {.seed = file.upstream.at("y").to(DType::f32)})[x];
  CHECK(golden::compare(y.value().rows(0, 2), file.outputs.at("y").rows(0, 2), 2e-6) == "");
  CHECK(golden::compare(dx.rows(0, 2), file.grads.at("x").rows(0, 2), 2e-6) == "");
}

TEST_CASE("golden: masked softmax and weighted sum") {
  CHECK_GOLDEN("masked_softmax_weighted_sum", [](const Values& in, const File& file) -> Values {
    Var weights = softmax(in.at("scores"), {.mask = file.config.at("mask").to(DType::u8)});
    return {{"weights", weights},
            {"context", sum(reshape(weights, {4, 5, 1}) * in.at("values"), {.axes = {1}})}};
  });
}
