#include <gradus/ops/packed_sequence.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace gradus {
namespace {

char* row_of(const Tensor& x, int64_t row, size_t bytes) {
  return static_cast<char*>(x.raw()) + static_cast<size_t>(row) * bytes;
}

size_t row_bytes(const Tensor& x, int64_t n) { return static_cast<size_t>(size_of(x.dtype()) * n); }

}  // namespace

PackedSequence::PackedSequence(const Tensor& lengths, int64_t T, int64_t B)
    : T_(T), order_(static_cast<size_t>(B)), offsets_{0} {
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

Tensor PackedSequence::empty(int64_t n, DType dtype) const { return Tensor({total(), n}, dtype); }

Tensor PackedSequence::pack(const Tensor& x) const {
  int64_t B = static_cast<int64_t>(order_.size()), n = x.size(-1);
  if (whole()) return x.reshape({T_ * B, n});
  Tensor out = empty(n, x.dtype());
  size_t bytes = row_bytes(x, n);
  for (int64_t t = 0; t < T_; ++t) {
    if (sorted_) {
      std::memcpy(row_of(out, offset(t), bytes), row_of(x, t * B, bytes),
                  bytes * static_cast<size_t>(count(t)));
      continue;
    }
    for (int64_t i = 0; i < count(t); ++i)
      std::memcpy(row_of(out, offset(t) + i, bytes), row_of(x, t * B + sequence(i), bytes), bytes);
  }
  return out;
}

Tensor PackedSequence::unpack(const Tensor& rows, const Shape& shape) const {
  int64_t B = static_cast<int64_t>(order_.size()), n = rows.size(1);
  if (whole()) return rows.reshape(shape);
  Tensor out(shape, rows.dtype());
  size_t bytes = row_bytes(rows, n);
  for (int64_t t = 0; t < T_; ++t)
    for (int64_t i = 0; i < B; ++i) {
      char* to = row_of(out, t * B + sequence(i), bytes);
      if (i < count(t)) std::memcpy(to, row_of(rows, offset(t) + i, bytes), bytes);
      else std::memset(to, 0, bytes);
    }
  return out;
}

// Rows of each block of B: to the sorted order, or back from it.
Tensor PackedSequence::moved(const Tensor& x, bool back) const {
  if (sorted_) return x;
  Tensor out(x.shape(), x.dtype());
  int64_t B = static_cast<int64_t>(order_.size()), blocks = x.dims() == 3 ? x.size(0) : 1;
  size_t bytes = row_bytes(x, x.size(-1));
  for (int64_t k = 0; k < blocks; ++k)
    for (int64_t i = 0; i < B; ++i) {
      int64_t place = k * B + i, row = k * B + sequence(i);
      std::memcpy(row_of(out, back ? row : place, bytes), row_of(x, back ? place : row, bytes), bytes);
    }
  return out;
}

}  // namespace gradus
