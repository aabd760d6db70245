#include <fmt/core.h>
#include <gradus/parallel.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "gemm_step.h"
#include "measure.h"

namespace bench {
namespace {

int floor_one(const Options& options, const Size& size, const std::string& variant) {
  Network network = make_network(options, size, variant);
  std::vector<Work> data = prepare(make_batches(options, size), options.threads);
  TrainingStep step(network, options.threads);
  gradus::ThreadPool pool(options.threads);
  std::vector<std::unique_ptr<GemmStep>> products;
  for (const Batch& shard : data[0].shards)
    products.push_back(
        std::make_unique<GemmStep>(size, variant, shard.source.size(1), options.seed + products.size()));

  const int steps = steps_of(options, size);
  std::vector<double> floor_ms, step_ms, rate;
  for (int i = -options.warmup; i < steps; ++i) {  // in turn, so that a neighbour's noise meets both
    const Work& work = data[static_cast<size_t>(i + options.warmup) % data.size()];
    double whole = step.run(work).total;
    Stopwatch watch;
    pool.run([&](int k) {
      size_t n = static_cast<size_t>(k);
      if (n < products.size()) products[n]->run(work.shards[n].target_tokens);
    });
    double ms = watch.lap(), gflop = 0;
    if (i < 0) continue;
    for (size_t n = 0; n < products.size(); ++n) gflop += products[n]->gflop(work.shards[n].target_tokens);
    floor_ms.push_back(ms);
    step_ms.push_back(whole);
    rate.push_back(gflop / ms * 1e3);
  }
  double efficiency = median(floor_ms) / median(step_ms), gflop = median(rate) * median(floor_ms) / 1e3;
  if (options.json)
    print_json(options, size, variant,
               {{"steps", steps},
                {"floor_ms", rounded(median(floor_ms))},
                {"ms_per_step", rounded(median(step_ms))},
                {"efficiency", rounded(efficiency)},
                {"gflop", rounded(gflop)},
                {"floor_gflops", rounded(median(rate))}});
  else
    fmt::print("{:<6} {:<9} {:>2} {:>10.2f} {:>10.2f} {:>10.3f} {:>10.2f} {:>10.1f}\n", size.name, variant,
               options.threads, median(floor_ms), median(step_ms), efficiency, gflop, median(rate));
  return 0;
}

}  // namespace

int floor(const Options& options) {
  return for_each(
      options,
      fmt::format("Products of matrices alone against the whole training step, ms, medians; products by {}\n"
                  "{:<6} {:<9} {:>2} {:>10} {:>10} {:>10} {:>10} {:>10}",
                  products_by(), "size", "variant", "th", "products", "step", "efficiency", "GFLOP",
                  "GFLOP/s"),
      floor_one);
}

}  // namespace bench
