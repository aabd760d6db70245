#pragma once

#include <gradus/nn/data_parallel.h>
#include <gradus/nn/translation_model.h>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"

/// Two shards with an output layer each, against two that share it: loss and all gradients. Both shards are the
/// same batch; the model is in f64.
inline void check_shared_output(gradus::nn::TranslationModel& model, const gradus::nn::Seq2SeqBatch& batch) {
  namespace nn = gradus::nn;
  gradus::ThreadPool pool(2);
  const nn::LossOptions options{.label_smoothing = 0.1, .weight = 0.5, .baseline = 1.3};
  auto apart = [&] {
    gradus::Training training(5);  // the same dropout and draws both times
    return nn::parallel_gradients(pool, 2, [&](int) { return model.loss(batch, options).loss; });
  }();
  nn::OutputLayer layer = model.output_layer();
  layer.options.label_smoothing = 0.1;
  auto shared = [&] {
    gradus::Training training(5);
    return nn::parallel_output_gradients(
        pool, 2, [&](int) { return model.hidden_states(batch, options); }, layer);
  }();
  CHECK(shared.loss == about(apart.losses[0] + apart.losses[1], 1e-12));
  CHECK(shared.tokens == 2 * batch.target_tokens);
  REQUIRE(shared.gradients.entries().size() == apart.gradients.entries().size());
  for (const gradus::NamedParameter& p : nn::named_parameters(model)) {
    CAPTURE(p.name);
    if (apart.gradients.contains(*p.parameter))
      CHECK(gradus::max_abs_difference(shared.gradients[*p.parameter], apart.gradients[*p.parameter]) < 1e-12);
  }
}
