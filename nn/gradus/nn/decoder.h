#pragma once

#include <memory>

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/dropout.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/encoder.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/recurrent_cell.h>

namespace gradus::nn {

/// What a decoder carries from one target word to the next.
struct DecoderState {
  Var hidden;              ///< [B, H]
  Var feed;                ///< [B, R] the last attention vector, where it is fed back (input feeding)
  AttentionMemory memory;  ///< of the source; undefined without attention
  Var summary;             ///< [B, D], the fixed context of a decoder without attention
  Var c = {};              ///< [B, H] of an LSTM, zeros (undefined) at first; otherwise undefined
  AttentionState attention = {};  ///< what the attention's steps hand on to each other

  /// The rows rows[0], rows[1], ... (i32 [N]) of everything it holds, the source included; one may be taken several times.
  /// @throws Error for a row that does not exist.
  DecoderState rows(const Tensor& rows, Caller caller = Caller::current()) const;
  /// The same without the source: for a beam, where a row takes the place of another one of the same sentence.
  DecoderState reordered(const Tensor& rows, Caller caller = Caller::current()) const;
};

/// Readout vectors go through the output layer to become logits.
struct DecoderStep {
  Var readout;     ///< [B, R]
  Tensor weights;  ///< [B, S]; undefined without attention
  Var log_probability =
      {};  ///< [B] of the position that hard attention drew in training; undefined elsewhere
};

struct DecoderOutputs {
  Var readout;     ///< [T, B, R]
  Tensor weights;  ///< [T, B, S]; undefined without attention
  Var log_probability = {};  ///< [T, B], as in DecoderStep
};

struct DecoderSizes {
  int64_t vocabulary, embedding_dim, hidden_size;
  int64_t annotation_size;  ///< D of the encoder
  int64_t summary_size;     ///< H of the encoder
};

enum class ReadoutKind { tanh, maxout };

struct DecoderOptions {
  double dropout = 0;        ///< on embeddings and readout
  int32_t padding_idx = 1;
  bool input_feeding = false;  ///< Luong only
  bool fused = true;           ///< false: always step by step, for tests and readers
  ReadoutKind readout = ReadoutKind::tanh;
  CellType cell = {};  ///< the unit; the fused op of additive attention knows only the GRU, reset after
};

/// What makes one vector of all that is known at a step, [.., in] -> [.., R]:
///   tanh:   tanh(W x + b)                                      W [R, in]     Luong et al. 2015
///   maxout: t = W x + b, out_k = max(t_{2k}, t_{2k+1})         W [2R, in]    Goodfellow et al. 2013; Bahdanau et al. 2014
struct Readout {
  Linear linear;
  ReadoutKind kind;

  Readout(int64_t in_features, int64_t out_features, ReadoutKind kind, Rng& rng,
          Caller caller = Caller::current());
  Var operator()(const Input& x) const;
  void params(ParamVisitor& visit) { linear.params(visit); }
};

/// One interface for all decoders. R, the readout's size, is hidden_size.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual DecoderState start(const Encoded& source, Caller caller = Caller::current()) const = 0;
  /// One target word for each sentence: previous words i32 [B]. Changes the state.
  virtual DecoderStep step(const Tensor& previous, DecoderState& state,
                           Caller caller = Caller::current()) const = 0;
  /// A whole target under teacher forcing: previous words i32 [T, B]. Step by step unless a decoder knows better.
  virtual DecoderOutputs operator()(const Tensor& previous, const Encoded& source,
                                     Caller caller = Caller::current()) const;
  /// The same for a loss, which looks at real steps only: lengths i32 [B] of the targets -> readout [N, R], its rows in
  /// the order of real_rows(lengths, T). What weights and log_probability hold behind the lengths is not specified.
  virtual DecoderOutputs real_steps(const Tensor& previous, const Encoded& source, const Tensor& lengths,
                                     Caller caller = Caller::current()) const;
  virtual void params(ParamVisitor& visit) = 0;
};

