#include <gradus/nn/clip.h>

#include <algorithm>
#include <cmath>

#include <gradus/error.h>
#include <gradus/nn/check.h>
#include <gradus/kernels/optimizer.h>
#include <gradus/nn/check.h>
#include <gradus/nn/gradient_rows.h>
#include <gradus/nn/optimizer.h>
#include <gradus/numeric.h>

namespace gradus::nn {
namespace {

// f(tensors) for every parameter: those that together hold its gradient once. They may be shared with the
// closures of a retained graph, so a changed one must be a copy.
template <class F>
void for_each_gradient(Gradients& grads, F&& f) {
  for (Gradients::Entry& entry : grads.entries()) {
    if (!entry.node->inputs.empty()) continue;  // an intermediate value that was kept
    if (!entry.dense.defined() && entry.rows.empty()) continue;
    sum_repeated_rows(entry);
    if (entry.dense.defined() && !entry.rows.empty()) {
      entry.dense = densify(entry);
      entry.rows.clear();
    }
    f(entry.dense.defined() ? entry.dense : entry.rows.at(0).rows);
  }
}

}  // namespace

double clip_grad_value(Gradients& grads, double max_value) {
  must_be_positive("clip_grad_value", "max_value", max_value);
  double largest = 0;
  for_each_gradient(grads, [&](Tensor& g) {
    double most = 0;
    visit_floating(g, "clip_grad_value", [&](const auto* x) {
      for (int64_t i = 0; i < g.numel(); ++i) most = worse(most, std::abs(static_cast<double>(x[i])));
    });
    largest = worse(largest, most);
    if (most <= max_value) return;
    g = map(g, [max_value](auto v) {
      auto limit = static_cast<decltype(v)>(max_value);
      return v > limit ? limit : v < -limit ? -limit : v;
    });
  });
  return largest;
}

}  // namespace gradus::nn
