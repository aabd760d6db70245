#pragma once

#include <string>
#include <vector>

#include <translator/inference/evaluation.h>
#include <translator/model/model.h>
#include <translator/text/word_picture.h>

// What a training run tells about itself besides its loss: docs/run-log.md.

namespace translator {

/// One optimiser step, parameter by parameter in the order of the model. Norms are Euclidean.
struct StepNorms {
  /// steps done before it; -1: nothing was measured
  int64_t step = -1;
  /// before clipping
  std::vector<double> gradient;
  /// before the step
  std::vector<double> weight;
  /// of what the step changed
  std::vector<double> update;
};

/// Measures single steps: begin before the optimiser's step, end after it. Costs about as much as reading the
/// weights three times.
class StepMeter {
 public:
  explicit StepMeter(gradus::nn::TranslationModel& network);

  /// The gradients must have no row twice, as grad_norm leaves them.
  void begin(int64_t step, const gradus::Gradients& gradients);
  void end();
  /// The last step that was measured since the last call.
  StepNorms take();
  /// The same for a run that is left, and given back to it when it goes on.
  const StepNorms& last() const { return norms_; }
  void put_back(StepNorms norms) { norms_ = std::move(norms); }

  /// Name and shape of each parameter.
  const std::vector<std::pair<std::string, gradus::Shape>>& parameters() const { return names_; }

 private:
  gradus::nn::TranslationModel& network_;
  std::vector<std::pair<std::string, gradus::Shape>> names_;
  std::vector<gradus::Tensor> before_;
  StepNorms norms_;
};

/// What the model makes of one sentence, greedily.
struct ProbeResult : WordPicture {
  /// as text
  std::string output;
};
ProbeResult probe(const Model& model, const SentencePair& pair);

/// A validation sentence that costs the model much.
struct WorstSentence {
  /// among the pairs that were looked at
  size_t index = 0;
  /// nats per target token, </s> counted
  double loss = 0;
  int64_t tokens = 0;
};
/// The `count` worst of the first `among` pairs, worst first; a NaN is worse than any number.
std::vector<WorstSentence> worst_sentences(const Model& model, const std::vector<SentencePair>& pairs,
                                           size_t among, size_t count, const Work& work);

}  // namespace translator
