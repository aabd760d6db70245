#pragma once

#include <string>
#include <vector>

#include "experiment.h"

// What experiments with the translator have in common: models of its embedded English-French corpus.

namespace papers {

/// A small translator and evaluations of it, each with more options; translations are greedy. In full it
/// learns from 6000 pairs and is asked for the 1000 embedded test sentences; a quick one from 1000 short pairs,
/// and is asked for 200.
struct Trial {
  /// what the page tells it by
  json setting;
  /// more options of the training
  Words train;
  /// words of each evaluation
  std::vector<Words> evaluations = {{}};
  /// in full
  int epochs = 4;
  /// tokens of a sentence that is learnt from
  int max_length = 40;
  /// the same of a quick one, and of its test sentences
  int quick_length = 8, quick_test = 8;
  /// the corpus's French has its verbs last
  bool verb_final = false;
  /// about, in full; a quick one takes 0.8
  double seconds = 8;
};
/// All of them with seed 1, then with seed 2, ...
std::vector<Run> runs_of(const std::vector<Trial>& trials, bool quick, int seeds);

/// What one of several evaluations printed, counted from 0; logs that have no such line are left out.
std::vector<Log> nth_line(const std::vector<Log>& logs, size_t number);
/// A result of evaluate --by-length for a range of lengths, "11 .. 15"; NaN where it has none.
std::vector<double> results_at(const std::vector<Log>& logs, const std::string& source_words,
                               const std::string& name);

/// How a result of evaluate is told.
NumberFormat format_of(const std::string& name);
/// A result of each as it stands in a table: "80.1 ± 0.4".
std::string cell(const std::vector<Log>& logs, const std::string& name);
/// Values in hundredths: of BLEU, beside shares.
std::vector<double> hundredths(std::vector<double> values);

}  // namespace papers
