#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/simd_targets.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/elementwise.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void exp_of(const T* x, T* y, int64_t n) {
  const Tag<T> d;
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    part.store(exp_lanes(d, part.load(d, x + i)), d, y + i);
  });
}

template <class T>
void tanh_of(const T* x, T* y, int64_t n) {
  const Tag<T> d;
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    part.store(tanh_lanes(d, part.load(d, x + i)), d, y + i);
  });
}

template <class T>
void sigmoid_of(const T* x, T* y, int64_t n) {
  const Tag<T> d;
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    part.store(sigmoid_lanes(d, part.load(d, x + i)), d, y + i);
  });
}

template <class T>
void add_to(const T* x, T* y, int64_t n) {
  const Tag<T> d;
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    part.store(hn::Add(part.load(d, y + i), part.load(d, x + i)), d, y + i);
  });
}

template <class T>
void add_scaled(T a, const T* x, T* y, int64_t n) {
  axpy_lanes(a, x, y, n);
}

template <class T>
void tanh_back(const T* y, const T* dy, T* dx, int64_t n) {
  const Tag<T> d;
  const auto one = hn::Set(d, 1);
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    const auto v = part.load(d, y + i);
    part.store(hn::Mul(part.load(d, dy + i), hn::NegMulAdd(v, v, one)), d, dx + i);
  });
}

template <class T>
void sigmoid_back(const T* y, const T* dy, T* dx, int64_t n) {
  const Tag<T> d;
  for_lanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
    const auto v = part.load(d, y + i);
    part.store(hn::Mul(part.load(d, dy + i), hn::NegMulAdd(v, v, v)), d, dx + i);
  });
}

template <class T>
T dot_of(const T* x, const T* y, int64_t n) {
  return dot_lanes(x, y, n);
}

template <class T>
void bias_to_rows(const T* bias, T* y, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) add_to(bias, y + r * n, n);
}

/// Eight rows at a time: out is read and written once for them, and rounding errors grow eight times slower.
template <class T>
void rows_sum_to(const T* x, T* out, int64_t rows, int64_t n) {
  const Tag<T> d;
  int64_t r = 0;
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
  for (; r < rows; ++r) add_to(x + r * n, out, n);
}

// HWY_EXPORT wants plain names.
constexpr auto& exp_f32 = exp_of<float>;
constexpr auto& exp_f64 = exp_of<double>;
constexpr auto& tanh_f32 = tanh_of<float>;
constexpr auto& tanh_f64 = tanh_of<double>;
constexpr auto& sigmoid_f32 = sigmoid_of<float>;
constexpr auto& sigmoid_f64 = sigmoid_of<double>;
constexpr auto& add_f32 = add_to<float>;
constexpr auto& add_f64 = add_to<double>;
constexpr auto& axpy_f32 = add_scaled<float>;
constexpr auto& axpy_f64 = add_scaled<double>;
constexpr auto& tanh_back_f32 = tanh_back<float>;
constexpr auto& tanh_back_f64 = tanh_back<double>;
constexpr auto& sigmoid_back_f32 = sigmoid_back<float>;
constexpr auto& sigmoid_back_f64 = sigmoid_back<double>;
constexpr auto& dot_f32 = dot_of<float>;
constexpr auto& dot_f64 = dot_of<double>;
constexpr auto& bias_f32 = bias_to_rows<float>;
constexpr auto& bias_f64 = bias_to_rows<double>;
constexpr auto& rows_sum_f32 = rows_sum_to<float>;
constexpr auto& rows_sum_f64 = rows_sum_to<double>;

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

HWY_EXPORT(exp_f32);
HWY_EXPORT(exp_f64);
HWY_EXPORT(tanh_f32);
HWY_EXPORT(tanh_f64);
HWY_EXPORT(sigmoid_f32);
HWY_EXPORT(sigmoid_f64);
HWY_EXPORT(add_f32);
HWY_EXPORT(add_f64);
HWY_EXPORT(axpy_f32);
HWY_EXPORT(axpy_f64);
HWY_EXPORT(tanh_back_f32);
HWY_EXPORT(tanh_back_f64);
HWY_EXPORT(sigmoid_back_f32);
HWY_EXPORT(sigmoid_back_f64);
HWY_EXPORT(dot_f32);
HWY_EXPORT(dot_f64);
HWY_EXPORT(bias_f32);
HWY_EXPORT(bias_f64);
HWY_EXPORT(rows_sum_f32);
HWY_EXPORT(rows_sum_f64);

void exp(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(exp_f32)(x, y, n); }
void exp(const double* x, double* y, int64_t n) { HWY_DYNAMIC_DISPATCH(exp_f64)(x, y, n); }
void tanh(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(tanh_f32)(x, y, n); }
void tanh(const double* x, double* y, int64_t n) { HWY_DYNAMIC_DISPATCH(tanh_f64)(x, y, n); }
void sigmoid(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(sigmoid_f32)(x, y, n); }
void sigmoid(const double* x, double* y, int64_t n) { HWY_DYNAMIC_DISPATCH(sigmoid_f64)(x, y, n); }
void add_into(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(add_f32)(x, y, n); }
void add_into(const double* x, double* y, int64_t n) { HWY_DYNAMIC_DISPATCH(add_f64)(x, y, n); }
void axpy(float a, const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(axpy_f32)(a, x, y, n); }
void axpy(double a, const double* x, double* y, int64_t n) { HWY_DYNAMIC_DISPATCH(axpy_f64)(a, x, y, n); }
void tanh_backward(const float* y, const float* dy, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(tanh_back_f32)(y, dy, dx, n);
}
void tanh_backward(const double* y, const double* dy, double* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(tanh_back_f64)(y, dy, dx, n);
}
void sigmoid_backward(const float* y, const float* dy, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(sigmoid_back_f32)(y, dy, dx, n);
}
void sigmoid_backward(const double* y, const double* dy, double* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(sigmoid_back_f64)(y, dy, dx, n);
}
float dot(const float* x, const float* y, int64_t n) { return HWY_DYNAMIC_DISPATCH(dot_f32)(x, y, n); }
double dot(const double* x, const double* y, int64_t n) { return HWY_DYNAMIC_DISPATCH(dot_f64)(x, y, n); }
void add_bias(const float* bias, float* y, int64_t rows, int64_t n) {
  HWY_DYNAMIC_DISPATCH(bias_f32)(bias, y, rows, n);
}
void add_bias(const double* bias, double* y, int64_t rows, int64_t n) {
  HWY_DYNAMIC_DISPATCH(bias_f64)(bias, y, rows, n);
}
void sum_rows_into(const float* x, float* out, int64_t rows, int64_t n) {
  HWY_DYNAMIC_DISPATCH(rows_sum_f32)(x, out, rows, n);
}
void sum_rows_into(const double* x, double* out, int64_t rows, int64_t n) {
  HWY_DYNAMIC_DISPATCH(rows_sum_f64)(x, out, rows, n);
}

}  // namespace gradus::kernels
#endif  // HWY_ONCE
