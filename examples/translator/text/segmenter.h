#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <translator/text/detokenizer.h>
#include <translator/text/subwords.h>
#include <translator/text/tokenizer.h>
#include <translator/text/truecase.h>

namespace translator {

/// A sentence as a model has it: pieces, which have ids, each part of a word, which people see.
struct Segmented {
  std::vector<std::string> pieces = {};
  /// of each piece, rising; every word has one at least
  std::vector<int32_t> word_of = {};
  std::vector<std::string> words = {};
};

/// What a word is to a model, and how its case is dealt with.
struct SegmenterOptions {
  /// keep: as it is; first: a sentence's first word as it would be spelt inside (see Truecaser), and a
  /// capital at the beginning of what is written, behind tags; lower: all in lower case, and so is what is
  /// written.
  std::string letter_case = "lower";
  /// of a text of words
  Typography typography = Typography::other;
  /// a text of words is to come back with its very spaces
  bool marks = false;
};

/// One side's way from text to pieces and back. Without Subwords pieces are the words of tokenize() in one
/// spelling; with them nothing of a text is lost but what normalize() drops, and its words are those of
/// tokenize() too, but that a piece of a script without spaces is a word.
class Segmenter {
 public:
  explicit Segmenter(SegmenterOptions options = {}, std::shared_ptr<const Subwords> subwords = nullptr,
                     std::shared_ptr<const Truecaser> truecaser = nullptr);

  /// The pieces of a line. With a `dropout` above 0, which is for Subwords::seeded() and models that have
  /// some, one of many ways to split its words.
  Segmented split(std::string_view line, double dropout = 0) const;
  /// The text that pieces are.
  std::string join(const std::vector<std::string>& pieces) const;
  /// Pieces that a model wrote, and their words.
  Segmented words_of(std::vector<std::string> pieces) const;

  /// What Subwords learn from: the words of a line, each with the space before it.
  void count_words(std::string_view line, TokenCounts& counts) const;

  /// how text is normalised
  TokenizerOptions reading() const;
  const Subwords* subwords() const { return subwords_.get(); }
  const Truecaser* truecaser() const { return truecaser_.get(); }

 private:
  bool folds() const { return options_.letter_case == "first" && truecaser_; }
  std::string folded(const std::string& normal) const;

  SegmenterOptions options_;
  std::shared_ptr<const Subwords> subwords_;
  std::shared_ptr<const Truecaser> truecaser_;
};

}  // namespace translator
