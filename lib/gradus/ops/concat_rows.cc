#include <gradus/ops/concat_rows.h>

#include <algorithm>
#include <limits>

#include <gradus/op_case.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/recurrence.h>
#include <gradus/ops/shape.h>

namespace gradus {

namespace reference {
namespace {

Var concat_rows(const std::vector<Var>& parts, const Tensor& rows) {
  std::vector<Var> chosen;
  for (const Var& x : parts) chosen.push_back(gather_rows(reshape(x, {-1, x.size(-1)}), rows));
  return concat(chosen, -1);
}

}  // namespace
}  // namespace reference

Tensor real_rows(const Input& input, int64_t T) {
  At at(input.caller());
  const Tensor& lengths = input.value();
  if (!lengths.defined()) refuse("real_rows", "lengths must be i32 [B], and are undefined");
  std::vector<int32_t> rows;
  int64_t B = lengths.numel(), longest = 0;
  check_lengths("real_rows", lengths, T, B);
  for (int64_t b = 0; b < B; ++b) longest = std::max<int64_t>(longest, lengths.i32()[b]);
  if (longest * B > std::numeric_limits<int32_t>::max())
    refuse("real_rows", "there are more rows than i32 can number: {} times {}", longest, B);
  for (int64_t t = 0; t < longest; ++t)
    for (int64_t b = 0; b < B; ++b)
      if (t < lengths.i32()[b]) rows.push_back(static_cast<int32_t>(t * B + b));
  return Tensor::from_ids({static_cast<int64_t>(rows.size())}, rows);
}

Var concat_rows(const std::vector<Var>& parts, const Tensor& rows, Caller caller) {
  At at(caller);
  if (parts.empty() || parts[0].dims() == 0) fail("concat_rows", "needs at least one tensor with rows");
  if (rows.dtype() != DType::i32 || rows.dims() != 1)
    refuse("concat_rows", "rows must be i32 with one axis: {} {}", rows.dtype(), rows.shape());
  Shape leading = parts[0].shape().without(-1);
  int64_t N = rows.numel(), width = 0;
  for (const Var& x : parts) {
    if (x.dims() == 0 || x.shape().without(-1) != leading || x.dtype() != parts[0].dtype())
      refuse("concat_rows", "all axes but the last, and the element types, must agree: {} {} and {} {}",
             parts[0].shape(), parts[0].dtype(), x.shape(), x.dtype());
    width += x.size(-1);
  }
  const int32_t* r = rows.i32();
  for (int64_t i = 0; i < N; ++i)
    if (r[i] < 0 || r[i] >= leading.numel() || (i > 0 && r[i] <= r[i - 1]))
      refuse("concat_rows", "rows must ascend within 0 .. {}: {} at {}", leading.numel() - 1, r[i], i);
  Tensor y({N, width}, parts[0].dtype());
  with_type(y.dtype(), "concat_rows", [&]<class T>(T) {
    T* out = data<T>(y);
    for (const Var& x : parts) {
      int64_t n = x.size(-1);
      const T* in = data<T>(x.value());
      for (int64_t i = 0; i < N; ++i) std::copy_n(in + r[i] * n, n, out + i * width);
      out += n;
    }
  });
  std::vector<Shape> shapes;
  for (const Var& x : parts) shapes.push_back(x.shape());
  return record_typed("concat_rows", parts, y, [=]<class T>(T, const Tensor& dy, Grads& dx) {
    const T* in = data<T>(dy);
    for (size_t k = 0; k < shapes.size(); in += shapes[k++][-1]) {
      if (!dx.needed(static_cast<int>(k))) continue;
      Tensor d(shapes[k], dy.dtype());
      T* out = data<T>(d);
      int64_t n = shapes[k][-1], next = 0;
      for (int64_t i = 0; i < N; ++i) {
        int64_t row = rows.i32()[i];
        std::fill(out + next * n, out + row * n, T(0));
        std::copy_n(in + i * width, n, out + row * n);
        next = row + 1;
      }
      std::fill(out + next * n, out + d.numel(), T(0));
      dx.add(static_cast<int>(k), d);
    }
  });
}

GRADUS_OP_CASES(
    {"concat_rows", {{2, 3, 2}, {2, 3, 1}, {2, 3, 3}},
     [](auto& in) { return concat_rows(in, Tensor::from_ids({3}, {1, 2, 4})); },
     [](auto& in) { return reference::concat_rows(in, Tensor::from_ids({3}, {1, 2, 4})); }},
    {"concat_rows: of real steps, all of one part", {{3, 2, 2}},
     [](auto& in) { return concat_rows(in, real_rows(Tensor::from_ids({2}, {3, 3}), 3)); },
     [](auto& in) { return reference::concat_rows(in, Tensor::from_ids({6}, {0, 1, 2, 3, 4, 5})); }},
    {"concat_rows: of real steps", {{3, 2, 2}, {3, 2, 1}},
     [](auto& in) { return concat_rows(in, real_rows(Tensor::from_ids({2}, {1, 3}), 3)); },
     [](auto& in) { return reference::concat_rows(in, Tensor::from_ids({4}, {0, 1, 3, 5})); }});

}  // namespace gradus
