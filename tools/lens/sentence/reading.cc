#include "reading.h"

#include <gradus/ops.h>
#include <translator/model/batches.h>

namespace lens {
namespace {

using namespace gradus;

// [1, n] numbers begin .. begin + n - 1 of a shift, as a constant.
Var part(const Tensor& shift, int64_t begin, int64_t n) {
  return slice(Var(shift.reshape({1, shift.numel()})), 1, begin, begin + n);
}

}  // namespace

nn::Seq2SeqBatch batch_of(const std::vector<int32_t>& source, const std::vector<int32_t>& target) {
  return translator::make_batch({{source, {target.begin(), target.end() - 1}}}, {0});
}

Reading read_source(const nn::Encoder& encoder, const std::vector<int32_t>& source, const Tensor& shift) {
  Scope scope("encoder");
  Reading r;
  const nn::RecurrentStack& rnn = encoder.rnn;
  int64_t S = static_cast<int64_t>(source.size()), H = rnn.hidden_size;
  Var x = r.words = [&] {
    Scope words("words");
    return encoder.embedding(Tensor::from_ids({S, 1}, source));
  }();
  for (int64_t layer = 0; layer < rnn.options.num_layers; ++layer) {
    bool last = layer + 1 == rnn.options.num_layers;
    nn::LayerStates links(2, std::vector<Var>(source.size()));
    nn::LayerStates states = rnn.states(layer, x, [&](const Var& h, int64_t d, int64_t j) {
      Var out = last && shift.defined() ? h + part(shift, (j * rnn.directions() + d) * H, H) : h;
      Var& link = links[static_cast<size_t>(d)][static_cast<size_t>(j)];
      link = tap(out, "to the next state");
      return nn::StateUse{out, link};
    });
    Scope annotations(last ? std::string("annotations") : "joined_l" + std::to_string(layer));
    x = rnn.joined(layer, x, states);
    if (!last) continue;
    r.forward = states[0];
    r.forward_link = links[0];
    if (rnn.directions() == 1) continue;
    r.backward = states[1];
    r.backward_link = links[1];
  }
  r.annotations = x;
  Scope final_scope("final");
  r.forward_end = rnn.in_reverse(0) ? 0 : source.size() - 1;
  r.forward_start = tap(r.forward[r.forward_end], "to the decoder's first state");
  r.backward_start = r.backward.empty() ? Var() : tap(r.backward.front(), "to the decoder's first state");
  r.encoded = {r.annotations, r.forward_start, r.backward_start,
               length_mask(Tensor::from_ids({1}, {static_cast<int32_t>(S)}), S)};
  return r;
}

std::vector<Var> arrivals(const Reading& r) {
  std::vector<Var> out = {r.forward_start};
  if (r.backward_start.defined()) out.push_back(r.backward_start);
  for (auto* states : {&r.forward, &r.backward, &r.forward_link, &r.backward_link})
    out.insert(out.end(), states->begin(), states->end());
  return out;
}

void add_gradient(const Tensor& sum, const Gradients& grads, const Var& x, int64_t row, int64_t column) {
  if (!x.defined() || !grads.contains(x)) return;
  Tensor g = grads[x];
  double* out = sum.f64() + row * sum.size(1) + column;
  for (int64_t i = 0; i < g.numel(); ++i) out[i] += g.f64()[i];
}

void add_gradients(const Tensor& sum, const Gradients& grads, const std::vector<Var>& forward,
                   const std::vector<Var>& backward) {
  for (size_t j = 0; j < forward.size(); ++j) {
    add_gradient(sum, grads, forward[j], static_cast<int64_t>(j));
    if (!backward.empty()) add_gradient(sum, grads, backward[j], static_cast<int64_t>(j), sum.size(1) / 2);
  }
}

void add_start_gradients(const Tensor& sum, const Gradients& grads, const Reading& r) {
  add_gradient(sum, grads, r.forward_start, static_cast<int64_t>(r.forward_end));
  add_gradient(sum, grads, r.backward_start, 0, sum.size(1) / 2);
}

}  // namespace lens
