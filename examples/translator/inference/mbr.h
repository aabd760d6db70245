#pragma once

#include <vector>

#include <translator/inference/translation.h>
#include <translator/text/metric.h>

namespace translator {

/// Minimum Bayes risk (Kumar and Byrne 2004, N04-1022; by samples: Eikema and Aziz 2020, 2005.10283): of n
/// samples y_1 .. y_n of a model, best first, those that are most like all of them,
///   score(y) = 1/n sum_i utility(y, y_i),
/// utility being the metric with y as the translation and y_i as its reference, in percent. The same text comes
/// once; of two that score alike the more probable one is first.
std::vector<Translation> by_expected_utility(const Model& model, const Metric& utility,
                                             const std::vector<Translation>& samples);

}  // namespace translator
