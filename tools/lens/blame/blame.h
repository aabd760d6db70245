#pragma once

#include <array>
#include <string>
#include <vector>

#include <translator/model/given_pairs.h>

#include "explain/explain.h"

namespace lens {

struct BlameOptions {
  std::string model;
  translator::GivenPairsOptions given;
  bool json = false;
};
int blame(const BlameOptions& options);

/// Answers to how much a source word matters for a target word: the larger, the more.
///   weights     its attention weight, the mean of all heads
///   annotation  |dL_t/dh_j|, by all paths: the blame of `lens explain`
///   word        |dL_t/dx_j|, x_j its embedding
///   left_out    how far the prediction moves when the source lacks the word: the total variation distance
///               1/2 sum_k |p_k - p'_k|, as Jain and Wallace 2019 (arXiv:1902.10186) measure it
enum class Answer { weights, annotation, word, left_out };
constexpr size_t kAnswers = 4;

/// By target word and source word, </s> among both; of a word's pieces as `lens explain` puts them together,
/// distances added.
using Answers = std::array<std::vector<std::vector<double>>, kAnswers>;
Answers answers_of(const gradus::nn::Seq2Seq& network, const Sentence& sentence);

/// Spearman's: the correlation of ranks, equal numbers sharing the mean of theirs. NaN where all numbers of one
/// side are equal, or one of them is none.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace lens
