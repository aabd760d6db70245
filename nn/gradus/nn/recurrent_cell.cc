#include <gradus/nn/recurrent_cell.h>

#include <cmath>

#include <fmt/ranges.h>

#include <gradus/nn/check.h>
#include <gradus/ops/gru.h>

namespace gradus::nn {
namespace {

struct NamedCell {
  const char* name;
  CellType type;
};
constexpr NamedCell kCells[] = {{"gru", {}},
                                {"gru-reset-before", {.reset_after = false}},
                                {"gru-bahdanau", {.bahdanau = true}},
                                {"lstm", {.kind = CellKind::lstm, .forget_bias = 1}},
                                {"rnn", {.kind = CellKind::rnn}},
                                {"rnn-relu", {.kind = CellKind::rnn, .nonlinearity = Nonlinearity::relu}}};

GruOptions gru_options(const CellType& type, const DirectionOptions& o = {}) {
  return {.reset_after = type.reset_after && !type.bahdanau, .update_selects_new = type.bahdanau,
          .reverse = o.reverse, .lengths = o.lengths, .state_mask = o.state_mask};
}

}  // namespace

const std::vector<std::string>& cell_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const NamedCell& cell : kCells) all.push_back(cell.name);
    return all;
  }();
  return names;
}

CellType cell_type(const std::string& name) {
  for (const NamedCell& cell : kCells)
    if (cell.name == name) return cell.type;
  unknown_name("cell_type", "cell", name, cell_names());
}

std::string cell_name(CellType type) {
  type.layer_norm = false;
  for (const NamedCell& cell : kCells)
    if (cell.type == type) return cell.name;
  fail("cell_name", fmt::format("this cell is none of {}", fmt::join(cell_names(), ", ")));
}

CellType of_kind(CellKind kind, CellType type, const char* name, const Caller& caller) {
  At at(caller);
  if (type.kind != kind && type.kind != CellType().kind) fail(name, "the cell's kind is another unit's");
  type.kind = kind;
  if (kind != CellKind::rnn && type.nonlinearity != Nonlinearity::tanh)
    fail(name, "nonlinearity is an option of an RNN");
  if (kind != CellKind::gru && (!type.reset_after || type.bahdanau))
    fail(name, "reset_after and bahdanau are options of a GRU");
  if (kind != CellKind::lstm && type.forget_bias != 0) fail(name, "forget_bias is an option of an LSTM");
  return type;
}

RecurrentParameters::RecurrentParameters(const CellType& type, int64_t input_size, int64_t H,
                                         const RngInput& rng, const char* name) {
  At at(rng.caller());
  must_be_positive(name, "input_size", input_size);
  must_be_positive(name, "hidden_size", H);
  double a = 1 / std::sqrt(static_cast<double>(H));
  int64_t G = type.gates();
  auto draw = [&](const Shape& shape, const char* label) {
    return Parameter(Tensor::uniform(shape, -a, a, rng), label);
  };
  weight_ih = draw({G * H, input_size}, "weight_ih");
  weight_hh = draw({G * H, H}, "weight_hh");
  if (type.layer_norm) {
    auto norm = [&](int64_t n) {
      norms.push_back({Parameter(Tensor::ones({n}), "weight_ln"),
                       type.bias ? Parameter(Tensor::zeros({n}), "bias_ln") : Parameter()});
    };
    norm(G * H);
    if (type.kind != CellKind::rnn) norm(G * H);
    if (type.kind == CellKind::lstm) norm(H);
  } else if (type.bias) {
    bias_ih = draw({G * H}, "bias_ih");
    if (!type.bahdanau) bias_hh = draw({G * H}, "bias_hh");
  }
  Parameter& offsets = type.layer_norm ? norms[0].bias : bias_ih;
  if (type.kind == CellKind::lstm && type.forget_bias != 0 && offsets.defined())
    offsets.update([&](const Tensor& b) {
      for (int64_t k = H; k < 2 * H; ++k) b.set(k, b.at(k) + type.forget_bias);
    });
}

void RecurrentParameters::params(ParamVisitor& visit, const std::string& suffix) {
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

RecurrentParameters::operator RecurrentWeights() const {
  auto norm = [&](size_t k) { return k < norms.size() ? NormWeights(norms[k]) : NormWeights(); };
  return {weight_ih, weight_hh, bias_ih, bias_hh, norm(0), norm(1), norm(2)};
}

DirectionStates run_over_time(const CellType& type, const RecurrentParameters& w, const Input& x,
                              const RecurrentState& start, const DirectionOptions& o) {
  At at(x.caller());
  if (type.kind == CellKind::lstm)
    return (o.reference ? reference::lstm : lstm)(
        x, start, w, {.reverse = o.reverse, .lengths = o.lengths, .state_mask = o.state_mask});
  if (type.kind == CellKind::gru)
    return {(o.reference ? reference::gru : gru)(x, start.h, w, gru_options(type, o)), {}};
  const RnnOptions options{type.nonlinearity, o.reverse, o.lengths, o.state_mask};
  return {(o.reference ? reference::rnn : rnn)(x, start.h, w, options), {}};
}

RecurrentState RecurrentCell::step(const Input& x, const RecurrentState& state) const {
  At at(x.caller());
  const bool lstm = type.kind == CellKind::lstm, gru = type.kind == CellKind::gru;
  if (x.dims() != 2)
    fail(lstm ? "lstm_cell" : gru ? "gru_cell" : "rnn_cell", "x must be [B, input_size]: " + x.shape().str());
  if (lstm) return lstm_cell(x, state, *this);
  if (gru) return {gru_cell(x, state.h, *this, gru_options(type)), {}};
  return {rnn_cell(x, state.h, *this, {.nonlinearity = type.nonlinearity}), {}};
}
}  // namespace gradus::nn
