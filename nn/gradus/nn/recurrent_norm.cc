#include <gradus/nn/recurrent_norm.h>

#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/layer_norm.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/recurrence.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

// Columns begin .. begin + n of a norm's vectors go with x [..., n].
Var normalise(const Var& x, const RecurrentWeights::Norm& norm, int64_t begin) {
  int64_t n = x.size(-1);
  Var bias = norm.bias.defined() ? slice(norm.bias, 0, begin, begin + n) : Var(Tensor::zeros({n}, x.dtype()));
  return layer_norm(x, slice(norm.weight, 0, begin, begin + n), bias);
}

// The GRU's two: [r, z] and n.
Var normalise_gru(const Var& x, const RecurrentWeights::Norm& norm, int64_t H) {
  std::vector<Var> parts = split(x, {2 * H, H}, -1);
  return concat({normalise(parts[0], norm, 0), normalise(parts[1], norm, 2 * H)}, -1);
}

RecurrentState lstm_step(const RecurrentWeights& w, const Var& input, const Var& seen, const Var& c,
                         int64_t H) {
  Var pre = input + normalise(linear(seen, w.weight_hh, {}), w.norms[1], 0);
  std::vector<Var> a = split(pre, {H, H, H, H}, -1);
  Var kept = sigmoid(a[0]) * tanh(a[2]);
  if (c.defined()) kept = kept + sigmoid(a[1]) * c;
  return {sigmoid(a[3]) * tanh(normalise(kept, w.norms[2], 0)), kept};
}

RecurrentState gru_step(const CellType& type, const RecurrentWeights& w, const Var& input, const Var& seen,
                        const Var& h, int64_t H) {
  std::vector<Var> in = split(input, {H, H, H}, -1);
  Var gates, n;
  if (type.reset_after && !type.bahdanau) {
    std::vector<Var> all = split(normalise_gru(linear(seen, w.weight_hh, {}), w.norms[1], H), {2 * H, H}, -1);
    gates = all[0];
    n = tanh(in[2] + sigmoid(in[0] + slice(gates, -1, 0, H)) * all[1]);
  } else {
    gates = normalise(linear(seen, slice(w.weight_hh, 0, 0, 2 * H), {}), w.norms[1], 0);
    Var reset = sigmoid(in[0] + slice(gates, -1, 0, H)) * seen;
    n = tanh(in[2] + normalise(linear(reset, slice(w.weight_hh, 0, 2 * H, 3 * H), {}), w.norms[1], 2 * H));
  }
  Var z = sigmoid(in[1] + slice(gates, -1, H, 2 * H));
  return {type.bahdanau ? z * n + (1.0 - z) * h : (1.0 - z) * n + z * h, {}};
}

}  // namespace

Var normalised_input(const CellType& type, const RecurrentWeights& w, const Var& x) {
  Var product = linear(x, w.weight_ih, {});
  if (type.kind == CellKind::rnn) return product;  // normalised after the sum
  if (type.kind == CellKind::gru) return normalise_gru(product, w.norms[0], w.hidden_size());
  return normalise(product, w.norms[0], 0);
}

RecurrentState normalised_step(const CellType& type, const RecurrentWeights& w, const Var& input,
                               const RecurrentState& state, const Tensor& state_mask) {
  int64_t H = w.hidden_size();
  Var seen = state_mask.defined() ? state.h * state_mask : state.h;
  if (type.kind == CellKind::lstm) return lstm_step(w, input, seen, state.c, H);
  if (type.kind == CellKind::gru) return gru_step(type, w, input, seen, state.h, H);
  Var pre = normalise(input + linear(seen, w.weight_hh, {}), w.norms[0], 0);
  return {type.nonlinearity == Nonlinearity::tanh ? tanh(pre) : relu(pre), {}};
}

DirectionStates normalised_over_time(const CellType& type, const RecurrentWeights& w, const Var& x,
                                     const RecurrentState& start, const DirectionOptions& o) {
  int64_t T = x.size(0), H = w.hidden_size();
  bool two = type.kind == CellKind::lstm;  // then the loop carries h and c side by side
  Var input = normalised_input(type, w, x), zeros = Tensor::zeros({x.size(1), H}, x.dtype());
  Var first = start.h.defined() ? start.h : zeros;
  if (two) first = concat({first, start.c.defined() ? start.c : zeros}, -1);
  Var all = reference::over_time(T, first, o.reverse, o.lengths, [&](int64_t t, const Var& state) {
    RecurrentState before{state, {}};
    if (two) before = {slice(state, -1, 0, H), slice(state, -1, H, 2 * H)};
    RecurrentState next = normalised_step(type, w, select(input, 0, t), before, o.state_mask);
    return two ? concat({next.h, next.c}, -1) : next.h;
  });
  if (!two) return {all, {}};
  return {slice(all, -1, 0, H), slice(select(all, 0, o.reverse ? 0 : T - 1), -1, H, 2 * H)};
}

}  // namespace gradus::nn
