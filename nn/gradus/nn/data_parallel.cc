#include <gradus/nn/data_parallel.h>

#include <optional>
#include <unordered_set>

#include <gradus/kernels/elementwise.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/output_loss.h>
#include <gradus/ops/reduce.h>
#include <gradus/random.h>

namespace gradus::nn {
namespace {

// A dense gradient that every shard has: total += parts, in the order of the shards.
struct Sum {
  Tensor total;
  std::vector<Tensor> parts;
};

// Takes the gradients that are dense in all shards, nearly all of the numbers, out of them: the threads share
// their elements. The order of additions is the same for every split.
std::vector<Sum> take_dense(std::vector<Gradients>& shards) {
  std::vector<Sum> sums;
  std::unordered_set<const Node*> taken;
  auto dense = [](const Gradients::Entry* e) { return e && e->dense.defined() && e->rows.empty(); };
  for (Gradients::Entry& first : shards[0].entries()) {
    if (!dense(&first)) continue;
    std::vector<Tensor> parts;
    for (size_t s = 1; s < shards.size(); ++s) {
      const Gradients::Entry* e = shards[s].find(Var(Tensor(), first.node));
      if (dense(e)) parts.push_back(e->dense);
    }
    if (parts.size() + 1 != shards.size()) continue;
    if (!first.dense.sole_owner()) first.dense = first.dense.clone();
    sums.push_back({first.dense, std::move(parts)});
    taken.insert(first.node.get());
  }
  for (size_t s = 1; s < shards.size(); ++s)
    std::erase_if(shards[s].entries(), [&](const auto& e) { return taken.count(e.node.get()) > 0; });
  return sums;
}

// Of the shards that have some, in their order.
Gradients sum_of(ThreadPool& pool, std::vector<std::optional<Gradients>>& found) {
  std::vector<Gradients> shards;
  for (auto& g : found)
    if (g) shards.push_back(std::move(*g));
  if (shards.empty()) return {};
  std::vector<Sum> sums = shards.size() > 1 ? take_dense(shards) : std::vector<Sum>();
  pool.run([&](int worker) {
    for (const Sum& sum : sums)
      with_type(sum.total.dtype(), "parallel_gradients", [&]<class T>(T) {
        int64_t n = sum.total.numel(), begin = n * worker / pool.size(), end = n * (worker + 1) / pool.size();
        for (const Tensor& part : sum.parts)
          kernels::add_into(data<T>(part) + begin, data<T>(sum.total) + begin, end - begin);
      });
  });
  Gradients total = std::move(shards[0]);
  for (size_t s = 1; s < shards.size(); ++s) total.add(shards[s]);
  return total;
}

// Parts [.., n..] one after the other, `rows` in all.
Tensor concat_tensors(const std::vector<Tensor>& parts, int64_t rows) {
  if (parts.size() == 1) return parts[0];
  Tensor out(parts[0].dims() == 1 ? Shape{rows} : Shape{rows, parts[0].size(1)}, parts[0].dtype());
  int64_t at = 0;
  for (const Tensor& part : parts) {
    if (part.numel() > 0) out.rows(at, at + part.size(0)).copy_from(part);
    at += part.size(0);
  }
  return out;
}

// A seed for one shard, from the caller's (seed, draw).
uint64_t shard_seed(std::pair<uint64_t, uint64_t> from, int shard) {
  auto words = philox(from.first, from.second, static_cast<uint64_t>(shard));
  return uint64_t{words[0]} << 32 | words[1];
}

// Runs work(shard) for every shard, on the threads, under the modes of the caller, which are those of a thread.
class Shards {
 public:
  Shards(const char* op, ThreadPool& pool, int count) : pool_(pool), count_(count) {
    if (count < 1) fail(op, "needs at least one shard: " + std::to_string(count));
    if (Training::active()) seed_ = Training::next_stream();
  }

  template <class F>
  void each(F&& work) const {
    pool_.run([&](int worker) {
      for (int shard = worker; shard < count_; shard += pool_.size()) {
        std::optional<Training> training;
        std::optional<CheckFinite> checking;
        if (seed_) training.emplace(shard_seed(*seed_, shard), share_);
        if (check_finite_) checking.emplace();
        work(static_cast<size_t>(shard));
      }
    });
  }
  bool check_finite() const { return check_finite_; }

