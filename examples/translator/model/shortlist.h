#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gradus/nn/search.h>
#include <gradus/parallel.h>
#include <translator/model/batches.h>

namespace translator {

/// Which target words come of which source words, as links between the training's pairs tell
/// (doctor::align_words): a search that scores those alone multiplies with a few rows of the output layer.
/// (Jean et al. 2015, 1412.2007, section 3.3.)
class Shortlist {
 public:
  /// Of pairs, as ids of vocabularies of so many entries. Of more than 40,000 pairs it takes every so-many-th.
  static Shortlist learn(const std::vector<EncodedPair>& pairs, int64_t source_entries,
                         int64_t target_entries, gradus::ThreadPool& pool,
                         const std::function<void(double share)>& on_progress = {});
  /// @throws InputError for a file that is none, or of other vocabularies; gradus::Error as load_safetensors.
  static Shortlist load(const std::string& path, int64_t source_entries, int64_t target_entries);
  void save(const std::string& path) const;

  /// The target words that score for a source: those linked to its words, those that are usual, the specials
  /// and `more`; rising, each once.
  std::vector<int32_t> words_for(const std::vector<int32_t>& source, std::vector<int32_t> more = {}) const;

  /// Sentences that were searched, and those of them that were searched anew with all words.
  mutable std::atomic<int64_t> searched{0}, anew{0};

  Shortlist(Shortlist&& other) noexcept
      : linked_(std::move(other.linked_)), usual_(std::move(other.usual_)) {}

 private:
  Shortlist() = default;

  // i32 [source entries, up to 50], the word linked most often first; -1: no more
  gradus::Tensor linked_;
  // i32 [up to 500]: the most frequent target words
  gradus::Tensor usual_;
};

/// nn::translate of a model with a shortlist. Logits, and with them the log probabilities of what is found, are
/// of the listed words alone. Where those had less than model.least_mass of the probability at some word of the
/// best translation (all words are asked, once it is there), the sentence is searched anew with all words. What
/// a sentence's result is does not depend on who stands beside it.
std::vector<std::vector<gradus::nn::Hypothesis>> translate_listed(const Model& model,
                                                                  const gradus::nn::Generator& generator,
                                                                  const SourceBatch& batch,
                                                                  const gradus::nn::SearchOptions& options);

}  // namespace translator
