#pragma once

#include <vector>

#include <gradus/parallel.h>
#include <translator/doctor/duplicates.h>
#include <translator/doctor/findings.h>

namespace translator::doctor {

/// How much a side's text looks like its own side of the file, and not like the other, by how often three
/// characters stand together on each (Cavnar and Trenkle 1994 tell languages by the same counts). Counts of
/// such triples, not of characters given two others: then some foreign lines among thousands make their
/// language no likelier there.
struct LanguageScores {
  /// Of each text: log probability of its triples on its own side over that on the other side, nats, its own
  /// triples not counted. Below 0 it looks like the other side.
  std::vector<float> own_source, own_target;
  /// Of each text: its triples are far rarer on its side than those of texts of like length, and say hardly
  /// more for its own side than for the other. Neither side's language, or names and numbers.
  std::vector<bool> neither_source, neither_target;
};
LanguageScores score_languages(const FoldedPairs& folded, gradus::ThreadPool& pool);

/// Texts that are mostly letters of an alphabet which their side has not one letter of in two hundred; as
/// find_languages puts them, a side in another script.
void find_scripts(const FoldedPairs& folded, Findings& out);

/// Swapped sides, a side in the other's language, or in neither's. @param plain Pairs that are translations
/// by their words: names, and words of both languages, blame none of them. Empty: nobody knows; then texts in
/// neither language are not told.
void find_languages(const FoldedPairs& folded, const LanguageScores& scores, const std::vector<bool>& plain,
                    Findings& out);

}  // namespace translator::doctor
