#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <translator/model.h>
#include <translator/text/bleu.h>

namespace translator {

/// How good a model is on sentence pairs.
struct Evaluation {
  double nll = 0;         ///< teacher-forced, mean over real target tokens (</s> counted), nats, unsmoothed
  double perplexity = 0;  ///< exp(nll)
  int64_t tokens = 0;
  BleuScore bleu;             ///< 13a, of the readable text; case:lc of a model that writes no capitals
  double exact_match = 0;     ///< share of sentences whose tokens are the reference's
  /// Where pairs have gold alignments and the model attends. Lenient: a target word without a gold link is not
  /// counted, wherever the model looks for it.
  std::optional<double> aer;
  /// Of the weights at a target word (</s> not counted), mean, nats; where it attends.
  std::optional<double> entropy;
  int64_t sentences = 0, translated = 0;
  double seconds = 0;
  std::vector<std::string> hypotheses;  ///< readable, of the translated sentences
  std::vector<std::string> references;  ///< what they are compared with: read and written by the model
};

struct EvaluationOptions {
  gradus::nn::SearchOptions search = {};
  int64_t translate_at_most = 0;  ///< sentences that get translated; 0: all
  bool alignment = true;
  int64_t align_at_most = 0;      ///< sentences whose attention is looked at; 0: all
  int threads = 1;
  /// Told, on the calling thread, how much is done: what, sentences, and of how many.
  std::function<void(const char* what, int64_t done, int64_t total)> on_progress = {};
  const std::atomic<bool>* stop = nullptr;  ///< once set, Interrupted is thrown
};

Evaluation evaluate(const Model& model, const std::vector<SentencePair>& pairs,
                    const EvaluationOptions& options = {});

/// Nats, summed, and the tokens they are summed over.
struct Total {
  double nats = 0;
  int64_t tokens = 0;
};
/// Teacher-forced loss alone.
Total total_loss(const Model& model, const std::vector<EncodedPair>& pairs, const Work& work);

}  // namespace translator
