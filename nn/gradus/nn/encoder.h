#pragma once

#include <gradus/nn/dropout.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/recurrent.h>

namespace gradus::nn {

/// A source, read.
struct Encoded {
  /// [S, B, D], one per source word; 0 at padding
  Var annotations;
  /// [B, H], the forward state after the last word; in reverse, after the first
  Var forward_final;
  /// [B, H], the backward state after the first word; undefined unless bidirectional
  Var backward_final;
  /// u8 [B, S], 1 = real
  Tensor mask;
  /// [T, B, S] weights from outside, for attentions that take them; undefined: none
  Tensor alignment = {};

  /// [B, H]: one state that has read the whole source, backward if there is one (s_0 of Bahdanau et al. 2014).
  const Var& summary() const { return backward_final.defined() ? backward_final : forward_final; }
  /// [B, D]: all final states, what a decoder without attention has to live on.
  Var final_states() const;
};

struct EncoderOptions {
  int32_t padding_idx = 1;
  /// Both ways unless said otherwise; its dropout is on the embeddings, too
  RecurrentOptions rnn = {};
};

/// Embedding and recurrent layers over a source (Bahdanau et al. 2014, appendix A.1.1). Annotations are
/// [forward ; backward] states, D = 2H, or those of one direction, D = H; in the order of the source whichever
/// way it is read.
struct Encoder {
  Embedding embedding;
  Dropout dropout;
  RecurrentStack rnn;
  int64_t annotation_size;

  Encoder(int64_t vocabulary, int64_t embedding_dim, int64_t hidden_size, const RngInput& rng,
          const EncoderOptions& options = {});
  /// ids i32 [S, B], lengths i32 [B].
  Encoded operator()(const Input& ids, const Tensor& lengths) const;
  void params(ParamVisitor& visit) {
    visit("embedding", embedding);
    visit("rnn", rnn);
  }
};

}  // namespace gradus::nn
