#include <gradus/numeric.h>

#include <fmt/core.h>

namespace gradus {
namespace {

// Offsets into the smaller array for a walk over the larger one: stride 0 along stretched axes.
struct Walk {
  int64_t size[Shape::kMaxDims], stride[Shape::kMaxDims];
  int dims;
};

Walk walk_of(const Shape& small, const Shape& large) {
  Walk w;
  w.dims = large.dims();
  int shift = large.dims() - small.dims();
  for (int i = 0; i < large.dims(); ++i) {
    w.size[i] = large[i];
    w.stride[i] = i < shift || small[i - shift] == 1 ? 0 : small.stride(i - shift);
  }
  return w;
}

// f(row of the large array, offset in the small one) for every run along the last axis.
template <class F>
void for_each_run(const Walk& w, int64_t runs, int64_t length, F&& f) {
  int64_t index[Shape::kMaxDims] = {};
  int64_t offset = 0;
  for (int64_t run = 0; run < runs; ++run) {
    f(run * length, offset);
    for (int axis = w.dims - 2; axis >= 0; --axis) {
      offset += w.stride[axis];
      if (++index[axis] < w.size[axis]) break;
      offset -= w.stride[axis] * w.size[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace

Tensor broadcast_to(const Tensor& x, const Shape& shape, const char* where) {
  if (x.shape() == shape) return x;
  if (!broadcasts_to(x.shape(), shape))
    fail(where, fmt::format("shape does not stretch: {} to {}", x.shape().str(), shape.str()));
  Tensor y(shape, x.dtype());
  if (y.numel() == 0) return y;
  Walk w = walk_of(x.shape(), shape);
  int64_t length = shape[-1], step = w.stride[w.dims - 1];
  visit(x, [&](auto* in) {
    auto* out = static_cast<decltype(in)>(y.raw());
    for_each_run(w, y.numel() / length, length, [&](int64_t at, int64_t from) {
      for (int64_t i = 0; i < length; ++i) out[at + i] = in[from + i * step];
    });
  });
  return y;
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Tensor y = Tensor::zeros(shape, x.dtype());
  if (x.numel() == 0) return y;
  Walk w = walk_of(shape, x.shape());
  int64_t length = x.shape()[-1], step = w.stride[w.dims - 1];
  visit_floating(x, "sum_to", [&](auto* in) {
    auto* out = static_cast<decltype(in)>(y.raw());
    for_each_run(w, x.numel() / length, length, [&](int64_t at, int64_t to) {
      for (int64_t i = 0; i < length; ++i) out[to + i * step] += in[at + i];
    });
  });
  return y;
}

}  // namespace gradus
