#pragma once

// Small helpers for writing ops in plain C++: run a piece of code for the element type a tensor has at run
// time. It is all templates, and meant for op files (.cc), yours included.

#include <type_traits>

#include <gradus/error.h>
#include <gradus/tensor.h>

namespace gradus {

/// f(pointer to the numbers of t) with the pointer's type chosen by t.dtype().
template <class F>
void visit(const Tensor& t, F&& f) {
  switch (t.dtype()) {
    case DType::f32: f(static_cast<float*>(t.raw())); break;
    case DType::f64: f(static_cast<double*>(t.raw())); break;
    case DType::i32: f(static_cast<int32_t*>(t.raw())); break;
    case DType::u8: f(static_cast<uint8_t*>(t.raw())); break;
  }
}

/// f(T{}) with T = float or double by the element type: for kernels that take several tensors of one type.
template <class F>
void with_type(DType dtype, const char* where, F&& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::f64) return f(double{});
  fail(where, "needs f32 or f64 numbers: " + std::string(name_of(dtype)));
}

/// The same as visit for f32 and f64 only. @throws Error "[where] needs f32 or f64 numbers: i32".
template <class F>
void visit_floating(const Tensor& t, const char* where, F&& f) {
  with_type(t.dtype(), where, [&]<class T>(T) { f(static_cast<T*>(t.raw())); });
}

/// The numbers of t as T*, T being float or double. @throws Error when t has another element type.
template <class T>
T* data(const Tensor& t) {
  if constexpr (std::is_same_v<T, float>)
    return t.f32();
  else
    return t.f64();
}

/// y_i = f(x_i, more_i, ...), for map and zip. @throws Error unless all have one shape and one type.
template <class F, class... Tensors>
Tensor each_element(const char* where, F&& f, const Tensor& x, const Tensors&... more) {
  if (((more.shape() != x.shape()) || ...))
    fail(where, "shapes must agree: " + (x.shape().str() + ... + (" and " + more.shape().str())));
  if (((more.dtype() != x.dtype()) || ...))
    fail(where, (std::string("element types must agree: ") + name_of(x.dtype()) + ... +
                 (std::string(" and ") + name_of(more.dtype()))));
  Tensor y(x.shape(), x.dtype());
  with_type(x.dtype(), where, [&]<class T>(T) {
    auto loop = [&f, n = x.numel()](T* out, const auto*... in) {
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(f(in[i]...));
    };
    loop(data<T>(y), data<T>(x), data<T>(more)...);
  });
  return y;
}

/// y_i = f(x_i). @throws Error unless x is f32 or f64.
template <class F>
Tensor map(const Tensor& x, F&& f) {
  return each_element("map", f, x);
}

/// z_i = f(x_i, y_i). @throws Error unless all have one shape and one type, f32 or f64.
template <class F>
Tensor zip(const Tensor& x, const Tensor& y, F&& f) {
  return each_element("zip", f, x, y);
}

/// w_i = f(x_i, y_i, z_i), likewise.
template <class F>
Tensor zip(const Tensor& x, const Tensor& y, const Tensor& z, F&& f) {
  return each_element("zip", f, x, y, z);
}

/// x stretched to `shape` by NumPy's broadcasting (a copy, or x itself when nothing stretches).
/// @throws Error "[where] shape does not stretch: [2] to [3]".
Tensor broadcast_to(const Tensor& x, const Shape& shape, const char* where);

/// The reverse: x summed over the axes along which `shape` was stretched. The backward of broadcasting.
/// @throws Error when `shape` does not stretch to x's.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace gradus
