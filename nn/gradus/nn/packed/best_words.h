#pragma once

#include <vector>

#include <gradus/nn/packed/matrix.h>

namespace gradus::nn::packed {

/// What a step's caller wants of it. Readouts: what the output layer would be given.
enum class Asked { logits, best, readouts };

/// The most probable word of each row, for a greedy search: the logits are never all there.
class BestWords {
 public:
  /// For up to `most` rows. Allocates when the words that are never to be taken are others than before.
  void prepare(const Matrix& output, const float* bias, const std::vector<int32_t>& never, int64_t most,
               int members);
  /// This member's share: logits are x W^T + bias, x [R, k].
  void find(const Matrix& output, int64_t R, const float* x, int64_t x_stride, int member, int members);
  /// The best that the members found, once all are there.
  void take(int64_t R, int32_t* best) const;

 private:
  std::vector<int32_t> never_;
  int32_t first_ = -1;  // that may be taken
  Tensor bias_;         // minus infinity for words that are not
  // Of each member: a block of logits [most, Matrix::kBlock], the largest so far of each row, and its word.
  Tensor block_, top_, best_;
};

}  // namespace gradus::nn::packed
