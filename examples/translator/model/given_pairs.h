#pragma once

#include <string>
#include <vector>

#include <translator/model/model.h>
#include <translator/text/parallel.h>

namespace translator {

/// Where pairs are that a model is asked about, and how they are read.
struct GivenPairsOptions {
  /// TSV; - is standard input
  std::string pairs;
  /// another file with the targets, line by line; empty: they are in the TSV
  std::string target;
  /// `text` is the first model's
  ReadOptions read;
};

/// The pairs of a file, and how many lines it has: some may be left out.
struct GivenPairs {
  std::vector<SentencePair> pairs = {};
  int64_t lines = 0;
  /// of the lines that are left out, those that something is wrong with
  int64_t bad = 0;
};

/// What one of the models cannot take is left out, as bad lines are; stderr is told what was left out and why.
/// Pairs have the words of the first model.
/// @throws InputError when no pair is left, and whatever read_pairs throws.
GivenPairs read_given_pairs(const GivenPairsOptions& options, const std::vector<const Model*>& models);

/// A text for each pair, on the lines that the pairs have in their file: where one was left out, there is an
/// empty line.
std::string line_by_line(const std::vector<std::string>& texts, const GivenPairs& given);

}  // namespace translator
