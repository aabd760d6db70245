#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace gradus::kernels {

/// Rows of x in 8 bits, made by Int8Matrix::round.
struct Int8Rows {
  /// [m, 4 ceil(k / 4)], as the matrix's instructions want them
  std::vector<int8_t> q;
  /// [m]
  std::vector<float> scale;
};

/// W of many products x W^T in 8 bits: of each row of W, which is a column of the result, a scale and k
/// integers in -127 .. 127,
///   w_jp ~ s_j q_jp,   s_j = max_p |w_jp| / 127 (rounded up to 16 bits),   q_jp = round(w_jp / s_j),
/// and of each row of x the same, worked out anew in each product ("dynamic"): then
///   y_ij = (sum_p q_ip q_jp) s_i s_j
/// whose sum is of integers and exact, so it has the same bits whatever is computed beside it, and by how many
/// threads. Rounding W a second time changes nothing. A row of x that holds no finite number gives NaN.
class Int8Matrix {
 public:
  /// Rounds w [n, k], rows `ldw` apart. @throws Error "[Int8Matrix] weights must be finite".
  Int8Matrix(int64_t n, int64_t k, const float* w, int64_t ldw);

  /// Rounds x [m, k], rows `ldx` apart, for products with this matrix.
  void round(int64_t m, const float* x, int64_t ldx, Int8Rows& rows) const;
  /// Columns first .. end - 1 of C[m, n] = X W^T, or C +=: as PackedMatrix has it.
  void product_columns(int64_t first, int64_t end, const Int8Rows& x, bool add, float* c, int64_t ldc) const;
  /// The last column at or before `wanted` that a part may begin with; n() for n().
  int64_t column_at(int64_t wanted) const { return wanted >= n_ ? n_ : wanted / kPanel * kPanel; }

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }

  /// columns that stand together
  static constexpr int64_t kPanel = 16;
  /// True where the processor has an instruction for such sums: they take a quarter of the time of floats then.
  static bool is_fast();

 private:
  int64_t n_, k_;
  // AVX-512's instruction for such sums is there.
  bool vnni_ = is_fast();
  // [panels, k / 4, kPanel, 4], zeros behind n and k
  std::shared_ptr<int8_t> panels_;
  // Both [panels, kPanel]; sums: 128 sum_p q_jp, for products that want x without a sign.
  std::shared_ptr<float> scales_;
  std::shared_ptr<int32_t> sums_;
};

/// The numbers that a row of weights stands for in 8 bits: k floats, in place. Doing it twice changes nothing.
/// Returns the scale s and writes the integers to q, unless that is null.
float round_to_int8(int64_t k, float* row, int8_t* q = nullptr);

}  // namespace gradus::kernels
