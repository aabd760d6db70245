#include <translator/text/metric.h>

#include <translator/text/bleu.h>
#include <translator/text/chrf.h>
#include <translator/text/python_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>

namespace translator {
namespace {

constexpr const char* kVersion = "gradus-0.1";

// A number below n, the same everywhere, which the standard's distributions need not be.
size_t below(size_t n, std::mt19937_64& random) {
  return static_cast<size_t>((static_cast<unsigned __int128>(random()) * n) >> 64);
}

// `drawn` are its resampled scores, if there are any.
Score with_interval(const Metric& metric, const CorpusCounts& corpus, const std::optional<Resampling>& how,
                    const std::vector<double>& drawn) {
  const Counts sum = corpus.sum();
  Score out{metric.name, 0, {}, {}, signature_of(metric, corpus.references, how)};
  if (sum.empty()) return out;
  out.value = metric.score(sum);
  if (metric.details) out.details = metric.details(sum);
  const Interval interval = interval_of(drawn);
  if (interval.mean > 0) out.interval = interval;
  return out;
}

}  // namespace

std::vector<Metric> usual_metrics(bool lowercase) {
  return {bleu_metric({.lowercase = lowercase}), chrf_metric({.lowercase = lowercase}),
          chrf_metric({.lowercase = lowercase, .word_order = 2})};
}

Counts CorpusCounts::sum() const {
  Counts out(width);
  for (size_t i = 0; i < counts.size(); ++i) out[i % width] += counts[i];
  return out;
}

CorpusCounts CorpusCounts::some(const std::vector<size_t>& chosen) const {
  CorpusCounts out{.width = width, .counts = {}, .references = references};
  for (size_t i : chosen) {
    const auto row = counts.begin() + static_cast<long>(i * width);
    out.counts.insert(out.counts.end(), row, row + static_cast<long>(width));
  }
  return out;
}

CorpusCounts count(const Metric& metric, const std::vector<std::string>& hypotheses,
                   const std::vector<std::vector<std::string>>& references) {
  if (hypotheses.size() != references.size()) {
    throw std::invalid_argument(fmt::format("{}: as many hypotheses as references: {} and {}", metric.name,
                                            hypotheses.size(), references.size()));
  }
  CorpusCounts out;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const auto number = static_cast<int64_t>(references[i].size());
    if (number == 0)
      throw std::invalid_argument(fmt::format("{}: sentence {} has no reference", metric.name, i + 1));
    out.references = i == 0 || out.references == number ? number : 0;
    const Counts own = metric.count(hypotheses[i], references[i]);
    out.width = own.size();
    out.counts.insert(out.counts.end(), own.begin(), own.end());
  }
  return out;
}

std::vector<double> resampled_scores(const Metric& metric, const CorpusCounts& corpus,
                                     const Resampling& how) {
  std::mt19937_64 random(how.seed);
  const size_t n = corpus.sentences();
  std::vector<double> out;
  for (int64_t resample = 0; n > 0 && resample < how.resamples; ++resample) {
    // How often each is drawn, and then all in their order: memory is slow where it is read here and there.
    std::vector<int64_t> times(n);
    for (size_t drawn = 0; drawn < n; ++drawn) ++times[below(n, random)];
    Counts sum(corpus.width);
    const int64_t* row = corpus.counts.data();
    for (size_t i = 0; i < n; ++i, row += corpus.width)
      for (size_t k = 0; k < corpus.width; ++k) sum[k] += times[i] * row[k];
    out.push_back(metric.score(sum));
  }
  return out;
}

Interval interval_of(std::vector<double> scores) {
  if (scores.empty()) return {};
  std::sort(scores.begin(), scores.end());
  const size_t cut = scores.size() / 40;
  return {std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size()),
          (scores[scores.size() - 1 - cut] - scores[cut]) / 2};
}

std::string Score::key() const { return python_text::lower(name); }

std::string Score::format() const {
  std::string out = fmt::format("{:.2f}", value);
  if (interval) out += fmt::format(" (μ = {:.2f} ± {:.2f})", interval->mean, interval->half_width);
  return details.empty() ? out : out + " " + details;
}

Score score_of(const Metric& metric, const CorpusCounts& corpus, const std::optional<Resampling>& how) {
  return with_interval(metric, corpus, how,
                       how ? resampled_scores(metric, corpus, *how) : std::vector<double>());
}

PairedScores paired_scores(const Metric& metric, const CorpusCounts& a, const CorpusCounts& b,
                           const Resampling& how) {
  const std::vector<double> of_a = resampled_scores(metric, a, how), of_b = resampled_scores(metric, b, how);
  PairedScores out{with_interval(metric, a, how, of_a), with_interval(metric, b, how, of_b), {}};
  const double real = std::abs(out.b.value - out.a.value), n = static_cast<double>(of_a.size());
  if (real == 0) return out;
  std::vector<double> drawn;
  for (size_t i = 0; i < of_a.size(); ++i) drawn.push_back(std::abs(of_b[i] - of_a[i]));
  const double mean = std::accumulate(drawn.begin(), drawn.end(), 0.0) / n;
  const auto larger = std::count_if(drawn.begin(), drawn.end(), [&](double d) { return d - mean > real; });
  out.p = (static_cast<double>(larger) + 1) / (n + 1);
  return out;
}

std::string signature_of(const Metric& metric, int64_t references, const std::optional<Resampling>& how) {
  return fmt::format("nrefs:{}|{}{}|version:{}", references > 0 ? std::to_string(references) : "var",
                     how ? fmt::format("bs:{}|seed:{}|", how->resamples, how->seed) : "", metric.settings,
                     kVersion);
}

}  // namespace translator
