#include <gradus/ops/shape.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include <gradus/kernels/elementwise.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/operands.h>
#include <gradus/walk.h>

namespace gradus {
namespace {

// ---- axes in another order ----

// y [columns, rows] = x^T, in tiles that fit the first cache: a plain loop would touch a line a number.
template <class T>
void transpose_matrix(const T* x, T* y, int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 16;
  for (int64_t r0 = 0; r0 < rows; r0 += kTile)
    for (int64_t c0 = 0; c0 < columns; c0 += kTile)
      for (int64_t c = c0; c < std::min(c0 + kTile, columns); ++c)
        for (int64_t r = r0; r < std::min(r0 + kTile, rows); ++r) y[c * rows + r] = x[r * columns + c];
}

Tensor permuted(const Tensor& x, const std::vector<int>& order) {
  Shape shape;
  int64_t strides[Shape::kMaxDims] = {};
  for (size_t i = 0; i < order.size(); ++i) {
    shape.append(x.size(order[i]));
    strides[i] = x.shape().stride(order[i]);
  }
  Tensor y(shape, x.dtype());
  Walk walk(shape, strides);
  with_type(x.dtype(), "permute", [&]<class T>(T) {
    const T* in = data<T>(x);
    T* out = data<T>(y);
    const int d = walk.dims();
    const int64_t n = walk.length(), step = walk.step(0);
    if (x.numel() == 0) return;
    const bool matrices = d == 2 || (d == 3 && walk.stride(0, 0) == n * step);
    if (matrices && walk.stride(0, d - 2) == 1 && step == walk.size(d - 2)) {
      for (int64_t i = 0; i < x.numel(); i += n * step) transpose_matrix(in + i, out + i, n, step);
      return;
    }
    walk.for_each_run([&](int64_t start, const int64_t* offset) {
      if (step == 1) return void(std::copy_n(in + offset[0], n, out + start));
      for (int64_t i = 0; i < n; ++i) out[start + i] = in[offset[0] + i * step];
    });
  });
  return y;
}

// 0, 1, ..
std::vector<int> axes_of(const Var& x) {
  std::vector<int> axes(static_cast<size_t>(x.dims()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Var permute_as(const char* op, const Var& x, const std::vector<int>& order) {
  std::vector<int> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int>(i);
  return record(op, {x}, permuted(x.value(), order),
                [back](const Tensor& dy, Grads& dx) { dx.add(0, permuted(dy, back)); });
}

// ---- pieces of an axis ----

// f(there, here, run) for every run of numbers of entries begin .. begin + n - 1 of an axis: `there` in the
// whole, `here` in `part`, which has these entries alone.
template <class F>
void for_piece(const Tensor& whole, int axis, int64_t begin, const Tensor& part, int64_t n, F f) {
  const int64_t inner = whole.shape().stride(axis), step = whole.size(axis) * inner, run = n * inner;
  with_type(whole.dtype(), "slice", [&]<class T>(T) {
    T *there = data<T>(whole) + begin * inner, *here = data<T>(part), *end = here + part.numel();
    for (; here < end; here += run, there += step) f(there, here, run);
  });
}

// The entries by themselves: a view where they lie in one piece, otherwise a copy.
Tensor piece(const Tensor& x, int axis, int64_t begin, int64_t n) {
  Shape shape = x.shape();
  shape.set(axis, n);
  const int64_t all = x.size(axis), inner = x.shape().stride(axis);
  if (x.numel() == all * inner) return x.reshape(Shape{all, inner}).rows(begin, begin + n).reshape(shape);
  Tensor y(shape, x.dtype());
  for_piece(x, axis, begin, y, n, [](auto* from, auto* to, int64_t run) { std::copy_n(from, run, to); });
  return y;
}

// `shape` is the result's: the piece itself, or without its axis.
Var piece_as(const char* op, const Var& x, int axis, int64_t begin, int64_t n, bool drop_axis) {
  Tensor y = piece(x.value(), axis, begin, n);
  if (drop_axis) y = y.reshape(y.shape().without(axis));
  return record(op, {x}, y, [axis, begin, n](const Tensor& dy, Grads& dx) {
    for_piece(dx.into(0), axis, begin, dy, n,
              [](auto* sum, auto* from, int64_t run) { kernels::add_into(from, sum, run); });
  });
}

// ---- joining ----

// parts_i seen as [.., sizes_i, ..] laid side by side along `axis` of `shape`.
Var join(const char* op, const std::vector<Var>& parts, const std::vector<int64_t>& sizes, const Shape& shape,
         int axis) {
  Tensor y(shape, parts[0].dtype());
  int64_t first = 0;
  for (size_t k = 0; k < parts.size(); first += sizes[k++])
    for_piece(y, axis, first, parts[k].value(), sizes[k],
              [](auto* to, auto* from, int64_t run) { std::copy_n(from, run, to); });
  std::vector<Shape> shapes;
  for (const Var& part : parts) shapes.push_back(part.shape());
  return record(op, parts, y, [sizes, shapes, axis](const Tensor& dy, Grads& dx) {
    int64_t begin = 0;
    for (size_t k = 0; k < sizes.size(); ++k) {
      int i = static_cast<int>(k);
      if (dx.needed(i)) dx.add(i, piece(dy, axis, begin, sizes[k]).reshape(shapes[k]));
      begin += sizes[k];
    }
  });
}

void check_parts(const std::vector<Var>& parts, const char* op) {
  if (parts.empty()) fail(op, "needs at least one part");
  for (const Var& part : parts) check_operands(parts[0], part, op);
}

}  // namespace

Var reshape(const Input& x, const std::vector<int64_t>& dims) {
  CheckedAt at(x, "reshape");
  return record("reshape", {x}, x.value().reshape(dims),
                [shape = x.shape()](const Tensor& dy, Grads& dx) { dx.add(0, dy.reshape(shape)); });
}

Var permute(const Input& x, const std::vector<int>& order) {
  CheckedAt at(x, "permute");
  std::vector<int> front = order, axes = axes_of(x);
  for (int& axis : front)
    if (axis < 0) axis += x.dims();
  if (!std::is_permutation(front.begin(), front.end(), axes.begin(), axes.end()))
    refuse("permute", "the order must name every axis once: shape {}, order [{}]", x.shape(),
           fmt::join(order, ", "));
  return permute_as("permute", x, front);
}

Var transpose(const Input& x, int axis0, int axis1) {
  CheckedAt at(x, "transpose");
  std::vector<int> order = axes_of(x);
  std::swap(order[static_cast<size_t>(x.shape().axis(axis0, "transpose"))],
            order[static_cast<size_t>(x.shape().axis(axis1, "transpose"))]);
  return permute_as("transpose", x, order);
}

Var concat(const std::vector<Var>& parts, int axis, Caller caller) {
  At at(caller);
  check_parts(parts, "concat");
  Shape shape = parts[0].shape();
  const int along = shape.axis(axis, "concat");
  std::vector<int64_t> sizes;
  int64_t total = 0;
  for (const Var& part : parts) {
    if (part.dims() != shape.dims() || part.shape().without(along) != shape.without(along))
      refuse("concat", "all other axes must agree: {} and {} along axis {}", parts[0].shape(), part.shape(),
             along);
    sizes.push_back(part.size(along));
    shape.set(along, total += part.size(along));
  }
  return join("concat", parts, sizes, shape, along);
}

Var stack(const std::vector<Var>& parts, int axis, Caller caller) {
  At at(caller);
  check_parts(parts, "stack");
  const Shape& one = parts[0].shape();
  for (const Var& part : parts)
    if (part.shape() != one) refuse("stack", "shapes must agree: {} and {}", one, part.shape());
  const int along = axis < 0 ? axis + one.dims() + 1 : axis;
  if (along < 0 || along > one.dims()) refuse("stack", "axis {} cannot be added: shape {}", axis, one);
  Shape shape;
  for (int i = 0; i <= one.dims(); ++i)
    shape.append(i == along ? static_cast<int64_t>(parts.size()) : one[i < along ? i : i - 1]);
  return join("stack", parts, std::vector<int64_t>(parts.size(), 1), shape, along);
}

Var slice(const Input& x, int axis, int64_t begin, int64_t end) {
  CheckedAt at(x, "slice");
  const int a = x.shape().axis(axis, "slice");
  if (begin < 0 || end < begin || end > x.size(a))
    refuse("slice", "entries {} to {} are outside axis {}: shape {}", begin, end, a, x.shape());
  return piece_as("slice", x, a, begin, end - begin, false);
}

Var select(const Input& x, int axis, int64_t i) {
  CheckedAt at(x, "select");
  const int a = x.shape().axis(axis, "select");
  if (i < 0 || i >= x.size(a)) refuse("select", "entry {} is outside axis {}: shape {}", i, a, x.shape());
  return piece_as("select", x, a, i, 1, true);
}

std::vector<Var> split(const Input& x, const std::vector<int64_t>& sizes, int axis) {
  CheckedAt at(x, "split");
  const int a = x.shape().axis(axis, "split");
  int64_t left = x.size(a);  // -1 from a size on that does not fit
  for (int64_t n : sizes) left = n < 0 || n > left ? -1 : left - n;
  if (left != 0)
    refuse("split", "sizes must add up to axis {}: shape {}, sizes [{}]", a, x.shape(),
           fmt::join(sizes, ", "));
  std::vector<Var> parts;
  int64_t begin = 0;
  for (int64_t n : sizes) {
    parts.push_back(piece_as("split", x, a, begin, n, false));
    begin += n;
  }
  return parts;
}

Var expand(const Input& x, const std::vector<int64_t>& dims) {
  CheckedAt at(x, "expand");
  Shape shape(dims.data(), static_cast<int>(dims.size()));
  return record("expand", {x}, broadcast_to(x.value(), shape, "expand"),
                [](const Tensor& dy, Grads& dx) { dx.add(0, dy); });
}

Var gather_rows(const Input& x, const Tensor& indices) {
  CheckedAt at(x, "gather_rows");
  if (x.dims() == 0) fail("gather_rows", "a scalar has no rows");
  if (!indices.defined()) fail("gather_rows", "indices must be i32 with one axis: undefined");
  if (indices.dtype() != DType::i32 || indices.dims() != 1)
    refuse("gather_rows", "indices must be i32 with one axis: {} {}", indices.dtype(), indices.shape());
  Shape shape = x.shape();
  shape.set(0, indices.numel());
  const int64_t width = x.shape().stride(0);
  Tensor y = take_rows("gather_rows", "indices", x.value(), indices, shape);
  return record("gather_rows", {x}, y, [indices, width](const Tensor& dy, Grads& dx) {
    dx.add_rows(0, indices, dy.reshape(Shape{indices.numel(), width}));
  });
}

// ---- cases ----

namespace reference {
namespace {

// Rows one at a time.
Var gather_rows(const Var& x, const Tensor& indices) {
  std::vector<Var> rows;
  for (int64_t i = 0; i < indices.numel(); ++i)
    rows.push_back(slice(x, 0, indices.i32()[i], indices.i32()[i] + 1));
  return concat(rows, 0);
}

// y_ij.. = x_ji..: columns taken as rows.
Var transpose(const Var& x) {
  std::vector<Var> rows;
  for (int64_t j = 0; j < x.size(1); ++j) rows.push_back(select(x, 1, j));
  return stack(rows, 0);
}

Var stack(const std::vector<Var>& parts) {
  std::vector<Var> rows;
  for (const Var& part : parts) {
    std::vector<int64_t> dims(part.shape().begin(), part.shape().end());
    dims.insert(dims.begin(), 1);
    rows.push_back(reshape(part, dims));
  }
  return concat(rows, 0);
}

}  // namespace
}  // namespace reference

GRADUS_OP_CASES(
    {"reshape", {{2, 6}}, [](auto& in) { return reshape(in[0], {3, -1}); }},
    {"reshape: scalar", {{1, 1}}, [](auto& in) { return reshape(in[0], {}); }},
    {"permute: matrix", {{19, 21}}, [](auto& in) { return permute(in[0], {1, 0}); },
     calls(reference::transpose)},
    {"permute: batch of matrices", {{2, 3, 4}}, [](auto& in) { return permute(in[0], {0, 2, 1}); },
     [](auto& in) {
       auto turned = [&](int64_t i) { return reference::transpose(select(in[0], 0, i)); };
       return stack({turned(0), turned(1)}, 0);
     }},
    {"permute: leading axes", {{2, 3, 4}}, [](auto& in) { return permute(in[0], {1, 0, 2}); },
     calls(reference::transpose)},
    {"permute: rotated", {{2, 3, 4}}, [](auto& in) { return permute(in[0], {-1, 0, 1}); },
     [](auto& in) { return reshape(reference::transpose(reshape(in[0], {6, 4})), {4, 2, 3}); }},
    {"permute: reversed", {{2, 3, 4}}, [](auto& in) { return permute(in[0], {2, 1, 0}); },
     [](auto& in) { return permute(permute(in[0], {2, 0, 1}), {0, 2, 1}); }},
    {"permute: six axes", {{2, 1, 3, 1, 2, 2}}, [](auto& in) { return permute(in[0], {5, 3, 2, 0, 1, 4}); }},
    {"transpose", {{3, 2, 2}}, [](auto& in) { return transpose(in[0], -1, 0); }},
    {"concat: rows", {{2, 3}, {1, 3}, {2, 3}}, [](auto& in) { return concat(in, 0); }},
    {"concat: columns", {{2, 3}, {2, 1}}, [](auto& in) { return concat(in, -1); }},
    {"concat: middle axis", {{2, 1, 2}, {2, 3, 2}, {2, 0, 2}}, [](auto& in) { return concat(in, 1); }},
    {"stack", {{2, 3}, {2, 3}}, [](auto& in) { return stack(in, 0); }, reference::stack},
    {"stack: last axis", {{2, 3}, {2, 3}, {2, 3}}, [](auto& in) { return stack(in, -1); }},
    {"stack: scalars", {Shape{}, Shape{}}, [](auto& in) { return stack(in, 0); }},
    {"slice: view", {{5, 2}}, [](auto& in) { return slice(in[0], 0, 1, 4); }},
    {"slice: middle axis", {{2, 5, 2}}, [](auto& in) { return slice(in[0], 1, 1, 4); }},
    {"slice: last axis, overlapping", {{2, 5}},
     [](auto& in) { return slice(in[0], -1, 0, 3) * slice(in[0], -1, 2, 5); }},
    {"slice: empty", {{2, 5}}, [](auto& in) { return slice(in[0], 1, 2, 2); }},
    {"select", {{3, 4}}, [](auto& in) { return select(in[0], 0, 2); },
     [](auto& in) { return reshape(slice(in[0], 0, 2, 3), {4}); }},
    {"select: last axis", {{3, 4}}, [](auto& in) { return select(in[0], -1, 1); },
     [](auto& in) { return reshape(slice(in[0], 1, 1, 2), {3}); }},
    {"split", {{2, 6}},
     [](auto& in) {
       auto parts = split(in[0], {2, 1, 3}, 1);
       return concat({parts[2], parts[0] * 2, parts[1] * 3}, 1);
     },
     [](auto& in) {
       return concat({slice(in[0], 1, 3, 6), slice(in[0], 1, 0, 2) * 2, slice(in[0], 1, 2, 3) * 3}, 1);
     }},
    {"expand", {{3, 1}}, [](auto& in) { return expand(in[0], {2, 3, 4}); },
     [](auto& in) { return in[0] + Tensor::zeros({2, 3, 4}, in[0].dtype()); }},
    {"expand: scalar", {Shape{}}, [](auto& in) { return expand(in[0], {2, 2}); }},
    {"gather_rows", {{4, 3}, Tensor::from_ids({5}, {1, 3, 1, 0, 1})},
     [](auto& in) { return gather_rows(in[0], in[1].value()); },
     [](auto& in) { return reference::gather_rows(in[0], in[1].value()); }},
    {"gather_rows: of a value", {{4, 2, 2}, Tensor::from_ids({3}, {2, 0, 2})},
     [](auto& in) { return gather_rows(in[0] * 2, in[1].value()); },
     [](auto& in) { return reference::gather_rows(in[0] * 2, in[1].value()); }},
    {"gather_rows: numbers", {{4}, Tensor::from_ids({3}, {2, 0, 2})},
     [](auto& in) { return gather_rows(in[0], in[1].value()); }});

}  // namespace gradus
