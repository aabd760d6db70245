#pragma once

#include <gradus/nn/optimizer.h>
#include <gradus/parallel.h>

#include "workload.h"

namespace bench {

/// A batch, cut for so many threads beforehand.
struct Work {
  std::vector<Batch> shards;
  int64_t target_tokens, source_tokens;
};
std::vector<Work> prepare(const std::vector<Batch>& batches, int threads);

/// Milliseconds of one training step. The forward phase is that of the slowest shard, up to the output layer:
/// this one works out its gradients together with the loss, and belongs to the backward, as adding up the
/// gradients does.
struct StepTimes {
  double forward = 0, backward = 0, clip = 0, adam = 0;
  double total = 0;
  double loss = 0;               ///< nats a word, of the whole batch
  double target = 0, words = 0;  ///< target words a second; source words, too
};

/// The training step of the translator: shards in parallel on one model, clipping at norm 1, Adam.
class TrainingStep {
 public:
  TrainingStep(Network& network, int threads) : network_(network), pool_(threads), adam_({.lr = 1e-3}) {}
  StepTimes run(const Work& work);

 private:
  Network& network_;
  gradus::ThreadPool pool_;
  gradus::nn::Adam adam_;
};

}  // namespace bench
