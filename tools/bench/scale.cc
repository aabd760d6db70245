#include <fmt/core.h>

#include "commands.h"
#include "gemm_step.h"
#include "measure.h"
#include "step.h"

namespace bench {
namespace {

struct Axis {
  const char* name;
  int64_t Size::*member;
};

double step_ms(const Options& options, const Size& size, const std::string& variant, double* gflop) {
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
  *gflop = GemmStep(size, variant, size.B, 1).gflop(data[0].target_tokens);
  return median(ms);
}

int scale_one(const Options& options, const Size& size, const std::string& variant) {
  std::vector<double> all_ms, all_gflop;
  for (const Axis& axis :
       {Axis{"B", &Size::B}, Axis{"T", &Size::T}, Axis{"H", &Size::H}, Axis{"V", &Size::V}}) {
    std::vector<double> at, ms, gflop;
    for (int64_t factor : {1, 2, 4, 8}) {
      Size changed = size;
      changed.*axis.member = size.*axis.member * factor / 2;
      at.push_back(static_cast<double>(changed.*axis.member));
      gflop.push_back(0);
      ms.push_back(step_ms(options, changed, variant, &gflop.back()));
      if (options.json)
        fmt::print(
            "{{\"framework\": \"gradus\", \"variant\": \"{}\", \"threads\": {}, \"axis\": \"{}\", \"value\": "
            "{}, "
            "\"ms_per_step\": {:.3f}, \"gflop\": {:.3f}}}\n",
            variant, options.threads, axis.name, changed.*axis.member, ms.back(), gflop.back());
      else
        fmt::print("{:<6} {:<9} {} = {:<6} {:>9.2f} ms {:>9.2f} GFLOP {:>9.1f} GFLOP/s\n", size.name, variant,
                   axis.name, changed.*axis.member, ms.back(), gflop.back(), gflop.back() / ms.back() * 1e3);
    }
    double time = exponent(at, ms), work = exponent(at, gflop);
    if (options.json)
      fmt::print(
          "{{\"framework\": \"gradus\", \"variant\": \"{}\", \"threads\": {}, \"axis\": \"{}\", "
          "\"exponent\": {:.3f}, "
          "\"exponent_of_gflop\": {:.3f}}}\n",
          variant, options.threads, axis.name, time, work);
    else
      fmt::print("{:<6} {:<9} time ~ {}^{:.2f}, multiplications ~ {}^{:.2f}\n\n", size.name, variant,
                 axis.name, time, axis.name, work);
    all_ms.insert(all_ms.end(), ms.begin(), ms.end());
    all_gflop.insert(all_gflop.end(), gflop.begin(), gflop.end());
  }
  if (options.json)
    fmt::print(
        "{{\"framework\": \"gradus\", \"variant\": \"{}\", \"threads\": {}, \"axis\": \"work\", "
        "\"exponent\": {:.3f}}}\n",
        variant, options.threads, exponent(all_gflop, all_ms));
  else
    fmt::print("{:<6} {:<9} over all of these: time ~ multiplications^{:.2f} (1: linear in the work)\n",
               size.name, variant, exponent(all_gflop, all_ms));
  return 0;
}

}  // namespace

int scale(const Options& options) {
  return for_each(options, "Training step when one of batch B, length T, state H, vocabulary V changes",
                  scale_one);
}

}  // namespace bench
