#include "step.h"

#include <gradus/nn/data_parallel.h>

#include <algorithm>
#include <numeric>

#include "measure.h"

namespace bench {

std::vector<Work> prepare(const std::vector<Batch>& batches, int threads) {
  std::vector<Work> out;
  for (const Batch& b : batches) out.push_back({split(b, threads), b.target_tokens, b.source_tokens});
  return out;
}

StepTimes TrainingStep::run(const Work& work) {
  namespace nn = gradus::nn;
  StepTimes times;
  Stopwatch whole, watch;
  size_t count = work.shards.size();
  std::vector<double> forward(count);
  gradus::Training training(1);
  nn::ParallelGradients out = nn::parallel_gradients(pool_, static_cast<int>(count), [&](int k) {
    Stopwatch own;
    size_t i = static_cast<size_t>(k);
    const Batch& shard = work.shards[i];
    double share = static_cast<double>(shard.target_tokens) / static_cast<double>(work.target_tokens);
    gradus::Var loss = network_.loss(shard, share).loss;
    forward[i] = own.lap();
    return loss;
  });
  double both = watch.lap();
  times.forward = *std::max_element(forward.begin(), forward.end());
  times.backward = both - times.forward;
  double norm = nn::grad_norm(out.gradients, &pool_);
  times.clip = watch.lap();
  adam_.step(network_, out.gradients, nn::clip_factor(norm, 1), &pool_);
  times.adam = watch.lap();
  times.loss = std::accumulate(out.losses.begin(), out.losses.end(), 0.0);
  out = {};  // the peer's gradients are freed within a step, too
  times.total = whole.lap();
  return times;
}

}  // namespace bench
