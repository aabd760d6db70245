#pragma once

#include <translator/corpus/corpus.h>

#include <string>

/// 150,000 pairs that the scans share.
inline const translator::Corpus& large_sample() {
  static const translator::Corpus kCorpus =
      translator::generate_corpus({.seed = 11, .train = 148000, .valid = 1000, .test = 1000});
  return kCorpus;
}

/// " tokens with one space around each ", to look for sequences.
inline std::string padded(const std::vector<std::string>& tokens) {
  std::string text = " ";
  for (const std::string& token : tokens) text += token + " ";
  return text;
}
