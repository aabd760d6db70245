#include <gradus/ops/reduce.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <gradus/kernels/elementwise.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/shape.h>
#include <gradus/walk.h>

namespace gradus {
namespace {

// The shapes of a reduction's result with the reduced axes as 1, which broadcasts back to x, and as the
// caller wants it: the same numbers in the same order, so that one is a view of the other.
struct Reduced {
  Shape kept, wanted;
  int64_t count;  // entries of x behind one of y
};

Reduced reduced(const Var& x, const ReduceOptions& options, const char* op) {
  check_operand(x, op);
  bool gone[Shape::kMaxDims] = {};
  for (int axis : options.axes) {
    int front = x.shape().axis(axis, op);
    if (gone[front]) refuse(op, "axis {} is named twice: shape {}", front, x.shape());
    gone[front] = true;
  }
  Reduced r{x.shape(), Shape(), 1};
  for (int i = 0; i < x.dims(); ++i) {
    bool is_gone = options.axes.empty() || gone[i];
    if (is_gone) {
      r.count *= x.size(i);
      r.kept.set(i, 1);
    }
    if (!is_gone || options.keep_dims) r.wanted.append(r.kept[i]);
  }
  return r;
}

// The larger one; NaN before any number.
template <class T>
T larger(T v, T best) {
  return v > best || v != v ? v : best;
}

// The same over n numbers. Eight chains of comparisons instead of one, which the processor runs side by side;
// NaN, which loses every comparison here, is looked for apart.
template <class T>
T largest_of(const T* x, int64_t n, T best) {
  T part[8], nan[8] = {};
  std::fill_n(part, 8, best);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; ++k) part[k] = x[i + k] > part[k] ? x[i + k] : part[k];
    for (int k = 0; k < 8; ++k) nan[k] = x[i + k] != x[i + k] ? x[i + k] : nan[k];
  }
  for (; i < n; ++i) best = larger(x[i], best);
  for (int k = 0; k < 8; ++k) best = larger(nan[k] != nan[k] ? nan[k] : part[k], best);
  return best;
}

// y_j = the largest x of its group; -inf for an empty one.
Tensor largest(const Tensor& x, const Shape& kept) {
  Tensor y = Tensor::full(kept, -std::numeric_limits<double>::infinity(), x.dtype());
  Walk walk(x.shape(), {kept});
  const int64_t n = walk.length();
  with_type(x.dtype(), "max", [&]<class T>(T) {
    const T* in = data<T>(x);
    T* out = data<T>(y);
    walk.for_each_run([&](int64_t start, const int64_t* offset) {
      const T* run = in + start;
      T* to = out + offset[0];
      if (walk.step(0) == 0) {
        *to = largest_of(run, n, *to);
      } else {
        for (int64_t i = 0; i < n; ++i) to[i] = larger(run[i], to[i]);
      }
    });
  });
  return y;
}

}  // namespace

Var sum(const Input& x, const ReduceOptions& options) {
  At at(x.caller());
  Reduced r = reduced(x, options, "sum");
  Tensor y = sum_to(x.value(), r.kept).reshape(r.wanted);
  return record("sum", {x}, y, [shape = x.shape(), kept = r.kept](const Tensor& dy, Grads& dx) {
    dx.add(0, broadcast_to(dy.reshape(kept), shape, "sum"));
  });
}

Var mean(const Input& x, const ReduceOptions& options) {
  At at(x.caller());
  Reduced r = reduced(x, options, "mean");
  const double n = static_cast<double>(r.count);
  auto over_n = [n](auto v) { return v / static_cast<decltype(v)>(n); };
  Tensor y = map(sum_to(x.value(), r.kept), over_n).reshape(r.wanted);
  return record("mean", {x}, y, [shape = x.shape(), kept = r.kept, over_n](const Tensor& dy, Grads& dx) {
    dx.add(0, broadcast_to(map(dy, over_n).reshape(kept), shape, "mean"));
  });
}

