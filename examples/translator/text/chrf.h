#pragma once

#include <translator/text/metric.h>

namespace translator {

struct ChrfOptions {
  bool lowercase = false;
  /// 2: chrF++
  int word_order = 0;
};

/// chrF2 (Popović 2015, W15-3049) and, with words, chrF++ (Popović 2017, W17-4770), exactly as sacreBLEU 2
/// computes them: precision and recall of n-grams of 1 to 6 characters, white space left out, and of 1 to
/// `word_order` words, each averaged over the orders that both sides have, and F with recall counting twice. Of
/// several references the one with the best score of the sentence counts.
///
/// Counts: for each order the n-grams of the hypothesis, of the reference, and of both.
Metric chrf_metric(const ChrfOptions& options = {});

}  // namespace translator
