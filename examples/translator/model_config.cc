#include <translator/model_config.h>
#include <translator/text/error.h>
#include <translator/text/utf8.h>

#include <fmt/ranges.h>
#include <gradus/error.h>
#include <gradus/nn/attention/attention.h>

#include <fstream>
#include <limits>
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

// An object of config.json that is being read. What is missing stays as it is: models saved before there was a choice
// say nothing of it. Whatever is wrong is said with the file and the field, before anything is made of it.
class Fields {
 public:
  Fields(const json& object, std::string path, std::string prefix = "")
      : object_(object), path_(std::move(path)), prefix_(std::move(prefix)) {
    if (!object_.is_object())
      throw InputError(path_, 0,
                       fmt::format("is not a translator's configuration: {} is no object",
                                   prefix_.empty() ? "it" : prefix_.substr(0, prefix_.size() - 1)));
  }

  Fields inside(const char* name, bool required) const {
    static const json kNothing = json::object();
    const json* found = find(name, required);
    return {found ? *found : kNothing, path_, prefix_ + name + "."};
  }
  void whole(const char* name, int64_t& value, int64_t least, int64_t most, bool required = false) const {
    const json* found = find(name, required);
    if (!found) return;
    if (!found->is_number_integer()) wrong_kind(name, "a whole number", *found);
    if (found->is_number_unsigned() ? found->get<uint64_t>() > static_cast<uint64_t>(most)
                                    : found->get<int64_t>() > most)
      outside(name, least, most, *found);
    value = found->get<int64_t>();
    if (value < least) outside(name, least, most, *found);
  }
  void number(const char* name, double& value, double least, double most, bool required = false) const {
    const json* found = find(name, required);
    if (!found) return;
    if (!found->is_number()) wrong_kind(name, "a number", *found);
    value = found->get<double>();
    if (!(value >= least && value <= most)) outside(name, least, most, *found);
  }
  void flag(const char* name, bool& value, bool required = false) const {
    const json* found = find(name, required);
    if (!found) return;
    if (!found->is_boolean()) wrong_kind(name, "true or false", *found);
    value = found->get<bool>();
  }
  void text(const char* name, std::string& value, bool required = false) const {
    const json* found = find(name, required);
    if (!found) return;
    if (!found->is_string()) wrong_kind(name, "a text", *found);
    value = found->get<std::string>();
    // It stands in messages, on terminals.
    if (value.size() > 100 || utf8::printable(value) != value)
      wrong_kind(name, "a text of at most 100 bytes without control characters", *found);
  }

 private:
  const json* find(const char* name, bool required) const {
    auto at = object_.find(name);
    if (at != object_.end()) return &*at;
    if (required)
      throw InputError(path_, 0,
                       fmt::format("is not a translator's configuration: \"{}{}\" is missing", prefix_, name));
    return nullptr;
  }
  // A long value is not repeated whole.
  static std::string shown(const json& value) {
    std::string text = json_text::dump(value);
    return utf8::printable(text.substr(0, 60)) + (text.size() > 60 ? "..." : "");
  }
  [[noreturn]] void wrong_kind(const char* name, const char* kind, const json& value) const {
    throw InputError(path_, 0,
                     fmt::format("is not a translator's configuration: \"{}{}\" must be {}: {}", prefix_, name,
                                 kind, shown(value)));
  }
  template <class T>
  [[noreturn]] void outside(const char* name, T least, T most, const json& value) const {
    throw InputError(path_, 0,
                     fmt::format("describes no network that can be built: \"{}{}\" must be from {} to {}: {}",
                                 prefix_, name, least, most, shown(value)));
  }

  const json& object_;
  std::string path_, prefix_;
};

