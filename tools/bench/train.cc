#include <fmt/core.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/memory.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include <common/json_text.h>
#include "measure.h"
#include "step.h"

namespace bench {
namespace {

using json = nlohmann::ordered_json;

double rounded(double x, double digits = 1000) { return std::round(x * digits) / digits; }

int print_losses(const Options& options, TrainingStep& step, const std::vector<Work>& data) {
  for (int i = 0; i < options.losses; ++i)
    fmt::print("{:.9f}\n", step.run(data[static_cast<size_t>(i) % data.size()]).loss);
  return 0;
}

int train_one(const Options& options, const Size& size, const std::string& variant) {
  Stopwatch start;
  Network network = make_network(options, size, variant);
  std::vector<Work> data = prepare(make_batches(options, size), options.threads);
  TrainingStep step(network, options.threads);
  if (options.losses > 0) return print_losses(options, step, data);
  std::string core = gradus::kernels::blas_core();
  double startup = start.lap(), base = peak_rss_mb();

  int steps = options.steps > 0 ? options.steps : default_steps(size);
  for (int i = 0; i < options.warmup; ++i) step.run(data[static_cast<size_t>(i) % data.size()]);
  std::vector<double> ms, tokens, both, forward, backward, clip, adam;
  for (auto* series : {&ms, &tokens, &both, &forward, &backward, &clip, &adam})
    series->reserve(static_cast<size_t>(steps));
  int64_t faults = page_faults(), asked = gradus::memory_stats().system_allocations;
  double loss = 0;
  for (int i = 0; i < steps; ++i) {
    const Work& work = data[static_cast<size_t>(i) % data.size()];
    StepTimes t = step.run(work);
    ms.push_back(t.total);
    tokens.push_back(static_cast<double>(work.target_tokens) / t.total * 1e3);
    both.push_back(static_cast<double>(work.target_tokens + work.source_tokens) / t.total * 1e3);
    forward.push_back(t.forward);
    backward.push_back(t.backward);
    clip.push_back(t.clip);
    adam.push_back(t.adam);
    loss = t.loss;
  }
  faults = (page_faults() - faults) / steps;
  asked = gradus::memory_stats().system_allocations - asked;
  if (!options.json) {
    fmt::print(
        "{:<6} {:<9} {:>2} {:>11.0f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>7.2f} {:>7.2f} {:>7} "
        "{:>8.0f} {:>8.4f}\n",
        size.name, variant, options.threads, median(tokens), median(ms), quantile(ms, 0.1), quantile(ms, 0.9),
        median(forward), median(backward), median(clip), median(adam), faults, peak_rss_mb(), loss);
    return 0;
  }
  fmt::print("{}\n", json_text::dump(json{{"framework", "gradus"},
                                          {"blas_core", core},
                                          {"amx", gradus::kernels::amx_ready()},
                                          {"size", size.name},
                                          {"variant", variant},
                                          {"threads", options.threads},
                                          {"steps", steps},
                                          {"tokens_per_s", rounded(median(tokens), 10)},
                                          {"src_plus_tgt_tokens_per_s", rounded(median(both), 10)},
                                          {"ms_per_step", rounded(median(ms))},
                                          {"ms_p10", rounded(quantile(ms, 0.1))},
                                          {"ms_p90", rounded(quantile(ms, 0.9))},
                                          {"phase_ms",
                                           {{"forward", rounded(median(forward))},
                                            {"backward", rounded(median(backward))},
                                            {"clip", rounded(median(clip))},
                                            {"adam", rounded(median(adam))}}},
                                          {"page_faults_per_step", faults},
                                          {"system_allocations", asked},
                                          {"startup_ms", rounded(startup)},
                                          {"peak_rss_mb", rounded(peak_rss_mb(), 10)},
                                          {"base_rss_mb", rounded(base, 10)},
                                          {"loss", rounded(loss, 1e4)},
                                          {"params", gradus::nn::num_parameters(network)}}));
  return 0;
}

}  // namespace

int train(const Options& options) {
  std::string header;
  if (options.losses == 0)
    header = fmt::format(
        "Training step in ms, medians; products by {}\n"
        "{:<6} {:<9} {:>2} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>7} {:>8} {:>8}",
        products_by(), "size", "variant", "th", "tgt words/s", "step", "p10", "p90", "forward",
        "backward", "clip", "adam", "faults", "RSS MB", "loss");
  return for_each(options, header, train_one);
}

}  // namespace bench
