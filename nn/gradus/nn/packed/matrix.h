#pragma once

// Internal to decoding with packed weights and not installed.

#include <optional>
#include <vector>

#include <gradus/kernels/products/gemm.h>
#include <gradus/kernels/products/packed_gemm.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/packed/team.h>

namespace gradus::nn::packed {

/// What weights are laid out for. Where there is AMX it pays for many rows of x; products of few are bound by
/// reading weights, of which AMX needs half as many bytes again. The two differ by rounding.
enum class Rows { few, many };

inline Rows layout_for(int64_t rows) { return rows < 32 || !kernels::amx_ready() ? Rows::few : Rows::many; }

/// W of x W^T for the few rows of a decoding step: blocks of weights that multiply the same x one above the
/// other, laid out once. A row of the result has the same bits whatever rows stand beside it, and however many
/// threads share it.
class Matrix {
 public:
  Matrix() = default;
  /// Of the blocks that are defined. @throws Error unless all have the same number of columns.
  Matrix(std::vector<WeightPart> blocks, Rows rows);

  bool defined() const { return packed_.has_value(); }
  int64_t rows() const { return packed_ ? packed_->n() : 0; }  ///< columns of the result

  /// out [m, rows()] = x [m, k] W^T, rows of x `x_stride` apart; this member's columns.
  void product(int64_t m, const float* x, int64_t x_stride, float* out, int member = 0,
               int members = 1) const;
  /// The same plus a bias [rows()], which may be null.
  void product(int64_t m, const float* x, int64_t x_stride, const float* bias, float* out, int member,
               int members) const;

  /// The widest block of columns that best_of works on at once.
  static constexpr int64_t kBlock = 480;
  /// What kernels::raise_best makes of the columns of x W^T + bias, this member's only. They come block by
  /// block, each looked at while it is in the cache; block [m, kBlock] holds it.
  void best_of(int64_t m, const float* x, int64_t x_stride, const float* bias, float* block, float* top,
               int32_t* best, int member, int members) const;

 private:
  std::optional<kernels::PackedMatrix<float>> packed_;
};

/// Its numbers, or null.
inline const float* numbers(const Parameter& p) { return p.defined() ? p.value().f32() : nullptr; }

}  // namespace gradus::nn::packed
