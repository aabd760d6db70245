#include <fmt/core.h>
#include <gradus/nn/search.h>

#include <algorithm>
#include <cmath>

#include <gradus/error.h>
#include <gradus/kernels/inference.h>
#include <gradus/random.h>

namespace gradus::nn {
namespace {

// One row of one step: the word, and the row of the step before that it continues.
struct Entry {
  int64_t parent;
  int32_t token;
};

struct Candidate : Entry {
  double log_probability;
};

constexpr int64_t kMostRows = 1000;  // of a sentence; candidates grow with their square

void check_beam(int64_t beam_size) {
  if (beam_size < 1) fail("translate", "beam_size must be at least 1: " + std::to_string(beam_size));
  if (beam_size > kMostRows)
    fail("translate", fmt::format("beam_size must be at most {}: {}", kMostRows, beam_size));
}

class Beam {
 public:
  Beam(IncrementalDecoder& decoder, const Tensor& lengths, const SearchOptions& options)
      : decoder_(decoder),
        options_(options),
        B_(lengths.numel()),
        K_(options.beam_size),
        scored_(options.scores || options.beam_size > 1 || options.watch) {
    check_beam(K_);
    check_sentences();
    for (int64_t b = 0; b < B_; ++b) {
      limit_.push_back(max_target_length(lengths.i32()[b], options));
      live_.push_back({b, 0.0});
    }
    results_.resize(static_cast<size_t>(B_));
    // That room is made for: a limit may be any number.
    const int64_t steps = std::min<int64_t>(B_ ? *std::max_element(limit_.begin(), limit_.end()) : 0, 1000);
    size_t rows = static_cast<size_t>(B_ * K_);
    for (auto* list : {&live_, &next_}) list->reserve(rows);
    history_.reserve(rows * static_cast<size_t>(steps));
    begin_.reserve(static_cast<size_t>(steps) + 1);
    rows_.reserve(rows);
    candidates_.reserve(static_cast<size_t>(K_ * (K_ + 1)));
    best_.reserve(static_cast<size_t>(K_ + 1));
    never_ = {options.pad, options.bos};
    previous_ = Tensor({std::max<int64_t>(1, B_ * K_)}, DType::i32);
    if (!scored_) words_ = Tensor(previous_.shape(), DType::i32);
  }

  std::vector<std::vector<Hypothesis>> run() {
    previous_.fill(options_.bos);
    while (!live_.empty() && !stopped_) {
      int64_t R = static_cast<int64_t>(live_.size());
      Tensor previous = previous_.rows(0, R);
      if (!scored_) {
        decoder_.step_best(previous, never_, words_);
        advance(Tensor());
      } else {
        advance(decoder_.step(previous));
      }
      if (live_.empty() || stopped_) break;
      decoder_.select(rows_);
    }
    for (auto& list : results_) {
      std::stable_sort(list.begin(), list.end(), [](auto& a, auto& b) { return a.score > b.score; });
      if (static_cast<int64_t>(list.size()) > K_) list.resize(static_cast<size_t>(K_));
    }
    return std::move(results_);
  }

 private:
  struct Row {
    int64_t sentence;
    double log_probability;
  };

  int64_t steps() const { return static_cast<int64_t>(begin_.size()); }

  void check_sentences() {
    if (options_.sentences.empty()) return;
    if (static_cast<int64_t>(options_.sentences.size()) != B_)
      fail("translate",
           fmt::format("options.sentences has {} entries for {} sentences", options_.sentences.size(), B_));
    if (!(options_.sampling_temperature > 0))
      fail("translate",
           fmt::format("sampling_temperature must be above 0: {}", options_.sampling_temperature));
    for (const SentenceSearch& own : options_.sentences) {
      if (own.seed && K_ > 1) fail("translate", fmt::format("words are drawn with a beam_size of 1: {}", K_));
      scored_ = scored_ || own.seed;
      random_.emplace_back(own.seed.value_or(0));
      for (int32_t v : own.prefix)
        if (v < 0 || forbidden(v)) fail("translate", fmt::format("no translation has the word {}", v));
    }
  }

  // Takes the step that `logits` are of: rows of a sentence stand together, sentences in their order.
  void advance(const Tensor& logits) {
    begin_.push_back(history_.size());
    if (options_.weights) keep_weights();
    next_.clear();
    rows_.clear();
    int64_t R = static_cast<int64_t>(live_.size());
    for (int64_t first = 0, end; first < R; first = end) {
      end = first;
      while (end < R && live_[end].sentence == live_[first].sentence) ++end;
      advance_sentence(first, end, logits);
    }
    std::swap(live_, next_);
  }

