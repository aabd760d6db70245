#include <gradus/ops/packed_sequence.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace gradus {
namespace {

char* row_of(const Tensor& x, int64_t row, size_t bytes) {
  return static_cast<char*>(x.raw()) + static_cast<size_t>(row) * bytes;
}

size_t row_bytes(const Tensor& x) { return static_cast<size_t>(size_of(x.dtype()) * x.size(-1)); }

}  // namespace

PackedSequence::PackedSequence(const Tensor& lengths, int64_t T, int64_t B)
    : T_(T), B_(B), order_(static_cast<size_t>(B)), offsets_{0} {
  std::iota(order_.begin(), order_.end(), 0);
  auto length = [&](int64_t b) { return lengths.defined() ? lengths.i32()[b] : T; };
  std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  sorted_ = std::is_sorted(order_.begin(), order_.end());
  for (int64_t b : order_) steps_.push_back(length(b));
  int64_t rows = B;
  for (int64_t t = 0; t < T; ++t) {
    while (rows > 0 && steps(rows - 1) <= t) --rows;
    offsets_.push_back(offsets_.back() + rows);
  }
}

Tensor PackedSequence::pack(const Tensor& x) const {
  const int64_t n = x.size(-1);
  if (whole()) return x.reshape({T_ * B_, n});
  Tensor out = empty(n, x.dtype());
  size_t bytes = row_bytes(x);
  for (int64_t t = 0; t < T_; ++t) {
    const int64_t rows = sorted_ ? count(t) : 1;  // that lie together in x
    for (int64_t i = 0; i < count(t); i += rows)
      std::memcpy(row_of(out, offset(t) + i, bytes), row_of(x, t * B_ + sequence(i), bytes),
                  bytes * static_cast<size_t>(rows));
  }
  return out;
}

Tensor PackedSequence::unpack(const Tensor& rows, const Shape& shape) const {
  if (whole()) return rows.reshape(shape);
  Tensor out(shape, rows.dtype());
  size_t bytes = row_bytes(rows);
  for (int64_t t = 0; t < T_; ++t)
    for (int64_t i = 0; i < B_; ++i) {
      char* to = row_of(out, t * B_ + sequence(i), bytes);
      if (i < count(t)) std::memcpy(to, row_of(rows, offset(t) + i, bytes), bytes);
      else std::memset(to, 0, bytes);
    }
  return out;
}

// Rows of each block of B: to the sorted order, or back from it.
Tensor PackedSequence::moved(const Tensor& x, bool back) const {
  if (sorted_ || !x.defined()) return x;
  Tensor out(x.shape(), x.dtype());
  const int64_t blocks = x.dims() == 3 ? x.size(0) : 1;
  size_t bytes = row_bytes(x);
  for (int64_t k = 0; k < blocks; ++k)
    for (int64_t i = 0; i < B_; ++i) {
      int64_t place = k * B_ + i, row = k * B_ + sequence(i);
      std::memcpy(row_of(out, back ? row : place, bytes), row_of(x, back ? place : row, bytes), bytes);
    }
  return out;
}

}  // namespace gradus
