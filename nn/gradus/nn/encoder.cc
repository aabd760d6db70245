#include <gradus/nn/encoder.h>

#include <gradus/ops/attention.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

RecurrentOptions both_ways(RecurrentOptions o) {
  o.bidirectional = o.bidirectional.value_or(true);
  return o;
}

}  // namespace

Var Encoded::final_states() const {
  return backward_final.defined() ? concat({forward_final, backward_final}, -1) : forward_final;
}

Encoder::Encoder(int64_t vocabulary, int64_t embedding_dim, int64_t hidden_size, const RngInput& rng,
                 const EncoderOptions& o)
    : embedding(vocabulary, embedding_dim, rng, {.padding_idx = o.padding_idx}),
      dropout(o.rnn.dropout, rng.caller()),
      rnn("Encoder", embedding_dim, hidden_size, rng, both_ways(o.rnn)),
      annotation_size(hidden_size * rnn.directions()) {}

Encoded Encoder::operator()(const Input& ids, const Tensor& lengths) const {
  At at(ids.caller());
  Scope scope("encoder");
  Var words = embedding(ids);
  words = rnn.options.variational ? variational_dropout(words, dropout.p) : dropout(words);
  RecurrentOutput states = rnn(words, lengths);
  return {states.output, states.forward_final, states.backward_final, length_mask(lengths, ids.size(0))};
}

}  // namespace gradus::nn
