#include <gradus/nn/search.h>

#include <algorithm>
#include <cmath>

#include <gradus/kernels/inference.h>
#include <gradus/ops/operands.h>

namespace gradus::nn {
namespace {

// One row of one step: the word, what it costs, and the row of the step before that it continues.
struct Entry {
  int64_t parent;
  int32_t token;
  double log_probability = 0;
};

using Fate = SearchStep::Fate;

class Beam {
 public:
  // Over a decoder that was started with all sentences, or, where that is null, over those that `start` makes.
  Beam(IncrementalDecoder* decoder, StartSome start, const Tensor& lengths, const SearchOptions& options)
      : decoder_(decoder),
        start_(std::move(start)),
        options_(options),
        lengths_(lengths),
        B_(lengths.numel()),
        K_(options.beam_size),
        places_(start_ && options.together > 0 ? std::min(options.together, B_) : B_),
        scored_(options.scores || options.beam_size > 1 || options.watch || options.min_length > 0 ||
                options.no_repeat_ngram > 0) {
    options.check(B_);
    take_sentences();
    for (int64_t b = 0; b < B_; ++b) {
      limit_.push_back(max_target_length(lengths.i32()[b], options));
      const auto told = static_cast<int64_t>(options_.sentences[b].prefix.size());
      if (options.max_length == 0 && told > limit_.back()) limit_.back() = told + 10;
      if (told > limit_.back())
        refuse("translate", "the prefix has {} words, max_length is {}", told, limit_.back());
    }
    began_.resize(static_cast<size_t>(B_));
    results_.resize(static_cast<size_t>(B_));
    // That room is made for: a limit may be any number.
    const int64_t steps = std::min<int64_t>(B_ ? *std::max_element(limit_.begin(), limit_.end()) : 0, 1000);
    size_t rows = static_cast<size_t>(places_ * K_);
    for (auto* list : {&live_, &next_}) list->reserve(rows);
    history_.reserve(rows * static_cast<size_t>(steps));
    begin_.reserve(static_cast<size_t>(steps) + 1);
    rows_.reserve(rows);
    best_.reserve(static_cast<size_t>(K_ + 1));
    previous_ = Tensor({std::max<int64_t>(1, places_ * K_)}, DType::i32);
    if (!scored_) words_ = Tensor(previous_.shape(), DType::i32);
    if (decoder_) begin(B_);
  }

  std::vector<std::vector<Hypothesis>> run() {
    never_ = {options_.pad, options_.bos};
    while (!stopped_ && take_places()) {
      int64_t R = static_cast<int64_t>(live_.size());
      Tensor previous = previous_.rows(0, R), logits;
      if (scored_) logits = decoder_->step(previous);
      else decoder_->step_best(previous, never_, words_);
      begin_.push_back(history_.size());
      if (options_.weights || options_.coverage_penalty != 0) keep_weights();
      next_.clear();
      rows_.clear();
      for (int64_t first = 0, end; first < R; first = end) {  // rows stand by sentence, in order
        end = first;
        while (end < R && live_[end].sentence == live_[first].sentence) ++end;
        advance(first, end, logits);
      }
      std::swap(live_, next_);
      if (!live_.empty() && !stopped_) decoder_->select(rows_);
    }
    for (auto& list : results_) keep_best(list);
    return std::move(results_);
  }

 private:
  // A hypothesis that goes on.
  struct Row {
    int64_t sentence;
    double log_probability = 0;
    int64_t sample = -1;  // which of the sentence's generators draws its words; -1: none did yet
    RequiredPhrases::State said = {};
  };
  // What it could go on with: the word, and what it is then.
  struct Candidate : Entry {
    Row row;
    Fate fate = Fate::cut;
  };

  int64_t steps() const { return static_cast<int64_t>(begin_.size()); }
  // That sentence b has taken.
  int64_t steps_of(int64_t b) const { return steps() - began_[b]; }

  // The next sentences, up to `end`, get a row each.
  void begin(int64_t end) {
    open_ += end - next_sentence_;
    for (; next_sentence_ < end; ++next_sentence_) {
      began_[next_sentence_] = steps();
      previous_.i32()[live_.size()] = options_.bos;
      live_.push_back({next_sentence_});
    }
  }

  // Sentences take the places of those that are done, when half of these are, so that products have many rows
  // and encoders many sentences. False: there are none, and none are on their way.
  bool take_places() {
    const int64_t room = places_ - open_, end = std::min(B_, next_sentence_ + room);
    if (end == next_sentence_ || !(live_.empty() || (2 * room >= places_ && decoder_->can_join())))
      return !live_.empty();
    if (live_.empty()) decoder_ = (own_ = start_(next_sentence_, end)).get();
    else decoder_->join(*start_(next_sentence_, end));
    begin(end);
    return true;
  }

