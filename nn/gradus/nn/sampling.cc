#include <gradus/nn/sampling.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <gradus/kernels/inference.h>

namespace gradus::nn {

void Sampling::check() const {
  auto must = [](bool holds, const char* what, double value) {
    if (!holds) fail("translate", fmt::format("sampling.{}: {}", what, value));
  };
  must(temperature > 0 && std::isfinite(temperature), "temperature must be above 0", temperature);
  must(top_k >= 0, "top_k must be at least 0", static_cast<double>(top_k));
  must(top_p > 0 && top_p <= 1, "top_p must be above 0 and at most 1", top_p);
  must(min_p >= 0 && min_p <= 1, "min_p must be from 0 to 1", min_p);
}

void best_words(const float* x, int64_t V, int64_t wanted, const std::vector<int32_t>& never,
                std::vector<int32_t>& best) {
  auto may = [&](int64_t v) { return std::find(never.begin(), never.end(), v) == never.end(); };
  auto insert = [&](int64_t v) {
    auto larger = [&](int64_t a, int64_t c) { return x[a] > x[c]; };
    best.insert(std::upper_bound(best.begin(), best.end(), v, larger), static_cast<int32_t>(v));
  };
  best.clear();
  if (wanted == 1) {
    if (int64_t first = kernels::argmax(x, V); may(first)) return best.push_back(static_cast<int32_t>(first));
  }
  int64_t v = 0;
  for (; v < V && static_cast<int64_t>(best.size()) < wanted; ++v)
    if (may(v)) insert(v);
  if (best.empty()) return;
  while ((v = kernels::first_above(x, v, V, x[best.back()])) < V) {
    if (may(v)) {
      best.pop_back();
      insert(v);
    }
    ++v;
  }
}

int32_t Sampler::draw(const Sampling& how, const float* logits, int64_t V, const std::vector<int32_t>& never,
                      Rng& rng) {
  words_.clear();
  double top = -HUGE_VAL;
  for (int64_t v = 0; v < V; ++v) {
    if (std::find(never.begin(), never.end(), v) != never.end()) continue;
    words_.emplace_back(logits[v], static_cast<int32_t>(v));
    top = std::max<double>(top, logits[v]);
  }
  const double chance = rng.uniform();
  if (words_.empty()) return -1;
  // Weights relative to the most probable word, whose own is 1, though it be infinite.
  for (auto& [weight, id] : words_)
    weight = weight == top ? 1 : std::exp((weight - top) / how.temperature);
  if (how.top_k > 0 || how.top_p < 1)
    std::stable_sort(words_.begin(), words_.end(), [](auto& a, auto& b) { return a.first > b.first; });
  if (how.top_k > 0) words_.resize(std::min(words_.size(), static_cast<size_t>(how.top_k)));
  auto total = [&] {
    double sum = 0;
    for (const auto& word : words_) sum += word.first;
    return sum;
  };
  if (how.top_p < 1) {
    const double enough = how.top_p * total();
    double sum = 0;
    size_t kept = 0;
    while (kept < words_.size() && sum < enough) sum += words_[kept++].first;
    words_.resize(std::max<size_t>(1, kept));
  }
  if (how.min_p > 0) std::erase_if(words_, [&](auto& word) { return word.first < how.min_p; });
  double left = chance * total();
  for (const auto& [weight, id] : words_)
    if ((left -= weight) < 0) return id;
  // Rounding has left a bit over: the last that can be drawn at all.
  return std::find_if(words_.rbegin(), words_.rend(), [](auto& word) { return !(word.first <= 0); })->second;
}

}  // namespace gradus::nn