nn::Seq2SeqConfig gru_of(const Fields& n) {
  nn::Seq2SeqConfig c;
  n.whole("source_vocabulary", c.source_vocabulary, 1, kMostWords, true);
  n.whole("target_vocabulary", c.target_vocabulary, 1, kMostWords, true);
  n.whole("embedding_dim", c.embedding_dim, 1, kMostUnits, true);
  n.whole("hidden_size", c.hidden_size, 1, kMostUnits, true);
  n.whole("attention_size", c.attention_size, 0, kMostUnits, true);
  n.whole("num_layers", c.rnn.num_layers, 1, kMostLayers, true);
  bool both = true;
  n.flag("bidirectional", both, true);
  c.rnn.bidirectional = both;
  n.text("attention", c.attention, true);
  n.text("decoder", c.decoder, true);
  n.flag("input_feeding", c.input_feeding, true);
  n.number("dropout", c.rnn.dropout, 0, kMostDropout, true);
  n.text("readout", c.readout);
  std::string cell = nn::cell_name(c.rnn.cell);
  n.text("cell", cell);
  c.rnn.cell = nn::cell_type(cell);
  n.flag("layer_norm", c.rnn.cell.layer_norm);
  n.flag("residual", c.rnn.residual);
  n.flag("variational", c.rnn.variational);
  n.number("recurrent_dropout", c.rnn.recurrent_dropout, 0, kMostDropout);
  Fields a = n.inside("attention_options", false);
  nn::AttentionOptions& o = c.attention_options;
  a.number("temperature", o.temperature, 1e-6, 1e6);
  a.whole("top_k", o.top_k, 0, kMostPositions);
  a.whole("heads", o.heads, 1, kMostUnits);
  a.whole("window", o.window, 1, kMostPositions);
  a.whole("max_positions", o.max_positions, 1, kMostPositions);
  a.whole("filters", o.filters, 1, kMostUnits);
  a.whole("filter_width", o.filter_width, 1, kMostUnits);
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

nn::TransformerConfig transformer_of(const Fields& n) {
  nn::TransformerConfig c;
  n.whole("source_vocabulary", c.source_vocabulary, 1, kMostWords, true);
  n.whole("target_vocabulary", c.target_vocabulary, 1, kMostWords, true);
  n.whole("d_model", c.d_model, 1, kMostUnits, true);
  n.whole("num_heads", c.num_heads, 1, kMostUnits, true);
  n.whole("num_layers", c.num_layers, 1, kMostLayers, true);
  n.whole("dim_feedforward", c.dim_feedforward, 0, 4 * kMostUnits, true);
  n.number("dropout", c.dropout, 0, kMostDropout, true);
  n.flag("norm_first", c.norm_first, true);
  n.text("activation", c.activation, true);
  n.text("positions", c.positions, true);
  n.whole("max_positions", c.max_positions, 1, kMostPositions, true);
  n.flag("tie_embeddings", c.tie_embeddings, true);
  return c;
}

// What the model was trained on, for who scores it.
json describe(const TrainingData& d) {
  if (d.corpus != "embedded") return {{"corpus", d.corpus}};
  return {{"corpus", d.corpus},
          {"version", d.version},
          {"pairs", d.pairs},
          {"seed", d.seed},
          {"max_length", d.max_length}};
}

TrainingData training_data_of(const Fields& n) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  TrainingData d;
  n.text("corpus", d.corpus);
  n.whole("version", d.version, 0, kAny);
  n.whole("pairs", d.pairs, 0, kAny);
  n.whole("seed", d.seed, 0, kAny);
  n.whole("max_length", d.max_length, 0, kAny);
  return d;
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
  if (!c.trained_on.corpus.empty()) j["trained_on"] = describe(c.trained_on);
  return json_text::dump(j, 2);
}

ModelConfig read_config(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw InputError(path, 0, "cannot be read: is this a model directory?");
  return read_config(file, path);
}

ModelConfig read_config(std::istream& file, const std::string& path) {
  try {
    json j = json_text::parse(file);
    Fields all(j, path);
    ModelConfig c;
    all.text("model", c.model);
    all.text("source_language", c.source_language);
    all.text("target_language", c.target_language);
    all.flag("lowercase", c.lowercase);
    all.flag("french_typography", c.french);
    c.trained_on = training_data_of(all.inside("trained_on", false));
    if (c.model == "transformer") c.transformer = transformer_of(all.inside("network", true));
    else c.network = gru_of(all.inside("network", true));
    return c;
  } catch (const json::exception& e) {
    std::string_view what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
    throw InputError(path, 0,
                     fmt::format("is not a translator's configuration: {}", what.substr(what.find("] ") + 2)));
  } catch (const gradus::Error& e) {  // an unknown cell
    throw InputError(path, 0, "describes no network that can be built: " + e.message());
  }
}

}  // namespace translator
