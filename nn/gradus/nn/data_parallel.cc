#include <gradus/nn/data_parallel.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include <gradus/error.h>
#include <gradus/kernels/elementwise.h>
#include <gradus/numeric.h>
#include <gradus/random.h>

namespace gradus::nn {
namespace {

// A dense gradient that every shard has: total += parts, in the order of the shards.
struct Sum {
  Tensor total;
  std::vector<Tensor> parts;
};

// Gradients that are dense in all shards, which is nearly all of the numbers, are taken out of the shards
// here; the threads then share the elements between them. The order of additions is the same for every split.
std::vector<Sum> take_dense(std::vector<Gradients>& shards) {
  std::vector<Sum> sums;
  std::unordered_set<const Node*> taken;
  auto dense = [](const Gradients::Entry* e) { return e && e->dense.defined() && e->rows.empty(); };
  for (Gradients::Entry& first : shards[0].entries()) {
    if (!dense(&first)) continue;
    Sum sum;
    for (size_t s = 1; s < shards.size(); ++s) {
      const Gradients::Entry* e = shards[s].find(Var(Tensor(), first.node));
      if (dense(e)) sum.parts.push_back(e->dense);
    }
    if (sum.parts.size() + 1 != shards.size()) continue;
    if (!first.dense.sole_owner()) first.dense = first.dense.clone();
    sum.total = first.dense;
    sums.push_back(std::move(sum));
    taken.insert(first.node.get());
  }
  for (size_t s = 1; s < shards.size(); ++s)
    std::erase_if(shards[s].entries(), [&](const auto& e) { return taken.count(e.node.get()) > 0; });
  return sums;
}

Gradients sum_in_order(ThreadPool& pool, std::vector<Gradients>& shards) {
  if (shards.empty()) return {};
  std::vector<Sum> sums = shards.size() > 1 ? take_dense(shards) : std::vector<Sum>();
  pool.run([&](int worker) {
    for (const Sum& sum : sums)
      visit_floating(sum.total, "parallel_gradients", [&](auto* to) {
        int64_t n = sum.total.numel(), begin = n * worker / pool.size(), end = n * (worker + 1) / pool.size();
        for (const Tensor& part : sum.parts)
          kernels::add_into(data<std::remove_pointer_t<decltype(to)>>(part) + begin, to + begin, end - begin);
      });
  });
  Gradients total = std::move(shards[0]);
  for (size_t s = 1; s < shards.size(); ++s) total.add(shards[s]);
  return total;
}

// A seed for one shard, from the caller's (seed, draw).
uint64_t shard_seed(std::pair<uint64_t, uint64_t> from, int shard) {
  auto words = philox(from.first, from.second, static_cast<uint64_t>(shard));
  return uint64_t{words[0]} << 32 | words[1];
}

}  // namespace

ParallelGradients parallel_gradients(ThreadPool& pool, int shards, const std::function<Var(int)>& f,
                                     Caller caller) {
  if (shards < 1) fail(caller, "parallel_gradients", "needs at least one shard: " + std::to_string(shards));
  // The modes are those of a thread: hand the caller's on.
  std::optional<std::pair<uint64_t, uint64_t>> seed;
  if (Training::active()) seed = Training::next_stream();
  bool check_finite = CheckFinite::active();

  size_t count = static_cast<size_t>(shards);
  std::vector<std::optional<Gradients>> found(count);
  ParallelGradients out;
  out.losses.assign(count, 0);
  pool.run([&](int worker) {
    for (int shard = worker; shard < shards; shard += pool.size()) {
      std::optional<Training> training;
      std::optional<CheckFinite> checking;
      if (seed) training.emplace(shard_seed(*seed, shard));
      if (check_finite) checking.emplace();
      Var loss = f(shard);
      if (!loss.defined()) continue;
      out.losses[static_cast<size_t>(shard)] = loss.item();
      found[static_cast<size_t>(shard)] = backward(loss, {.check_finite = check_finite});
    }
  });
  std::vector<Gradients> results;
  for (auto& g : found)
    if (g) results.push_back(std::move(*g));
  out.gradients = sum_in_order(pool, results);
  return out;
}

}  // namespace gradus::nn