Var max(const Input& x, const ReduceOptions& options) {
  At at(x.caller());
  Reduced r = reduced(x, options, "max");
  if (r.count == 0) refuse("max", "nothing to take the maximum of: shape {}", x.shape());
  Tensor y = largest(x.value(), r.kept);
  return record("max", {x}, y.reshape(r.wanted), [x = x.value(), y](const Tensor& dy, Grads& dx) {
    Tensor hit = zip_broadcast(x, y, "max", [](auto v, auto best) {
      return decltype(v)(v == best || (v != v && best != best));
    });
    Tensor share =
        zip(dy.reshape(y.shape()), sum_to(hit, y.shape()), [](auto g, auto ties) { return g / ties; });
    dx.add(0, zip_broadcast(hit, share, "max", []<class T>(T h, T s) { return h == 0 ? T{0} : s; }));
  });
}

Var logsumexp(const Input& x, const ReduceOptions& options) {
  At at(x.caller());
  Reduced r = reduced(x, options, "logsumexp");
  // An infinite maximum is not subtracted (inf - inf is NaN): all -inf gives -inf, any +inf gives +inf.
  Tensor m = map(largest(x.value(), r.kept), [](auto v) { return std::isinf(v) ? decltype(v){0} : v; });
  auto shifted_exp = [](const Tensor& from, const Tensor& shift) {
    Tensor e = zip_broadcast(from, shift, "logsumexp", [](auto v, auto s) { return v - s; });
    visit_floating(e, "logsumexp", [&](auto* v) { kernels::exp(v, v, e.numel()); });
    return e;
  };
  Tensor y =
      zip(m, sum_to(shifted_exp(x.value(), m), r.kept), [](auto a, auto s) { return a + std::log(s); });
  auto back = [x = x.value(), y, shifted_exp](const Tensor& dy, Grads& dx) {
    // Where all of x is -inf nothing would change y: gradient 0, not NaN.
    const double none = -std::numeric_limits<double>::infinity();
    Tensor shift = map(y, [none](auto v) { return v == decltype(v)(none) ? decltype(v){0} : v; });
    dx.add(0, zip_broadcast(shifted_exp(x, shift), dy.reshape(y.shape()), "logsumexp", std::multiplies<>()));
  };
  return record("logsumexp", {x}, y.reshape(r.wanted), std::move(back));
}

Var sum(const Input& x, int axis) { return sum(x, ReduceOptions{.axes = {axis}}); }
Var mean(const Input& x, int axis) { return mean(x, ReduceOptions{.axes = {axis}}); }
Var max(const Input& x, int axis) { return max(x, ReduceOptions{.axes = {axis}}); }
Var logsumexp(const Input& x, int axis) { return logsumexp(x, ReduceOptions{.axes = {axis}}); }

Tensor argmax(const Input& input) {
  At at(input.caller());
  const Tensor& x = input.value();
  if (!x.defined()) fail("argmax", "the input is undefined");
  if (x.dims() == 0 || x.size(-1) == 0)
    refuse("argmax", "the last axis must have entries: shape {}", x.shape());
  Tensor y(x.shape().without(-1), DType::i32);
  const int64_t n = x.size(-1);
  int32_t* out = y.i32();
  visit(x, [&](auto* in) {
    for (int64_t row = 0; row < y.numel(); ++row, in += n) {
      const auto best = largest_of(in, n, in[0]);
      int64_t i = 0;
      while (in[i] != best && in[i] == in[i]) ++i;  // the first NaN, if any, is the largest
      out[row] = static_cast<int32_t>(i);
    }
  });
  return y;
}

// ---- cases ----

