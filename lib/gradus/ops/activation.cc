#include <gradus/ops/activation.h>

#include <cmath>
#include <functional>
#include <numbers>

#include <gradus/kernels/elementwise.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/operands.h>

namespace gradus {

// Composed of exp and friends: what the fused forms below are checked against.
namespace reference {
namespace {

Var sigmoid(const Var& x) { return 1 / (1 + exp(-x)); }
Var tanh(const Var& x) { return 2 * reference::sigmoid(2 * x) - 1; }
Var relu(const Var& x) { return maximum(x, Tensor::scalar(0, x.dtype())); }
Var leaky_relu(const Var& x, double slope) { return maximum(x, slope * x); }
Var softplus(const Var& x) { return log(1 + exp(x)); }

}  // namespace
}  // namespace reference

Var tanh(const Input& x) {
  CheckedAt at(x, "tanh");
  Tensor y = by_kernel("tanh", [](auto... a) { kernels::tanh(a...); }, x.value());
  return record("tanh", {x}, y, [y](const Tensor& dy, Grads& dx) {
    dx.add(0, by_kernel("tanh", [](auto... a) { kernels::tanh_backward(a...); }, y, dy));
  });
}

Var sigmoid(const Input& x) {
  CheckedAt at(x, "sigmoid");
  Tensor y = by_kernel("sigmoid", [](auto... a) { kernels::sigmoid(a...); }, x.value());
  return record("sigmoid", {x}, y, [y](const Tensor& dy, Grads& dx) {
    dx.add(0, by_kernel("sigmoid", [](auto... a) { kernels::sigmoid_backward(a...); }, y, dy));
  });
}

Var relu(const Input& x) {
  CheckedAt at(x, "relu");
  Tensor y = by_kernel("relu", [](auto... a) { kernels::relu(a...); }, x.value());
  return record_elementwise("relu", x, y, y, [](auto g, auto v) { return v > 0 ? g : decltype(g){0}; });
}

Var leaky_relu(const Input& x, double slope) {
  CheckedAt at(x, "leaky_relu");
  if (!(slope > 0)) refuse("leaky_relu", "slope must be positive: {}", slope);
  Tensor y = map(x.value(), [slope]<class T>(T v) { return v < 0 ? static_cast<T>(slope) * v : v; });
  // y has x's sign.
  return record_elementwise("leaky_relu", x, y, y, [slope]<class T>(T g, T v) {
    return v > 0 ? g : static_cast<T>(slope) * g;
  });
}

Var gelu(const Input& x) {
  CheckedAt at(x, "gelu");
  auto phi = []<class T>(T v) { return T(0.5) * std::erfc(-v * (std::numbers::sqrt2_v<T> / 2)); };
  Tensor y = map(x.value(), [phi](auto v) { return v * phi(v); });
  return record_elementwise("gelu", x, y, x.value(), [phi]<class T>(T g, T v) {
    const T root = std::numbers::sqrt2_v<T> / 2 * std::numbers::inv_sqrtpi_v<T>;  // 1 / sqrt(2 pi)
    return g * (phi(v) + v * root * std::exp(-v * v / 2));
  });
}

Var softplus(const Input& x) {
  CheckedAt at(x, "softplus");
  Tensor y = map(x.value(), [](auto v) {
    return (v < 0 ? decltype(v){0} : v) + std::log1p(std::exp(-std::abs(v)));
  });
  return record("softplus", {x}, y, [x = x.value()](const Tensor& dy, Grads& dx) {
    Tensor slope = by_kernel("softplus", [](auto... a) { kernels::sigmoid(a...); }, x);
    dx.add(0, zip(dy, slope, std::multiplies<>()));
  });
}

GRADUS_OP_CASES(
    {"tanh", {{{2, 9}, -3, 3}}, calls(tanh), calls(reference::tanh)},
    {"tanh: scalar", {Shape{}}, calls(tanh), calls(reference::tanh)},
    {"sigmoid", {{{2, 9}, -4, 4}}, calls(sigmoid), calls(reference::sigmoid)},
    {"sigmoid: empty", {{0}}, calls(sigmoid)},
    {"relu: right", {{{2, 3}, 0.1, 1}}, calls(relu), calls(reference::relu)},
    {"relu: left", {{{2, 3}, -1, -0.1}}, calls(relu), calls(reference::relu)},
    {"leaky_relu: right", {{{2, 3}, 0.1, 1}}, calls(leaky_relu, 0.2), calls(reference::leaky_relu, 0.2)},
    {"leaky_relu: left", {{{2, 3}, -1, -0.1}}, calls(leaky_relu, 0.2), calls(reference::leaky_relu, 0.2)},
    {"gelu", {{{2, 9}, -3, 3}}, calls(gelu)},
    {"softplus", {{{2, 9}, -4, 4}}, calls(softplus), calls(reference::softplus)});

}  // namespace gradus
