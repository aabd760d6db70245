#include <translator/training/training_forecast.h>

#include <fmt/core.h>

#include <algorithm>

#include <gradus/memory.h>
#include <translator/model/forecast.h>

namespace translator {

double foretold_training(const ModelConfig& config, const TrainOptions& o,
                         const std::vector<SentencePair>& pairs) {
  double source = 0, target = 0;
  for (const SentencePair& p : pairs) {
    source = std::max(source, static_cast<double>(p.source.size() + 1));
    target = std::max(target, static_cast<double>(p.target.size() + 1));
  }
  const double tokens = static_cast<double>(o.batch_tokens);
  const double most =
      tokens > 0 ? std::max(1.0, tokens / (source + target)) : static_cast<double>(o.batch_size);
  const double batch = std::min(most, static_cast<double>(pairs.size()));
  const StatesPerWord words = foretold_states(config);
  const double states = batch * (source * words.source + target * words.target);
  double copies = 2 + static_cast<double>(make_optimizer(o, {})->slots()) + (o.ema > 0 ? 1 : 0);
  return kFloatBytes * (copies * foretold_parameters(config) + states);
}

std::string why_training_is_too_large(const ModelConfig& config, const TrainOptions& o,
                                      const std::vector<SentencePair>& pairs) {
  double bytes = foretold_training(config, o, pairs), there = static_cast<double>(gradus::machine_memory());
  if (bytes <= there) return "";
  return fmt::format(
      "{}: about {:.2g} parameters; to train them with {} on batches of {} takes at least {}, and there "
      "are {} of memory here. Smaller --hidden, --embedding, --layers, --max-vocabulary, --subword-size, "
      "--batch-size or --max-length take less",
      network_text(config), foretold_parameters(config), o.optimizer,
      o.batch_tokens > 0 ? fmt::format("{} tokens", o.batch_tokens) : std::to_string(o.batch_size),
      format_bytes(bytes), format_bytes(there));
}

}  // namespace translator
