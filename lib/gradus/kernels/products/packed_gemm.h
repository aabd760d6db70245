#pragma once

#include <cstdint>
#include <memory>

namespace gradus::kernels {

/// The right-hand side of many products with the same matrix, a recurrent weight: its numbers are laid out
/// once in the order in which the product reads them, where a BLAS does so in each call. T is float, or
/// double, for which this is gemm on the matrix where it stands (so callers write one path; keep w alive and
/// unchanged). Made for up to some 200 rows at a time; beyond, gemm is as fast.
template <class T>
class PackedMatrix {
 public:
  enum class Use {
    /// C = A W^T, w stored [n, k]: a layer's x W^T
    transposed,
    /// C = A W, w stored [k, n]: its backward, dy W
    plain,
  };

  /// What the matrix will be used for: packing costs about as much as one product of 64 rows.
  struct Plan {
    /// m of each product
    int64_t rows = 64;
    /// how many there will be
    int64_t products = 16;
  };

  /// True if a plan for so many rows gets the layout for AMX. It takes half as many bytes again, so it pays
  /// only from 16 rows: products of fewer are bound by reading the weights. The two layouts round differently.
  static bool has_layout_for(int64_t rows);

  /// Packs w, whose stored rows are `ldw` apart, where that pays for the plan; otherwise products are gemm's.
  /// Allocates n k numbers (f32; half as many again with AMX) from the caching allocator, product() nothing.
  PackedMatrix(Use use, int64_t n, int64_t k, const T* w, int64_t ldw, const Plan& plan);
  PackedMatrix(Use use, int64_t n, int64_t k, const T* w, int64_t ldw)
      : PackedMatrix(use, n, k, w, ldw, Plan()) {}

  /// C[m, n] = A[m, k] op(W), or C += with `add`. Rows of A and C are `lda` and `ldc` apart. C must not
  /// overlap A. Threads may share the object.
  void product(int64_t m, const T* a, int64_t lda, bool add, T* c, int64_t ldc) const {
    product_columns(0, n_, m, a, lda, add, c, ldc);
  }

  /// Columns first .. end - 1 of the same product only, to the same bits, for threads that share one. Both come
  /// from column_at. c is where column 0 of C would be.
  void product_columns(int64_t first, int64_t end, int64_t m, const T* a, int64_t lda, bool add, T* c,
                       int64_t ldc) const;
  /// out[i] = column columns[i] of the product of one row, i < count, to the same bits; where has_elements().
  void elements(const T* row, int64_t count, const int32_t* columns, T* out) const;
  bool has_elements() const { return elements_; }
  /// The last column at or before `wanted` that a part may begin with; n() for n().
  int64_t column_at(int64_t wanted) const;

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }

 private:
  /// Columns first .. end - 1, of which c is the first.
  using Product = void (*)(int64_t first, int64_t end, int64_t m, int64_t k, const T* a, int64_t lda,
                           const void* packed, bool add, T* c, int64_t ldc);
  using Elements = void (*)(int64_t n, int64_t k, const T* row, const T* packed, int64_t count,
                            const int32_t* columns, T* out);

  Use use_;
  int64_t n_, k_;
  const T* w_;
  int64_t ldw_;
  std::shared_ptr<void> packed_;
  // Columns to a vector; 0: the panels are AMX's.
  int64_t lanes_ = 0;
  // Of the instruction set that the layout is for. Null: products are gemm's; no elements, as on AMX.
  Product product_ = nullptr;
  Elements elements_ = nullptr;
};

extern template class PackedMatrix<float>;
extern template class PackedMatrix<double>;

}  // namespace gradus::kernels