  void advance_sentence(int64_t first, int64_t end, const Tensor& logits) {
    int64_t b = live_[first].sentence;
    candidates_.clear();
    for (int64_t row = first; row < end; ++row) best_of_row(row, logits);
    if (candidates_.size() > 1)
      std::stable_sort(candidates_.begin(), candidates_.end(),
                       [](auto& x, auto& y) { return x.log_probability > y.log_probability; });
    size_t begin = next_.size();
    int64_t rank = 0, kept = 0;
    SearchStep seen{b, steps() - 1, {}, {}, {}};
    for (const Candidate& c : candidates_) {
      SearchStep::Fate fate = SearchStep::Fate::cut;
      if (c.token == options_.eos) {
        if (rank < K_) {
          finish(b, steps() - 2, c.parent, c.log_probability);
          fate = SearchStep::Fate::finished;
        }
      } else if (kept < K_) {
        ++kept;
        fate = SearchStep::Fate::kept;
        previous_.i32()[next_.size()] = c.token;
        next_.push_back({b, c.log_probability});
        rows_.push_back(c.parent);
        history_.push_back({c.parent, c.token});
      }
      ++rank;
      if (options_.watch) seen.considered.push_back({c.parent - first, c.token, c.log_probability, fate});
    }
    if (options_.watch && !stopped_) {
      seen.logits = logits.rows(first, end);
      if (decoder_.weights().defined()) seen.weights = decoder_.weights().rows(first, end);
      stopped_ = !options_.watch(seen);
    }
    bool done = static_cast<int64_t>(results_[b].size()) >= K_ || kept == 0;
    if (!done && steps() >= limit_[b]) {
      for (size_t i = begin; i < next_.size(); ++i)
        finish(b, steps() - 1, static_cast<int64_t>(i), next_[i].log_probability);
      done = true;
    }
    if (!done) return;
    next_.resize(begin);  // the sentence leaves the batch
    rows_.resize(begin);
    history_.resize(begin_.back() + begin);
  }

  bool forbidden(int64_t v) const { return v == options_.pad || v == options_.bos; }

  // The K + 1 most probable words after one hypothesis: one of them may be </s>, which leaves K to go on with.
  // Without logits the best is in words_.
  void best_of_row(int64_t row, const Tensor& logits) {
    const int32_t forced = forced_word(live_[row].sentence);
    if (!logits.defined()) {
      int32_t v = forced >= 0 ? forced : words_.i32()[row];
      if (v >= 0) candidates_.push_back({{row, v}, 0});
      return;
    }
    int64_t V = logits.size(1);
    const float* x = logits.f32() + row * V;
    if (forced >= V) fail("translate", fmt::format("there is no word {}: the vocabulary has {}", forced, V));
    // With one hypothesis to a sentence, what stands behind the best word is never taken.
    int64_t first = forced >= 0                  ? forced
                    : draws(live_[row].sentence) ? drawn(x, V, random_[live_[row].sentence])
                    : K_ == 1                    ? kernels::argmax(x, V)
                                                 : -1;
    if (first >= 0 && !forbidden(first)) best_.assign(1, static_cast<int32_t>(first));
    else best_words(x, V, K_ == 1 ? 1 : std::min(K_ + 1, V));
    double log_sum = kernels::log_sum_exp(x, V);
    for (int32_t v : best_) candidates_.push_back({{row, v}, live_[row].log_probability + x[v] - log_sum});
  }

  // The word that this step must take; -1: the search's own.
  int32_t forced_word(int64_t sentence) const {
    if (options_.sentences.empty()) return -1;
    const std::vector<int32_t>& prefix = options_.sentences[sentence].prefix;
    const auto t = static_cast<size_t>(steps() - 1);
    return t < prefix.size() ? prefix[t] : -1;
  }

  bool draws(int64_t sentence) const {
    return !options_.sentences.empty() && options_.sentences[sentence].seed;
  }

