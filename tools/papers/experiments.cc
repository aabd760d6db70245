#include "experiment.h"

namespace papers {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {kLength, kStart,    kRecall,      kGrid,        kFocus,
                                              kNeed,   kGuided,   kFeedForward, kHops,        kStack,
                                              kReader, kCaptions, kRepeats,     kTransformer, kCopy};
  return all;
}

}  // namespace papers
