#include <gradus/nn/search.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

// x [S, B, D] with every sentence's column k times in a row: [S, B k, D].
Tensor repeat_columns(const Tensor& x, int64_t k) {
  if (k == 1 || !x.defined()) return x;
  int64_t S = x.size(0), B = x.size(1), bytes = x.size(2) * size_of(x.dtype());
  Tensor out({S, B * k, x.size(2)}, x.dtype());
  for (int64_t i = 0; i < S * B; ++i)
    for (int64_t j = 0; j < k; ++j)
      std::memcpy(static_cast<char*>(out.raw()) + (i * k + j) * bytes, static_cast<char*>(x.raw()) + i * bytes, bytes);
  return out;
}

// x [B, n] -> [B k, n]
Tensor repeat_rows(const Tensor& x, int64_t k) {
  if (!x.defined() || k == 1) return x;
  return repeat_columns(x.reshape({1, x.size(0), x.size(1)}), k).reshape({x.size(0) * k, x.size(1)});
}

Encoded repeat(const Encoded& e, int64_t k) {
  return {repeat_columns(e.annotations.value(), k), repeat_rows(e.forward_final.value(), k),
          repeat_rows(e.backward_final.value(), k), repeat_rows(e.mask, k)};
}

struct Candidate {
  double log_probability;
  int64_t parent;  // row of the beam
  int32_t token;
};

// One time step as it was taken, for walking back.
struct Step {
  std::vector<int64_t> parent;  // row of the step before
  std::vector<int32_t> token;
  Tensor weights;               // [rows, S], by rows of the step BEFORE (the parents)
};

class Beam {
 public:
  Beam(const Seq2Seq& model, const Tensor& source, const Tensor& lengths, const SearchOptions& options)
      : model_(model), options_(options), B_(source.size(1)), K_(options.beam_size), lengths_(lengths) {
    if (K_ < 1) fail("translate", "beam_size must be at least 1");
    state_ = model.decoder->start(repeat(model.encoder(source, lengths), K_));
    live_.assign(static_cast<size_t>(B_ * K_), -std::numeric_limits<double>::infinity());
    for (int64_t b = 0; b < B_; ++b) live_[b * K_] = 0;  // all hypotheses start equal: one is enough
    results_.resize(static_cast<size_t>(B_));
    done_.assign(static_cast<size_t>(B_), false);
  }

  std::vector<std::vector<Hypothesis>> run() {
    Tensor previous({B_ * K_}, DType::i32);
    previous.fill(kBos);
    while (std::find(done_.begin(), done_.end(), false) != done_.end()) {
      DecoderStep out = model_.decoder->step(previous, state_);
      advance(model_.output(out.readout).value(), out.weights);
      const Step& taken = steps_.back();
      std::copy(taken.token.begin(), taken.token.end(), previous.i32());
      reorder(taken.parent);
    }
    for (auto& list : results_) {
      std::stable_sort(list.begin(), list.end(), [](auto& a, auto& b) { return a.score > b.score; });
      if (static_cast<int64_t>(list.size()) > K_) list.resize(static_cast<size_t>(K_));
    }
    return std::move(results_);
  }

 private:
  int64_t max_length(int64_t b) const {
    return options_.max_length > 0 ? options_.max_length : 2 * lengths_.i32()[b] + 10;
  }

  double normalised(double log_probability, int64_t n) const {
    return log_probability / std::pow((5.0 + static_cast<double>(n)) / 6.0, options_.length_penalty);
  }

  void advance(const Tensor& logits, const Tensor& weights) {
    steps_.push_back({std::vector<int64_t>(B_ * K_), std::vector<int32_t>(B_ * K_, kEos),
                      options_.weights ? weights : Tensor()});
    std::vector<double> next(live_.size(), -std::numeric_limits<double>::infinity());
    for (int64_t b = 0; b < B_; ++b) {
      for (int64_t k = 0; k < K_; ++k) steps_.back().parent[b * K_ + k] = b * K_ + k;
      if (!done_[b]) advance_sentence(b, logits, next);
    }
    live_ = std::move(next);
  }

