#include <gradus/nn/optimizer.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <gradus/kernels/optimizer.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/nn/check.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

// alpha a b^T, added to `sum` in its place if there is one: [m, m], and symmetric, so that half is enough.
template <class T>
Var symmetric_product(bool full, double alpha, const Var& a, const Var& b, const Var& sum = {}) {
  const int64_t m = a.size(0), k = a.size(1), block = 64;
  const Tensor c = sum.defined() ? sum.value() : Tensor({m, m}, a.dtype());
  for (int64_t r = 0; r < m; r += block) {
    const int64_t end = std::min(m, r + block);
    T* to = data<T>(c);
    kernels::gemm(false, true, end - r, m - r, k, static_cast<T>(alpha), data<T>(a.value()) + r * k, k,
                  data<T>(b.value()) + r * k, k, T(sum.defined()), to + r * (m + 1), m, full);
    for (int64_t i = end; i < m; ++i)
      for (int64_t j = r; j < end; ++j) to[i * m + j] = to[j * m + i];
  }
  return c;
}

// About U V^T of u = U S V^T, whose norm is given: x <- P x with P = 3.4445 - 4.7750 A + 2.0315 A^2 and
// A = x x^T, five times. A wide x stays as it is until the end: all that moves it, Q <- P Q, and A <- P A P are
// smaller, and symmetric, for they are polynomials of the first A. There roundings of A grow some 10,000 times,
// and bfloat16's would be all that is left.
template <class T>
Tensor orthogonal(const Var& u, double norm) {
  const bool tall = u.size(0) > u.size(1);
  Var x = (tall ? transpose(u, 0, 1) : u) * (1 / std::max(norm, 1e-7)), a, p, q;
  const int64_t m = x.size(0), n = x.size(1);
  const bool wide = n >= 2 * m;
  auto product = [wide](const Var& l, const Var& r) { return symmetric_product<T>(wide, 1, l, r); };
  for (int k = 0; k < 5; ++k) {
    a = wide && k > 0 ? product(product(p, a), p) : product(x, x);
    p = symmetric_product<T>(wide, 2.0315, a, a, a * -4.7750);
    if (!wide) {
      x = x * 3.4445 + matmul(p, x);
      continue;
    }
    for (int64_t i = 0; i < m; ++i) data<T>(p.value())[i * (m + 1)] += static_cast<T>(3.4445);
    q = k > 0 ? product(p, q) : p;
  }
  if (wide) {
    const Tensor y(x.shape(), x.dtype()), z = x.value();
    kernels::gemm(false, false, m, n, m, T(1), data<T>(q.value()), m, data<T>(z), n, T(0), data<T>(y), n, true);
    x = y;
  }
  return (tall ? transpose(x, 0, 1) : x).value();
}

// How many maps a matrix holds, one below another: queries, keys and values, or a recurrent cell's gates, each
// with as many rows as its states, which weight_hh reads, have units.
int64_t maps_of(const NamedParameter& p, const ParameterList& all) {
  std::string states = p.name;
  if (const size_t at = states.find("weight_ih"); at != states.npos) states.replace(at, 9, "weight_hh");
  const int64_t rows = p.parameter->shape()[0];
  int64_t each = p.name.ends_with("in_proj_weight") && rows % 3 == 0 ? rows / 3 : rows;
  for (const NamedParameter& q : all)
    if (q.name == states && states.find("weight_hh") != states.npos && q.parameter->shape().dims() == 2)
      each = q.parameter->shape()[1];
  return each > 0 && rows % each == 0 ? rows / each : 1;
}

}  // namespace

Muon::Muon(const ParameterList& matrices, const MuonOptions& o, Caller caller)
    : Adam("Muon", {.lr = o.lr, .weight_decay = o.weight_decay}, true, caller), momentum_(o.momentum) {
  At at(caller);
  must_be_probability("Muon", "momentum", momentum_);
  for (const NamedParameter& p : matrices) {
    const Shape& shape = p.parameter->shape();
    if (shape.dims() != 2) refuse("Muon", "{} must have two axes: {}", p.name, shape);
    matrices_[p.parameter->var().node()] = maps_of(p, matrices);
  }
}

void Muon::apply_matrix(const Update& update, const Tensor& grad, const Tensor& value, const Tensor& mean) {
  NoGrad guard;
  const int64_t n = grad.numel();
  const double longer = static_cast<double>(std::max(grad.size(0), grad.size(1)));
  with_type(value.dtype(), "Muon", [&]<class T>(T) {
    Tensor u(grad.shape(), grad.dtype());
    T *p = data<T>(value), *m = data<T>(mean), *to = data<T>(u), b = static_cast<T>(momentum_);
    const T *given = data<T>(grad), scale = static_cast<T>(update.grad_scale);
    for (int64_t i = 0; i < n; ++i) {
      T g = scale * given[i];
      m[i] = b * m[i] + (1 - b) * g;
      to[i] = b * m[i] + (1 - b) * g;
    }
    const Tensor uv = orthogonal<T>(u, std::sqrt(kernels::sum_squares(to, n)));
    const T *way = data<T>(uv), keep = static_cast<T>(1 - update.lr * update.weight_decay),
            rate = static_cast<T>(0.2 * update.lr * std::sqrt(longer));
    for (int64_t i = 0; i < n; ++i) p[i] = keep * p[i] - rate * way[i];
  });
}

}  // namespace gradus::nn
