#include <fmt/core.h>

#include <cstdio>

#include <common/tell.h>

#include "commands.h"
#include "measure.h"

namespace bench {
namespace {

struct Job {
  const Options& options;
  const Size& size;
  const std::string& variant;
  int (*command)(const Options&, const Size&, const std::string&);
};

int run_job(const void* argument) {
  const Job& job = *static_cast<const Job*>(argument);
  try {
    return job.command(job.options, job.size, job.variant);
  } catch (const gradus::Error& e) {
    translator::tell("bench: {}\n", e.what());
    return 1;
  }
}

}  // namespace

int for_each(const Options& options, const std::string& header,
             int (*command)(const Options&, const Size&, const std::string&)) {
  std::vector<Size> sizes = sizes_named(options.size);
  std::vector<std::string> variants = variants_named(options.variant);
  if (!options.json && !header.empty()) fmt::print("{}\n", header);
  int code = 0;
  for (const Size& size : sizes)
    for (const std::string& variant : variants) {
      Job job{options, size, variant, command};
      code |= sizes.size() * variants.size() == 1 ? run_job(&job) : in_own_process(run_job, &job);
    }
  return code;
}

int default_steps(const Size& size) { return size.name == "toy" ? 40 : size.name == "small" ? 30 : 20; }

Network make_network(const Options& options, const Size& size, const std::string& variant) {
  gradus::Rng rng(options.seed);
  Network network(size, variant, rng);
  if (!options.load.empty()) load_from_peer(network, variant, options.load);
  if (!options.save.empty()) save_for_peer(network, variant, options.save);
  return network;
}

std::vector<Batch> make_batches(const Options& options, const Size& size) {
  return options.batches.empty() ? random_batches(size, 8, options.seed)
                                 : load_batches(options.batches, size);
}

}  // namespace bench