  void keep_best(std::vector<Hypothesis>& list) const {
    std::stable_sort(list.begin(), list.end(), [](auto& a, auto& b) {
      return a.complete != b.complete ? a.complete : a.score > b.score;
    });
    if (static_cast<int64_t>(list.size()) > K_) list.resize(static_cast<size_t>(K_));
  }

  void take_sentences() {
    if (options_.sentences.empty()) options_.sentences.resize(static_cast<size_t>(B_));
    for (const SentenceSearch& own : options_.sentences) {
      if (own.seed && !own.required.empty())
        fail("translate", "phrases can be required of a search, not of words that are drawn");
      scored_ = scored_ || own.seed || !own.forbidden.empty() || !own.required.empty();
      required_.emplace_back(own.required);
      for (int64_t k = 0; k < K_; ++k) {
        const Rng random(own.seed.value_or(0));
        random_.push_back(k == 0 ? random : random.split(static_cast<uint64_t>(k)));
      }
      for (int32_t v : own.prefix)
        if (v < 0 || v == options_.pad || v == options_.bos)
          refuse("translate", "no translation has the word {}", v);
    }
  }

  bool draws(int64_t sentence) const { return options_.sentences[sentence].seed.has_value(); }

  // The rows of a sentence take the step that `logits` are of.
  void advance(int64_t first, int64_t end, const Tensor& logits) {
    int64_t b = live_[first].sentence;
    candidates_.clear();
    for (int64_t row = first; row < end; ++row) consider(row, logits);
    if (candidates_.size() > 1 && !draws(b))
      std::stable_sort(candidates_.begin(), candidates_.end(),
                       [](auto& x, auto& y) { return x.row.log_probability > y.row.log_probability; });
    share_out(b);
    size_t begin = next_.size();
    SearchStep seen{b, steps_of(b) - 1, {}, {}, {}};
    for (const Candidate& c : candidates_) {
      if (c.fate == Fate::finished) finish(steps() - 2, c.parent, c.row, c.log_probability);
      if (c.fate == Fate::kept) {
        previous_.i32()[next_.size()] = c.token;
        next_.push_back(c.row);
        rows_.push_back(c.parent);
        history_.push_back(c);
      }
      if (options_.watch)
        seen.considered.push_back({c.parent - first, c.token, c.row.log_probability, c.fate});
    }
    if (options_.watch && !stopped_) {
      seen.logits = logits.rows(first, end);
      if (decoder_->weights().defined()) seen.weights = decoder_->weights().rows(first, end);
      stopped_ = !options_.watch(seen);
    }
    const bool worth_it = begin < next_.size() && worth_going_on(b, begin);
    if (worth_it && steps_of(b) < limit_[b]) return;
    for (size_t i = begin; worth_it && i < next_.size(); ++i)  // cut off
      finish(steps() - 1, static_cast<int64_t>(i), next_[i]);
    --open_;
    next_.resize(begin);  // the sentence leaves the batch
    rows_.resize(begin);
    history_.resize(begin_.back() + begin);
  }

  // Which candidates of sentence b, most probable first, finish, go on, and are cut.
  void share_out(int64_t b) {
    const RequiredPhrases& required = required_[b];
    // Of those that go on, so many for each number of tokens of the required phrases, so that the probable
    // ones, which have not said them, do not crowd out those that have; what is over goes to the latter.
    const int64_t banks = required.tokens() + 1;
    room_.assign(static_cast<size_t>(banks), K_ / banks);
    room_.back() += K_ % banks;
    int64_t rank = 0, kept = 0;
    for (Candidate& c : candidates_) {
      const bool among_best = rank++ < K_;
      int64_t& room = room_[static_cast<size_t>(required.tokens_said(c.row.said))];
      if (c.token == options_.eos) {
        if (among_best) c.fate = Fate::finished;
      } else if (room > 0) {
        c.fate = Fate::kept;
        --room;
        ++kept;
      }
    }
    for (int64_t bank = banks - 1; bank >= 0 && kept < K_; --bank)
      for (Candidate& c : candidates_)
        if (kept < K_ && c.fate == Fate::cut && c.token != options_.eos &&
            required.tokens_said(c.row.said) == bank)
          c.fate = Fate::kept, ++kept;
  }

