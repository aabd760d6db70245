#include "subjects.h"

#include <translator/text/tokenizer.h>

#include "page/schema.h"

namespace lens::test {
namespace {

constexpr const char* kSourceWords = "the cat eats fish </b> dog";
constexpr const char* kTargetWords = "le chat mange du poisson le chien un";

translator::Vocabulary vocabulary(const char* words) {
  translator::TokenCounts counts;
  counts.add(translator::split_tokens(words));
  return translator::Vocabulary::build(counts);
}

// Pieces learnt from so little that words which are not among the most frequent have several.
std::shared_ptr<const translator::Subwords> learnt(const char* text) {
  translator::TokenCounts words;
  for (const std::string& word : translator::split_tokens(text)) words.add(" " + word);
  return std::make_shared<const translator::Subwords>(
      translator::Subwords::learn(words, {.size = 300, .quiet = true}));
}

template <class Made>
translator::Model model_of(translator::ModelConfig config, const Made& s) {
  if (!s.subwords) return {config, vocabulary(kSourceWords), vocabulary(kTargetWords), s.seed};
  config.subwords = "bpe";
  translator::TextModels text;
  text.source = learnt("the the the eats eats eats c a t f i s h d o g k r z");
  text.target = learnt("le le mange mange du c h a t p o i s n e u");
  return {config, text.source->vocabulary(), text.target->vocabulary(), s.seed, text};
}

}  // namespace

Subject subject(const Small& s, const std::string& target) {
  translator::ModelConfig config;
  auto& n = config.network;
  n.embedding_dim = 6;
  n.hidden_size = 8;
  n.attention_size = 5;
  n.attention = s.attention;
  n.decoder = s.decoder;
  n.rnn.cell = gradus::nn::cell_type(s.cell);
  n.readout = s.readout;
  n.rnn.bidirectional = s.bidirectional;
  n.rnn.reverse = s.reverse;
  n.input_feeding = s.input_feeding;
  n.rnn.residual = s.residual;
  n.rnn.cell.layer_norm = s.layer_norm;
  n.rnn.num_layers = s.layers;
  n.attention_options.temperature = s.temperature;
  n.attention_options.top_k = s.top_k;
  n.attention_options.heads = 2;
  return make_subject(model_of(config, s), "small", s.source, target, s.pieces);
}

Subject transformer_subject(const SmallTransformer& s, const std::string& target) {
  translator::ModelConfig config;
  config.model = "transformer";
  auto& n = config.transformer;
  n.d_model = 8;
  n.num_heads = 2;
  n.dim_feedforward = 12;
  n.norm_first = s.norm_first;
  n.causal = s.causal;
  n.temperature = s.temperature;
  n.activation = s.activation;
  n.positions = s.positions;
  return make_subject(model_of(config, s), "small", s.source, target, s.pieces);
}

std::string fault_of(const json& trace) {
  const std::vector<std::string> found = problems(trace, trace_schema());
  return found.empty() ? "" : found[0];
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

}  // namespace lens::test
