#include <gradus/nn/scheduled_sampling.h>

#include <fmt/core.h>

namespace gradus::nn {

Tensor scheduled_sampling(const Generator& generator, const Seq2SeqBatch& batch, double probability,
                          const RngInput& rng) {
  At at(rng.caller());
  if (!(probability >= 0 && probability <= 1))
    fail("scheduled_sampling", fmt::format("the probability must be in [0, 1]: {}", probability));
  NoGrad guard;
  Tensor mixed = batch.target_in.clone();
  int64_t T = mixed.size(0), B = mixed.size(1);
  // Drawn first: where no word is to be replaced any more, no step is needed.
  std::vector<bool> own(static_cast<size_t>(T * B));
  int64_t last = 0;
  for (int64_t i = B; i < T * B; ++i) {
    bool replace = rng->uniform() < probability;
    own[static_cast<size_t>(i)] = replace && mixed.i32()[i] != kPad;
    if (own[static_cast<size_t>(i)]) last = i / B;
  }
  if (last == 0) return mixed;
  auto decoder = generator.start(batch.source, batch.source_lengths, {.weights = false});
  Tensor best({B}, DType::i32);
  for (int64_t t = 1; t <= last; ++t) {
    decoder->step_best(mixed.row(t - 1), {kPad, kBos}, best);
    for (int64_t b = 0; b < B; ++b)
      if (own[static_cast<size_t>(t * B + b)]) mixed.i32()[t * B + b] = best.i32()[b];
  }
  return mixed;
}

}  // namespace gradus::nn
