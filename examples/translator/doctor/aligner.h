#pragma once

#include <functional>
#include <vector>

#include <gradus/parallel.h>
#include <translator/text/parallel.h>

namespace translator::doctor {

struct AlignerOptions {
  /// Products of lengths, summed, that are learnt from; of a longer text every so-many-th pair is, so that time
  /// and memory have an end.
  int64_t most = 24'000'000;
  /// how much of the work is done
  std::function<void(double share)> on_progress = {};
};

/// Which words translate which, told from the pairs alone: of each pair the links that fast_align (Dyer,
/// Chahuneau and Smith 2013, N13-1073) finds in one direction or the other. Each word t_i of m comes from one
/// word s_j of the n of the other side, or from none:
///
///   p(t_i from s_j)  = theta(t_i | s_j) (1 - p0) exp(-lambda |i/m - j/n|) / Z_i
///   p(t_i from none) = theta(t_i | none) p0                                        p0 = 0.08, lambda = 4
///
/// theta is learnt by five iterations of variational Bayes, whose Dirichlet prior of 0.01 keeps rare words from
/// explaining everything. Of a sentence the first 200 words are looked at. The same with any number of threads.
std::vector<Links> align_words(const std::vector<SentencePair>& pairs, gradus::ThreadPool& pool,
                               const AlignerOptions& options = {});

}  // namespace translator::doctor
