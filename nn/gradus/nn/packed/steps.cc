#include <gradus/nn/packed/steps.h>

#include <algorithm>
#include <limits>

namespace gradus::nn::packed {

constexpr float kNone = -std::numeric_limits<float>::infinity();

void PackedSteps::set_rows(int64_t R) {
  if (R == R_) return;
  R_ = R;
  if (logits_.defined()) logits_view_ = logits_.rows(0, R);
  if (alignment_.defined()) weights_view_ = alignment_.rows(0, R);
}

Tensor PackedSteps::run_to(End end, const Tensor& previous) {
  if (previous.dtype() != DType::i32 || previous.shape() != Shape{R_})
    fail("step", "previous words must be i32 [" + std::to_string(R_) + "]: " + previous.shape().str());
  end_ = end;
  return run(previous);
}

const Tensor& PackedSteps::step(const Tensor& previous) {
  if (!logits_.defined()) {
    logits_ = Tensor({most_, output_.rows()}, DType::f32);
    logits_view_ = logits_.rows(0, R_);
  }
  run_to(End::logits, previous);
  return logits_view_;
}

Tensor PackedSteps::readouts(const Tensor& previous) { return run_to(End::readouts, previous); }

void PackedSteps::step_best(const Tensor& previous, const std::vector<int32_t>& never, const Tensor& best) {
  prepare_best(never);
  run_to(End::best_words, previous);
  for (int64_t row = 0; row < R_; ++row) {
    int64_t from = row;  // members have their columns in order: of equal ones the first
    for (int64_t at = row + most_; at < top_.numel(); at += most_)
      if (top_.f32()[at] > top_.f32()[from]) from = at;
    best.i32()[row] = best_.i32()[from];
  }
}

// Allocates when the words that are never to be taken are others than before.
void PackedSteps::prepare_best(const std::vector<int32_t>& never) {
  if (bias_.defined() && never == never_) return;
  const int64_t V = output_.rows();
  never_ = never;
  bias_ = Tensor::zeros({V});
  if (output_.bias()) std::copy_n(output_.bias(), V, bias_.f32());
  for (int32_t v : never)
    if (v >= 0 && v < V) bias_.f32()[v] = kNone;
  for (first_ = 0; std::find(never.begin(), never.end(), first_) != never.end();) ++first_;
  if (first_ >= V) first_ = -1;
  if (top_.defined()) return;
  block_ = Tensor({team_.size(), most_, std::min(V, Matrix::kBlock)}, DType::f32);
  top_ = Tensor({team_.size(), most_}, DType::f32);
  best_ = Tensor({team_.size(), most_}, DType::i32);
}

// This member's share of the output layer.
void PackedSteps::finish(const float* x, int64_t x_stride, int member) {
  if (end_ == End::readouts) return;
  if (end_ == End::logits)
    return output_.product(R_, x, x_stride, logits_.f32(), member, team_.size());
  float* top = top_.f32() + member * most_;
  int32_t* best = best_.i32() + member * most_;
  std::fill_n(top, R_, kNone);
  std::fill_n(best, R_, first_);
  output_.best_of(R_, x, x_stride, bias_.f32(), block_.f32() + member * most_ * block_.size(2), top, best,
                  member, team_.size());
}

}  // namespace gradus::nn::packed