  // A word that may be produced; where all others are below the smallest number the most probable one.
  int64_t drawn(const float* x, int64_t V, Rng& random) const {
    double top = -HUGE_VAL, total = 0;
    int64_t word = -1;
    auto part = [&](int64_t v) { return std::exp((x[v] - top) / options_.sampling_temperature); };
    for (int64_t v = 0; v < V; ++v)
      if (!forbidden(v) && x[v] > top) {
        top = x[v];
        word = v;
      }
    for (int64_t v = 0; v < V; ++v)
      if (!forbidden(v)) total += part(v);
    double left = random.uniform() * total;
    for (int64_t v = 0; v < V; ++v) {
      if (forbidden(v)) continue;
      left -= part(v);
      if (left < 0) return v;
    }
    return word;
  }

  // best_: positions of the largest logits, largest first; of equal ones the first.
  void best_words(const float* x, int64_t V, int64_t wanted) {
    best_.clear();
    auto full = [&] { return static_cast<int64_t>(best_.size()) == wanted; };
    int64_t v = 0;
    for (; v < V && !full(); ++v)
      if (!forbidden(v)) insert(x, static_cast<int32_t>(v));
    if (best_.empty()) return;
    while ((v = kernels::first_above(x, v, V, x[best_.back()])) < V) {
      if (!forbidden(v)) {
        best_.pop_back();
        insert(x, static_cast<int32_t>(v));
      }
      ++v;
    }
  }

  void insert(const float* x, int32_t v) {
    best_.insert(
        std::upper_bound(best_.begin(), best_.end(), v, [&](int32_t a, int32_t c) { return x[a] > x[c]; }),
        v);
  }

  void keep_weights() {
    const Tensor& w = decoder_.weights();
    if (!w.defined()) return;
    S_ = w.size(1);
    weights_begin_.push_back(weights_.size());
    weights_.insert(weights_.end(), w.f32(), w.f32() + w.numel());
  }

  // A result of sentence b: the hypothesis that stood in `row` after step t. It is cut off there if that was
  // the last step, else </s> followed.
  void finish(int64_t b, int64_t t, int64_t row, double log_probability) {
    Hypothesis h = walk_back(t, row);
    h.finished = t + 1 < steps();
    if (h.finished && !weights_begin_.empty()) h.weights.push_back(weights_at(t + 1, row));
    h.log_probability = log_probability;
    double n = static_cast<double>(h.tokens.size()) + h.finished;
    h.score = log_probability / std::pow((5.0 + n) / 6.0, options_.length_penalty);
    results_[b].push_back(std::move(h));
  }

  std::vector<float> weights_at(int64_t t, int64_t row) const {
    const float* w = weights_.data() + weights_begin_[t] + row * S_;
    return {w, w + S_};
  }

  // Tokens (and weights) up to and including step t, for the hypothesis that stood in `row` after it.
  Hypothesis walk_back(int64_t t, int64_t row) const {
    Hypothesis h;
    for (; t >= 0; --t) {
      const Entry& e = history_[begin_[t] + static_cast<size_t>(row)];
      h.tokens.push_back(e.token);
      row = e.parent;
      if (!weights_begin_.empty()) h.weights.push_back(weights_at(t, row));
    }
    std::reverse(h.tokens.begin(), h.tokens.end());
    std::reverse(h.weights.begin(), h.weights.end());
    return h;
  }

