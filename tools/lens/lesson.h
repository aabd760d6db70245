#pragma once

// What the chapters and labs include: the engine's ops, the check, and a few short names for loops over
// numbers.

#include <gradus/numeric.h>
#include <gradus/ops.h>
#include <gradus/random.h>
#include <lens/check.h>

#include <cmath>

namespace lens {

/// The numbers of an f64 tensor, row by row: Rows m(t); m[i][k]. A tensor with one axis is one row: m[0][k].
class Rows {
 public:
  explicit Rows(const gradus::Tensor& t) : t_(t), data_(t.f64()), width_(t.dims() == 0 ? 1 : t.size(-1)) {}
  double* operator[](int64_t i) const { return data_ + i * width_; }

 private:
  gradus::Tensor t_;  // keeps the numbers
  double* data_;
  int64_t width_;
};

/// sum_k a_k b_k
double dot(const double* a, const double* b, int64_t n);
/// [..], all 0, f64
gradus::Tensor zeros(const gradus::Shape& shape);
/// Uniform numbers in -1 .. 1, f64; the same for the same seed.
gradus::Tensor random(const gradus::Shape& shape, uint64_t seed);
/// Random sequences of the symbols 1 .. 6 and their reversals, i32 [T, B] each: source, decoder inputs (the
/// targets moved by one, 0 in front), targets.
std::vector<gradus::Tensor> reversals(int64_t T, int64_t B, gradus::Rng& rng);

}  // namespace lens
