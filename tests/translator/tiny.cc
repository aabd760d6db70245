#include "tiny.h"

#include <translator/text/tokenizer.h>

namespace tiny {

using namespace translator;

SentencePair pair(const std::string& source, const std::string& target, const std::string& links) {
  SentencePair p;
  p.source = split_tokens(source);
  p.target = split_tokens(target);
  p.source_text = source;
  p.target_text = target;
  if (!links.empty()) p.alignment = parse_moses(links);
  return p;
}

std::vector<SentencePair> pairs() {
  return {pair("she eats", "elle mange", "0-0 1-1"),
          pair("he eats apples", "il mange des pommes", "0-0 1-1 2-3"),
          pair("they sing", "ils chantent fort", "0-0 1-1"),
          pair("she sees a red house today", "elle voit une maison rouge", "0-0 1-1 2-2 3-4 4-3"),
          pair("he sings", "il chante", "0-0 1-1"),
          pair("we see a house", "nous voyons une maison", "0-0 1-1 2-2 3-3")};
}

Model model(const std::string& attention, double dropout) {
  TokenCounts source, target;
  for (const SentencePair& p : pairs()) {
    source.add(p.source);
    target.add(p.target);
  }
  ModelConfig config;
  config.network.hidden_size = config.network.embedding_dim = 8;
  config.network.attention = attention;
  config.network.rnn.dropout = dropout;
  return Model(config, Vocabulary::build(source), Vocabulary::build(target), 3);
}

TrainOptions plain(const scratch::Directory& directory) {
  TrainOptions o;
  o.epochs = 1;
  o.batch_size = 100;
  o.optimizer = "sgd";
  o.lr = 0.1;
  o.schedule = "constant";
  o.warmup = 1;
  o.clip = 0;
  o.out = directory.path().string();
  o.quiet = true;
  return o;
}

Values weights(const Model& model) {
  Values out;
  for (auto& [name, tensor] : gradus::nn::state_dict(*model.network)) out[name] = tensor.to_vector();
  return out;
}

void set(Model& model, const std::string& parameter, int64_t i, double value) {
  gradus::nn::StateDict state;
  for (auto& [name, tensor] : gradus::nn::state_dict(*model.network)) {
    gradus::Tensor t = tensor.clone();
    if (name == parameter) t.set(i, value);
    state.emplace_back(name, t);
  }
  gradus::nn::load_state_dict(*model.network, state);
}

std::vector<Segmented> split(const Model& model, const std::vector<std::string>& texts) {
  std::vector<Segmented> out;
  for (const std::string& text : texts) out.push_back(model.reads.split(text));
  return out;
}

}  // namespace tiny
