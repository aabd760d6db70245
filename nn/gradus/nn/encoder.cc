#include <gradus/nn/encoder.h>

#include <gradus/ops/attention.h>
#include <gradus/ops/dropout.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {

Var Encoded::final_states(Caller caller) const {
  At at(caller);
  return backward_final.defined() ? concat({forward_final, backward_final}, -1) : forward_final;
}

Encoder::Encoder(int64_t vocabulary, int64_t embedding_dim, int64_t hidden_size, Rng& rng,
                 const EncoderOptions& o, Caller caller)
    : embedding(vocabulary, embedding_dim, rng, {.padding_idx = o.padding_idx}, caller),
      dropout(o.dropout, caller),
      rnn({.name = "Encoder",
           .cell = o.cell,
           .input_size = embedding_dim,
           .hidden_size = hidden_size,
           .num_layers = o.num_layers,
           .bidirectional = o.bidirectional,
           .dropout = o.dropout,
           .variational = o.variational,
           .recurrent_dropout = o.recurrent_dropout,
           .residual = o.residual},
          rng, caller),
      annotation_size(hidden_size * (o.bidirectional ? 2 : 1)) {}

Encoded Encoder::operator()(const Tensor& ids, const Tensor& lengths, Caller caller) const {
  At at(caller);
  Scope scope("encoder");
  Var words = embedding(ids);
  words = rnn.shape.variational ? variational_dropout(words, dropout.p) : dropout(words);
  RecurrentOutput states = rnn(words, lengths);
  return {states.output, states.forward_final, states.backward_final, length_mask(lengths, ids.size(0))};
}

void Encoder::params(ParamVisitor& visit) {
  visit("embedding", embedding);
  visit("rnn", rnn);
}

}  // namespace gradus::nn
