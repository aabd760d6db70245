#include <gradus/nn/translation_model.h>

#include <gradus/nn/decoder.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/concat_rows.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/output_loss.h>

namespace gradus::nn {

CrossEntropy TranslationModel::loss(const Seq2SeqBatch& batch, const LossOptions& options) const {
  ShardOutput states = hidden_states(batch, options);
  OutputLayer layer = output_layer();
  layer.options.label_smoothing = options.label_smoothing;
  layer.options.weight = options.weight;
  Scope scope("output");
  CrossEntropy result =
      linear_cross_entropy(states.hidden, layer.weight, layer.bias, states.targets, layer.options);
  if (states.extra.defined()) result.loss = result.loss + states.extra;
  return result;
}

Tensor TranslationModel::word_losses(const Seq2SeqBatch& batch) const {
  NoGrad guard;
  return word_costs(hidden_states(batch), batch.target_out, 0);
}

Tensor TranslationModel::word_costs(const ShardOutput& states, const Tensor& target_out,
                                    double label_smoothing) const {
  NoGrad guard;
  OutputLayer layer = output_layer();
  layer.options.label_smoothing = label_smoothing;
  layer.options.reduction = Reduction::none;
  Var logits = linear(states.hidden, layer.weight, layer.bias);
  Tensor costs = cross_entropy(logits, states.targets, layer.options).loss.value();
  if (costs.numel() == target_out.numel()) return costs.reshape(target_out.shape());
  Tensor out = Tensor::zeros(target_out.shape(), costs.dtype());
  Tensor rows = real_rows(target_lengths(target_out, layer.options.ignore_index), target_out.size(0));
  for (int64_t i = 0; i < rows.numel(); ++i) out.set(rows.i32()[i], costs.at(i));
  return out;
}

}  // namespace gradus::nn
