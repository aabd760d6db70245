#pragma once

#include <vector>

#include <gradus/nn/incremental.h>
#include <gradus/nn/packed/matrix.h>
#include <gradus/nn/packed/team.h>

namespace gradus::nn::packed {

/// What packed decoders share: how a step ends. In logits; in the most probable word of each row alone, for a
/// greedy search, where the logits are never all there; or before the output layer.
class PackedSteps : public IncrementalDecoder {
 public:
  const Tensor& step(const Tensor& previous) final;
  void step_best(const Tensor& previous, const std::vector<int32_t>& never, const Tensor& best) final;
  Tensor readouts(const Tensor& previous) final;
  const Tensor& weights() const final { return weights_view_; }
  bool can_join() const final { return true; }

 protected:
  /// Up to `most` rows.
  PackedSteps(const Matrix& output, int64_t most, ThreadPool* pool)
      : team_(pool), most_(most), output_(output) {}
  /// previous i32 [R] -> x [R, k]. Each member of the team ends it with `finish`.
  virtual Tensor run(const Tensor& previous) = 0;
  void finish(const float* x, int64_t x_stride, int member);
  void set_rows(int64_t R);

  Team team_;
  int64_t most_, R_ = 0;
  // [most, S] of the step; undefined: none
  Tensor alignment_;

 private:
  enum class End { logits, best_words, readouts };
  void prepare_best(const std::vector<int32_t>& never);
  Tensor run_to(End end, const Tensor& previous);

  const Matrix& output_;
  // Of this step.
  End end_ = End::logits;
  std::vector<int32_t> never_;
  // The first word that may be taken, and a bias of minus infinity for words that are not.
  int32_t first_ = -1;
  Tensor bias_;
  // Of each member: a block of logits [most, Matrix::kBlock], the largest so far of each row, and its word.
  Tensor block_, top_, best_;
  Tensor logits_, logits_view_, weights_view_;
};

}  // namespace gradus::nn::packed
