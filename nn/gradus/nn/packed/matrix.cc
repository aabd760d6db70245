#include <gradus/nn/packed/matrix.h>

#include <algorithm>

#include <gradus/kernels/inference.h>

namespace gradus::nn::packed {

using Packed = kernels::PackedMatrix<float>;

Matrix::Matrix(std::vector<WeightPart> blocks, const Layout& layout, const float* bias) : bias_(bias) {
  std::erase_if(blocks, [](const WeightPart& b) { return !b.defined(); });
  if (blocks.empty()) return;
  int64_t n = 0, k = blocks[0].columns();
  for (const WeightPart& b : blocks) {
    n += b.rows();
    if (b.columns() != k) fail("Matrix", "blocks must have the same number of columns");
  }
  // Always laid out: the numbers are not needed afterwards.
  const Packed::Plan plan{.rows = layout.rows, .products = 100};
  auto lay_out = [&](const float* w, int64_t ldw) {
    if (layout.int8)
      int8_.emplace(n, k, w, ldw);
    else
      packed_.emplace(Packed::Use::transposed, n, k, w, ldw, plan);
    if (layout.screen && packed_ && packed_->has_elements() && Screen::fits(n, k, w, ldw))
      screen_.emplace(n, k, w, ldw);
  };
  auto numbers_of = [](const WeightPart& b) {
    return b.weight->value().f32() + b.row0 * b.weight->shape()[1] + b.col0;
  };
  if (blocks.size() == 1) {
    lay_out(numbers_of(blocks[0]), blocks[0].weight->shape()[1]);
    return;
  }
  Tensor all({n, k}, DType::f32);
  float* to = all.f32();
  for (const WeightPart& b : blocks)
    for (int64_t row = 0; row < b.rows(); ++row, to += k)
      std::copy_n(numbers_of(b) + row * b.weight->shape()[1], k, to);
  lay_out(all.f32(), k);
}

std::pair<int64_t, int64_t> Matrix::columns_of(int member, int members) const {
  Share share(rows(), member, members);
  return {column_at(share.begin), column_at(share.end)};
}

Matrix::Rows Matrix::rows_of(int64_t m, const float* x, int64_t stride) const {
  static thread_local kernels::Int8Rows rounded;
  if (int8_) int8_->round(m, x, stride, rounded);
  return {m, x, stride, &rounded};
}

void Matrix::product(int64_t m, const float* x, int64_t x_stride, float* out, int member, int members) const {
  auto [begin, end] = columns_of(member, members);
  const Rows rows_of_x = rows_of(m, x, x_stride);
  if (!bias_ && begin < end) return product_columns(begin, end, rows_of_x, false, out, rows());
  while (begin < end) {
    int64_t next = std::min(end, column_at(begin + kBlock));
    // The bias is still in the cache when the product is added to it.
    for (int64_t i = 0; i < m; ++i) std::copy_n(bias_ + begin, next - begin, out + i * rows() + begin);
    product_columns(begin, next, rows_of_x, true, out, rows());
    begin = next;
  }
}

void Matrix::best_of(int64_t m, const float* x, int64_t x_stride, const float* bias, float* block, float* top,
                     int32_t* best, int member, int members) const {
  const Share share(rows(), member, members);
  if (screen_ && screen_->best_of(*packed_, m, x, x_stride, bias, block, top, best, share)) return;
  auto [begin, end] = columns_of(member, members);
  const Rows rows_of_x = rows_of(m, x, x_stride);
  while (begin < end) {
    int64_t next = std::min(end, column_at(begin + kBlock)), n = next - begin;
    product_columns(begin, next, rows_of_x, false, block - begin, n);
    kernels::raise_best(m, n, block, n, bias ? bias + begin : nullptr, begin, top, best);
    begin = next;
  }
}

}  // namespace gradus::nn::packed
