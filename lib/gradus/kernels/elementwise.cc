#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/simd_targets.h>

#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/elementwise.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void exp(const T* x, T* y, int64_t n) {
  map_lanes(n, x, y, [](auto v) HWY_ATTR { return exp_lanes(Tag<T>(), v); });
}

template <class T>
void tanh(const T* x, T* y, int64_t n) {
  map_lanes(n, x, y, [](auto v) HWY_ATTR { return tanh_lanes(Tag<T>(), v); });
}

template <class T>
void sigmoid(const T* x, T* y, int64_t n) {
  map_lanes(n, x, y, [](auto v) HWY_ATTR { return sigmoid_lanes(Tag<T>(), v); });
}

template <class T>
void relu(const T* x, T* y, int64_t n) {
  map_lanes(n, x, y, [](auto v) HWY_ATTR { return at_least(Tag<T>(), v, 0); });
}

// Plain loops: the compiler makes vectors of them, and knows best how to where numbers of 1 byte stand beside
// those of 4 or 8. No branch on what is kept, which would be mispredicted often.
void keep_words(const uint32_t* words, uint32_t threshold, uint8_t* keep, int64_t n) {
  for (int64_t i = 0; i < n; ++i) keep[i] = words[i] >= threshold;
}

template <class T>
void keep_scaled(const T* x, const uint8_t* keep, T scale, T* y, int64_t n) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  for (int64_t i = 0; i < n; ++i)
    y[i] = std::bit_cast<T>(std::bit_cast<Bits>(x[i] * scale) & (Bits{0} - Bits{keep[i]}));
}

template <class T>
void add_into(const T* x, T* y, int64_t n) {
  map_lanes(n, y, x, y, [](auto u, auto v) HWY_ATTR { return hn::Add(u, v); });
}

template <class T>
void axpy(T a, const T* x, T* y, int64_t n) {
  axpy_lanes(a, x, y, n);
}

template <class T>
void tanh_backward(const T* y, const T* dy, T* dx, int64_t n) {
  const auto one = hn::Set(Tag<T>(), 1);
  map_lanes(n, y, dy, dx, [&](auto v, auto up) HWY_ATTR { return hn::Mul(up, hn::NegMulAdd(v, v, one)); });
}

template <class T>
void sigmoid_backward(const T* y, const T* dy, T* dx, int64_t n) {
  map_lanes(n, y, dy, dx, [](auto v, auto up) HWY_ATTR { return hn::Mul(up, hn::NegMulAdd(v, v, v)); });
}

template <class T>
T dot(const T* x, const T* y, int64_t n) {
  return dot_lanes(x, y, n);
}

template <class T>
void add_bias(const T* bias, T* y, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) add_into(bias, y + r * n, n);
}

/// Eight rows at a time: out is read and written once for them, and rounding errors grow eight times slower. Of
/// very many rows, so many have sums of their own: a million in one float would lose three digits.
template <class T>
void sum_rows_into(const T* x, T* out, int64_t rows, int64_t n) {
  constexpr int64_t kRows = 8192;
  int64_t r = 0;
  for (; rows > kRows && r < rows; r += kRows) {
    std::vector<T> sums(static_cast<size_t>(n));
    sum_rows_into(x + r * n, sums.data(), std::min(kRows, rows - r), n);
    add_into(sums.data(), out, n);
  }
  const Tag<T> d;
  for (; r + 8 <= rows; r += 8) {
    const T* p = x + r * n;
    for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
      const auto a = hn::Add(part.load(d, p + i), part.load(d, p + i + n));
      const auto b = hn::Add(part.load(d, p + i + 2 * n), part.load(d, p + i + 3 * n));
      const auto c = hn::Add(part.load(d, p + i + 4 * n), part.load(d, p + i + 5 * n));
      const auto e = hn::Add(part.load(d, p + i + 6 * n), part.load(d, p + i + 7 * n));
      part.store(hn::Add(part.load(d, out + i), hn::Add(hn::Add(a, b), hn::Add(c, e))), d, out + i);
    });
  }
  for (; r < rows; ++r) add_into(x + r * n, out, n);
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

GRADUS_KERNEL(exp, 3);
GRADUS_KERNEL(tanh, 3);
GRADUS_KERNEL(sigmoid, 3);
GRADUS_KERNEL(relu, 3);
GRADUS_PLAIN_KERNEL(keep_words, 4);
GRADUS_KERNEL(keep_scaled, 5);
GRADUS_KERNEL(add_into, 3);
GRADUS_KERNEL(axpy, 4);
GRADUS_KERNEL(tanh_backward, 4);
GRADUS_KERNEL(sigmoid_backward, 4);
GRADUS_KERNEL(dot, 3);
GRADUS_KERNEL(add_bias, 4);
GRADUS_KERNEL(sum_rows_into, 4);

}  // namespace gradus::kernels
#endif  // HWY_ONCE
