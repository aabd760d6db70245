#pragma once

// Internal: what ops ask of their operands, and how they hand the numbers to kernels. Not installed.

#include <fmt/core.h>

#include <algorithm>

#include <gradus/autograd.h>
#include <gradus/numeric.h>

template <>
struct fmt::formatter<gradus::Shape> {
  constexpr auto parse(fmt::format_parse_context& c) { return c.begin(); }
  auto format(const gradus::Shape& s, fmt::format_context& c) const {
    return fmt::format_to(c.out(), "{}", s.str());
  }
};

template <>
struct fmt::formatter<gradus::DType> {
  constexpr auto parse(fmt::format_parse_context& c) { return c.begin(); }
  auto format(gradus::DType type, fmt::format_context& c) const {
    return fmt::format_to(c.out(), "{}", gradus::name_of(type));
  }
};

namespace gradus {

/// fail() with a text that fmt puts together; shapes and element types are shown as "[2, 3]" and "f32".
template <class... Args>
[[noreturn]] void refuse(const char* op, fmt::format_string<Args...> text, Args&&... args) {
  fail(op, fmt::format(text, std::forward<Args>(args)...));
}

/// @throws Error "[op] the input is undefined", "[op] needs f32 or f64 numbers: i32 [2, 3]"
inline void check_operand(const Var& x, const char* op) {
  if (!x.defined()) fail(op, "the input is undefined", "moved from, or never computed?");
  if (!is_floating(x.dtype())) refuse(op, "needs f32 or f64 numbers: {} {}", x.dtype(), x.shape());
}

/// @throws Error "[op] element types must agree: f32 and f64"
inline void check_types(const char* op, DType a, DType b) {
  if (a != b) refuse(op, "element types must agree: {} and {}", a, b);
}

/// Both operands as above, and of one element type.
inline void check_operands(const Var& a, const Var& b, const char* op) {
  if (!a.defined() || !b.defined()) fail(op, "an operand is undefined", "moved from, or never computed?");
  check_types(op, a.dtype(), b.dtype());
  check_operand(a, op);
}

/// What an op begins with: its errors name the caller's line, the first of them those of its operands.
struct CheckedAt : At {
  CheckedAt(const Input& x, const char* op) : At(x.caller()) { check_operand(x, op); }
  CheckedAt(const Input& a, const Var& b, const char* op) : At(a.caller()) { check_operands(a, b, op); }
};

/// A mask of attention, or an undefined one.
/// @throws Error "[op] the mask must be u8 [B, S] = [2, 3]: u8 [2, 4]"
inline void check_mask(const char* op, const Tensor& mask, int64_t B, int64_t S) {
  if (!mask.defined() || (mask.dtype() == DType::u8 && mask.shape() == Shape{B, S})) return;
  refuse(op, "the mask must be u8 [B, S] = [{}, {}]: {} {}", B, S, mask.dtype(), mask.shape());
}

/// The targets of a loss of x [..., C]; `whose` shape they have, and x's name.
/// @throws Error "[nll_loss] targets must have log_probs' shape without the last axis: log_probs [2, 4], ..."
inline void check_targets(const char* op, const char* whose, const char* name, const Var& x,
                          const Tensor& targets) {
  if (x.dims() == 0 || x.shape().without(-1) != targets.shape())
    refuse(op, "targets must have {} shape without the last axis: {} {}, targets {}", whose, name, x.shape(),
           targets.shape());
}

/// What two sizes that should agree suggest: "512 = 2 x 256: bidirectional?", "" when nothing.
inline std::string size_hint(int64_t got, int64_t wanted) {
  const int64_t small = std::min(got, wanted), large = std::max(got, wanted);
  const char* const guesses[] = {"bidirectional?", "the three gates of a GRU?", "the four gates of an LSTM?"};
  for (int64_t factor = 2; factor <= 4; ++factor)
    if (small >= 2 && large == factor * small)
      return fmt::format("{} = {} x {}: {}", large, factor, small, guesses[factor - 2]);
  return "";
}

/// Numbers for a kernel, null where the tensor is undefined.
template <class T>
T* data_or_null(const Tensor& x) {
  return x.defined() ? data<T>(x) : nullptr;
}
inline const uint8_t* mask_data(const Tensor& mask) { return mask.defined() ? mask.u8() : nullptr; }

/// Positions of each sentence up to its last real one: of a mask [B, S], or all S where it is undefined.
inline std::vector<int64_t> real_positions(const Tensor& mask, int64_t B, int64_t S) {
  std::vector<int64_t> real(static_cast<size_t>(B), S);
  for (int64_t b = 0; b < B && mask.defined(); ++b)
    for (const uint8_t* row = mask.u8() + b * S; real[b] > 0 && !row[real[b] - 1];) --real[b];
  return real;
}

/// The accumulator of input i, or undefined where nobody wants its gradient.
inline Tensor into_if_needed(Grads& dx, int i) { return dx.needed(i) ? dx.into(i) : Tensor(); }
/// The same for a kernel that writes it in any case: nobody's zeros where nobody wants it.
inline Tensor into_or_zeros(Grads& dx, int i, const Shape& shape, DType dtype) {
  return dx.needed(i) ? dx.into(i) : Tensor::zeros(shape, dtype);
}

/// y of x's shape that a kernel writes: kernel(x, more.., y, n), pointers to numbers of x's element type.
template <class Kernel, class... More>
Tensor by_kernel(const char* op, Kernel kernel, const Tensor& x, const More&... more) {
  Tensor y(x.shape(), x.dtype());
  with_type(x.dtype(), op, [&]<class T>(T) { kernel(data<T>(x), data<T>(more)..., data<T>(y), y.numel()); });
  return y;
}

/// y of `shape`: the rows of x with these ids. @throws Error "[gather_rows] indices must be in 0 .. 3: 4"
inline Tensor take_rows(const char* op, const char* what, const Tensor& x, const Tensor& ids,
                        const Shape& shape) {
  Tensor y(shape, x.dtype());
  with_type(x.dtype(), op, [&]<class T>(T) {
    const int64_t rows = x.size(0), width = x.shape().stride(0);
    const T* in = data<T>(x);
    T* out = data<T>(y);
    for (const int32_t *id = ids.i32(), *end = id + ids.numel(); id < end; ++id, out += width) {
      if (*id < 0 || *id >= rows) refuse(op, "{} must be in 0 .. {}: {}", what, rows - 1, *id);
      std::copy_n(in + *id * width, width, out);
    }
  });
  return y;
}

/// Records y_i, an entry of x by itself: dx_i = slope(dy_i, saved_i), `saved` being x or y.
template <class F>
Var record_elementwise(const char* op, const Var& x, const Tensor& y, const Tensor& saved, F slope) {
  return record(op, {x}, y, [saved, slope](const Tensor& dy, Grads& dx) { dx.add(0, zip(dy, saved, slope)); });
}

/// record() with a backward for kernels: backward(T{}, dy, dx), T the element type.
template <class F>
Var record_typed(const char* op, const std::vector<Var>& inputs, const Tensor& y, F backward) {
  return record(op, inputs, y, [backward = std::move(backward), op](const Tensor& dy, Grads& dx) {
    with_type(dy.dtype(), op, [&](auto type) { backward(type, dy, dx); });
  });
}

/// Runs `unit`, which has forward(numbers of out) and backward(dout, dx), and records it as the node.
template <class Unit>
Var record_unit(const char* op, Unit unit, const std::vector<Var>& inputs, const Tensor& out) {
  with_type(out.dtype(), op, [&]<class T>(T) { unit.forward(data<T>(out)); });
  return record_typed(op, inputs, out, [unit = std::move(unit)]<class T>(T, const Tensor& dout, Grads& dx) {
    unit.template backward<T>(dout, dx);
  });
}

/// x times a number, the products taken in double.
inline Tensor scaled(const Tensor& x, double by) {
  return by == 1 ? x : map(x, [by](auto v) { return static_cast<decltype(v)>(v * by); });
}

}  // namespace gradus
