#include <translator/inference/translation.h>
#include <translator/model/shortlist.h>

#include <algorithm>
#include <numeric>

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

// Which of the sentences, in their order by falling length, go together: [begin, end).
struct Together {
  size_t begin, end;
  int64_t max_length;  // target words; 0: the search's own rule
};

// Where learned positions end so do translations, and only those: a sentence's limit does not depend on who it
// is translated with.
int64_t limit_of(const Model& model, size_t words, size_t prefix, const nn::SearchOptions& options) {
  const int64_t most = model.most_positions();
  int64_t own = nn::max_target_length(static_cast<int64_t>(words) + 1, options);
  const auto told = static_cast<int64_t>(prefix);
  if (options.max_length == 0 && told > own) own = told + 10;
  return most > 0 && own > most ? most : options.max_length;
}

// For searches that have `most` on their way at a time, and so many times as many in all: others take the rows
// of those that are done. Fewer of long ones, since what a search keeps of a sentence grows with the square of
// its length; fewer towards the end, too, so that all threads are done at about the same time.
std::vector<Together> batches_of(const std::vector<size_t>& words, const std::vector<int64_t>& limits,
                                 size_t most, size_t times) {
  constexpr size_t kAllTogether = 512;  // words, up to which so many are
  constexpr size_t kFollow = 64;        // words, up to which others follow
  constexpr size_t kAtLeast = 16;       // sentences: fewer would take longer each
  std::vector<Together> out;
  for (size_t i = 0; i < words.size(); ++i) {
    bool fits = !out.empty() && limits[i] == out.back().max_length;
    if (fits) {
      const size_t begin = out.back().begin, longest = std::max(words[begin], kAllTogether);
      const size_t all = words[begin] <= kFollow ? most * times : most;
      const size_t here = std::min(all, std::max(kAtLeast, (words.size() - begin) / 4));
      fits = (i - begin) * longest * longest < here * kAllTogether * kAllTogether;
    }
    if (!fits) out.push_back({i, i, limits[i]});
    ++out.back().end;
  }
  return out;
}

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
  std::vector<std::vector<Translation>> out(sources.size());
  std::vector<size_t> lengths;
  std::vector<int64_t> limits;
  for (size_t i : order) {
    lengths.push_back(sources[i].pieces.size());
    const size_t prefix = options.sentences.empty() ? 0 : options.sentences.at(i).prefix.size();
    limits.push_back(limit_of(model, lengths.back(), prefix, options));
  }
  options.together = work.together;
  constexpr size_t kTimes = 4;  // lists of words that may be said are of sentences that begin together
  const std::vector<Together> batches =
      batches_of(lengths, limits, static_cast<size_t>(work.together), model.least_mass ? 1 : kTimes);
  gradus::ThreadPool all(std::max(1, work.threads)), caller(1);
  // Batches for each thread; but `watch` is called by one.
  const bool whole = batches.size() >= static_cast<size_t>(all.size()) && !options.watch;
  if (!whole) options.pool = &all;
  divide(whole ? all : caller, batches.size(), work, [&](size_t k) {
    const auto [begin, end, max_length] = batches[k];
    nn::SearchOptions how = options;
    how.max_length = max_length;
    how.sentences.clear();
    std::vector<std::vector<int32_t>> ids;
    for (size_t i = begin; i < end; ++i) {
      ids.push_back(model.source.encode(sources[order[i]].pieces));
      ids.back().push_back(nn::kEos);
      if (!options.sentences.empty()) how.sentences.push_back(options.sentences.at(order[i]));
    }
    SourceBatch batch = make_source_batch(ids);
    auto found = model.least_mass && !how.watch ? translate_listed(model, generator, batch, how)
                                                : nn::translate(generator, batch.ids, batch.lengths, how);
    for (size_t i = begin; i < end; ++i)
      for (const nn::Hypothesis& h : found[i - begin])
        out[order[i]].push_back(to_translation(model, h, sources[order[i]], keep_weights));
    return static_cast<int64_t>(end - begin);
  });
  return out;
}

std::vector<std::vector<Translation>> translate(const Model& model, const std::vector<Segmented>& sources,
                                                nn::SearchOptions options, int threads) {
  return translate(model, *model.generator(), sources, options, {.threads = threads});
}

}  // namespace translator
