#include <gradus/nn/encoder.h>

#include <gradus/ops/attention.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {

Var Encoded::final_states() const {
  return backward_final.defined() ? concat({forward_final, backward_final}, -1) : forward_final;
}

Encoder::Encoder(int64_t vocabulary, int64_t embedding_dim, int64_t hidden_size, Rng& rng, const EncoderOptions& o)
    : embedding(vocabulary, embedding_dim, rng, {.padding_idx = o.padding_idx}),
      dropout(o.dropout),
      rnn(embedding_dim, hidden_size, rng,
          {.num_layers = o.num_layers, .dropout = o.dropout, .bidirectional = o.bidirectional}),
      annotation_size(hidden_size * (o.bidirectional ? 2 : 1)) {}

Encoded Encoder::operator()(const Tensor& ids, const Tensor& lengths) const {
  Scope scope("encoder");
  RecurrentOutput states = rnn(dropout(embedding(ids)), lengths);
  return {states.output, states.forward_final, states.backward_final, length_mask(lengths, ids.size(0))};
}

void Encoder::params(ParamVisitor& visit) {
  visit("embedding", embedding);
  visit("rnn", rnn);
}

}  // namespace gradus::nn
