#include "step.h"

#include <gradus/nn/data_parallel.h>

#include <algorithm>

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
  nn::OutputGradients out = nn::parallel_output_gradients(
      pool_, static_cast<int>(count),
      [&](int k) {
        Stopwatch own;
        size_t i = static_cast<size_t>(k);
        nn::ShardOutput shard = network_.outputs(work.shards[i]);
        forward[i] = own.lap();
        return shard;
      },
      {network_.output.weight, network_.output.bias, {.ignore_index = kPad}});
  double both = watch.lap();
  times.forward = *std::max_element(forward.begin(), forward.end());
  times.backward = both - times.forward;
  double norm = nn::grad_norm(out.gradients, &pool_);
  times.clip = watch.lap();
  adam_.step(network_, out.gradients, nn::clip_factor(norm, 1), &pool_);
  times.adam = watch.lap();
  times.loss = out.nll / static_cast<double>(out.tokens);
  out = {};  // the peer's gradients are freed within a step, too
  times.total = whole.lap();
  times.target = static_cast<double>(work.target_tokens) / times.total * 1e3;
  times.words = static_cast<double>(work.target_tokens + work.source_tokens) / times.total * 1e3;
  return times;
}

}  // namespace bench
