#pragma once

#include <string>
#include <vector>

#include <translator/inference/translation.h>

namespace translator {

/// What translations are told besides, as people write it.
struct SteeringOptions {
  /// every translation begins so
  std::string prefix;
  /// words or phrases
  std::vector<std::string> forbid, require;
  /// draw words
  bool sample = false;
  /// of the first line's; each line has one of its own
  uint64_t seed = 1;
  /// the most probable words after the prefix, each with its best completion
  bool alternatives = false;

  bool any() const {
    return sample || alternatives || !prefix.empty() || !forbid.empty() || !require.empty();
  }
};

/// The same as tokens of a model, and the translations that come of it.
class Steering {
 public:
  /// @throws InputError for words that the model does not have.
  Steering(const SteeringOptions& options, const Model& model);

  /// What sentence number `line` is told, from 0; `prefix` stands for the options' own where that is empty.
  /// @throws InputError as above.
  gradus::nn::SentenceSearch of(int64_t line, const std::string& prefix = "") const;

  /// Translates as options.sentences, one for each source, say. A forbidden word is not in the results, be it
  /// spelt in other pieces than usual: what has one is translated anew without those pieces. So is what has a
  /// required word only as the beginning of a longer one.
  std::vector<std::vector<Translation>> translate(const gradus::nn::Generator& generator,
                                                  const std::vector<Segmented>& sources,
                                                  gradus::nn::SearchOptions options, const Work& work) const;

 private:
  std::vector<int32_t> tokens_of(const std::string& what, const std::string& text) const;
  void add_alternatives(const gradus::nn::Generator& generator, const Segmented& source,
                        const gradus::nn::SearchOptions& options, const Work& work,
                        std::vector<Translation>& out) const;
  /// Translates anew, and at last drops, what has a forbidden phrase behind its first `told` tokens.
  void keep_allowed(const gradus::nn::Generator& generator, const Segmented& source,
                    const gradus::nn::SearchOptions& options, const gradus::nn::SentenceSearch& sentence,
                    size_t told, const Work& work, std::vector<Translation>& found) const;
  /// The words of `text`, which `what` names. @throws InputError where there are none, or too many, or no text.
  Segmented told(const std::string& what, const std::string& text) const;
  /// Translates anew what has a required phrase only as the beginning of a longer word, for which `sentence`
  /// forbids those words; what has it still is not complete.
  void keep_whole(const gradus::nn::Generator& generator, const Segmented& source,
                  const gradus::nn::SearchOptions& options, gradus::nn::SentenceSearch& sentence,
                  const Work& work, std::vector<Translation>& found) const;
  /// The pieces of required phrases that are only that, each with the next piece.
  std::vector<gradus::nn::Phrase> longer_words(const Translation& t) const;
  /// The pieces of the first forbidden phrase among the words behind the first `told` tokens; empty: none.
  gradus::nn::Phrase forbidden_pieces(const Translation& t, size_t told) const;

  const SteeringOptions& options_;
  const Model& model_;
  // what every sentence is told
  gradus::nn::SentenceSearch all_;
  // phrases, as words
  std::vector<std::vector<std::string>> forbidden_, required_;
};

}  // namespace translator
