#include <algorithm>

#include <gradus/nn/search.h>
#include <gradus/ops/operands.h>

namespace gradus::nn {

void SearchOptions::check(int64_t of) const {
  constexpr int64_t kMostRows = 1000;  // of a sentence; candidates grow with their square
  if (beam_size < 1) fail("translate", "beam_size must be at least 1: " + std::to_string(beam_size));
  if (beam_size > kMostRows) refuse("translate", "beam_size must be at most {}: {}", kMostRows, beam_size);
  if (min_length < 0 || max_length < 0 || no_repeat_ngram < 0 || exact_stop < 0 || together < 0)
    fail("translate", "min_length, max_length, no_repeat_ngram, exact_stop and together must be at least 0");
  if (!sentences.empty() && static_cast<int64_t>(sentences.size()) != of)
    refuse("translate", "options.sentences has {} entries for {} sentences", sentences.size(), of);
  sampling.check();
}

int64_t max_target_length(int64_t source_length, const SearchOptions& options) {
  return options.max_length > 0 ? options.max_length : std::max(2 * source_length + 10, options.min_length);
}

namespace {

// Of sentences first .. end - 1; where any has some, all sentences go the same way.
std::vector<std::vector<int32_t>> hidden_of(const SearchOptions& options, int64_t first, int64_t end) {
  std::vector<std::vector<int32_t>> all;
  bool any = false;
  for (const SentenceSearch& own : options.sentences) any = any || !own.hidden.empty();
  for (int64_t b = first; any && b < end; ++b) all.push_back(options.sentences[static_cast<size_t>(b)].hidden);
  return all;
}

// Every n-th of `end` sentences from `first` on, without the padding they do not need, and their lengths.
std::pair<Tensor, Tensor> shard_of(const Tensor& source, const Tensor& lengths, int64_t first, int64_t end,
                                   int64_t n) {
  int64_t B = source.size(1), count = (end - first + n - 1) / n, S = 1;
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

std::vector<std::vector<Hypothesis>> translate_together(const Generator& generator, const Tensor& source,
                                                        const Tensor& lengths, const SearchOptions& options,
                                                        int64_t search_rows) {
  auto start = [&](int64_t first, int64_t end) {
    const bool all = end - first == source.size(1);
    const auto [own, own_lengths] =
        all ? std::pair(source, lengths) : shard_of(source, lengths, first, end, 1);
    return generator.start(own, own_lengths,
                           {.rows_per_sentence = options.beam_size,
                            .weights = options.weights || options.coverage_penalty != 0,
                            .search_rows = search_rows,
                            .pool = options.pool,
                            .hidden = hidden_of(options, first, end)});
  };
  return search(start, lengths, options);
}

}  // namespace

std::vector<std::vector<Hypothesis>> translate(const Generator& generator, const Input& source_ids,
                                               const Tensor& lengths, const SearchOptions& options) {
  At at(source_ids.caller());
  const Tensor& source = source_ids.value();
  options.check(lengths.numel());
  if (source.dtype() != DType::i32 || source.dims() != 2 || lengths.dtype() != DType::i32 ||
      lengths.shape() != Shape{source.size(1)})
    refuse("translate", "sources must be i32 [S, B] and lengths i32 [B]: {} and {}", source.shape(),
           lengths.shape());
  // A thread with few rows reads all weights for them: then the threads had better share the weights.
  constexpr int64_t kRowsWorthAThread = 4;
  const int64_t B = lengths.numel();
  const int64_t rows = (options.together > 0 ? std::min(B, options.together) : B) * options.beam_size;
  const int64_t threads = options.pool ? options.pool->size() : 1;
  std::vector<std::vector<Hypothesis>> out(static_cast<size_t>(B));
  if (threads == 1 || rows < kRowsWorthAThread * threads || B < threads || options.watch) {
    out = translate_together(generator, source, lengths, options, rows);
  } else {
    options.pool->run([&](int k) {
      auto [own, own_lengths] = shard_of(source, lengths, k, B, threads);
      SearchOptions how = options;
      how.pool = nullptr;
      how.sentences.clear();
      for (size_t b = static_cast<size_t>(k); b < options.sentences.size(); b += static_cast<size_t>(threads))
        how.sentences.push_back(options.sentences[b]);
      auto found = translate_together(generator, own, own_lengths, how, rows);
      for (size_t i = 0; i < found.size(); ++i)
        out[static_cast<size_t>(k) + i * static_cast<size_t>(threads)] = std::move(found[i]);
    });
  }
  for (auto& list : out)  // one row length for all, the batch's, whatever parts of it there were
    for (Hypothesis& h : list)
      for (auto& row : h.weights) row.resize(static_cast<size_t>(source.size(0)));
  return out;
}

std::vector<std::vector<Hypothesis>> translate(const Generative& model, const Input& source,
                                               const Tensor& lengths, const SearchOptions& options) {
  At at(source.caller());
  return translate(*model.generator(), source, lengths, options);
}

}  // namespace gradus::nn
