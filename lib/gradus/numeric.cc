#include <gradus/numeric.h>

#include <fmt/core.h>

#include <algorithm>

#include <gradus/kernels/elementwise.h>
#include <gradus/walk.h>

namespace gradus {
namespace {

// Eight partial sums, in double: a float accumulator would lose a digit for every ten thousand numbers or so.
// Sums of what lies apart keep to floats, unless there are `many` of them.
template <class T>
double sum_of(const T* x, int64_t n) {
  double part[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) part[k] += x[i + k];
  for (; i < n; ++i) part[i % 8] += x[i];
  return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

}  // namespace

Tensor broadcast_to(const Tensor& x, const Shape& shape, const char* where) {
  if (x.shape() == shape) return x;
  if (!broadcasts_to(x.shape(), shape))
    fail(where, fmt::format("shape does not stretch: {} to {}", x.shape().str(), shape.str()));
  Tensor y(shape, x.dtype());
  Walk walk(shape, {x.shape()});
  const int64_t n = walk.length();
  visit(x, [&](auto* in) {
    auto* out = static_cast<decltype(in)>(y.raw());
    walk.for_each_run([&](int64_t start, const int64_t* offset) {
      if (walk.step(0) == 0) std::fill_n(out + start, n, in[offset[0]]);
      else std::copy_n(in + offset[0], n, out + start);
    });
  });
  return y;
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (!broadcasts_to(shape, x.shape()))
    fail("sum_to", fmt::format("shape does not stretch: {} to {}", shape.str(), x.shape().str()));
  Tensor y = Tensor::zeros(shape, x.dtype());
  Walk walk(x.shape(), {shape});
  const int64_t n = walk.length();
  const bool many = (walk.step(0) == 0 ? walk.runs() : x.numel()) / 8192 > y.numel();
  with_type(x.dtype(), "sum_to", [&]<class T>(T) {
    const T* in = data<T>(x);
    const int row = walk.dims() - 2;
    if (x.numel() > 0 && walk.step(0) == 1 && (row == 0 || (row == 1 && many)) && walk.stride(0, row) == 0) {
      const int64_t rows = walk.size(row), block = rows * n;
      for (int64_t i = 0; i < x.numel() / block; ++i)
        kernels::sum_rows_into(in + i * block, data<T>(y) + i * n, rows, n);
      return;
    }
    auto add_runs = [&]<class Sum>(Sum* out) {
      walk.for_each_run([&](int64_t start, const int64_t* offset) {
        Sum* to = out + offset[0];
        if (walk.step(0) == 0) *to += static_cast<Sum>(sum_of(in + start, n));
        else if constexpr (std::is_same_v<Sum, T>) kernels::add_into(in + start, to, n);
        else for (int64_t i = 0; i < n; ++i) to[i] += in[start + i];
      });
    };
    if (!many) return add_runs(data<T>(y));
    Tensor sums = Tensor::zeros(shape, DType::f64);
    add_runs(sums.f64());
    y = sums.to(x.dtype());
  });
  return y;
}

}  // namespace gradus
