#include <gradus/nn/recurrent_cell.h>

#include <cmath>

#include <gradus/nn/check.h>
#include <gradus/nn/recurrent_norm.h>
#include <gradus/ops/gru.h>
#include <gradus/ops/lstm.h>

namespace gradus::nn {
namespace {

GruOptions gru_options(const CellType& type, const DirectionOptions& o = {}) {
  return {.reset_after = type.reset_after && !type.bahdanau, .update_selects_new = type.bahdanau,
          .reverse = o.reverse, .lengths = o.lengths, .state_mask = o.state_mask};
}

Var or_zeros(const Var& state, const Var& x, int64_t H) {
  return state.defined() ? state : Var(Tensor::zeros({x.size(-2), H}, x.dtype()));
}

}  // namespace

const std::vector<std::string>& cell_names() {
  static const std::vector<std::string> names = {"gru",  "gru-reset-before", "gru-bahdanau",
                                                 "lstm", "rnn",              "rnn-relu"};
  return names;
}

CellType cell_type(const std::string& name) {
  if (name == "gru") return {};
  if (name == "gru-reset-before") return {.reset_after = false};
  if (name == "gru-bahdanau") return {.bahdanau = true};
  if (name == "lstm") return {.kind = CellKind::lstm, .forget_bias = 1};
  if (name == "rnn") return {.kind = CellKind::rnn};
  if (name == "rnn-relu") return {.kind = CellKind::rnn, .nonlinearity = Nonlinearity::relu};
  std::string known;
  for (const std::string& n : cell_names()) known += (known.empty() ? "" : ", ") + n;
  fail("cell_type", "unknown cell \"" + name + "\": one of " + known);
}

RecurrentWeights::RecurrentWeights(const CellType& type, int64_t input_size, int64_t H, bool bias, Rng& rng) {
  double a = 1 / std::sqrt(static_cast<double>(H));
  int64_t G = type.gates();
  auto draw = [&](const Shape& shape, const char* name) {
    return Parameter(Tensor::uniform(shape, -a, a, rng), name);
  };
  weight_ih = draw({G * H, input_size}, "weight_ih");
  weight_hh = draw({G * H, H}, "weight_hh");
  if (type.layer_norm) {
    auto norm = [&](int64_t n) {
      norms.push_back({Parameter(Tensor::ones({n}), "weight_ln"),
                       bias ? Parameter(Tensor::zeros({n}), "bias_ln") : Parameter()});
    };
    norm(G * H);
    if (type.kind != CellKind::rnn) norm(G * H);
    if (type.kind == CellKind::lstm) norm(H);
  } else if (bias) {
    bias_ih = draw({G * H}, "bias_ih");
    if (!type.bahdanau) bias_hh = draw({G * H}, "bias_hh");
  }
  Parameter& offsets = type.layer_norm ? norms[0].bias : bias_ih;
  if (type.kind == CellKind::lstm && type.forget_bias != 0 && offsets.defined())
    offsets.update([&](const Tensor& b) {
      for (int64_t k = H; k < 2 * H; ++k) b.set(k, b.at(k) + type.forget_bias);
    });
}

void RecurrentWeights::params(ParamVisitor& visit, const std::string& suffix) {
  visit("weight_ih" + suffix, weight_ih);
  visit("weight_hh" + suffix, weight_hh);
  visit("bias_ih" + suffix, bias_ih);
  visit("bias_hh" + suffix, bias_hh);
  static const char* const of[] = {"_ih", "_hh", "_c"};
  for (size_t k = 0; k < norms.size(); ++k) {
    std::string name = norms.size() == 1 ? "_ln" + suffix : std::string("_ln") + of[k] + suffix;
    visit("weight" + name, norms[k].weight);
    visit("bias" + name, norms[k].bias);
  }
}

DirectionStates run_over_time(const CellType& type, const RecurrentWeights& w, const Var& x,
                              const RecurrentState& start, const DirectionOptions& o) {
  if (type.layer_norm) return normalised_over_time(type, w, x, start, o);
  if (type.kind == CellKind::lstm) {
    auto run = o.reference ? reference::lstm : lstm;
    LstmStates all = run(x, {start.h, start.c}, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh,
                         {.reverse = o.reverse, .lengths = o.lengths, .state_mask = o.state_mask});
    return {all.h, all.c_n};
  }
  if (type.kind == CellKind::gru) {
    auto run = o.reference ? reference::gru : gru;
    return {run(x, start.h, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh, gru_options(type, o)), {}};
  }
  auto run = o.reference ? reference::rnn : rnn;
  return {run(x, start.h, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh,
              {.nonlinearity = type.nonlinearity, .reverse = o.reverse, .lengths = o.lengths,
               .state_mask = o.state_mask}),
          {}};
}

RecurrentCell::RecurrentCell(const CellType& t, int64_t input_size, int64_t hidden_size, Rng& rng, bool bias,
                             const char* name)
    : type(t) {
  must_be_positive(name, "input_size", input_size);
  must_be_positive(name, "hidden_size", hidden_size);
  static_cast<RecurrentWeights&>(*this) = RecurrentWeights(t, input_size, hidden_size, bias, rng);
}

RecurrentState RecurrentCell::step(const Input& x, const RecurrentState& state) const {
  At at(x.caller());
  if (x.dims() != 2) fail("cell", "x must be [B, input_size]: " + x.shape().str());
  Var h = or_zeros(state.h, x, hidden_size());
  if (type.layer_norm)
    return normalised_step(type, *this, normalised_input(type, *this, x), {h, state.c}, {});
  if (type.kind == CellKind::lstm) {
    LstmState next = lstm_cell(x, {h, state.c}, weight_ih, weight_hh, bias_ih, bias_hh);
    return {next.h, next.c};
  }
  if (type.kind == CellKind::gru)
    return {gru_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh, gru_options(type)), {}};
  return {rnn_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh, {.nonlinearity = type.nonlinearity}), {}};
}

Var RecurrentCell::over_time(const Input& x, const RecurrentState& start, const Tensor& lengths) const {
  At at(x.caller());
  return run_over_time(type, *this, x, start, {.lengths = lengths}).h;
}

}  // namespace gradus::nn
