#include <fmt/core.h>
#include <gradus/kernels/products/gemm.h>

#include <nlohmann/json.hpp>

#include <common/json_text.h>
#include <common/tell.h>

#include "commands.h"
#include "measure.h"

namespace bench {

int for_each(const Options& options, const std::string& header,
             int (*command)(const Options&, const Size&, const std::string&)) {
  std::vector<Size> sizes = sizes_named(options.size);
  std::vector<std::string> variants = variants_named(options.variant);
  if (!options.json && !header.empty()) fmt::print("{}\n", header);
  int code = 0;
  for (const Size& size : sizes)
    for (const std::string& variant : variants) {
      auto job = [&] {
        try {
          return command(options, size, variant);
        } catch (const gradus::Error& e) {
          translator::tell("bench: {}\n", e.what());
          return 1;
        }
      };
      code |= sizes.size() * variants.size() == 1 ? job() : in_own_process(job);
    }
  return code;
}

void print_json(const Options& options, const Size& size, const std::string& variant,
                const nlohmann::ordered_json& facts) {
  nlohmann::ordered_json line = {{"framework", "gradus"},
                                 {"blas_core", gradus::kernels::blas_core()},
                                 {"amx", gradus::kernels::amx_ready()},
                                 {"size", size.name},
                                 {"variant", variant},
                                 {"threads", options.threads}};
  line.update(facts);
  fmt::print("{}\n", json_text::dump(line));
}

int steps_of(const Options& options, const Size& size) {
  if (options.steps > 0) return options.steps;
  return size.name == "toy" ? 40 : size.name == "small" ? 30 : 20;
}

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