  IncrementalDecoder& decoder_;
  SearchOptions options_;
  int64_t B_, K_, S_ = 0;
  bool scored_, stopped_ = false;  // the latter by `watch`
  std::vector<Rng> random_;        // of each sentence
  std::vector<int64_t> limit_;
  std::vector<int32_t> never_;  // words that are not produced
  Tensor previous_,
      words_;  // of each row: the word before a step, and, in a greedy search without scores, after it
  std::vector<Row> live_, next_;  // before and after a step
  std::vector<int64_t> rows_;     // of the step that next_ continue
  std::vector<Entry> history_;    // step after step
  std::vector<size_t> begin_;     // where each step's entries begin
  std::vector<float> weights_;    // [rows, S] of each step, by rows BEFORE it is taken (the parents)
  std::vector<size_t> weights_begin_;
  std::vector<Candidate> candidates_;
  std::vector<int32_t> best_;
  std::vector<std::vector<Hypothesis>> results_;
};

}  // namespace

int64_t max_target_length(int64_t source_length, const SearchOptions& options) {
  return options.max_length > 0 ? options.max_length : 2 * source_length + 10;
}

std::vector<std::vector<Hypothesis>> search(IncrementalDecoder& decoder, const Tensor& lengths,
                                            const SearchOptions& options) {
  return Beam(decoder, lengths, options).run();
}

namespace {

std::vector<std::vector<int32_t>> hidden_of(const SearchOptions& options) {
  std::vector<std::vector<int32_t>> all;
  bool any = false;
  for (const SentenceSearch& own : options.sentences) {
    any = any || !own.hidden.empty();
    all.push_back(own.hidden);
  }
  return any ? all : std::vector<std::vector<int32_t>>();
}

std::vector<std::vector<Hypothesis>> translate_together(const Generator& generator, const Tensor& source,
                                                        const Tensor& lengths, const SearchOptions& options,
                                                        int64_t search_rows) {
  int64_t longest = 0;
  for (int64_t b = 0; b < lengths.numel(); ++b)
    longest = std::max(longest, max_target_length(lengths.i32()[b], options));
  auto decoder = generator.start(source, lengths,
                                 {.rows_per_sentence = options.beam_size,
                                  .max_steps = longest,
                                  .weights = options.weights,
                                  .search_rows = search_rows,
                                  .pool = options.pool,
                                  .hidden = hidden_of(options)});
  return search(*decoder, lengths, options);
}

// Every n-th sentence from `first` on, without the padding they do not need, and their lengths.
std::pair<Tensor, Tensor> shard_of(const Tensor& source, const Tensor& lengths, int64_t first, int64_t n) {
  int64_t B = source.size(1), count = (B - first + n - 1) / n, S = 1;
  Tensor own({count}, DType::i32);
  for (int64_t i = 0; i < count; ++i) {
    own.i32()[i] = lengths.i32()[first + i * n];
    S = std::max<int64_t>(S, own.i32()[i]);
  }
  S = std::min(S, source.size(0));
  Tensor ids({S, count}, DType::i32);
  for (int64_t s = 0; s < S; ++s)
    for (int64_t i = 0; i < count; ++i) ids.i32()[s * count + i] = source.i32()[s * B + first + i * n];
  return {ids, own};
}

}  // namespace

std::vector<std::vector<Hypothesis>> translate(const Generator& generator, const Input& source_ids,
                                               const Tensor& lengths, const SearchOptions& options) {
  At at(source_ids.caller());
  const Tensor& source = source_ids.value();
  check_beam(options.beam_size);
  if (source.dtype() != DType::i32 || source.dims() != 2 || lengths.dtype() != DType::i32 ||
      lengths.shape() != Shape{source.size(1)})
    fail("translate", "sources must be i32 [S, B] and lengths i32 [B]: " + source.shape().str() + " and " +
                          lengths.shape().str());
  // A thread with few rows reads all weights for them: then the threads had better share the weights.
  constexpr int64_t kRowsWorthAThread = 4;
  const int64_t B = lengths.numel(), rows = B * options.beam_size;
  const int64_t threads = options.pool ? options.pool->size() : 1;
  if (threads == 1 || rows < kRowsWorthAThread * threads || B < threads || options.watch)
    return translate_together(generator, source, lengths, options, rows);
  std::vector<std::vector<std::vector<Hypothesis>>> parts(static_cast<size_t>(threads));
  SearchOptions alone = options;
  alone.pool = nullptr;
  options.pool->run([&](int k) {
    auto [own, own_lengths] = shard_of(source, lengths, k, threads);
    SearchOptions how = alone;
    how.sentences.clear();
    for (size_t b = static_cast<size_t>(k); b < options.sentences.size(); b += static_cast<size_t>(threads))
      how.sentences.push_back(options.sentences[b]);
    parts[static_cast<size_t>(k)] = translate_together(generator, own, own_lengths, how, rows);
  });
  std::vector<std::vector<Hypothesis>> out(static_cast<size_t>(B));
  for (int64_t b = 0; b < B; ++b) {
    auto& list = parts[static_cast<size_t>(b % threads)][static_cast<size_t>(b / threads)];
    if (options.weights)  // one row length for all, the batch's
      for (Hypothesis& h : list)
        for (auto& row : h.weights) row.resize(static_cast<size_t>(source.size(0)));
    out[static_cast<size_t>(b)] = std::move(list);
  }
  return out;
}

std::vector<std::vector<Hypothesis>> translate(const Generative& model, const Input& source,
                                               const Tensor& lengths, const SearchOptions& options) {
  At at(source.caller());
  return translate(*model.generator(), source, lengths, options);
}

}  // namespace gradus::nn
