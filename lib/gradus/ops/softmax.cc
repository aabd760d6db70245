#include <gradus/ops/softmax.h>

#include <limits>

#include <gradus/kernels/softmax.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/where.h>

namespace gradus {
namespace {

// The kernels want rows: the axis is brought to the end, and back afterwards, unless it is there already.
struct Rows {
  int64_t outer, length, inner;

  Rows(const Shape& shape, int axis) : outer(1), length(shape[axis]), inner(shape.stride(axis)) {
    if (length > 0 && inner > 0) outer = shape.numel() / (length * inner);
  }
  int64_t count() const { return outer * inner; }

  Tensor to_rows(const Tensor& x) const { return swapped(x, length, inner); }
  Tensor back(const Tensor& x) const { return swapped(x, inner, length); }

 private:
  // [outer, a, b] -> [outer, b, a]; the shape of x is kept as a label.
  Tensor swapped(const Tensor& x, int64_t a, int64_t b) const {
    if (inner == 1 || x.numel() == 0) return x;
    Tensor y(x.shape(), x.dtype());
    visit(x, [&](auto* in) {
      auto* out = static_cast<decltype(in)>(y.raw());
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < a; ++i)
          for (int64_t j = 0; j < b; ++j) out[(o * b + j) * a + i] = in[(o * a + i) * b + j];
    });
    return y;
  }
};

// The mask for every entry of x, as rows; undefined when there is none.
Tensor mask_rows(const Rows& rows, const Tensor& mask, const Shape& shape, const char* op) {
  if (!mask.defined()) return mask;
  if (mask.dtype() != DType::u8) refuse(op, "mask must be u8: {}", mask.dtype());
  if (!broadcasts_to(mask.shape(), shape))
    refuse(op, "mask must broadcast to the input: mask {}, input {}", mask.shape(), shape);
  return rows.to_rows(broadcast_to(mask, shape, op));
}

}  // namespace

namespace reference {
namespace {

// The parts both functions share: real entries minus their row's maximum (0 elsewhere), their exponentials,
// and the sums of these (1 in a row with nothing real, so that it divides and has a logarithm).
struct Parts {
  Var shifted, exponential, total;
  Tensor mask;
};

Parts parts(const Var& x, const SoftmaxOptions& options) {
  Tensor mask = options.mask.defined() ? broadcast_to(options.mask, x.shape(), "softmax")
                                       : Tensor::ones(x.shape(), DType::u8);
  ReduceOptions along{.axes = {options.axis}, .keep_dims = true};
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  Var top = max(where(mask, x.value(), lowest), along);  // constant: it cancels
  Var shifted = where(mask, x - top, 0);
  Var real = mask.to(x.dtype());
  Var e = exp(shifted) * real;
  return {shifted, e, sum(e, along) + (1 - max(real, along)), mask};
}

Var softmax(const Var& x, const SoftmaxOptions& options) {
  Parts p = parts(x, options);
  return p.exponential / p.total;
}

Var log_softmax(const Var& x, const SoftmaxOptions& options) {
  Parts p = parts(x, options);
  return where(p.mask, p.shifted - log(p.total), 0);
}

}  // namespace
}  // namespace reference

namespace {

// forward(x, mask, y, rows, n) and backward(y, mask, dy, dx, rows, n) are the kernels.
template <class Forward, class Backward>
Var by_rows(const char* op, const Input& x, const SoftmaxOptions& options, Forward forward,
            Backward backward) {
  CheckedAt at(x, op);
  Rows rows(x.shape(), x.shape().axis(options.axis, op));
  Tensor mask = mask_rows(rows, options.mask, x.shape(), op);
  auto run = [&](auto* in, auto* out, int64_t) {
    forward(in, mask_data(mask), out, rows.count(), rows.length);
  };
  Tensor y = by_kernel(op, run, rows.to_rows(x.value()));
  return record(op, {x}, rows.back(y), [=](const Tensor& dy, Grads& dx) {
    auto back = [&](auto* p, auto* up, auto* d, int64_t) {
      backward(p, mask_data(mask), up, d, rows.count(), rows.length);
    };
    dx.add(0, rows.back(by_kernel(op, back, y, rows.to_rows(dy))));
  });
}

}  // namespace

Var softmax(const Input& x, const SoftmaxOptions& options) {
  return by_rows("softmax", x, options, [](auto... a) { kernels::softmax_rows(a...); },
                 [](auto* y, const uint8_t*, auto... a) { kernels::softmax_rows_backward(y, a...); });
}

Var log_softmax(const Input& x, const SoftmaxOptions& options) {
  return by_rows("log_softmax", x, options, [](auto... a) { kernels::log_softmax_rows(a...); },
                 [](auto... a) { kernels::log_softmax_rows_backward(a...); });
}

namespace {

// Two rows of four: one whole, one with two real places; and a third with none.
Tensor sample_mask() {
  return Tensor::from({3, 4}, {1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0}, DType::u8);
}

OpCase softmax_case(const std::string& name, const OpCase::Input& x, const SoftmaxOptions& o) {
  return {"softmax" + name, {x}, calls(softmax, o), calls(reference::softmax, o)};
}
OpCase log_softmax_case(const std::string& name, const OpCase::Input& x, const SoftmaxOptions& o) {
  return {"log_softmax" + name, {x}, calls(log_softmax, o), calls(reference::log_softmax, o)};
}

}  // namespace

GRADUS_OP_CASES(softmax_case("", {3, 5}, {}), softmax_case(": first axis", {3, 5}, {.axis = 0}),
                softmax_case(": middle axis", {2, 3, 4}, {.axis = 1}),
                softmax_case(": masked", {3, 4}, {.mask = sample_mask()}),
                softmax_case(": masked, first axis", {3, 4}, {.axis = 0, .mask = sample_mask()}),
                softmax_case(": mask broadcasts", {2, 3, 4}, {.mask = sample_mask()}),
                log_softmax_case("", {3, 5}, {}),
                log_softmax_case(": middle axis", {2, 3, 4}, {.axis = 1}),
                log_softmax_case(": masked", {3, 4}, {.mask = sample_mask()}),
                log_softmax_case(": masked, first axis", {3, 4}, {.axis = 0, .mask = sample_mask()}));

}  // namespace gradus
