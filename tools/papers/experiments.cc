#include "experiment.h"

namespace papers {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {kFeedForward, kRecall, kHops,  kRepeats,     kReader,
                                              kCaptions,    kCopy,   kStart, kTransformer, kStack,
                                              kNeed,        kLength, kGuided};
  return all;
}

}  // namespace papers
