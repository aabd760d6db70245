#pragma once

// Internal: several row-major arrays walked together, run by run, under broadcasting. Not installed.

#include <cstdint>

#include <gradus/numeric.h>
#include <gradus/tensor.h>

namespace gradus {

/// A walk over all positions of a shape, with an offset into each of up to three arrays that are read with
/// strides of their own (stride 0 along a stretched axis). Axes are merged where every array allows it, so
/// that two tensors of one shape are one run, a bias added to [B, n] is B runs, and size-1 axes cost nothing.
class Walk {
 public:
  static constexpr int kMaxArrays = 3;

  /// Arrays of these shapes, broadcast to `over`.
  Walk(const Shape& over, std::initializer_list<Shape> arrays);
  /// One array with the given stride (in elements) for every axis of `over`.
  Walk(const Shape& over, const int64_t* strides);

  /// Positions in a run, and the number of runs.
  int64_t length() const { return size_[dims_ - 1]; }
  int64_t runs() const;
  /// Distance between neighbours of a run in array k: 0 or 1 when the walk was made by broadcasting.
  int64_t step(int k) const { return stride_[k][dims_ - 1]; }
  /// Axes left after merging, at least 1.
  int dims() const { return dims_; }
  int64_t size(int axis) const { return size_[axis]; }
  int64_t stride(int k, int axis) const { return stride_[k][axis]; }

  /// f(start, offsets): `start` counts positions of the walked shape, offsets[k] points into array k.
  template <class F>
  void for_each_run(F&& f) const {
    int64_t index[Shape::kMaxDims] = {}, offset[kMaxArrays] = {};
    const int64_t n = length();
    for (int64_t run = 0, all = runs(); run < all; ++run) {
      f(run * n, static_cast<const int64_t*>(offset));
      for (int axis = dims_ - 2; axis >= 0; --axis) {
        for (int k = 0; k < arrays_; ++k) offset[k] += stride_[k][axis];
        if (++index[axis] < size_[axis]) break;
        for (int k = 0; k < arrays_; ++k) offset[k] -= stride_[k][axis] * size_[axis];
        index[axis] = 0;
      }
    }
  }

 private:
  void merge();

  int dims_ = 0, arrays_ = 0;
  int64_t size_[Shape::kMaxDims] = {};
  int64_t stride_[kMaxArrays][Shape::kMaxDims] = {};
};

/// y_i = f(a_i, b_i) under NumPy's broadcasting; the result has the element type of a and b.
/// @throws Error "[op] shapes do not broadcast: ..."
template <class F>
Tensor zip_broadcast(const Tensor& a, const Tensor& b, const char* op, F&& f) {
  Tensor y(broadcast(a.shape(), b.shape(), op), a.dtype());
  Walk walk(y.shape(), {a.shape(), b.shape()});
  const int64_t n = walk.length();
  with_type(y.dtype(), op, [&]<class T>(T) {
    const T *pa = data<T>(a), *pb = data<T>(b);
    T* py = data<T>(y);
    walk.for_each_run([&](int64_t start, const int64_t* offset) {
      const T *s = pa + offset[0], *t = pb + offset[1];
      T* out = py + start;
      if (walk.step(1) == 0) {
        const T right = *t;
        if (walk.step(0) == 0) {
          const T value = f(*s, right);
          for (int64_t i = 0; i < n; ++i) out[i] = value;
        } else {
          for (int64_t i = 0; i < n; ++i) out[i] = f(s[i], right);
        }
      } else if (walk.step(0) == 0) {
        const T left = *s;
        for (int64_t i = 0; i < n; ++i) out[i] = f(left, t[i]);
      } else {
        for (int64_t i = 0; i < n; ++i) out[i] = f(s[i], t[i]);
      }
    });
  });
  return y;
}

}  // namespace gradus