  void advance_sentence(int64_t b, const Tensor& logits, std::vector<double>& next) {
    std::vector<Candidate> candidates;
    for (int64_t k = 0; k < K_; ++k)
      if (std::isfinite(live_[b * K_ + k])) best_of_row(b * K_ + k, logits, candidates);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](auto& x, auto& y) { return x.log_probability > y.log_probability; });
    Step& step = steps_.back();
    int64_t length = static_cast<int64_t>(steps_.size()), kept = 0, rank = 0;
    for (const Candidate& c : candidates) {
      if (c.token == kEos) {
        if (rank < K_) finish(b, c, true);
      } else if (kept < K_) {
        int64_t row = b * K_ + kept++;
        step.parent[row] = c.parent;
        step.token[row] = c.token;
        next[row] = c.log_probability;
      }
      ++rank;
    }
    done_[b] = static_cast<int64_t>(results_[b].size()) >= K_ || kept == 0;
    if (!done_[b] && length >= max_length(b)) {
      for (int64_t k = 0; k < kept; ++k) finish_cut(b, b * K_ + k, next[b * K_ + k]);
      done_[b] = true;
    }
  }

  // The K + 1 most probable words after one hypothesis: one of them may be </s>, which leaves K to go on with.
  void best_of_row(int64_t row, const Tensor& logits, std::vector<Candidate>& out) const {
    int64_t V = logits.size(1), wanted = std::min(K_ + 1, V);
    const float* x = logits.f32() + row * V;
    float top = -std::numeric_limits<float>::infinity();
    for (int64_t v = 0; v < V; ++v) top = std::max(top, x[v]);
    double sum = 0;
    for (int64_t v = 0; v < V; ++v) sum += std::exp(x[v] - top);
    double log_sum = top + std::log(sum);
    std::vector<int32_t> best;  // sorted by logit, best first
    for (int32_t v = 0; v < V; ++v) {
      if (v == kPad || v == kBos) continue;
      if (static_cast<int64_t>(best.size()) == wanted && x[v] <= x[best.back()]) continue;
      if (static_cast<int64_t>(best.size()) == wanted) best.pop_back();
      best.insert(std::upper_bound(best.begin(), best.end(), v, [&](int32_t a, int32_t c) { return x[a] > x[c]; }), v);
    }
    for (int32_t v : best) out.push_back({live_[row] + x[v] - log_sum, row, v});
  }

  void finish(int64_t b, const Candidate& c, bool finished) {
    Hypothesis h = walk_back(static_cast<int64_t>(steps_.size()) - 2, c.parent);
    if (options_.weights && steps_.back().weights.defined()) h.weights.push_back(row_of(steps_.back().weights, c.parent));
    h.finished = finished;
    h.log_probability = c.log_probability;
    h.score = normalised(c.log_probability, static_cast<int64_t>(h.tokens.size()) + 1);
    results_[b].push_back(std::move(h));
  }

  void finish_cut(int64_t b, int64_t row, double log_probability) {
    Hypothesis h = walk_back(static_cast<int64_t>(steps_.size()) - 1, row);
    h.log_probability = log_probability;
    h.score = normalised(log_probability, static_cast<int64_t>(h.tokens.size()));
    results_[b].push_back(std::move(h));
  }

  static std::vector<float> row_of(const Tensor& weights, int64_t row) {
    const float* w = weights.f32() + row * weights.size(1);
    return {w, w + weights.size(1)};
  }

  // Tokens (and weights) up to and including step t, for the hypothesis that stood in `row` after it.
  Hypothesis walk_back(int64_t t, int64_t row) const {
    Hypothesis h;
    for (; t >= 0; --t) {
      const Step& step = steps_[t];
      h.tokens.push_back(step.token[row]);
      row = step.parent[row];
      if (options_.weights && step.weights.defined()) h.weights.push_back(row_of(step.weights, row));
    }
    std::reverse(h.tokens.begin(), h.tokens.end());
    std::reverse(h.weights.begin(), h.weights.end());
    return h;
  }

  void reorder(const std::vector<int64_t>& parent) {
    if (K_ == 1) return;
    std::vector<int32_t> rows(parent.begin(), parent.end());
    Tensor index = Tensor::from_ids({B_ * K_}, rows);
    state_.hidden = gather_rows(state_.hidden, index);
    if (state_.feed.defined()) state_.feed = gather_rows(state_.feed, index);
  }

  NoGrad guard_;
  const Seq2Seq& model_;
  SearchOptions options_;
  int64_t B_, K_;
  Tensor lengths_;
  DecoderState state_;
  std::vector<double> live_;  // log probability of each row's hypothesis, -inf: none
  std::vector<Step> steps_;
  std::vector<std::vector<Hypothesis>> results_;
  std::vector<bool> done_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> translate(const Seq2Seq& model, const Tensor& source, const Tensor& lengths,
                                               const SearchOptions& options) {
  return Beam(model, source, lengths, options).run();
}

}  // namespace gradus::nn
