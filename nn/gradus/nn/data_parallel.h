#pragma once

#include <functional>
#include <vector>

#include <gradus/autograd.h>
#include <gradus/parallel.h>

namespace gradus::nn {

struct ParallelGradients {
  Gradients gradients;         ///< summed over the shards
  std::vector<double> losses;  ///< one per shard, as f returned them; 0 for a shard that returned nothing
};

/// Runs f(shard), shard = 0 .. shards-1, and its backward on the threads of the pool, all on one shared
/// model, and adds the gradients in the order of the shards: the same number of shards gives the same bits,
/// whatever the number of threads and however they are scheduled. Gradients are SUMMED: f weights its loss by
/// its shard's share, e.g. loss * (tokens of the shard / tokens of the batch). A shard may return an
/// undefined Var: it is left out. When the caller is under Training, so is every shard, with a seed of its
/// own drawn from the caller's; CheckFinite is passed on too. @throws what f throws,
/// and Error for no shards.
ParallelGradients parallel_gradients(ThreadPool& pool, int shards, const std::function<Var(int shard)>& f,
                                     Caller caller = Caller::current());

}  // namespace gradus::nn
