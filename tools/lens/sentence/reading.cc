#include "reading.h"

#include <gradus/ops.h>

namespace lens {
namespace {

using namespace gradus;

// [1, n] numbers begin .. begin + n - 1 of a shift, as a constant.
Var part(const Tensor& shift, int64_t begin, int64_t n) {
  return slice(Var(shift.reshape({1, shift.numel()})), 1, begin, begin + n);
}

std::string place(const char* name, int64_t i) { return name + std::to_string(i); }

}  // namespace

Reading read_source(const nn::Encoder& encoder, const std::vector<int32_t>& source, int64_t word,
                    const Tensor& shift) {
  Scope scope("encoder");
  Reading r;
  const nn::RecurrentStack& stack_of = encoder.rnn;
  int64_t S = static_cast<int64_t>(source.size()), H = stack_of.hidden_size;
  Var x = [&] {
    Scope words("words");
    return encoder.embedding(Tensor::from_ids({S, 1}, source));
  }();
  for (int64_t layer = 0; layer < stack_of.options.num_layers; ++layer) {
    bool last = layer + 1 == stack_of.options.num_layers;
    Var below = x;
    std::vector<std::vector<Var>> states(2);
    for (int64_t d = 0; d < stack_of.directions(); ++d) {
      Scope direction_scope(place(d ? "backward_l" : "forward_l", layer));
      auto& out = states[static_cast<size_t>(d)];
      std::vector<Var> links(static_cast<size_t>(S));
      out.resize(static_cast<size_t>(S));
      nn::RecurrentState carried;
      for (int64_t k = 0; k < S; ++k) {
        int64_t j = d ? S - 1 - k : k;
        Scope word_scope(place("j", j));
        size_t at = static_cast<size_t>(j);
        nn::DirectionStates now = nn::run_over_time(
            stack_of.options.cell, stack_of.weights[static_cast<size_t>(layer * stack_of.directions() + d)],
            slice(x, 0, j, j + 1), carried, {});
        out[at] = select(now.h, 0, 0);
        if (last && shift.defined() && (word == -1 || j == word))
          out[at] = out[at] + part(shift, (word == -1 ? j * stack_of.directions() : 0) * H + d * H, H);
        links[at] = tap(out[at], "to the next state");
        carried = {links[at], now.c_n};
      }
      if (last) (d ? r.backward_link : r.forward_link) = std::move(links);
    }
    Scope annotations(last ? std::string("annotations") : place("joined_l", layer));
    std::vector<Var> joined;
    for (size_t j = 0; j < states[0].size(); ++j) {
      Scope word_scope(place("j", static_cast<int64_t>(j)));
      joined.push_back(states[1].empty() ? states[0][j] : concat({states[0][j], states[1][j]}, -1));
    }
    x = stack(joined, 0);
    if (stack_of.options.residual && layer > 0) x = x + below;
    if (last) {
      r.forward = std::move(states[0]);
      r.backward = std::move(states[1]);
    }
  }
  r.annotations = x;
  Scope final_scope("final");
  r.forward_start = tap(r.forward.back(), "to the decoder's first state");
  r.backward_start = r.backward.empty() ? Var() : tap(r.backward.front(), "to the decoder's first state");
  r.encoded = {r.annotations, r.forward_start, r.backward_start,
               length_mask(Tensor::from_ids({1}, {static_cast<int32_t>(S)}), S)};
  return r;
}

}  // namespace lens
