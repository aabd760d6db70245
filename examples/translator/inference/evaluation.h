#pragma once

#include <atomic>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gradus/nn/search.h>
#include <translator/model/batches.h>
#include <translator/model/model.h>
#include <translator/text/bleu.h>

namespace translator {

/// x, a NaN without a sign, which means nothing and would be written: -nan.
inline double unsigned_nan(double x) { return std::isnan(x) ? NAN : x; }

/// How good a model is on sentence pairs.
struct Evaluation {
  /// teacher-forced, mean over real target tokens (</s> counted), nats, unsmoothed
  double nll = 0;
  /// exp(nll)
  double perplexity = 0;
  int64_t tokens = 0;
  /// 13a, against the references; case:lc of a model that writes no capitals
  BleuScore bleu;
  /// share of the translated sentences, see is_exact
  double exact_match = 0;
  /// The same against references as the model reads and writes them.
  double exact_in_own_spelling = 0;
  /// share of the translated sentences, with a shortlist
  std::optional<double> searched_anew;
  /// Where pairs have gold alignments and the model attends. Lenient: a target word without a gold link is not
  /// counted, wherever the model looks for it.
  std::optional<double> aer;
  /// Of the weights at a target word (</s> not counted), mean, nats; where it attends.
  std::optional<double> entropy;
  int64_t sentences = 0, translated = 0;
  double seconds = 0;
  /// readable, of the translated sentences
  std::vector<std::string> hypotheses;
  /// their targets' text, as it stands in the file
  std::vector<std::vector<std::string>> references;
};

class Ensemble;

struct EvaluationOptions {
  /// Models that translate as one, the model that is evaluated among them. Then `aer` and `entropy` are not
  /// worked out, and nll and perplexity are those of averaged probabilities (of averaged logs nothing is said:
  /// tokens is 0).
  const Ensemble* ensemble = nullptr;
  gradus::nn::SearchOptions search = {};
  /// sentences that get translated; 0: all
  int64_t translate_at_most = 0;
  bool alignment = true;
  /// sentences whose attention is looked at; 0: all
  int64_t align_at_most = 0;
  int threads = 1;
  /// Told, on the calling thread, how much is done: what, sentences, and of how many.
  std::function<void(const char* what, int64_t done, int64_t total)> on_progress = {};
  /// once set, Interrupted is thrown
  const std::atomic<bool>* stop = nullptr;
};

/// The text of the pair's targets, as it stands in the file.
std::vector<std::string> references_of(const SentencePair& pair);

/// Source lengths in words that tables have a row for; the last range is two others together.
struct LengthRange {
  const char* name;
  size_t from, to;

  /// The pairs whose sources have such a length.
  std::vector<size_t> chosen(const std::vector<SentencePair>& pairs) const;
};
const std::vector<LengthRange>& length_ranges();

/// The model's translations of the first `count` sources, readable; empty where it says nothing. A model that
/// is given alignments gets those of the pairs, and translates greedily.
std::vector<std::string> translate_pairs(const Model& model, const gradus::nn::Generator& generator,
                                         const std::vector<SentencePair>& pairs, size_t count,
                                         const gradus::nn::SearchOptions& search, const Work& work);

/// Whether a translation is one of the references, letter for letter; `lowercase` overlooks capitals, as a
/// metric with case:lc does.
bool is_exact(const std::string& hypothesis, const std::vector<std::string>& references, bool lowercase);

Evaluation evaluate(const Model& model, const std::vector<SentencePair>& pairs,
                    const EvaluationOptions& options = {});

/// Nats, summed, and the tokens they are summed over.
struct Total {
  double nats = 0;
  int64_t tokens = 0;
};
/// Teacher-forced loss alone.
Total total_loss(const Model& model, const std::vector<EncodedPair>& pairs, const Work& work);

/// Teacher-forced loss of each target token of each pair, that of </s> last: nats, unsmoothed.
std::vector<std::vector<double>> token_losses(const Model& model, const std::vector<EncodedPair>& pairs,
                                              const Work& work);

}  // namespace translator
