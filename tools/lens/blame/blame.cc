#include "blame.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <translator/text/word_picture.h>

#include "norms.h"

namespace lens {
namespace {

using namespace gradus;

// How far each target word's prediction moves without source word j.
std::vector<double> distances_without(int32_t j, const nn::Seq2Seq& network, const Sentence& s,
                                      const std::vector<Step>& whole) {
  std::vector<int32_t> source;
  for (size_t i = 0; i < s.source_ids.size(); ++i)
    if (s.source.word_of[i] != j) source.push_back(s.source_ids[i]);
  NoGrad guard;
  Reading reading;
  std::vector<Step> steps;
  Dissection(network, source, s.target_ids).run(reading, steps);
  std::vector<double> out(s.target.words.size());
  for (size_t t = 0; t < steps.size(); ++t) {
    const Tensor &p = whole[t].probabilities.value(), &q = steps[t].probabilities.value();
    double sum = 0;
    for (int64_t k = 0; k < p.numel(); ++k) sum += std::abs(p.f64()[k] - q.f64()[k]);
    out[static_cast<size_t>(s.target.word_of[t])] += sum / 2;
  }
  return out;
}

// 1 for the smallest; equal ones share the mean of their ranks.
std::vector<double> ranks_of(const std::vector<double>& x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  std::vector<double> out(x.size());
  for (size_t begin = 0, end; begin < x.size(); begin = end) {
    for (end = begin + 1; end < x.size() && x[order[end]] == x[order[begin]];) ++end;
    for (size_t i = begin; i < end; ++i) out[order[i]] = static_cast<double>(begin + 1 + end) / 2;
  }
  return out;
}

}  // namespace

Answers answers_of(const nn::Seq2Seq& network, const Sentence& s) {
  const Dissection d(network, s.source_ids, s.target_ids);
  const SentenceTrace trace = differentiate(d);
  Answers out;
  auto of = [&](Answer a) -> auto& { return out[static_cast<size_t>(a)]; };
  std::vector<std::vector<float>> weights;
  for (const Step& step : trace.steps) weights.push_back(mean_weights(step));
  for (const auto& row : translator::weights_of_words(weights, s.target.word_of, s.source.word_of))
    of(Answer::weights).emplace_back(row.begin(), row.end());
  for (int32_t t = 0; t <= s.target.word_of.back(); ++t) {
    const StepGradients g = gradients_of_word(trace, t, s.target.word_of, s.source.word_of);
    of(Answer::annotation).push_back(row_norms(g.full));
    of(Answer::word).push_back(row_norms(g.words));
  }
  of(Answer::left_out).assign(s.target.words.size(), std::vector<double>(s.source.words.size()));
  for (int32_t j = 0; j <= s.source.word_of.back(); ++j) {
    const std::vector<double> moved = distances_without(j, network, s, trace.steps);
    for (size_t t = 0; t < moved.size(); ++t) of(Answer::left_out)[t][static_cast<size_t>(j)] = moved[t];
  }
  return out;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<double>* side : {&a, &b})
    for (double x : *side)
      if (std::isnan(x)) return kNone;
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = (static_cast<double>(x.size()) + 1) / 2;
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
    xy += (x[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : kNone;
}

}  // namespace lens
