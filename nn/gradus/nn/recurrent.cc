#include <gradus/nn/recurrent.h>

#include <gradus/nn/check.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/dropout.h>
#include <gradus/ops/join_directions.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/recurrence.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {

RecurrentOptions of_kind(CellKind kind, RecurrentOptions options, const char* name, const Caller& caller) {
  options.cell = of_kind(kind, options.cell, name, caller);
  return options;
}

RecurrentStack::RecurrentStack(const char* module, int64_t inputs, int64_t units, const RngInput& rng,
                               const RecurrentOptions& o)
    : name(module), input_size(inputs), hidden_size(units), options(o) {
  At at(rng.caller());
  must_be_positive(name, "num_layers", o.num_layers, kMostLayers);
  must_be_probability(name, "dropout", o.dropout);
  must_be_probability(name, "recurrent_dropout", o.recurrent_dropout);
  options.bidirectional = o.bidirectional.value_or(false);
  if (o.reverse && *options.bidirectional)
    fail(name, "reverse is for one direction; bidirectional reads both ways already");
  for (int64_t layer = 0; layer < o.num_layers; ++layer)
    for (int64_t d = 0; d < directions(); ++d)
      weights.emplace_back(o.cell, layer == 0 ? input_size : directions() * hidden_size, hidden_size, rng,
                           name);
}

RecurrentOutput RecurrentStack::operator()(const Input& x, const Tensor& lengths,
                                           const RecurrentState& start) const {
  At at(x.caller());
  if (weights.empty()) fail(name, "has no weights any more", "moved from?");
  if (x.dims() != 3 || x.size(2) != input_size || x.size(0) == 0)
    fail(name, fmt::format("x must be [T, B, {}], time first: {}", input_size, x.shape()),
         x.dims() == 3   ? x.size(0) == 0 ? "a step at least" : size_hint(x.size(2), input_size)
         : x.dims() == 2 ? "a step alone is a cell's: of RNNCell, GRUCell or LSTMCell"
                         : "");
  int64_t T = x.size(0), B = x.size(1), H = hidden_size, states = static_cast<int64_t>(weights.size());
  check_lengths(name, lengths, T, B);
  for (auto [state, what] : {std::pair(&start.h, "h0"), std::pair(&start.c, "c0")})
    if (state->defined() && state->shape() != Shape{states, B, H})
      refuse(name, "{} must be [num_layers * directions, B, hidden_size] = {}: {}", what, Shape{states, B, H},
             state->shape());

  std::vector<Var> finals, cells;
  auto direction = [&](const Var& in, int64_t layer, int64_t d) {
    const int64_t k = layer * directions() + d;
    const bool reverse = in_reverse(d);
    RecurrentState first{start.h.defined() ? select(start.h, 0, k) : Var(),
                         start.c.defined() ? select(start.c, 0, k) : Var()};
    Tensor mask = dropout_mask({B, H}, options.recurrent_dropout, x.dtype());
    DirectionStates all = run_over_time(
        options.cell, weights[static_cast<size_t>(k)], in, first,
        {.reverse = reverse, .lengths = lengths, .state_mask = mask, .reference = options.reference});
    // Padding carries the state over, so the end holds it.
    finals.push_back(select(all.h, 0, reverse ? 0 : T - 1));
    if (all.c_n.defined()) cells.push_back(all.c_n);
    return all.h;
  };
  Var in = x;
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    Var below = in;
    if (layer > 0)
      in = options.variational ? variational_dropout(in, options.dropout) : dropout(in, options.dropout);
    Var first = direction(in, layer, 0), second = directions() == 2 ? direction(in, layer, 1) : Var();
    in = join_directions(first, second, lengths);
    if (options.residual && layer > 0) in = in + below;
  }
  RecurrentOutput out{in, stack(finals, 0), cells.empty() ? Var() : stack(cells, 0), {}, {}};
  out.forward_final = finals[finals.size() - static_cast<size_t>(directions())];
  if (directions() == 2) out.backward_final = finals.back();
  return out;
}

LayerStates RecurrentStack::states(int64_t layer, const Input& x, const OnState& on_state) const {
  At at(x.caller());
  if (layer < 0 || layer >= options.num_layers)
    refuse(name, "layers are 0 .. {}: {}", options.num_layers - 1, layer);
  int64_t T = x.size(0);
  LayerStates out;
  for (int64_t d = 0; d < directions(); ++d) {
    Scope direction_scope(fmt::format("{}_l{}", in_reverse(d) ? "backward" : "forward", layer));
    const RecurrentParameters& own = weights[static_cast<size_t>(layer * directions() + d)];
    out.emplace_back(static_cast<size_t>(T));
    RecurrentState carried;
    for (int64_t k = 0; k < T; ++k) {
      int64_t t = in_reverse(d) ? T - 1 - k : k;
      Scope step_scope(fmt::format("j{}", t));
      DirectionStates now = run_over_time(options.cell, own, slice(x, 0, t, t + 1), carried, {});
      Var h = select(now.h, 0, 0);
      StateUse use = on_state ? on_state(h, d, t) : StateUse{h, h};
      out.back()[static_cast<size_t>(t)] = use.out;
      carried = {use.next, now.c_n};
    }
  }
  return out;
}

Var RecurrentStack::joined(int64_t layer, const Input& x, const LayerStates& states) const {
  At at(x.caller());
  const size_t T = static_cast<size_t>(x.size(0));
  if (std::ssize(states) != directions() || states[0].size() != T || states.back().size() != T)
    refuse(name, "states must be {} in each of the directions, of which there are {}", T, directions());
  std::vector<Var> steps;
  for (size_t t = 0; t < T; ++t) {
    Scope step_scope(fmt::format("j{}", t));
    steps.push_back(states.size() == 1 ? states[0][t] : concat({states[0][t], states[1][t]}, -1));
  }
  Var y = stack(steps, 0);
  return options.residual && layer > 0 ? y + x : y;
}

void RecurrentStack::params(ParamVisitor& visit) {
  for (size_t k = 0; k < weights.size(); ++k) {
    size_t dirs = static_cast<size_t>(directions());
    weights[k].params(visit, fmt::format("_l{}{}", k / dirs, k % dirs ? "_reverse" : ""));
  }
}

}  // namespace gradus::nn
