#include <fmt/core.h>

#include "commands.h"
#include "gemm_step.h"
#include "measure.h"

namespace bench {
namespace {

struct Axis {
  const char* name;
  int64_t Size::*member;
};

struct Cost {
  double ms, gflop;
};

Cost step_cost(const Options& options, const Size& size, const std::string& variant) {
  gradus::Rng rng(options.seed);
  Network network(size, variant, rng);
  std::vector<Work> data = prepare(random_batches(size, 2, options.seed), options.threads);
  TrainingStep step(network, options.threads);
  int steps = options.steps > 0 ? options.steps : 10;
  std::vector<double> ms;
  for (int i = -2; i < steps; ++i) {
    double t = step.run(data[static_cast<size_t>(i + 2) % data.size()]).total;
    if (i >= 0) ms.push_back(t);
  }
  return {median(ms), GemmStep(size, variant, size.B, 1).gflop(data[0].target_tokens)};
}

int scale_one(const Options& options, const Size& size, const std::string& variant) {
  // How each line of --json begins.
  const std::string json = fmt::format(R"({{"framework": "gradus", "variant": "{}", "threads": {}, "axis": )",
                                       variant, options.threads);
  std::vector<double> all_ms, all_gflop;
  for (const Axis& axis :
       {Axis{"B", &Size::B}, Axis{"T", &Size::T}, Axis{"H", &Size::H}, Axis{"V", &Size::V}}) {
    std::vector<double> at, ms, gflop;
    for (int64_t factor : {1, 2, 4, 8}) {
      Size changed = size;
      int64_t& value = changed.*axis.member;
      value = value * factor / 2;
      const Cost cost = step_cost(options, changed, variant);
      at.push_back(static_cast<double>(value));
      ms.push_back(cost.ms);
      gflop.push_back(cost.gflop);
      if (options.json)
        fmt::print("{}\"{}\", \"value\": {}, \"ms_per_step\": {:.3f}, \"gflop\": {:.3f}}}\n", json, axis.name,
                   value, cost.ms, cost.gflop);
      else
        fmt::print("{:<6} {:<9} {} = {:<6} {:>9.2f} ms {:>9.2f} GFLOP {:>9.1f} GFLOP/s\n", size.name, variant,
                   axis.name, value, cost.ms, cost.gflop, cost.gflop / cost.ms * 1e3);
    }
    double time = exponent(at, ms), work = exponent(at, gflop);
    if (options.json)
      fmt::print("{}\"{}\", \"exponent\": {:.3f}, \"exponent_of_gflop\": {:.3f}}}\n", json, axis.name, time,
                 work);
    else
      fmt::print("{:<6} {:<9} time ~ {}^{:.2f}, multiplications ~ {}^{:.2f}\n\n", size.name, variant,
                 axis.name, time, axis.name, work);
    all_ms.insert(all_ms.end(), ms.begin(), ms.end());
    all_gflop.insert(all_gflop.end(), gflop.begin(), gflop.end());
  }
  const double power = exponent(all_gflop, all_ms);
  if (options.json)
    fmt::print("{}\"work\", \"exponent\": {:.3f}}}\n", json, power);
  else
    fmt::print("{:<6} {:<9} over all of these: time ~ multiplications^{:.2f} (1: linear in the work)\n",
               size.name, variant, power);
  return 0;
}

}  // namespace

int scale(const Options& options) {
  return for_each(options, "Training step when one of batch B, length T, state H, vocabulary V changes",
                  scale_one);
}

}  // namespace bench
