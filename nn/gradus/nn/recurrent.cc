#include <gradus/nn/recurrent.h>

#include <fmt/core.h>

#include <cstring>

#include <gradus/nn/check.h>
#include <gradus/numeric.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/dropout.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

bool real(const Tensor& lengths, int64_t t, int64_t b) { return !lengths.defined() || t < lengths.i32()[b]; }

// Rows of one direction within the joined tensor [T, B, width], from column `offset`.
void put(const Tensor& from, const Tensor& joined, int64_t offset, const Tensor& lengths) {
  int64_t T = from.size(0), B = from.size(1), H = from.size(2), width = joined.size(2);
  size_t step = static_cast<size_t>(size_of(from.dtype())), row_bytes = static_cast<size_t>(H) * step;
  const char* in = static_cast<const char*>(from.raw());
  char* out = static_cast<char*>(joined.raw());
  for (int64_t t = 0; t < T; ++t)
    for (int64_t b = 0; b < B; ++b) {
      int64_t row = t * B + b;
      char* target = out + static_cast<size_t>(row * width + offset) * step;
      if (real(lengths, t, b)) std::memcpy(target, in + static_cast<size_t>(row) * row_bytes, row_bytes);
      else std::memset(target, 0, row_bytes);
    }
}

// The way back: those columns of the joined gradient, zero at padding.
Tensor take(const Tensor& joined, int64_t offset, int64_t H, const Tensor& lengths) {
  int64_t T = joined.size(0), B = joined.size(1), width = joined.size(2);
  Tensor out({T, B, H}, joined.dtype());
  visit_floating(out, "join_directions", [&](auto* to) {
    const auto* from = data<std::remove_pointer_t<decltype(to)>>(joined);
    for (int64_t t = 0; t < T; ++t)
      for (int64_t b = 0; b < B; ++b) {
        int64_t row = t * B + b;
        for (int64_t k = 0; k < H; ++k)
          to[row * H + k] = real(lengths, t, b) ? from[row * width + offset + k] : 0;
      }
  });
  return out;
}

}  // namespace

// y_tb = [f_tb ; b_tb] where t < lengths_b, else 0. forward, backward [T, B, H] -> [T, B, 2H].
// df = first H columns of dy, db = the others, both 0 at padding.
Var join_directions(const Input& forward, const Var& backward, const Tensor& lengths) {
  At at(forward.caller());
  if (!backward.defined() && !lengths.defined()) return forward;
  if (forward.dims() != 3 || (backward.defined() && backward.shape() != forward.shape()))
    fail("join_directions", fmt::format("both directions must be [T, B, H]: {} and {}", forward.shape().str(),
                                        backward.defined() ? backward.shape().str() : "none"));
  int64_t H = forward.size(2);
  must_be_lengths("join_directions", lengths, forward.size(1), forward.size(0));
  Tensor joined({forward.size(0), forward.size(1), backward.defined() ? 2 * H : H}, forward.dtype());
  put(forward.value(), joined, 0, lengths);
  if (!backward.defined())
    return record("join_directions", {forward}, joined, [H, lengths](const Tensor& dy, Grads& dx) {
      dx.add(0, take(dy, 0, H, lengths));
    });
  put(backward.value(), joined, H, lengths);
  return record("join_directions", {forward, backward}, joined, [H, lengths](const Tensor& dy, Grads& dx) {
    if (dx.needed(0)) dx.add(0, take(dy, 0, H, lengths));
    if (dx.needed(1)) dx.add(1, take(dy, H, H, lengths));
  });
}

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
