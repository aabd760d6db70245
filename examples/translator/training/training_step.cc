#include <translator/training/training_step.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include <gradus/names.h>
#include <gradus/ops/matmul.h>
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

Trained trained_parameters(nn::TranslationModel& network, const std::string& freeze) {
  Trained out{nn::ParameterList(network), ""};
  std::vector<std::string> names;
  for (const gradus::NamedParameter& p : out.parameters) names.push_back(p.name);
  for (size_t at = 0; at < freeze.size();) {
    const size_t end = std::min(freeze.find(',', at), freeze.size());
    const std::string part = freeze.substr(at, end - at);
    auto named = [&](const std::string& name) { return name == part || name.starts_with(part + "."); };
    if (std::none_of(names.begin(), names.end(), named)) {
      std::vector<std::string> known = names;  // and what they begin with: "encoder.gru", "encoder"
      for (const std::string& name : names)
        for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
          known.push_back(name.substr(0, dot));
      const std::string nearest = gradus::nearest_name(part, known);
      out.complaint = fmt::format("\"{}\" is no parameter, nor what one begins with: {}{}", part,
                                  fmt::join(names, ", "), nearest.empty() ? "" : "; hint: " + nearest + "?");
    }
    std::erase_if(out.parameters, [&](const gradus::NamedParameter& p) { return named(p.name); });
    at = end + 1;
  }
  if (out.parameters.empty()) out.complaint = "no parameter is left to be trained";
  return out;
}

nn::ParameterList hidden_matrices(nn::TranslationModel& network) {
  nn::ParameterList out(network);
  std::erase_if(out, [](const gradus::NamedParameter& p) {
    return p.parameter->shape().dims() != 2 || p.name.starts_with("output.") ||
           p.name.find("embedding.") != std::string::npos || p.name.find("positions.") != std::string::npos;
  });
  return out;
}

void keep_only(const nn::ParameterList& parameters, gradus::Gradients& gradients) {
  std::unordered_set<const gradus::Node*> kept;
  for (const gradus::NamedParameter& p : parameters) kept.insert(p.parameter->var().node().get());
  std::erase_if(gradients.entries(), [&](const auto& entry) { return kept.count(entry.node.get()) == 0; });
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

void drop_words(std::vector<nn::Seq2SeqBatch>& parts, double probability, const gradus::Rng& rng) {
  for (size_t k = 0; k < parts.size(); ++k) {
    const int64_t B = parts[k].source.size(1);
    for (int64_t b = 0; b < B; ++b) {
      gradus::Rng own = rng.split(k + static_cast<size_t>(b) * parts.size());  // parts_of's order
      for (const gradus::Tensor* ids : {&parts[k].source, &parts[k].target_in})
        for (int64_t t = 0; t < ids->size(0); ++t) {
          int32_t& id = ids->i32()[t * B + b];
          const bool word = id != nn::kPad && id != nn::kBos && id != nn::kEos;
          if (word && own.uniform() < probability) id = nn::kUnk;
        }
    }
  }
}

ProductsOf::ProductsOf(bool bf16) {
  if (bf16) gradus::set_float32_matmul_precision(gradus::MatmulPrecision::medium);
}
ProductsOf::~ProductsOf() { gradus::set_float32_matmul_precision(gradus::MatmulPrecision::highest); }

nn::OutputGradients differentiate(const Model& model, const StepBatch& batch, gradus::ThreadPool& pool) {
  ProductsOf products(batch.bf16);
  gradus::Training training(batch.training_seed, batch.dropout_share);
  nn::OutputLayer layer = model.network->output_layer();
  layer.options.label_smoothing = batch.loss.label_smoothing;
  auto hidden_states = [&](int shard) {
    size_t part = static_cast<size_t>(shard);
    return model.network->hidden_states(batch.parts[part], batch.loss_of(part));
  };
  return nn::parallel_output_gradients(pool, static_cast<int>(batch.parts.size()), hidden_states, layer);
}

}  // namespace translator