 private:
  ThreadPool& pool_;
  int count_;
  std::optional<std::pair<uint64_t, uint64_t>> seed_;
  double share_ = Training::dropout_share();
  bool check_finite_ = CheckFinite::active();
};

// The rows of all shards, one after the other. A single shard's are not copied.
struct Rows {
  Tensor hidden, targets;       // [N, H], i32 [N]
  std::vector<int64_t> begins;  // of each shard, and the end
};

Rows join(const char* op, const std::vector<ShardOutput>& shards) {
  Rows all;
  std::vector<Tensor> hidden, targets;
  int64_t count = 0;
  for (const ShardOutput& shard : shards) {
    all.begins.push_back(count);
    if (!shard.hidden.defined()) continue;
    const Tensor& h = shard.hidden.value();
    check_targets(op, "hidden's", "hidden", shard.hidden, shard.targets);
    int64_t rows = shard.targets.numel(), width = h.size(-1);
    if (!hidden.empty() && (width != hidden[0].size(1) || h.dtype() != hidden[0].dtype()))
      refuse(op, "the shards must agree in hidden's last dimension and element type: {} {} and {} {}",
             hidden[0].size(1), hidden[0].dtype(), width, h.dtype());
    hidden.push_back(h.reshape({rows, width}));
    targets.push_back(shard.targets.reshape({rows}));
    count += rows;
  }
  all.begins.push_back(count);
  if (hidden.empty()) return all;
  all.hidden = concat_tensors(hidden, count);
  all.targets = concat_tensors(targets, count);
  return all;
}

}  // namespace

ParallelGradients parallel_gradients(ThreadPool& pool, int shards, const std::function<Var(int)>& f) {
  Shards all("parallel_gradients", pool, shards);
  size_t count = static_cast<size_t>(shards);
  std::vector<std::optional<Gradients>> found(count);
  ParallelGradients out{.gradients = {}, .losses = std::vector<double>(count)};
  all.each([&](size_t shard) {
    Var loss = f(static_cast<int>(shard));
    if (!loss.defined()) return;
    found[shard] = backward(loss, {.check_finite = all.check_finite()});
    out.losses[shard] = loss.item();
  });
  out.gradients = sum_of(pool, found);
  return out;
}

OutputGradients parallel_output_gradients(ThreadPool& pool, int shards,
                                          const std::function<ShardOutput(int)>& f, const OutputLayer& layer) {
  const char* op = "parallel_output_gradients";
  Shards all(op, pool, shards);
  size_t count = static_cast<size_t>(shards);
  std::vector<ShardOutput> outputs(count);
  all.each([&](size_t shard) { outputs[shard] = f(static_cast<int>(shard)); });
  OutputGradients out;
  Rows rows = join(op, outputs);
  if (!rows.hidden.defined()) return out;
  Gradients of_layer;
  Tensor dhidden;
  {
    Var hidden = variable(rows.hidden);
    CrossEntropy found = linear_cross_entropy(hidden, layer.weight, layer.bias, rows.targets,
                                              layer.options, &pool, shards);
    out.loss = found.loss.item();
    out.nll = found.nll;
    out.tokens = found.tokens;
    of_layer = backward(found.loss, {.check_finite = all.check_finite()});
    dhidden = of_layer[hidden];
    std::erase_if(of_layer.entries(), [&](const auto& e) { return e.node == hidden.node(); });
    rows.hidden = {};
  }
  std::vector<std::optional<Gradients>> found(count);
  all.each([&](size_t shard) {
    ShardOutput own = std::move(outputs[shard]);
    if (!own.hidden.defined()) return;
    Tensor seed = dhidden.rows(rows.begins[shard], rows.begins[shard + 1]).reshape(own.hidden.shape());
    if (own.extra.requires_grad())
      found[shard] = backward(sum(own.hidden * seed) + own.extra, {.check_finite = all.check_finite()});
    else if (own.hidden.requires_grad())
      found[shard] = backward(own.hidden, {.seed = seed, .check_finite = all.check_finite()});
  });
  out.gradients = sum_of(pool, found);
  out.gradients.add(of_layer);
  return out;
}

}  // namespace gradus::nn
