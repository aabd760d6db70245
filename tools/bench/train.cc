#include <fmt/core.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/memory.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "measure.h"

namespace bench {
namespace {

int train_one(const Options& options, const Size& size, const std::string& variant) {
  Stopwatch start;
  Network network = make_network(options, size, variant);
  std::vector<Work> data = prepare(make_batches(options, size), options.threads);
  TrainingStep step(network, options.threads);
  auto run = [&](int i) { return step.run(data[static_cast<size_t>(i) % data.size()]); };
  for (int i = 0; i < options.losses; ++i) fmt::print("{:.9f}\n", run(i).loss);
  if (options.losses > 0) return 0;
  gradus::kernels::blas_core();  // setting BLAS up belongs to the start
  double startup = start.lap(), base = peak_rss_mb();

  const int steps = steps_of(options, size);
  for (int i = 0; i < options.warmup; ++i) run(i);
  std::vector<StepTimes> times;
  times.reserve(static_cast<size_t>(steps));
  int64_t faults = page_faults(), asked = gradus::memory_stats().system_allocations;
  for (int i = 0; i < steps; ++i) times.push_back(run(i));
  faults = (page_faults() - faults) / steps;
  asked = gradus::memory_stats().system_allocations - asked;
  auto all = [&](double StepTimes::*part) {
    std::vector<double> out;
    for (const StepTimes& t : times) out.push_back(t.*part);
    return out;
  };
  auto middle = [&](double StepTimes::*part) { return median(all(part)); };
  const std::vector<double> ms = all(&StepTimes::total);
  const double low = quantile(ms, 0.1), high = quantile(ms, 0.9), loss = times.back().loss;
  if (!options.json) {
    fmt::print(
        "{:<6} {:<9} {:>2} {:>11.0f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>7.2f} {:>7.2f} {:>7} "
        "{:>8.0f} {:>8.4f}\n",
        size.name, variant, options.threads, middle(&StepTimes::target), median(ms), low, high,
        middle(&StepTimes::forward), middle(&StepTimes::backward), middle(&StepTimes::clip),
        middle(&StepTimes::adam), faults, peak_rss_mb(), loss);
    return 0;
  }
  print_json(options, size, variant,
             {{"steps", steps},
              {"tokens_per_s", rounded(middle(&StepTimes::target), 1)},
              {"src_plus_tgt_tokens_per_s", rounded(middle(&StepTimes::words), 1)},
              {"ms_per_step", rounded(median(ms))},
              {"ms_p10", rounded(low)},
              {"ms_p90", rounded(high)},
              {"phase_ms",
               {{"forward", rounded(middle(&StepTimes::forward))},
                {"backward", rounded(middle(&StepTimes::backward))},
                {"clip", rounded(middle(&StepTimes::clip))},
                {"adam", rounded(middle(&StepTimes::adam))}}},
              {"page_faults_per_step", faults},
              {"system_allocations", asked},
              {"startup_ms", rounded(startup)},
              {"peak_rss_mb", rounded(peak_rss_mb(), 1)},
              {"base_rss_mb", rounded(base, 1)},
              {"loss", rounded(loss, 4)},
              {"params", gradus::nn::num_parameters(network)}});
  return 0;
}

}  // namespace

int train(const Options& options) {
  std::string header;
  if (options.losses == 0)
    header = fmt::format(
        "Training step in ms, medians; products by {}\n"
        "{:<6} {:<9} {:>2} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>7} {:>8} {:>8}",
        products_by(), "size", "variant", "th", "tgt words/s", "step", "p10", "p90", "forward", "backward",
        "clip", "adam", "faults", "RSS MB", "loss");
  return for_each(options, header, train_one);
}

}  // namespace bench
