#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <translator/training/training_step.h>

// What is left of a training step that came upon a NaN or an infinity, so that it can be looked at again and
// again.

namespace translator {

/// What is found wrong in a step; empty when nothing is.
struct Autopsy {
  /// the op, its scope, line and inputs: the text of gradus::NotFinite
  std::string finding;
  /// "source -> target" of the part in which it happened
  std::vector<std::string> sentences;
  /// For people, some lines; at most `sentences_shown` of the sentences.
  std::string text(size_t sentences_shown = 5) const;
};

/// Runs the step once more under CheckFinite, part by part, until the first NaN or infinity.
Autopsy examine(const Model& model, const StepBatch& batch);

/// Writes model, batch and report into a directory. @throws InputError when it cannot be written.
void save_bundle(const std::string& directory, const Model& model, const StepBatch& batch,
                 const Autopsy& autopsy);

/// Reads the bundle and runs its step again.
struct Replay {
  int64_t step;
  /// report.txt of the bundle
  std::string saved_text;
  Autopsy autopsy;
};
Replay replay(const std::string& directory);

}  // namespace translator