  // Whether the hypotheses of sentence b that go on, from next_[begin] on, can still come among its results.
  bool worth_going_on(int64_t b, size_t begin) const {
    const std::vector<Hypothesis>& found = results_[b];
    if (options_.exact_stop == 0) return static_cast<int64_t>(found.size()) < K_;
    // Further words lower the log probability; at best they cost nothing, and the most divide it.
    double best = -HUGE_VAL;
    for (size_t i = begin; i < next_.size(); ++i)
      best = std::max(best, normalised(next_[i].log_probability, static_cast<double>(limit_[b])));
    return std::count_if(found.begin(), found.end(), [&](auto& h) { return h.score >= best; }) <
           options_.exact_stop;
  }

  double normalised(double log_probability, double n) const {
    const auto& alpha = options_.length_penalty;
    return log_probability / (alpha ? std::pow((5.0 + n) / 6.0, *alpha) : n);
  }

  // The words that one hypothesis can go on with. Without logits the best is in words_.
  void consider(int64_t row, const Tensor& logits) {
    const Row& own = live_[row];
    const std::vector<int32_t>& prefix = options_.sentences[own.sentence].prefix;
    const auto t = static_cast<size_t>(steps_of(own.sentence) - 1);
    const int32_t forced = t < prefix.size() ? prefix[t] : -1;  // -1: the search's own
    if (!logits.defined()) {
      int32_t v = forced >= 0 ? forced : words_.i32()[row];
      if (v >= 0) candidates_.push_back({{row, v}, own});
      return;
    }
    const int64_t V = logits.size(1);
    const float* x = logits.f32() + row * V;
    const RequiredPhrases& required = required_[own.sentence];
    best_.clear();
    if (forced >= 0) {
      best_.push_back(known(forced, V));
    } else {
      forbid(row);
      if (draws(own.sentence))
        draw(own, x, V);
      else  // one more than it has hypotheses: a word may be </s>, which leaves as many to go on with
        best_words(x, V, K_ == 1 ? 1 : std::min(K_ + 1, V), never_, best_);
      std::vector<int32_t> bring_on;  // a required phrase
      required.add_next(own.said, bring_on);
      auto missing = [](const auto& words, int32_t v) { return std::ranges::find(words, v) == words.end(); };
      for (int32_t v : bring_on)
        if (missing(never_, known(v, V)) && missing(best_, v)) best_.push_back(v);
    }
    const double log_sum = kernels::log_sum_exp(x, V);
    for (size_t i = 0; i < best_.size(); ++i) {
      Candidate c{{row, best_[i], x[best_[i]] - log_sum}, own};
      c.row.log_probability += c.log_probability;
      if (forced < 0 && own.sample < 0 && draws(own.sentence)) c.row.sample = static_cast<int64_t>(i);
      c.row.said = required.after(own.said, best_[i]);
      candidates_.push_back(c);
    }
  }

  static int32_t known(int32_t word, int64_t V) {
    if (word < 0 || word >= V) refuse("translate", "there is no word {}: the vocabulary has {}", word, V);
    return word;
  }

  // never_: the words that this hypothesis must not go on with.
  void forbid(int64_t row) {
    const int64_t b = live_[row].sentence;
    const std::vector<Phrase>& forbidden = options_.sentences[b].forbidden;
    never_.resize(2);
    if (!required_[b].complete(live_[row].said) || steps_of(b) <= options_.min_length)
      never_.push_back(options_.eos);
    if (options_.no_repeat_ngram == 0 && forbidden.empty()) return;
    std::vector<int32_t> said;
    walk_back(b, steps() - 2, row, [&](int64_t, const Entry& e) { said.push_back(e.token); });
    std::reverse(said.begin(), said.end());
    if (options_.no_repeat_ngram > 0) add_repeating(options_.no_repeat_ngram, said, never_);
    add_forbidden(forbidden, said, never_);
  }

  // best_: a word drawn for the row's sample, or, when its sentence has drawn none yet, for all of them.
  void draw(const Row& own, const float* x, int64_t V) {
    const int64_t first = std::max<int64_t>(own.sample, 0), end = own.sample < 0 ? K_ : first + 1;
    for (int64_t k = first; k < end; ++k) {
      Rng& random = random_[static_cast<size_t>(own.sentence * K_ + k)];
      if (int32_t v = sampler_.draw(options_.sampling, x, V, never_, random); v >= 0) best_.push_back(v);
    }
  }

  void keep_weights() {
    if (const Tensor& w = decoder_->weights(); w.defined()) {
      weights_begin_.emplace_back(weights_.size(), w.size(1));
      weights_.insert(weights_.end(), w.f32(), w.f32() + w.numel());
    } else if (options_.coverage_penalty != 0) {
      fail("translate", "coverage_penalty needs a model with alignment weights");
    }
  }

