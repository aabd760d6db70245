#include "experiment.h"

#include <utility>

namespace papers {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {kLength, kStart,    kRecall,      kGrid,        kFocus,
                                              kNeed,   kGuided,   kFeedForward, kHops,        kStack,
                                              kReader, kCaptions, kRepeats,     kTransformer, kCopy};
  return all;
}

Run gallery_run(const json& setting, Words words, int seed, bool quick, double seconds, const Words& more) {
  words.insert(words.end(), {"--seed", std::to_string(seed), "--json"});
  words.insert(words.end(), more.begin(), more.end());
  if (quick) words.push_back("--quick");
  return {setting, static_cast<uint64_t>(seed), {std::move(words)}, seconds};
}

}  // namespace papers
