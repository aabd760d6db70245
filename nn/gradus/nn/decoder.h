#pragma once

#include <memory>

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/dropout.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/encoder.h>
#include <gradus/nn/gru.h>
#include <gradus/nn/linear.h>

namespace gradus::nn {

/// What a decoder carries from one target word to the next.
struct DecoderState {
  Var hidden;              ///< [B, H]
  Var feed;                ///< [B, R] the last attention vector, where it is fed back (input feeding)
  AttentionMemory memory;  ///< of the source; undefined without attention
  Var summary;             ///< [B, D], the fixed context of a decoder without attention
};

/// Readout vectors go through the output layer to become logits.
struct DecoderStep {
  Var readout;     ///< [B, R]
  Tensor weights;  ///< [B, S]; undefined without attention
};

struct DecoderOutputs {
  Var readout;     ///< [T, B, R]
  Tensor weights;  ///< [T, B, S]; undefined without attention
};

struct DecoderSizes {
  int64_t vocabulary, embedding_dim, hidden_size;
  int64_t annotation_size;  ///< D of the encoder
  int64_t summary_size;     ///< H of the encoder
};

struct DecoderOptions {
  double dropout = 0;        ///< on embeddings and readout
  int32_t padding_idx = 1;
  bool input_feeding = false;  ///< Luong only
  bool fused = true;           ///< false: always step by step, for tests and readers
};

/// One interface for all decoders. R, the readout's size, is hidden_size.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual DecoderState start(const Encoded& source) const = 0;
  /// One target word for each sentence: previous words i32 [B]. Changes the state.
  virtual DecoderStep step(const Tensor& previous, DecoderState& state) const = 0;
  /// A whole target under teacher forcing: previous words i32 [T, B]. Step by step unless a decoder knows better.
  virtual DecoderOutputs operator()(const Tensor& previous, const Encoded& source) const;
  virtual void params(ParamVisitor& visit) = 0;
};

/// Bahdanau et al. 2014: the query is the previous state, the context enters the cell.
///   s_{-1} = tanh(W_b summary + b)
///   c_t = attention(s_{t-1});  s_t = GRU([E y_{t-1} ; c_t], s_{t-1});  readout_t = tanh(W_r [s_t ; c_t ; E y_{t-1}] + b)
/// (the paper's readout is maxout over the same three). Takes any attention; with the additive one the whole target is
/// one fused op.
struct BahdanauDecoder : Decoder {
  Embedding embedding;
  Dropout dropout;
  std::unique_ptr<Attention> attention;
  GRUCell cell;
  Linear bridge, readout;
  bool fused;

  BahdanauDecoder(const DecoderSizes& sizes, std::unique_ptr<Attention> attention, Rng& rng,
                  const DecoderOptions& options = {});
  DecoderState start(const Encoded& source) const override;
  DecoderStep step(const Tensor& previous, DecoderState& state) const override;
  DecoderOutputs operator()(const Tensor& previous, const Encoded& source) const override;
  void params(ParamVisitor& visit) override;
};

/// Luong et al. 2015: the query is the new state, the context comes after the cell.
///   h_t = GRU([E y_{t-1} ; a_{t-1}], h_{t-1})      (a_{t-1} only with input feeding, a_{-1} = 0)
///   c_t = attention(h_t);  a_t = tanh(W_c [c_t ; h_t] + b)   the attention vector
struct LuongDecoder : Decoder {
  Embedding embedding;
  Dropout dropout;
  std::unique_ptr<Attention> attention;
  GRUCell cell;
  Linear bridge, attention_vector;
  bool input_feeding, fused;

  LuongDecoder(const DecoderSizes& sizes, std::unique_ptr<Attention> attention, Rng& rng,
               const DecoderOptions& options = {});
  DecoderState start(const Encoded& source) const override;
  DecoderStep step(const Tensor& previous, DecoderState& state) const override;
  DecoderOutputs operator()(const Tensor& previous, const Encoded& source) const override;
  void params(ParamVisitor& visit) override;

 private:
  DecoderStep read(const Var& hidden, const AttentionMemory& memory) const;
};

/// Cho et al. 2014, without attention: one fixed vector, the summary [B, D] (the final states of all directions), stands where
/// the context would be at every step.
///   s_t = GRU([E y_{t-1} ; summary], s_{t-1});  readout_t = tanh(W_r [s_t ; summary ; E y_{t-1}] + b)
struct PlainDecoder : Decoder {
  Embedding embedding;
  Dropout dropout;
  GRUCell cell;
  Linear bridge, readout;
  bool fused;

  PlainDecoder(const DecoderSizes& sizes, Rng& rng, const DecoderOptions& options = {});
  DecoderState start(const Encoded& source) const override;
  DecoderStep step(const Tensor& previous, DecoderState& state) const override;
  DecoderOutputs operator()(const Tensor& previous, const Encoded& source) const override;
  void params(ParamVisitor& visit) override;
};

}  // namespace gradus::nn
