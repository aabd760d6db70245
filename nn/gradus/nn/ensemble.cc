#include <gradus/nn/ensemble.h>

#include <algorithm>
#include <cmath>

#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/inference.h>
#include <gradus/ops/operands.h>

namespace gradus::nn {
namespace {

class EnsembleDecoder : public IncrementalDecoder {
 public:
  struct Member {
    std::unique_ptr<IncrementalDecoder> decoder;
    double weight;  // of all: 1
  };

  EnsembleDecoder(std::vector<Member> members, EnsembleSpace space)
      : members_(std::move(members)), space_(space) {}

  const Tensor& step(const Tensor& previous) override {
    const Tensor& first = members_[0].decoder->step(previous);
    const int64_t R = first.size(0), V = first.size(1);
    sum_.assign(static_cast<size_t>(R * V), 0);
    for (size_t m = 0; m < members_.size(); ++m) {
      const Tensor& logits = m == 0 ? first : members_[m].decoder->step(previous);
      if (logits.size(1) != V)
        refuse("ensemble", "members have vocabularies of {} and {} words", V, logits.size(1));
      for (int64_t r = 0; r < R; ++r) add(members_[m].weight, V, logits.f32() + r * V, sum_.data() + r * V);
    }
    logits_ = Tensor({R, V}, DType::f32);
    std::transform(sum_.begin(), sum_.end(), logits_.f32(), [&](double x) {
      return static_cast<float>(space_ == EnsembleSpace::probability ? std::log(x) : x);
    });
    average_weights();
    return logits_;
  }

  const Tensor& weights() const override { return weights_; }

  void select(const std::vector<int64_t>& rows) override {
    for (Member& m : members_) m.decoder->select(rows);
  }

  bool can_join() const override {
    return std::all_of(members_.begin(), members_.end(), [](const Member& m) { return m.decoder->can_join(); });
  }

  void join(const IncrementalDecoder& started) override {
    const auto& other = static_cast<const EnsembleDecoder&>(started);
    for (size_t m = 0; m < members_.size(); ++m) members_[m].decoder->join(*other.members_[m].decoder);
  }

 private:
  void add(double weight, int64_t V, const float* x, double* sum) const {
    const double log_sum = kernels::log_sum_exp(x, V);
    for (int64_t v = 0; v < V; ++v)
      sum[v] += weight * (space_ == EnsembleSpace::probability ? std::exp(x[v] - log_sum) : x[v] - log_sum);
  }

  void average_weights() {
    weights_ = Tensor();
    float n = 0;
    for (const Member& m : members_) {
      const Tensor& own = m.decoder->weights();
      if (!own.defined()) continue;
      if (!weights_.defined()) weights_ = Tensor::zeros(own.shape());
      kernels::add_into(own.f32(), weights_.f32(), own.numel());
      ++n;
    }
    for (int64_t i = 0; n > 1 && i < weights_.numel(); ++i) weights_.f32()[i] /= n;
  }

  std::vector<Member> members_;
  EnsembleSpace space_;
  std::vector<double> sum_;  // [R, V]
  Tensor logits_, weights_;
};

}  // namespace

std::unique_ptr<Generator> ensemble_of(std::vector<EnsembleMember> members, EnsembleSpace space) {
  if (members.empty()) fail("ensemble", "there must be a member");
  double all = 0;
  for (const EnsembleMember& m : members) {
    if (!(m.weight > 0) || !std::isfinite(m.weight))
      refuse("ensemble", "weights must be above 0: {}", m.weight);
    all += m.weight;
  }
  auto start = [=](const Tensor& source, const Tensor& lengths, const IncrementalOptions& o) {
    if (members.size() == 1) return members[0].generator->start(source, lengths, o);
    std::vector<EnsembleDecoder::Member> started;
    for (const EnsembleMember& m : members)
      started.push_back({m.generator->start(source, lengths, o), m.weight / all});
    return std::unique_ptr<IncrementalDecoder>(new EnsembleDecoder(std::move(started), space));
  };
  return std::make_unique<Generator>(start);
}

}  // namespace gradus::nn
