#pragma once

#include <string>
#include <vector>

#include <gradus/nn/search.h>
#include <translator/model/batches.h>
#include <translator/model/model.h>

namespace translator {

struct Translation {
  std::vector<std::string> tokens;
  double log_probability = 0;
  /// what the search ranked it by
  double score = 0;
  /// of each token, and of </s>; empty where not worked out
  std::vector<double> log_probabilities = {};
  /// false: it lacks a word that was required
  bool complete = true;
  /// Weights [tokens (+ </s>), source tokens + </s>]; empty unless asked for.
  std::vector<std::vector<float>> weights;
};

/// Translates sentences that model.reads has split, none of which has a length_fault, in batches of similar
/// length; results in the order given, each with up to options.beam_size translations, best first. A word the
/// model does not know is <unk>; an <unk> in the result is replaced by the source word with the largest
/// weight (Luong et al. 2015, section 4.2) when weights are there. The generator is the model's own, kept for
/// as long as there are sentences to translate. What options.sentences asks for is in the order given;
/// options.watch counts sentences within a batch: it is for one sentence at a time.
std::vector<std::vector<Translation>> translate(const Model& model, const gradus::nn::Generator& generator,
                                                const std::vector<Segmented>& sources,
                                                gradus::nn::SearchOptions options = {},
                                                const Work& work = {});
/// The same for one call.
std::vector<std::vector<Translation>> translate(const Model& model, const std::vector<Segmented>& sources,
                                                gradus::nn::SearchOptions options = {}, int threads = 1);

}  // namespace translator
