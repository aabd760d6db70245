#include <translator/evaluation.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include <gradus/parallel.h>
#include <translator/text/alignment.h>

namespace translator {
namespace {

namespace nn = gradus::nn;

// Batches of similar length, so that little is padding; runs f(worker, chosen) for each, the same way every
// time.
template <class F>
void for_each_batch(const std::vector<EncodedPair>& pairs, int threads, F&& f) {
  constexpr size_t kBatch = 64;
  std::vector<size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pairs[a].target.size() < pairs[b].target.size(); });
  size_t batches = (order.size() + kBatch - 1) / kBatch;
  gradus::ThreadPool pool(std::max(1, std::min<int>(threads, static_cast<int>(batches))));
  pool.run([&](int worker) {
    gradus::NoGrad guard;
    for (size_t k = static_cast<size_t>(worker); k < batches; k += static_cast<size_t>(pool.size())) {
      size_t end = std::min(order.size(), (k + 1) * kBatch);
      f(worker, std::vector<size_t>(order.begin() + static_cast<long>(k * kBatch),
                                    order.begin() + static_cast<long>(end)));
    }
  });
}

// Links under teacher forcing: row t of the weights belongs to target word t in Bahdanau's order (the state
// before it looked) as in Luong's with the new state; </s> is no word on either side.
double alignment_error(const Model& model, const std::vector<SentencePair>& pairs,
                       const std::vector<EncodedPair>& encoded, int threads) {
  std::vector<AlignmentScore> scores(static_cast<size_t>(std::max(1, threads)));
  for_each_batch(encoded, threads, [&](int worker, const std::vector<size_t>& chosen) {
    nn::Seq2SeqBatch batch = make_batch(encoded, chosen);
    gradus::Tensor weights = model.network.align(batch);  // [T, B, S]
    int64_t B = weights.size(1), S = weights.size(2);
    for (int64_t b = 0; b < B; ++b) {
      const SentencePair& pair = pairs[chosen[b]];
      if (!pair.alignment) continue;
      int64_t rows = static_cast<int64_t>(pair.target.size());
      std::vector<float> own;
      for (int64_t t = 0; t < rows; ++t) {
        const float* w = weights.f32() + (t * B + b) * S;
        own.insert(own.end(), w, w + S);
      }
      Links links = links_from_attention({rows, S, own}, static_cast<int64_t>(pair.source.size()), rows);
      scores[static_cast<size_t>(worker)].add(links, *pair.alignment, {.ignore_unaligned_targets = true});
    }
  });
  AlignmentScore sum;
  for (const AlignmentScore& s : scores) {
    sum.system += s.system;
    sum.sure += s.sure;
    sum.sure_hits += s.sure_hits;
    sum.possible_hits += s.possible_hits;
  }
  return sum.error_rate();
}

}  // namespace

TotalLoss total_loss(const Model& model, const std::vector<EncodedPair>& pairs, int threads) {
  std::vector<TotalLoss> parts(static_cast<size_t>(std::max(1, threads)));
  for_each_batch(pairs, threads, [&](int worker, const std::vector<size_t>& chosen) {
    gradus::CrossEntropy loss = model.network.loss(make_batch(pairs, chosen));
    parts[static_cast<size_t>(worker)].nll += loss.nll;
    parts[static_cast<size_t>(worker)].tokens += loss.tokens;
  });
  TotalLoss sum;
  for (const TotalLoss& p : parts) {
    sum.nll += p.nll;
    sum.tokens += p.tokens;
  }
  return sum;
}

Evaluation evaluate(const Model& model, const std::vector<SentencePair>& pairs,
                    const EvaluationOptions& options) {
  auto start = std::chrono::steady_clock::now();
  Evaluation out;
  out.sentences = static_cast<int64_t>(pairs.size());
  std::vector<EncodedPair> encoded = encode(pairs, model.source, model.target);
  TotalLoss loss = total_loss(model, encoded, options.threads);
  out.tokens = loss.tokens;
  out.nll = loss.tokens ? loss.nll / static_cast<double>(loss.tokens) : 0;
  out.perplexity = std::exp(out.nll);

  size_t n = pairs.size();
  if (options.translate_at_most > 0) n = std::min(n, static_cast<size_t>(options.translate_at_most));
  std::vector<std::vector<std::string>> sources;
  for (size_t i = 0; i < n; ++i) {
    sources.push_back(pairs[i].source);
    out.references.push_back(readable(model, pairs[i].target));
  }
  auto translations = translate(model, sources, options.search, options.threads);
  int64_t exact = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto& tokens = translations[i].empty() ? std::vector<std::string>() : translations[i][0].tokens;
    exact += tokens == pairs[i].target;
    out.hypotheses.push_back(readable(model, tokens));
  }
  out.translated = static_cast<int64_t>(n);
  if (n > 0) {
    out.bleu = corpus_bleu(out.hypotheses, out.references);
    out.exact_match = static_cast<double>(exact) / static_cast<double>(n);
  }
  bool gold =
      std::any_of(pairs.begin(), pairs.end(), [](const SentencePair& p) { return p.alignment.has_value(); });
  if (options.alignment && gold && model.config.network.attention != "none")
    out.aer = alignment_error(model, pairs, encoded, options.threads);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace translator
