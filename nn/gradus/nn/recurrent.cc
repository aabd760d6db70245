#include <gradus/nn/recurrent.h>

#include <fmt/core.h>

#include <gradus/nn/check.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/dropout.h>
#include <gradus/ops/join_directions.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {

RecurrentStack::RecurrentStack(const RecurrentShape& s, Rng& rng, Caller caller) : shape(s) {
  At at(caller);
  must_be_positive(s.name, "input_size", s.input_size);
  must_be_positive(s.name, "hidden_size", s.hidden_size);
  must_be_positive(s.name, "num_layers", s.num_layers, kMostLayers);
  must_be_probability(s.name, "dropout", s.dropout);
  must_be_probability(s.name, "recurrent_dropout", s.recurrent_dropout);
  for (int64_t layer = 0; layer < s.num_layers; ++layer) {
    int64_t input_size = layer == 0 ? s.input_size : directions() * s.hidden_size;
    for (int64_t d = 0; d < directions(); ++d)
      weights.emplace_back(s.cell, input_size, s.hidden_size, s.bias, rng);
  }
}

RecurrentOutput RecurrentStack::operator()(const Input& x, const Tensor& lengths,
                                           const RecurrentState& start) const {
  At at(x.caller());
  if (x.dims() != 3 || x.size(2) != shape.input_size || x.size(0) == 0)
    fail(shape.name, fmt::format("x must be [T, B, {}], time first: {}", shape.input_size, x.shape().str()),
         x.dims() == 3   ? size_hint(x.size(2), shape.input_size)
         : x.dims() == 2 ? std::string("a step alone is a cell's, " + std::string(shape.name) + "Cell")
                         : "");
  int64_t T = x.size(0), B = x.size(1), H = shape.hidden_size, states = static_cast<int64_t>(weights.size());
  must_be_lengths(shape.name, lengths, B, T);
  for (auto [state, name] : {std::pair(&start.h, "h0"), std::pair(&start.c, "c0")})
    if (state->defined() && state->shape() != Shape{states, B, H})
      fail(shape.name, fmt::format("{} must be [num_layers * directions, B, hidden_size] = {}: {}", name,
                                   Shape{states, B, H}.str(), state->shape().str()));

  std::vector<Var> finals, cells;
  auto direction = [&](const Var& in, int64_t k, bool reverse) {
    RecurrentState first{start.h.defined() ? select(start.h, 0, k) : Var(),
                         start.c.defined() ? select(start.c, 0, k) : Var()};
    Tensor mask = dropout_mask({B, H}, shape.recurrent_dropout, x.dtype());
    DirectionStates all = run_over_time(
        shape.cell, weights[static_cast<size_t>(k)], in, first,
        {.reverse = reverse, .lengths = lengths, .state_mask = mask, .reference = shape.reference});
    finals.push_back(
        select(all.h, 0, reverse ? 0 : T - 1));  // padding carries the state over, so the end holds it
    if (all.c_n.defined()) cells.push_back(all.c_n);
    return all.h;
  };
  Var in = x;
  for (int64_t layer = 0; layer < shape.num_layers; ++layer) {
    Var below = in;
    if (layer > 0)
      in = shape.variational ? variational_dropout(in, shape.dropout) : dropout(in, shape.dropout);
    Var forward = direction(in, layer * directions(), false);
    Var backward = shape.bidirectional ? direction(in, layer * 2 + 1, true) : Var();
    in = join_directions(forward, backward, lengths);
    if (shape.residual && layer > 0) in = in + below;
  }
  RecurrentOutput out{in, stack(finals, 0), cells.empty() ? Var() : stack(cells, 0), {}, {}};
  out.forward_final = finals[finals.size() - static_cast<size_t>(directions())];
  if (shape.bidirectional) out.backward_final = finals.back();
  return out;
}

void RecurrentStack::params(ParamVisitor& visit) {
  for (size_t k = 0; k < weights.size(); ++k) {
    size_t dirs = static_cast<size_t>(directions());
    weights[k].params(visit, fmt::format("_l{}{}", k / dirs, k % dirs ? "_reverse" : ""));
  }
}

}  // namespace gradus::nn
