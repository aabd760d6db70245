#pragma once

// What the chapters and labs include: the engine's ops, the check, and a few short names for loops over
// numbers.

#include <gradus/error.h>
#include <gradus/numeric.h>
#include <gradus/ops.h>
#include <gradus/random.h>
#include <lens/check.h>

#include <cmath>
#include <concepts>

namespace lens {

/// An index, and the line that uses it: one that is out of range is an error that names both.
struct Index {
  template <std::integral I>
  Index(I k, gradus::Caller line = gradus::Caller::current()) : i(static_cast<int64_t>(k)), at(line) {}
  int64_t i;
  gradus::Caller at;
};

/// One row of numbers: row[k].
class Row {
 public:
  Row(double* data, int64_t size) : data_(data), size_(size) {}
  double& operator[](const Index& k) const { return data_[checked(k, size_)]; }
  int64_t size() const { return size_; }
  /// k.i. @throws gradus::Error at the line of k, when it is not in 0 .. size - 1.
  static int64_t checked(const Index& k, int64_t size);

 private:
  double* data_;
  int64_t size_;
};

/// The numbers of an f64 tensor with one axis: Vector x(t); x[k].
class Vector : public Row {
 public:
  /// @throws gradus::Error for more axes: Rows are for those.
  explicit Vector(const gradus::Tensor& t, gradus::Caller line = gradus::Caller::current());

 private:
  // keeps the numbers
  gradus::Tensor t_;
};

/// The numbers of an f64 tensor, row by row: Rows m(t); m[i][k]. A tensor with one axis is one row: m[0][k].
class Rows {
 public:
  explicit Rows(const gradus::Tensor& t)
      : t_(t),
        data_(t.f64()),
        width_(t.dims() == 0 ? 1 : t.size(-1)),
        rows_(width_ ? t.numel() / width_ : 0) {}
  Row operator[](const Index& i) const { return {data_ + Row::checked(i, rows_) * width_, width_}; }

 private:
  // keeps the numbers
  gradus::Tensor t_;
  double* data_;
  int64_t width_, rows_;
};

/// The numbers of an i32 tensor: Ids w(t); w[k].
class Ids {
 public:
  explicit Ids(const gradus::Tensor& t) : t_(t), data_(t.i32()) {}
  int32_t& operator[](const Index& k) const { return data_[Row::checked(k, t_.numel())]; }

 private:
  gradus::Tensor t_;
  int32_t* data_;
};

/// sum_k a_k b_k over the first n
double dot(const Row& a, const Row& b, const Index& n);
/// [..], all 0, f64
gradus::Tensor zeros(const gradus::Shape& shape);
/// Uniform numbers in -1 .. 1, f64; the same for the same seed.
gradus::Tensor random(const gradus::Shape& shape, uint64_t seed);
/// Random sequences of the symbols 1 .. 6 and their reversals, i32 [T, B] each: source, decoder inputs (the
/// targets moved by one, 0 in front), targets.
std::vector<gradus::Tensor> reversals(int64_t T, int64_t B, gradus::Rng& rng);

}  // namespace lens
