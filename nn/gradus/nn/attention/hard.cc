#include <gradus/nn/attention/hard.h>

#include <gradus/nn/attention/given.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/softmax.h>

#include <algorithm>

namespace gradus::nn {
namespace {

// By inversion: the first position at which the sum of probabilities exceeds a number u in (0, 1). Rounding may
// leave u above the whole sum: then the last position with any probability.
int64_t drawn(const Tensor& p, int64_t b, uint64_t seed, uint64_t stream) {
  const double u = (static_cast<double>(philox(seed, stream, static_cast<uint64_t>(b))[0]) + 0.5) * 0x1p-32;
  int64_t S = p.size(1), last = 0;
  double sum = 0;
  for (int64_t s = 0; s < S; ++s) {
    double w = p.at(b * S + s);
    if (w <= 0) continue;
    last = s;
    sum += w;
    if (u < sum) return s;
  }
  return last;
}

}  // namespace

Attended HardAttention::step(const Input& query, const AttentionMemory& memory,
                             const AttentionState& state) const {
  At at(query.caller());
  Var e = scaled_scores(query, memory, state);
  Tensor path = given_row("HardAttention", memory, state.step, query.dtype());
  bool draws = !path.defined() && Training::active();
  Tensor p = weigh(e.value(), memory.mask).value();
  int64_t B = p.size(0), S = p.size(1);
  auto [seed, stream] = draws ? Training::next_stream() : std::pair<uint64_t, uint64_t>{0, 0};
  Tensor chosen = Tensor::zeros(p.shape(), p.dtype()), best = argmax(path.defined() ? path : p);
  for (int64_t b = 0; b < B; ++b) {
    const int64_t z = b * S + (draws ? drawn(p, b, seed, stream) : best.i32()[b]);
    if (!memory.mask.defined() || memory.mask.u8()[z]) chosen.set(z, 1);  // a source may be empty
  }
  Attended out = attend(chosen, memory, state);
  if (path.defined() || draws)
    out.log_probability = sum(log_softmax(e, {.mask = memory.mask}) * Var(chosen), {.axes = {1}});
  return out;
}

Var reinforce(const Input& log_probability, const Tensor& costs, const Tensor& real, double baseline) {
  At at(log_probability.caller());
  if (costs.shape() != log_probability.shape() || real.shape() != costs.shape() || costs.dims() != 2)
    refuse("reinforce", "log_probability, costs and real must be [T, B]: {}, {} and {}",
           log_probability.shape(), costs.shape(), real.shape());
  int64_t T = costs.size(0), B = costs.size(1);
  Tensor to_go(costs.shape(), log_probability.dtype());
  for (int64_t b = 0; b < B; ++b) {
    double sum = 0;
    for (int64_t t = T; t-- > 0;) {
      if (real.at(t * B + b) != 0) sum += costs.at(t * B + b) - baseline;
      to_go.set(t * B + b, sum);
    }
  }
  // Behind the end of a sentence nothing is paid any more: the sum there is 0.
  return gradus::sum(log_probability * Var(to_go));
}

Var reinforce_term(const Input& log_probability, const Tensor& costs, const Tensor& real, double baseline,
                   double weight) {
  At at(log_probability.caller());
  auto words = std::count(real.u8(), real.u8() + real.numel(), 1);
  Var choices = reinforce(log_probability, costs, real, baseline) * (weight / static_cast<double>(words));
  return choices - stop_gradient(choices);
}

}  // namespace gradus::nn
