#include <translator/model/forecast.h>

#include <fmt/core.h>

#include <iterator>

#include <gradus/memory.h>
#include <gradus/nn/attention/attention.h>

namespace translator {
namespace {

namespace nn = gradus::nn;

double real(int64_t size) { return static_cast<double>(size); }

// The sizes of a recurrent network as numbers that do not wrap.
struct Recurrent {
  const nn::Seq2SeqConfig& c;
  double embedding = real(c.embedding_dim), hidden = real(c.hidden_size), layers = real(c.rnn.num_layers),
         above = real(c.decoder_layers - 1), directions = c.bidirectional() ? 2 : 1,
         gates = real(c.rnn.cell.gates()), encoder = hidden;
  bool attends = c.attention != "none", luong = false;

  explicit Recurrent(const nn::Seq2SeqConfig& config) : c(config) {
    if (!attends) return;
    const nn::AttentionKind& kind = nn::attention_kind(c.attention);
    if (kind.equal_sizes) encoder = hidden / directions;
    luong = c.decoder == "luong" || (c.decoder == "auto" && kind.luong_order);
  }
  double annotation() const { return encoder * directions; }
  double context() const { return c.attention == "multihead" ? hidden : annotation(); }
  double cell(double input, double size) const { return gates * size * (input + size + 2); }
};

double attention_parameters(const Recurrent& n) {
  const nn::AttentionOptions& o = n.c.attention_options;
  const std::string name = nn::attention_kind(n.c.attention).name;
  double H = n.hidden, D = n.annotation(), A = n.c.attention_size ? real(n.c.attention_size) : H,
         additive = A * (H + D);
  if (name == "general" || name == "hard" || name == "local-m" || name == "concat-identity") return H * D;
  if (name == "local-p") return H * D + A * H;
  if (name == "location") return H * real(o.max_positions);
  if (name == "multihead") return 2 * H * H + 2 * H * D;
  if (name == "location-aware") return additive + real(o.filters) * (A + real(o.filter_width));
  bool none = name == "dot" || name == "scaled-dot" || name == "uniform" || name == "oracle";
  return none ? 0 : additive;
}

double recurrent_parameters(const nn::Seq2SeqConfig& c) {
  Recurrent n(c);
  double E = n.embedding, H = n.hidden, D = n.annotation(), C = n.context(),
         words = real(c.target_vocabulary);
  double readout = c.readout == "maxout" ? 2 : 1;
  double encoder = n.directions * (n.cell(E, n.encoder) + (n.layers - 1) * n.cell(D, n.encoder));
  double decoder = n.encoder * H;  // its first state
  if (!n.attends) decoder = D * H + n.cell(E + D, H) + readout * H * (H + D + E);
  else if (n.luong) decoder += n.cell(E + (c.input_feeding ? H : 0), H) + readout * H * (C + H);
  else decoder += n.cell(E + C, H) + readout * H * (H + C + E);
  if (n.attends) decoder += attention_parameters(n);
  decoder += n.above * n.cell(H, H);
  const double tables = (c.tie_source ? 0 : real(c.source_vocabulary)) + words;
  return tables * E + encoder + decoder + words * ((c.tie_embeddings ? 0 : H) + 1);
}

double feed_forward(const nn::TransformerConfig& c) {
  return c.dim_feedforward ? real(c.dim_feedforward) : 4 * real(c.d_model);
}

double transformer_parameters(const nn::TransformerConfig& c) {
  double d = real(c.d_model), L = real(c.num_layers), F = feed_forward(c);
  double source = real(c.source_vocabulary), target = real(c.target_vocabulary);
  double layers = L * (3 * (4 * d * d + 4 * d) + 2 * (2 * d * F + F + d) + 10 * d);
  double positions = c.positions == "learned" ? 2 * real(c.max_positions) * d : 0;
  return ((c.tie_source ? 0 : source) + (c.tie_embeddings ? 1 : 2) * target) * d + target + layers +
         positions;
}

}  // namespace

double foretold_parameters(const ModelConfig& config) {
  return config.model == "transformer" ? transformer_parameters(config.transformer)
                                       : recurrent_parameters(config.network);
}

StatesPerWord foretold_states(const ModelConfig& config) {
  if (config.model == "transformer") {
    const nn::TransformerConfig& c = config.transformer;
    double d = real(c.d_model), L = real(c.num_layers), F = feed_forward(c);
    return {L * (5 * d + F), L * (8 * d + F)};
  }
  Recurrent n(config.network);
  return {n.embedding + n.layers * n.directions * n.encoder * (1 + n.gates),
          n.embedding + n.hidden * (2 + n.gates) + n.context() + n.above * n.hidden * (2 + n.gates)};
}

std::string network_text(const ModelConfig& c) {
  if (c.model == "transformer")
    return fmt::format("{} + {} layers of {} units", c.transformer.num_layers, c.transformer.num_layers,
                       c.transformer.d_model);
  return fmt::format("word vectors of {} and {} layer{} of {} units", c.network.embedding_dim,
                     c.network.rnn.num_layers, c.network.rnn.num_layers == 1 ? "" : "s", c.network.hidden_size);
}

std::string format_bytes(double bytes) {
  static const char* const kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  return fmt::format("{:.3g} {}", bytes, kUnits[unit]);
}

std::string why_too_large(const ModelConfig& config) {
  double parameters = foretold_parameters(config), bytes = kFloatBytes * parameters,
         there = static_cast<double>(gradus::machine_memory());
  if (bytes <= there) return "";
  return fmt::format("{}: about {:.2g} parameters, which take {}; there are {} of memory here",
                     network_text(config), parameters, format_bytes(bytes), format_bytes(there));
}

}  // namespace translator