  // A result: the hypothesis that stood in `row` after step t and is `last` now. It is cut off there if that
  // was the last step, else </s> followed, and cost so much.
  void finish(int64_t t, int64_t row, const Row& last, double of_end = 0) {
    const int64_t b = last.sentence;
    Hypothesis h;
    h.finished = t + 1 < steps();
    h.complete = required_[b].complete(last.said);
    auto note = [&](int64_t step, int64_t parent, double log_probability) {
      if (scored_) h.log_probabilities.push_back(log_probability);
      if (weights_begin_.empty()) return;
      const auto [begin, S] = weights_begin_[step];
      const float* w = weights_.data() + static_cast<int64_t>(begin) + parent * S;
      h.weights.emplace_back(w, w + S);
    };
    if (h.finished) note(t + 1, row, of_end);
    walk_back(b, t, row, [&](int64_t step, const Entry& e) {
      h.tokens.push_back(e.token);
      note(step, e.parent, e.log_probability);
    });
    std::reverse(h.tokens.begin(), h.tokens.end());
    std::reverse(h.log_probabilities.begin(), h.log_probabilities.end());
    std::reverse(h.weights.begin(), h.weights.end());
    h.log_probability = last.log_probability;
    h.score = normalised(last.log_probability, static_cast<double>(h.tokens.size()) + h.finished);
    if (options_.coverage_penalty != 0)
      h.score += options_.coverage_penalty * log_coverage(h, lengths_.i32()[b]);
    if (!options_.weights) h.weights.clear();
    results_[b].push_back(std::move(h));
    // An exact stop may see many finish, each with weights of all its steps.
    if (static_cast<int64_t>(results_[b].size()) > 2 * K_) keep_best(results_[b]);
  }

  // sum_s log min(sum_t a_ts, 1), </s> of a source of so many words left out.
  static double log_coverage(const Hypothesis& h, int64_t length) {
    double sum = 0;
    for (int64_t s = 0; s + 1 < length; ++s) {
      double seen = 0;
      for (const auto& row : h.weights) seen += row[static_cast<size_t>(s)];
      sum += std::log(std::clamp(seen, 1e-4, 1.0));
    }
    return sum;
  }

  // What the hypothesis of sentence b that stood in `row` after step t took at steps t, t - 1, ..., its first.
  template <class Visit>
  void walk_back(int64_t b, int64_t t, int64_t row, Visit visit) const {
    for (; t >= began_[b]; --t) {
      const Entry& e = history_[begin_[t] + static_cast<size_t>(row)];
      visit(t, e);
      row = e.parent;
    }
  }

  IncrementalDecoder* decoder_;
  StartSome start_;
  std::unique_ptr<IncrementalDecoder> own_;
  SearchOptions options_;
  Tensor lengths_;
  int64_t B_, K_, places_;
  int64_t next_sentence_ = 0, open_ = 0;   // the first that has not begun; how many are on their way
  bool scored_, stopped_ = false;          // the latter by `watch`
  std::vector<Rng> random_;                // of each sentence's samples
  std::vector<RequiredPhrases> required_;  // of each sentence
  std::vector<int64_t> limit_, began_;     // of each sentence: words at most, and its first step
  std::vector<int32_t> never_;  // words that are not produced: pad, bos, and those that `forbid` adds
  Tensor previous_, words_;  // of each row: the word before a step, and, greedily without scores, after it
  std::vector<Row> live_, next_;  // before and after a step
  std::vector<int64_t> rows_;     // of the step that next_ continue
  std::vector<Entry> history_;    // step after step
  std::vector<size_t> begin_;     // where each step's entries begin
  std::vector<float> weights_;    // [rows, S] of each step, by rows BEFORE it is taken (the parents)
  std::vector<std::pair<size_t, int64_t>> weights_begin_;  // and S
  std::vector<Candidate> candidates_;
  std::vector<int64_t> room_;
  std::vector<int32_t> best_;
  Sampler sampler_;
  std::vector<std::vector<Hypothesis>> results_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> search(IncrementalDecoder& decoder, const Tensor& lengths,
                                            const SearchOptions& options) {
  return Beam(&decoder, nullptr, lengths, options).run();
}

std::vector<std::vector<Hypothesis>> search(const StartSome& start, const Tensor& lengths,
                                            const SearchOptions& options) {
  return Beam(nullptr, start, lengths, options).run();
}

}  // namespace gradus::nn
