#include <translator/length_penalty.h>

#include <translator/evaluation.h>
#include <translator/text/bleu.h>
#include <translator/text/chrf.h>

namespace translator {

double best_length_penalty(const Model& model, const std::vector<SentencePair>& pairs,
                           const std::string& metric, const Work& work) {
  constexpr double kStep = 0.5, kMost = 5;
  const bool lowercase = model.config.lowercase();
  const Metric measure =
      metric == "chrf" ? chrf_metric({.lowercase = lowercase}) : bleu_metric({.lowercase = lowercase});
  std::vector<std::vector<std::string>> references;
  for (const SentencePair& p : pairs) references.push_back(references_of(p));
  const auto generator = model.generator();
  int64_t before = 0;
  Work each = work;
  if (work.on_progress) each.on_progress = [&](int64_t done) { work.on_progress(before + done); };
  auto score = [&](double alpha) {
    const auto said = translate_pairs(model, *generator, pairs, pairs.size(),
                                      {.beam_size = kBeamOfChoice, .length_penalty = alpha}, each);
    before += static_cast<int64_t>(pairs.size());
    return measure.score(count(measure, said, references).sum());
  };
  double best = 1, highest = score(best);
  for (double step : {kStep, -kStep}) {
    const double from = best;
    for (double alpha = best + step; alpha >= 0 && alpha <= kMost; alpha += step) {
      const double found = score(alpha);
      if (!(found > highest)) break;
      highest = found;
      best = alpha;
    }
    if (best != from) break;
  }
  return best;
}

}  // namespace translator
