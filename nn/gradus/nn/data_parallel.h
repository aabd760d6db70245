#pragma once

#include <functional>
#include <vector>

#include <gradus/autograd.h>
#include <gradus/ops/cross_entropy.h>
#include <gradus/parallel.h>

namespace gradus::nn {

struct ParallelGradients {
  Gradients gradients;
  /// One per shard, as f returned them; 0 for a shard that returned nothing
  std::vector<double> losses;
};

/// Runs f(shard), shard = 0 .. shards-1, and its backward on the threads of the pool, all on one shared
/// model, and adds the gradients in the order of the shards: the same number of shards gives the same bits,
/// whatever the threads. Gradients are SUMMED: f weights its loss by its shard's share, e.g. loss * (tokens
/// of the shard / tokens of the batch). A shard that returns an undefined Var is left out. When the caller is
/// under Training, so is every shard, with a seed of its own drawn from the caller's; so with CheckFinite.
/// @throws what f throws, and Error for no shards.
ParallelGradients parallel_gradients(ThreadPool& pool, int shards, const std::function<Var(int shard)>& f);

/// What a shard hands to the output layer that all share.
struct ShardOutput {
  /// [..., H]; undefined: the shard is left out
  Var hidden;
  /// i32 [...], `hidden`'s shape without its last axis
  Tensor targets;
  /// A scalar whose gradient is added, as it is; undefined: none
  Var extra = {};
};

/// The layer behind the shards, and the loss on its logits: weight [V, H], bias [V] or undefined.
struct OutputLayer {
  Var weight, bias = {};
  CrossEntropyOptions options = {};
};

struct OutputGradients {
  /// Summed over the shards
  Gradients gradients;
  /// Of all shards together, reduced as the options say, without `extra`
  double loss = 0;
  /// As CrossEntropy's: the sum over all counted targets
  double nll = 0;
  /// Counted targets of all shards
  int64_t tokens = 0;
};

/// parallel_gradients for a model that ends in linear_cross_entropy. f(shard) returns the input of the output
/// layer. The layer then runs once on the rows of all shards, divided among the threads by vocabulary, and each
/// shard runs its own backward from there. So logits and the gradient of the layer's weight exist once, not
/// once a shard. The loss is over the targets of all shards: f weights nothing.
/// @throws as parallel_gradients and linear_cross_entropy.
OutputGradients parallel_output_gradients(ThreadPool& pool, int shards,
                                          const std::function<ShardOutput(int shard)>& f,
                                          const OutputLayer& layer);

}  // namespace gradus::nn
