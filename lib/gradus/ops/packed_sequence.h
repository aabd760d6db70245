#pragma once

#include <vector>

#include <gradus/tensor.h>

// Internal to the ops and not installed: no installed header includes it.

namespace gradus {

/// A batch of sequences without its padding (PyTorch calls it a packed sequence): the sequences sorted by
/// length, the longest first, and step after step the rows that are still real. A recurrence over these rows
/// spends nothing on padding, and each of its big products is one over N rows.
class PackedSequence {
 public:
  /// @param lengths i32 [B] in 0 .. T; undefined: all T.
  PackedSequence(const Tensor& lengths, int64_t T, int64_t B);

  /// N, the real rows of all steps.
  int64_t total() const { return offsets_.back(); }
  /// Real rows of step t, and where they begin among the N.
  int64_t count(int64_t t) const { return offsets_[static_cast<size_t>(t) + 1] - offset(t); }
  int64_t offset(int64_t t) const { return offsets_[static_cast<size_t>(t)]; }
  /// Which sequence stands at place i of the sorted order.
  int64_t sequence(int64_t i) const { return order_[static_cast<size_t>(i)]; }
  /// Real steps of the sequence at place i.
  int64_t steps(int64_t i) const { return steps_[static_cast<size_t>(i)]; }
  /// The sequences came sorted: places are sequences.
  bool sorted() const { return sorted_; }
  /// And nothing is padding: the N rows are the [T, B] rows.
  bool whole() const { return sorted_ && total() == T_ * B_; }

  /// Not initialised, [N, n].
  Tensor empty(int64_t n, DType dtype) const { return Tensor({total(), n}, dtype); }
  /// x [T, B, n] -> [N, n], the real rows; shares x's storage when that is whole.
  Tensor pack(const Tensor& x) const;
  /// rows [N, n] -> `shape`, [T, B, n] in elements, with zeros at padding.
  Tensor unpack(const Tensor& rows, const Shape& shape) const;
  /// x [B, n], or each step of x [.., B, n], in the sorted order; shares x's storage when nothing moves. May be
  /// undefined.
  Tensor sort(const Tensor& x) const { return moved(x, false); }
  /// The reverse.
  Tensor unsort(const Tensor& x) const { return moved(x, true); }

 private:
  int64_t T_, B_;
  bool sorted_ = true;
  std::vector<int64_t> order_, steps_, offsets_;

  Tensor moved(const Tensor& x, bool back) const;
};

}  // namespace gradus
