#pragma once

// packed/ is internal to decoding with packed weights, and not installed.

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <gradus/kernels/products/int8.h>
#include <gradus/kernels/products/packed_gemm.h>
#include <gradus/nn/incremental.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/packed/screen.h>
#include <gradus/nn/packed/team.h>

namespace gradus::nn::packed {

/// What weights are laid out for.
struct Layout {
  /// of x, some
  int64_t rows;
  /// rounded to 8 bits, see kernels::Int8Matrix
  bool int8 = false;
  /// for best_of, of floats where their layout allows it
  bool screen = false;

  /// Of an output layer: with a screen where that is quicker.
  Layout of_output() const { return {rows, int8, kernels::Int8Matrix::is_fast()}; }
};

/// W of x W^T for the few rows of a decoding step: blocks of weights that multiply the same x one above the
/// other, laid out once. A row of the result has the same bits whatever rows stand beside it, and however many
/// threads share it.
class Matrix {
 public:
  Matrix() = default;
  /// Of the blocks that are defined, for products of some layout.rows rows of x, or any other number; `bias`
  /// [rows()], or null, must stay. @throws Error unless all have the same number of columns.
  Matrix(std::vector<WeightPart> blocks, const Layout& layout, const float* bias = nullptr);

  bool defined() const { return packed_ || int8_; }
  /// columns of the result
  int64_t rows() const { return packed_ ? packed_->n() : int8_ ? int8_->n() : 0; }
  /// of x
  int64_t columns() const { return packed_ ? packed_->k() : int8_ ? int8_->k() : 0; }
  const float* bias() const { return bias_; }

  /// out [m, rows()] = x [m, k] W^T + the bias, rows of x `x_stride` apart; this member's columns.
  void product(int64_t m, const float* x, int64_t x_stride, float* out, int member = 0, int members = 1) const;

  /// the most columns that best_of works on at once
  static constexpr int64_t kBlock = Screen::kBlock;
  /// What kernels::raise_best makes of the columns of x W^T + bias, this member's only. They come block by
  /// block, each looked at while it is in the cache; block [m, kBlock] holds it. With a screen, the same bits.
  void best_of(int64_t m, const float* x, int64_t x_stride, const float* bias, float* block, float* top,
               int32_t* best, int member, int members) const;

 private:
  // Where the member's share of the result's columns begins, and its end.
  std::pair<int64_t, int64_t> columns_of(int member, int members) const;
  int64_t column_at(int64_t wanted) const {
    return packed_ ? packed_->column_at(wanted) : int8_->column_at(wanted);
  }
  // Rows of x, for products of several blocks of columns with them.
  struct Rows {
    int64_t m;
    const float* x;
    int64_t stride;
    // where the matrix is
    const kernels::Int8Rows* rounded;
  };
  Rows rows_of(int64_t m, const float* x, int64_t stride) const;
  void product_columns(int64_t first, int64_t end, const Rows& x, bool add, float* out, int64_t stride) const {
    packed_ ? packed_->product_columns(first, end, x.m, x.x, x.stride, add, out, stride)
            : int8_->product_columns(first, end, *x.rounded, add, out, stride);
  }
  const float* bias_ = nullptr;
  // One of the two.
  std::optional<kernels::PackedMatrix<float>> packed_;
  std::optional<kernels::Int8Matrix> int8_;
  std::optional<Screen> screen_;
};

/// A model's weights as `lay_out` lays them out for searches of few rows, and for those of many, each when the
/// first search of its kind begins. Threads may share it.
template <class Weights>
class LaidOut {
 public:
  LaidOut(bool int8, std::function<Weights(const Layout&)> lay_out)
      : int8_(int8), lay_out_(std::move(lay_out)) {}

  std::shared_ptr<const Weights> for_search(const Tensor& source, const IncrementalOptions& options) {
    const int64_t sentences = source.dims() == 2 ? source.size(1) : 1;
    const int64_t rows =
        options.search_rows > 0 ? options.search_rows : sentences * options.rows_per_sentence;
    const bool many = !int8_ && rows >= kMany && kernels::PackedMatrix<float>::has_layout_for(rows);
    std::call_once(once_[many], [&] {
      weights_[many] = std::make_shared<const Weights>(lay_out_({many ? kMany : kFew, int8_}));
    });
    return weights_[many];
  }

 private:
  static constexpr int64_t kFew = 8, kMany = 32;

  bool int8_;
  std::function<Weights(const Layout&)> lay_out_;
  std::once_flag once_[2];
  std::shared_ptr<const Weights> weights_[2];
};

/// Its numbers, or null.
inline const float* numbers(const Parameter& p) { return p.defined() ? p.value().f32() : nullptr; }

}  // namespace gradus::nn::packed