namespace reference {
namespace {

Var mean(const Var& x, const ReduceOptions& options, double n) { return sum(x, options) / n; }

// One axis only: the maximum of its entries, two at a time.
Var max(const Var& x, int axis) {
  Var best = select(x, axis, 0);
  for (int64_t i = 1; i < x.size(axis); ++i) best = maximum(best, select(x, axis, i));
  return best;
}

// Without the shift: small numbers only.
Var logsumexp(const Input& x, const ReduceOptions& options) { return log(sum(exp(x), options)); }

}  // namespace
}  // namespace reference

namespace {

// A case's calls with options; of an op's overloads this means the one that takes them.
OpFunction over(Var (*op)(const Input&, const ReduceOptions&), const ReduceOptions& options) {
  return calls(op, options);
}

}  // namespace

GRADUS_OP_CASES(
    {"sum", {{2, 3}}, over(sum, {})},
    {"sum: last axis", {{2, 3, 4}}, over(sum, {.axes = {-1}})},
    {"sum: one axis", {{2, 3, 4}}, [](auto& in) { return sum(in[0], 1); }, over(sum, {.axes = {1}})},
    {"mean: one axis", {{2, 3, 4}}, [](auto& in) { return mean(in[0], -1); }, over(mean, {.axes = {2}})},
    {"max: one axis", {{2, 3, 4}}, [](auto& in) { return max(in[0], 0); }, over(max, {.axes = {0}})},
    {"logsumexp: one axis", {{2, 3, 4}}, [](auto& in) { return logsumexp(in[0], 1); },
     over(logsumexp, {.axes = {1}})},
    {"sum: first axis, kept", {{2, 3, 4}}, over(sum, {.axes = {0}, .keep_dims = true})},
    {"sum: middle axis", {{2, 3, 4}}, over(sum, {.axes = {1}}),
     [](auto& in) { return select(in[0], 1, 0) + select(in[0], 1, 1) + select(in[0], 1, 2); }},
    {"sum: outer axes", {{2, 3, 4}}, over(sum, {.axes = {-1, 0}}),
     [](auto& in) { return sum(sum(in[0], {.axes = {2}}), {.axes = {0}}); }},
    {"sum: every other of six", {{2, 2, 2, 1, 2, 3}}, over(sum, {.axes = {0, 2, 4}})},
    {"sum: scalar", {Shape{}}, over(sum, {})},
    {"sum: empty axis", {{2, 0}}, over(sum, {.axes = {1}})},
    {"mean", {{2, 3}}, over(mean, {}), [](auto& in) { return reference::mean(in[0], {}, 6); }},
    {"mean: last axis, kept", {{2, 5}}, over(mean, {.axes = {-1}, .keep_dims = true}),
     [](auto& in) { return reference::mean(in[0], {.axes = {1}, .keep_dims = true}, 5); }},
    {"mean: two axes", {{2, 3, 4}}, over(mean, {.axes = {0, 1}}),
     [](auto& in) { return reference::mean(in[0], {.axes = {0, 1}}, 6); }},
    {"max", {{3, 4}}, over(max, {})},
    {"max: last axis", {{3, 4}}, over(max, {.axes = {-1}}), calls(reference::max, -1)},
    {"max: first axis, kept", {{3, 4}}, over(max, {.axes = {0}, .keep_dims = true}),
     [](auto& in) { return reshape(reference::max(in[0], 0), {1, 4}); }},
    {"max: middle axis", {{2, 3, 2}}, over(max, {.axes = {1}}), calls(reference::max, 1)},
    {"logsumexp", {{3, 4}}, over(logsumexp, {}), over(reference::logsumexp, {})},
    {"logsumexp: last axis", {{{3, 4}, -3, 3}}, over(logsumexp, {.axes = {-1}}),
     over(reference::logsumexp, {.axes = {-1}})},
    {"logsumexp: first axis, kept", {{3, 4}}, over(logsumexp, {.axes = {0}, .keep_dims = true}),
     over(reference::logsumexp, {.axes = {0}, .keep_dims = true})});

}  // namespace gradus
