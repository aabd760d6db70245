#include <translator/training_step.h>

#include <algorithm>

#include <gradus/parallel.h>

namespace translator {

namespace nn = gradus::nn;

nn::LossOptions StepBatch::loss_of(size_t part) const {
  int64_t tokens = 0;
  for (const nn::Seq2SeqBatch& p : parts) tokens += p.target_tokens;
  nn::LossOptions own = loss;
  own.weight = static_cast<double>(parts[part].target_tokens) / static_cast<double>(tokens);
  return own;
}

// Every part takes each n-th sentence of a batch sorted by length: equal work, little padding.
std::vector<nn::Seq2SeqBatch> parts_of(const std::vector<EncodedPair>& pairs, const std::vector<size_t>& chosen,
                                       int count) {
  std::vector<nn::Seq2SeqBatch> parts;
  size_t n = std::min(chosen.size(), static_cast<size_t>(count));
  for (size_t k = 0; k < n; ++k) {
    std::vector<size_t> own;
    for (size_t i = k; i < chosen.size(); i += n) own.push_back(chosen[i]);
    parts.push_back(make_batch(pairs, own));
  }
  return parts;
}

nn::OutputGradients differentiate(const Model& model, const StepBatch& batch, gradus::ThreadPool& pool) {
  gradus::Training training(batch.training_seed);
  nn::OutputLayer layer = model.network->output_layer();
  layer.options.label_smoothing = batch.loss.label_smoothing;
  auto hidden_states = [&](int shard) {
    size_t part = static_cast<size_t>(shard);
    return model.network->hidden_states(batch.parts[part], batch.loss_of(part));
  };
  return nn::parallel_output_gradients(pool, static_cast<int>(batch.parts.size()), hidden_states, layer);
}

}  // namespace translator
