#pragma once

#include <string>
#include <vector>

#include <translator/batches.h>
#include <translator/data.h>
#include <translator/model.h>

namespace translator {

/// A beam finds what is most probable, and short translations are: each further word costs. How much a model's
/// beams must be pushed towards length differs from model to model, so pairs it did not learn from decide it.
/// Beams that this is chosen with keep five hypotheses.
constexpr int64_t kBeamOfChoice = 5;
/// Pairs that it takes at least: the score of fewer says little.
constexpr size_t kPairsOfChoice = 100;

/// The alpha of SearchOptions::length_penalty with which the model translates the pairs best: from 1 upwards in
/// steps of 1/2 while the score rises, or downwards. `metric`: "chrf", or BLEU.
/// work.on_progress counts the sentences of all attempts. @throws Interrupted when work.stop is set.
double best_length_penalty(const Model& model, const std::vector<SentencePair>& pairs,
                           const std::string& metric, const Work& work);

}  // namespace translator
