#include "subjects.h"

#include <translator/text/tokenizer.h>

namespace lens::test {
namespace {

translator::Vocabulary vocabulary(const char* words) {
  translator::TokenCounts counts;
  counts.add(translator::split_tokens(words));
  return translator::Vocabulary::build(counts);
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
  n.input_feeding = s.input_feeding;
  n.rnn.residual = s.residual;
  n.rnn.cell.layer_norm = s.layer_norm;
  n.rnn.num_layers = s.layers;
  n.attention_options.temperature = s.temperature;
  n.attention_options.heads = 2;
  return make_subject(translator::Model(config, vocabulary("the cat eats fish </b> dog"),
                                        vocabulary("le chat mange du poisson le chien un"), s.seed),
                      "small", "the cat eats fish", target);
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

}  // namespace lens::test