/// Steps of each target up to its last word that is not padding: ids i32 [T, B] -> i32 [B].
Tensor target_lengths(const Tensor& ids, int32_t padding_idx, Caller caller = Caller::current());
/// The words of those steps, i32 [N] in the order of the readouts.
Tensor target_words(const Tensor& ids, const Tensor& lengths, Caller caller = Caller::current());

/// Bahdanau et al. 2014: the query is the previous state, the context enters the cell.
///   s_{-1} = tanh(W_b summary + b)
///   c_t = attention(s_{t-1});  s_t = cell([E y_{t-1} ; c_t], s_{t-1});  readout_t = f(W_r [s_t ; c_t ; E y_{t-1}] + b)
/// with f tanh or, as in the paper, maxout (whose appendix reads s_{t-1} out, its main text s_t). Takes any attention;
/// with additive, concat or concat-identity the whole target is one fused op.
struct BahdanauDecoder : Decoder {
  Embedding embedding;
  Dropout dropout;
  std::unique_ptr<Attention> attention;
  RecurrentCell cell;
  Linear bridge;
  Readout readout;
  bool fused;

  BahdanauDecoder(const DecoderSizes& sizes, std::unique_ptr<Attention> attention, Rng& rng,
                  const DecoderOptions& options = {}, Caller caller = Caller::current());
  DecoderState start(const Encoded& source, Caller caller = Caller::current()) const override;
  DecoderStep step(const Tensor& previous, DecoderState& state,
                   Caller caller = Caller::current()) const override;
  DecoderOutputs operator()(const Tensor& previous, const Encoded& source,
                            Caller caller = Caller::current()) const override;
  DecoderOutputs real_steps(const Tensor& previous, const Encoded& source, const Tensor& lengths,
                            Caller caller = Caller::current()) const override;
  void params(ParamVisitor& visit) override;
};

/// Luong et al. 2015: the query is the new state, the context comes after the cell.
///   h_t = cell([E y_{t-1} ; a_{t-1}], h_{t-1})     (a_{t-1} only with input feeding, a_{-1} = 0)
///   c_t = attention(h_t);  a_t = f(W_c [c_t ; h_t] + b)   the attention vector; f tanh as in the paper, or maxout
/// Takes any attention. Without input feeding the states do not wait for contexts: all first, then attention for all.
struct LuongDecoder : Decoder {
  Embedding embedding;
  Dropout dropout;
  std::unique_ptr<Attention> attention;
  RecurrentCell cell;
  Linear bridge;
  Readout attention_vector;
  bool input_feeding, fused;

  LuongDecoder(const DecoderSizes& sizes, std::unique_ptr<Attention> attention, Rng& rng,
               const DecoderOptions& options = {}, Caller caller = Caller::current());
  DecoderState start(const Encoded& source, Caller caller = Caller::current()) const override;
  DecoderStep step(const Tensor& previous, DecoderState& state,
                   Caller caller = Caller::current()) const override;
  DecoderOutputs operator()(const Tensor& previous, const Encoded& source,
                            Caller caller = Caller::current()) const override;
  DecoderOutputs real_steps(const Tensor& previous, const Encoded& source, const Tensor& lengths,
                            Caller caller = Caller::current()) const override;
  void params(ParamVisitor& visit) override;
};

/// Cho et al. 2014, without attention: one fixed vector, the summary [B, D] (the final states of all directions), stands where
/// the context would be at every step.
///   s_t = cell([E y_{t-1} ; summary], s_{t-1});  readout_t = f(W_r [s_t ; summary ; E y_{t-1}] + b)
struct PlainDecoder : Decoder {
  Embedding embedding;
  Dropout dropout;
  RecurrentCell cell;
  Linear bridge;
  Readout readout;
  bool fused;

  PlainDecoder(const DecoderSizes& sizes, Rng& rng, const DecoderOptions& options = {},
               Caller caller = Caller::current());
  DecoderState start(const Encoded& source, Caller caller = Caller::current()) const override;
  DecoderStep step(const Tensor& previous, DecoderState& state,
                   Caller caller = Caller::current()) const override;
  DecoderOutputs operator()(const Tensor& previous, const Encoded& source,
                            Caller caller = Caller::current()) const override;
  void params(ParamVisitor& visit) override;
};

}  // namespace gradus::nn
