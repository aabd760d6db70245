#include <fmt/core.h>
#include <fmt/ranges.h>

#include <gradus/nn/attention/attention.h>
#include <translator/commands.h>

namespace translator {
namespace {

// An option of the network: its name, what is on the command line, what the model has. All as text.
struct Setting {
  const char* option;
  std::string given, there;
};

std::string text(double x) { return fmt::format("{}", x); }
std::string text(int64_t x) { return std::to_string(x); }

// A flag and its opposite have one name.
Setting flag(const char* option, bool given, bool there) {
  return {option, given ? "yes" : "no", there ? "yes" : "no"};
}

std::string attention(const std::string& name) {
  return name == "none" ? name : gradus::nn::attention_kind(name).name;  // some have several names
}

std::vector<Setting> recurrent(const gradus::nn::Seq2SeqConfig& o, const gradus::nn::Seq2SeqConfig& there,
                               const TrainCommand& c) {
  const gradus::nn::AttentionOptions &a = o.attention_options, &b = there.attention_options;
  return {{"--attention", attention(o.attention), attention(there.attention)},
          {"--decoder", o.decoder, there.decoder},
          flag("--input-feeding", o.input_feeding, there.input_feeding),
          {"--readout", o.readout, there.readout},
          {"--temperature", text(a.temperature), text(b.temperature)},
          {"--top-k", text(a.top_k), text(b.top_k)},
          {"--heads", text(a.heads), text(b.heads)},
          {"--window", text(a.window), text(b.window)},
          {"--cell", c.cell, gradus::nn::cell_name(there.rnn.cell)},
          flag("--layer-norm", o.rnn.cell.layer_norm, there.rnn.cell.layer_norm),
          flag("--residual", o.rnn.residual, there.rnn.residual),
          flag("--variational", o.rnn.variational, there.rnn.variational),
          {"--recurrent-dropout", text(o.rnn.recurrent_dropout), text(there.rnn.recurrent_dropout)},
          {"--dropout", text(c.dropout), text(there.rnn.dropout)}};
}

std::vector<Setting> transformer(const gradus::nn::TransformerConfig& o,
                                 const gradus::nn::TransformerConfig& there, const TrainCommand& c) {
  return {{"--heads", text(c.model.network.attention_options.heads), text(there.num_heads)},
          {"--ffn", text(o.dim_feedforward),
           text(there.dim_feedforward ? there.dim_feedforward : 4 * there.d_model)},
          flag("--norm-first", o.norm_first, there.norm_first),
          {"--positions", o.positions, there.positions},
          flag("--tie-embeddings", o.tie_embeddings, there.tie_embeddings),
          {"--dropout", text(c.dropout), text(there.dropout)}};
}

}  // namespace

void must_be_the_same(const TrainCommand& given, const ModelConfig& there) {
  bool is_transformer = there.model == "transformer";
  int64_t embedding = is_transformer ? there.transformer.d_model : there.network.embedding_dim;
  int64_t layers = is_transformer ? there.transformer.num_layers : there.network.rnn.num_layers;
  if (!given.network.empty() && given.network != there.model)
    throw UsageError(
        fmt::format("the model in {} is a {}: --resume cannot change it", given.train.out, there.model));
  bool other_layers = given.num_layers && given.num_layers != layers;
  if ((!is_transformer && given.hidden && given.hidden != there.network.hidden_size) ||
      (given.embedding && given.embedding != embedding) || other_layers) {
    std::string sizes = is_transformer ? "" : fmt::format("--hidden {} ", there.network.hidden_size);
    sizes += fmt::format("--embedding {}", embedding);
    if (other_layers) sizes += fmt::format(" --layers {}", layers);
    throw UsageError(
        fmt::format("the model in {} has {}: --resume cannot change them", given.train.out, sizes));
  }
  std::vector<Setting> settings = is_transformer
                                      ? transformer(given.model.transformer, there.transformer, given)
                                      : recurrent(given.model.network, there.network, given);
  settings.push_back(flag("--case-sensitive", given.case_sensitive, !there.lowercase));
  settings.push_back(flag("--french", given.model.french, there.french));
  std::vector<std::string> others;
  for (const Setting& s : settings)
    if (given.given.count(s.option) && s.given != s.there)
      others.push_back(fmt::format("{} {}, not {}", s.option, s.there, s.given));
  if (!others.empty())
    throw UsageError(fmt::format("the model in {} has {}: --resume cannot change {}", given.train.out,
                                 fmt::join(others, "; "), others.size() == 1 ? "it" : "them"));
}

}  // namespace translator
