#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gradus/parallel.h>
#include <translator/doctor/findings.h>
#include <translator/text/parallel.h>

namespace translator::doctor {

/// Pairs that are not to be trained on.
struct HeldOut {
  std::string name;
  std::vector<SentencePair> pairs;
};

struct Examination {
  /// by pair, and of a pair in the order of Kind
  Findings findings = {};
  std::vector<ShiftedBlock> blocks = {};
  /// there were pairs enough to learn which words translate which
  bool by_words = false;
  /// there were, and yet the sides look as if thrown together
  bool hopeless = false;
  /// Lines that nearly all targets stand further down than their sources, or up (below 0).
  int64_t displaced = 0;

  /// What each pair is left out for: of `pairs` many, none for those that are kept.
  std::vector<const Finding*> reasons(size_t pairs) const;
};

struct ExamineOptions {
  int64_t max_words = 50;
  /// without what is learnt from the pairs' words: a second for 160,000 pairs
  bool quick = false;
  std::vector<HeldOut> held_out = {};
  std::function<void(const std::string& stage)> on_stage = {};
};

/// All that is found of pairs whose words are in lower case. The same with any number of threads.
Examination examine(const std::vector<SentencePair>& pairs, gradus::ThreadPool& pool,
                    const ExamineOptions& options = {});

/// Says on stderr what is seriously wrong with pairs that are about to be trained on, as a quick look tells:
/// what concerns ten pairs and one of two hundred. Nothing where nothing is. Which they are `translator doctor`
/// says of pairs from one place, `one_file`.
void warn(const std::vector<SentencePair>& pairs, int threads, bool one_file);

}  // namespace translator::doctor
