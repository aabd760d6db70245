// What is often drawn as "where the model looked", beside the gradient of the loss itself.

#include <algorithm>
#include <cmath>

#include <gradus/ops.h>

#include "norms.h"
#include "output.h"

namespace lens::transformer {
namespace {

using namespace gradus;

// [R, C] the mean over heads.
Tensor mean_of_heads(const Sublayer& s) {
  NoGrad guard;
  Tensor all = s[kWeights].value();
  return mean(all.reshape(all.shape().without(0)), {.axes = {0}}).value();
}

// half of x, half of a x
Tensor half(const Tensor& a, const Tensor& of, const Tensor& x) {
  NoGrad guard;
  return (matmul(a, of) * 0.5 + Var(x) * 0.5).value();
}

std::vector<double> normalised(std::vector<double> x) {
  double sum = 0;
  for (double v : x) sum += v;
  for (double& v : x) v = sum > 0 ? v / sum : 0;
  return x;
}

}  // namespace

Shares shares_of(const Trace& trace, int64_t step) {
  const int64_t S = trace.run.source.size(0), T = trace.run.target.size(0);
  Tensor read = Tensor::zeros({S, S}, DType::f64), said = Tensor::zeros({T, S}, DType::f64);
  for (int64_t j = 0; j < S; ++j) read.f64()[j * S + j] = 1;
  std::vector<double> weighted(static_cast<size_t>(S));
  const Gradients& g = trace.steps[static_cast<size_t>(step)];
  for (size_t p = 0; p < trace.run.parts.size(); ++p) {
    const Sublayer& s = trace.run.parts[p];
    if (!attends(s.part)) continue;
    const Tensor a = mean_of_heads(s);
    if (s.part == Part::encoder_self) read = half(a, read, read);
    if (s.part == Part::decoder_self) said = half(a, said, said);
    if (s.part != Part::cross) continue;
    said = half(a, read, said);
    const Tensor &w = s[kWeights].value(), &dw = g.parts[p][kWeights];
    for (int64_t i = 0; i < w.numel(); ++i)
      weighted[static_cast<size_t>(i % S)] += std::max(0.0, -w.f64()[i] * dw.f64()[i]);
  }
  return {normalised(said.row(step).to_vector()), normalised(weighted),
          normalised(row_norms(g.source.reshape({S, g.source.size(2)})))};
}

}  // namespace lens::transformer
