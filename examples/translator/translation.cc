#include <translator/shortlist.h>
#include <translator/translation.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

namespace translator {
namespace {

namespace nn = gradus::nn;

Translation to_translation(const Model& model, const nn::Hypothesis& h, const Segmented& source,
                           bool keep_weights) {
  Translation out;
  out.log_probability = h.log_probability;
  out.score = h.score;
  out.log_probabilities = h.log_probabilities;
  out.complete = h.complete;
  for (size_t t = 0; t < h.tokens.size(); ++t) {
    std::string token = model.target.token(h.tokens[t]);
    if (h.tokens[t] == nn::kUnk && t < h.weights.size()) {
      auto end = h.weights[t].begin() + static_cast<long>(source.pieces.size());
      size_t from = static_cast<size_t>(std::max_element(h.weights[t].begin(), end) - h.weights[t].begin());
      if (from < source.pieces.size()) token = source.words[static_cast<size_t>(source.word_of[from])];
    }
    out.tokens.push_back(std::move(token));
  }
  if (keep_weights)
    for (const auto& row : h.weights)
      out.weights.emplace_back(row.begin(), row.begin() + static_cast<long>(source.pieces.size()) + 1);
  return out;
}

// Sentences in their order by falling length, for threads that take some from the front.
class Queue {
 public:
  // Some that go together: [begin, end).
  struct Part {
    size_t begin, end;
    int64_t max_length;  // target words; 0: the search's own rule
    size_t size() const { return end - begin; }
  };

  Queue(const Model& model, const std::vector<Segmented>& sources, std::vector<size_t> order,
        const nn::SearchOptions& options)
      : order_(std::move(order)) {
    const int64_t most = model.most_positions();
    for (size_t i : order_) {
      words_.push_back(sources[i].pieces.size());
      // Where learned positions end so do translations, and only those: a sentence's limit does not depend on
      // who it is translated with.
      const int64_t own = nn::max_target_length(static_cast<int64_t>(words_.back()) + 1, options);
      limit_.push_back(most > 0 && own > most ? most : options.max_length);
    }
  }

  size_t sentence(size_t i) const { return order_[i]; }

  // Up to `most`, and fewer of long ones, since what a search keeps of a sentence grows with the square of its
  // length; fewer towards the end, too, so that all threads are done at about the same time. Null: none is left,
  // or, for a search with this limit, of its kind.
  std::optional<Part> take(size_t most, std::optional<int64_t> limit = {}) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (next_ == order_.size() || (limit && limit_[next_] != *limit)) return std::nullopt;
    const Part part = part_at(next_, most);
    next_ = part.end;
    return part;
  }

  // Whether there is a part for each of so many threads.
  bool enough_for(int threads, size_t most) const {
    size_t at = 0;
    for (; threads > 0 && at < order_.size(); --threads) at = part_at(at, most).end;
    return threads == 0;
  }

 private:
  Part part_at(size_t begin, size_t most) const {
    constexpr size_t kAllTogether = 512;  // words, up to which so many are
    constexpr size_t kAtLeast = 16;       // sentences: fewer would take longer each
    const size_t longest = std::max(words_[begin], kAllTogether);
    most = std::min(most, std::max(kAtLeast, (order_.size() - begin) / 4));
    size_t end = begin + 1;
    while (end < order_.size() && limit_[end] == limit_[begin] &&
           (end - begin) * longest * longest < most * kAllTogether * kAllTogether)
      ++end;
    return {begin, end, limit_[begin]};
  }

  std::vector<size_t> order_, words_;
  std::vector<int64_t> limit_;
  std::mutex mutex_;
  size_t next_ = 0;
};

}  // namespace

std::vector<std::vector<Translation>> translate(const Model& model, const nn::Generator& generator,
                                                const std::vector<Segmented>& sources,
                                                nn::SearchOptions options, const Work& work) {
  bool keep_weights = options.weights;
  options.weights = true;  // for unknown words
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].pieces.size() > sources[b].pieces.size(); });
  Queue queue(model, sources, std::move(order), options);
  std::vector<std::vector<Translation>> out(sources.size());
  const size_t together = static_cast<size_t>(work.together);
  gradus::ThreadPool all(std::max(1, work.threads)), caller(1);
  // Sentences for each thread; but `watch` is called by one.
  const bool whole = queue.enough_for(all.size(), together) && !options.watch;
  if (!whole) options.pool = &all;
  Done done(work);
  (whole ? all : caller).run([&](int thread) {
    gradus::NoGrad guard;
    // What the search at hand has taken, how many of them are done, and what it could not take.
    std::vector<size_t> taken;
    int64_t known = 0;
    std::optional<Queue::Part> left;
    bool refills = whole && !(model.least_mass);
    auto batch_of = [&](const Queue::Part& part, std::vector<nn::SentenceSearch>& asked) {
      std::vector<std::vector<int32_t>> ids;
      for (size_t i = part.begin; i < part.end; ++i) {
        const size_t k = queue.sentence(i);
        ids.push_back(model.source.encode(sources[k].pieces));
        ids.back().push_back(nn::kEos);
        if (!options.sentences.empty()) asked.push_back(options.sentences.at(k));
        taken.push_back(k);
      }
      return make_source_batch(ids);
    };
    while (const auto part = left ? std::exchange(left, {}) : queue.take(together)) {
      done.check();
      taken.clear();
      known = 0;
      nn::SearchOptions how = options;
      how.max_length = part->max_length;
      how.sentences.clear();
      const SourceBatch batch = batch_of(*part, how.sentences);
      if (refills && part->size() == together)
        how.more = [&](nn::IncrementalDecoder& decoder,
                       int64_t room) -> std::optional<nn::SearchOptions::Further> {
          done.check();
          const int64_t finished = static_cast<int64_t>(taken.size()) - (static_cast<int64_t>(together) - room);
          done.add(finished - std::exchange(known, finished), thread);
          constexpr size_t kMost = 1024;  // that one search takes: it keeps what it has found
          if (!refills || taken.size() >= kMost) return std::nullopt;
          left = queue.take(static_cast<size_t>(room), how.max_length);
          if (!left) return std::nullopt;
          nn::SearchOptions::Further further;
          const SourceBatch next = batch_of(*left, further.sentences);
          refills = decoder.admit(next.ids, next.lengths);
          if (!refills) {
            taken.resize(taken.size() - left->size());
            return std::nullopt;
          }
          left.reset();
          further.lengths = next.lengths;
          return further;
        };
      auto found = model.least_mass && !how.watch ? translate_listed(model, generator, batch, how)
                                                  : nn::translate(generator, batch.ids, batch.lengths, how);
      for (size_t n = 0; n < taken.size(); ++n)
        for (const nn::Hypothesis& h : found[n])
          out[taken[n]].push_back(to_translation(model, h, sources[taken[n]], keep_weights));
      done.add(static_cast<int64_t>(taken.size()) - known, thread);
    }
  });
  done.end();
  return out;
}

std::vector<std::vector<Translation>> translate(const Model& model, const std::vector<Segmented>& sources,
                                                nn::SearchOptions options, int threads) {
  return translate(model, *model.generator(), sources, options, {.threads = threads});
}

}  // namespace translator
