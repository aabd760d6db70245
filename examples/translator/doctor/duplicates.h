#pragma once

#include <string>
#include <vector>

#include <translator/doctor/findings.h>
#include <translator/doctor/folded.h>
#include <translator/text/parallel.h>

namespace translator::doctor {

/// Both sides of all pairs.
struct FoldedPairs {
  std::vector<Folded> source, target;
  size_t size() const { return source.size(); }
};

/// Pairs whose folded sides an earlier pair has, as hashes of 64 bits tell.
/// @param damaged Of each pair: it is left out anyhow, and neither a duplicate nor what others repeat.
void find_duplicates(const FoldedPairs& folded, const std::vector<SentencePair>& pairs,
                     const std::vector<bool>& damaged, Findings& out);

/// Pairs with a side that a held-out pair has: then a score of that data measures memory. And, as near, those
/// whose source of five words or more is one word away from a held-out one: one word more, less, or another.
/// @param name Of the held-out data, for people.
void find_overlap(const FoldedPairs& folded, const FoldedPairs& held_out,
                  const std::vector<SentencePair>& held_out_pairs, const std::string& name, Findings& out);

}  // namespace translator::doctor
