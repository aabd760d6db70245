#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <translator/commands/commands.h>
#include <translator/text/metric.h>

namespace translator {

/// Of some of the sentences that two systems translated.
struct DiffPart {
  /// a range
  std::string source_words;
  /// the usual metrics' scores
  std::vector<double> a = {}, b = {};
  /// sentences that b translates better than a, worse, and equally well
  int64_t won = 0, lost = 0, tied = 0;
};

/// Of the target words that occur so often.
struct DiffWords {
  /// a range
  std::string frequency;
  /// of the references
  int64_t words = 0;
  /// percent, see Diff::by_frequency
  double f_a = 0, f_b = 0;
};

/// Two systems compared on the same sentences: b is held against a.
struct Diff {
  /// models' directories, or files
  std::string a, b;
  std::vector<SentencePair> pairs;
  /// lines that were left out since something is wrong with them
  int64_t bad = 0;
  std::vector<std::vector<std::string>> references;
  /// translations of each pair's source
  std::vector<std::string> a_says, b_says;
  /// of the usual metrics
  std::vector<PairedScores> scores;
  /// chrF2 of each sentence, which says who wins it
  std::vector<std::pair<double, double>> by_sentence;
  DiffPart all;
  std::vector<DiffPart> by_length;
  /// Harmonic mean of precision and recall of the words of each range, as compare-mt has it (Neubig et al.
  /// 2019, arXiv:1903.07926): words as BLEU's 13a splits them, matches clipped within a sentence, the first
  /// reference.
  std::vector<DiffWords> by_frequency;
  /// frequencies are those in a training file, not of the references
  bool of_training = false;
};

/// Translates with models, reads files, and compares. @throws InputError for files that do not fit the pairs.
Diff diff(const DiffCommand& command);

/// The sentences from the one that b loses most to the one that it wins most.
std::vector<size_t> by_gain(const Diff& diff);

nlohmann::ordered_json to_json(const Diff& diff);

}  // namespace translator
