#include <translator/model_config.h>
#include <translator/text/error.h>

#include <fmt/ranges.h>
#include <gradus/error.h>
#include <gradus/nn/attention/attention.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "json_text.h"

namespace translator {
namespace {

using json = nlohmann::ordered_json;
namespace nn = gradus::nn;

json describe(const nn::Seq2SeqConfig& n) {
  return {{"source_vocabulary", n.source_vocabulary},
          {"target_vocabulary", n.target_vocabulary},
          {"embedding_dim", n.embedding_dim},
          {"hidden_size", n.hidden_size},
          {"attention_size", n.attention_size},
          {"num_layers", n.rnn.num_layers},
          {"bidirectional", n.bidirectional()},
          {"attention", n.attention},
          {"decoder", n.decoder},
          {"input_feeding", n.input_feeding},
          {"dropout", n.rnn.dropout},
          {"readout", n.readout},
          {"cell", nn::cell_name(n.rnn.cell)},
          {"layer_norm", n.rnn.cell.layer_norm},
          {"residual", n.rnn.residual},
          {"variational", n.rnn.variational},
          {"recurrent_dropout", n.rnn.recurrent_dropout},
          {"attention_options",
           {{"temperature", n.attention_options.temperature},
            {"top_k", n.attention_options.top_k},
            {"heads", n.attention_options.heads},
            {"window", n.attention_options.window},
            {"max_positions", n.attention_options.max_positions},
            {"filters", n.attention_options.filters},
            {"filter_width", n.attention_options.filter_width}}}};
}

nn::Seq2SeqConfig gru_of(const json& n) {
  nn::Seq2SeqConfig c = {
      .source_vocabulary = n.at("source_vocabulary"),
      .target_vocabulary = n.at("target_vocabulary"),
      .embedding_dim = n.at("embedding_dim"),
      .hidden_size = n.at("hidden_size"),
      .attention_size = n.at("attention_size"),
      .rnn = {.num_layers = n.at("num_layers"),
              .dropout = n.at("dropout"),
              .bidirectional = n.at("bidirectional").get<bool>()},
      .attention = n.at("attention"),
      .decoder = n.at("decoder"),
      .input_feeding = n.at("input_feeding")};
  // Models saved before there was a choice say nothing about the rest.
  c.readout = n.value("readout", c.readout);
  c.rnn.cell = nn::cell_type(n.value("cell", nn::cell_name(c.rnn.cell)));
  c.rnn.cell.layer_norm = n.value("layer_norm", c.rnn.cell.layer_norm);
  c.rnn.residual = n.value("residual", c.rnn.residual);
  c.rnn.variational = n.value("variational", c.rnn.variational);
  c.rnn.recurrent_dropout = n.value("recurrent_dropout", c.rnn.recurrent_dropout);
  const json none = json::object(), &a = n.contains("attention_options") ? n.at("attention_options") : none;
  nn::AttentionOptions& o = c.attention_options;
  o.temperature = a.value("temperature", o.temperature);
  o.top_k = a.value("top_k", o.top_k);
  o.heads = a.value("heads", o.heads);
  o.window = a.value("window", o.window);
  o.max_positions = a.value("max_positions", o.max_positions);
  o.filters = a.value("filters", o.filters);
  o.filter_width = a.value("filter_width", o.filter_width);
  return c;
}

json describe(const nn::TransformerConfig& n) {
  return {{"source_vocabulary", n.source_vocabulary},
          {"target_vocabulary", n.target_vocabulary},
          {"d_model", n.d_model},
          {"num_heads", n.num_heads},
          {"num_layers", n.num_layers},
          {"dim_feedforward", n.dim_feedforward},
          {"dropout", n.dropout},
          {"norm_first", n.norm_first},
          {"activation", n.activation},
          {"positions", n.positions},
          {"max_positions", n.max_positions},
          {"tie_embeddings", n.tie_embeddings}};
}

nn::TransformerConfig transformer_of(const json& n) {
  return {.source_vocabulary = n.at("source_vocabulary"),
          .target_vocabulary = n.at("target_vocabulary"),
          .d_model = n.at("d_model"),
          .num_heads = n.at("num_heads"),
          .num_layers = n.at("num_layers"),
          .dim_feedforward = n.at("dim_feedforward"),
          .dropout = n.at("dropout"),
          .norm_first = n.at("norm_first"),
          .activation = n.at("activation"),
          .positions = n.at("positions"),
          .max_positions = n.at("max_positions"),
          .tie_embeddings = n.at("tie_embeddings")};
}

}  // namespace

std::string check_attention(const std::string& name) {
  if (name == "none") return "";
  try {
    gradus::nn::attention_kind(name);
    return "";
  } catch (const gradus::Error&) {
    return fmt::format("there is no attention \"{}\", only {}, none", name,
                       fmt::join(gradus::nn::attention_names(), ", "));
  }
}

std::string list_attentions() {
  std::string out = "Attentions:\n";
  for (const auto& kind : gradus::nn::attention_kinds()) {
    std::string names = kind.name;
    for (const std::string& alias : kind.aliases) names += ", " + alias;
    out += fmt::format("  {:<26} {}\n", names, kind.description);
  }
  return out + fmt::format("  {:<26} {}", "none", "no attention: one vector for the whole source");
}

std::string to_json(const ModelConfig& c) {
  json j = {{"format", "gradus-translator"},
            {"version", 1},
            {"model", c.model},
            {"source_language", c.source_language},
            {"target_language", c.target_language},
            {"lowercase", c.lowercase},
            {"french_typography", c.french},
            {"network", c.model == "transformer" ? describe(c.transformer) : describe(c.network)}};
  return json_text::dump(j, 2);
}

ModelConfig read_config(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw InputError(path, 0, "cannot be read: is this a model directory?");
  try {
    json j = json_text::parse(file);
    ModelConfig c;
    c.model = j.value("model", c.model);
    c.source_language = j.value("source_language", c.source_language);
    c.target_language = j.value("target_language", c.target_language);
    c.lowercase = j.value("lowercase", c.lowercase);
    c.french = j.value("french_typography", c.french);
    if (c.model == "transformer")
      c.transformer = transformer_of(j.at("network"));
    else
      c.network = gru_of(j.at("network"));
    return c;
  } catch (const json::exception& e) {
    throw InputError(path, 0, std::string("is not a translator's configuration: ") + e.what());
  } catch (const gradus::Error& e) {  // an unknown cell
    throw InputError(path, 0, "describes no network that can be built: " + e.message());
  }
}

}  // namespace translator
