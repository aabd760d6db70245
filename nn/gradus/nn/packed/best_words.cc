#include <gradus/nn/packed/best_words.h>

#include <algorithm>
#include <limits>

namespace gradus::nn::packed {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

}  // namespace

void BestWords::prepare(const Matrix& output, const float* bias, const std::vector<int32_t>& never,
                        int64_t most, int members) {
  if (bias_.defined() && never == never_) return;
  int64_t V = output.rows();
  never_ = never;
  bias_ = Tensor::zeros({V});
  if (bias) std::copy_n(bias, V, bias_.f32());
  for (int32_t v : never)
    if (v >= 0 && v < V) bias_.f32()[v] = kNone;
  for (first_ = 0; std::find(never.begin(), never.end(), first_) != never.end();) ++first_;
  if (first_ >= V) first_ = -1;
  if (top_.defined()) return;
  block_ = Tensor({members, most, std::min(V, Matrix::kBlock)}, DType::f32);
  top_ = Tensor({members, most}, DType::f32);
  best_ = Tensor({members, most}, DType::i32);
}

void BestWords::find(const Matrix& output, int64_t R, const float* x, int64_t x_stride, int member,
                     int members) {
  int64_t most = top_.size(1);
  float* top = top_.f32() + member * most;
  int32_t* best = best_.i32() + member * most;
  std::fill_n(top, R, kNone);
  std::fill_n(best, R, first_);
  output.best_of(R, x, x_stride, bias_.f32(), block_.f32() + member * most * block_.size(2), top, best,
                 member, members);
}

void BestWords::take(int64_t R, int32_t* best) const {
  int64_t members = top_.size(0), most = top_.size(1);
  for (int64_t row = 0; row < R; ++row) {
    int64_t from = row;  // members have their columns in order: of equal ones the first
    for (int64_t at = row + most; at < members * most; at += most)
      if (top_.f32()[at] > top_.f32()[from]) from = at;
    best[row] = best_.i32()[from];
  }
}

}  // namespace gradus::nn::packed
