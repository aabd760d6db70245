#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "workload.h"

namespace bench {

/// What the command line can say; each command reads its part.
struct Options {
  std::string size = "small", variant = "bahdanau";
  int threads = 1;
  /// 0: 40 toy, 30 small, 20 base
  int steps = 0;
  int warmup = 4;
  bool json = false;
  uint64_t seed = 1;
  /// weights under the peer's names
  std::string load, save;
  /// a file of batches instead of random ones
  std::string batches;
  /// only print the losses of so many steps
  int losses = 0;
  /// ops: part of a case's name
  std::string filter;
  /// ops: the registered sizes times this
  int factor = 16;
};

// Each runs one size and variant, or everything, prints to stdout and returns the exit code.
int train(const Options& options);
int decode(const Options& options);
int floor(const Options& options);
int ops(const Options& options);
int scale(const Options& options);

/// Runs `command` for each size and variant that the options name, each in a process of its own, below
/// `header`.
int for_each(const Options& options, const std::string& header,
             int (*command)(const Options&, const Size&, const std::string&));
/// The line of --json for one of them: what was measured with, and `facts`.
void print_json(const Options& options, const Size& size, const std::string& variant,
                const nlohmann::ordered_json& facts);
/// Timed steps: as the options say, or by the size.
int steps_of(const Options& options, const Size& size);
/// Weights as the options want them: random, or from a file.
Network make_network(const Options& options, const Size& size, const std::string& variant);
std::vector<Batch> make_batches(const Options& options, const Size& size);

}  // namespace bench
