#pragma once

#include <memory>
#include <vector>

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/dropout.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/encoder.h>
#include <gradus/nn/incremental.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/recurrent_cell.h>

namespace gradus::nn {

/// What a decoder carries from one target word to the next.
struct DecoderState {
  /// [B, H]
  Var hidden;
  /// [B, R] the last attention vector, where it is fed back (input feeding)
  Var feed;
  /// Of the source; undefined without attention
  AttentionMemory memory;
  /// [B, D], the fixed context of a decoder without attention
  Var summary;
  /// [B, H] of an LSTM, zeros (undefined) at first; otherwise undefined
  Var c = {};
  /// Of the layers above the first
  std::vector<RecurrentState> above = {};
  AttentionState attention = {};

  /// The rows rows[0], rows[1], ... (i32 [N]) of everything it holds, the source included; one may be taken
  /// several times. @throws Error for a row that does not exist.
  DecoderState rows(const Tensor& rows) const;
  /// The same without the source: for a beam, where a row takes the place of another one of the same sentence.
  DecoderState reordered(const Tensor& rows) const;
};

/// Of one step. Readout vectors go through the output layer to become logits.
struct DecoderStep {
  /// [B, R]
  Var readout;
  /// [B, S]; undefined without attention
  Tensor weights;
  /// [B] of the position that hard attention drew in training; undefined elsewhere.
  Var log_probability = {};
  /// [B, H], what the attention was asked with; of a whole target where that is wanted
  Var query = {};
};
/// Of T steps: the same with an axis T before the others, or readouts [N, R] of the real steps.
using DecoderOutputs = DecoderStep;

struct DecoderSizes {
  int64_t vocabulary, embedding_dim, hidden_size;
  /// D and H of the encoder
  int64_t annotation_size, summary_size;
};

enum class ReadoutKind { tanh, maxout };

/// Whether a decoder attends before the cell (Bahdanau et al. 2014) or after it (Luong et al. 2015).
enum class Order { before_cell, after_cell };

struct DecoderOptions {
  /// On embeddings, readout and what goes from layer to layer
  double dropout = 0;
  int64_t num_layers = 1;
  /// Each layer but the first adds its input to its output
  bool residual = false;
  int32_t padding_idx = 1;
  Order order = Order::before_cell;
  /// After the cell only
  bool input_feeding = false;
  /// false: always step by step, for tests and readers
  bool fused = true;
  ReadoutKind readout = ReadoutKind::tanh;
  /// The unit; the fused op of additive attention knows only the GRU, reset after
  CellType cell = {};
};

/// What makes one vector of all that is known at a step, [.., in] -> [.., R]:
///   tanh:   tanh(W x + b)                                      W [R, in]     Luong et al. 2015
///   maxout: t = W x + b, out_k = max(t_{2k}, t_{2k+1})         W [2R, in]    Goodfellow et al. 2013
struct Readout {
  Linear linear;
  ReadoutKind kind;

  Readout(int64_t in_features, int64_t out_features, ReadoutKind kind, const RngInput& rng);
  Var operator()(const Input& x) const;
  void params(ParamVisitor& visit) { linear.params(visit); }
};

struct TeacherForcing {
  /// i32 [B], real steps of each target; undefined: all T
  Tensor lengths = {};
  /// Whether DecoderOutputs::query is wanted
  bool queries = false;
};

/// One interface for all decoders. R, the readout's size, is hidden_size.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual DecoderState start(const Encoded& source) const = 0;
  /// One target word for each sentence: previous words i32 [B]. Changes the state.
  virtual DecoderStep step(const Tensor& previous, DecoderState& state) const = 0;
  /// A whole target: previous words i32 [T, B] -> readout [T, B, R]. With lengths, for a loss that looks at
  /// real steps only, readout [N, R], its rows in the order of real_rows(lengths, T); what weights and
  /// log_probability hold behind the lengths is not specified. Step by step unless a decoder knows better.
  virtual DecoderOutputs teacher_forced(const Tensor& previous, const Encoded& source,
                                        const TeacherForcing& options = {}) const;
  virtual void params(ParamVisitor& visit) = 0;
};

/// Steps of each target up to its last word that is not padding: ids i32 [T, B] -> i32 [B].
Tensor target_lengths(const Tensor& ids, int32_t padding_idx);
/// The words of those steps, i32 [N] in the order of the readouts.
Tensor target_words(const Tensor& ids, const Tensor& lengths);

/// The columns of a weight by the parts of its input; none for a part that does not enter.
struct InputColumns {
  WeightPart word = {}, context = {}, state = {};
};

/// The recurrent decoders of three papers. A step is attention and cell, in either order, then the readout:
///   before_cell, Bahdanau et al. 2014              after_cell, Luong et al. 2015
///     c_t = attention(s_{t-1})                       s_t = cell([E y_{t-1} ; r_{t-1}], s_{t-1})
///     s_t = cell([E y_{t-1} ; c_t], s_{t-1})         c_t = attention(s_t)
///     r_t = f(W_r [s_t ; c_t ; E y_{t-1}] + b)       r_t = f(W_r [c_t ; s_t] + b), "the attention vector"
/// with s_{-1} = tanh(W_b summary + b), r_{-1} = 0, and f tanh or, as in Bahdanau's paper, maxout. (Its
/// appendix has s_{t-1} in the readout, its main text s_t.) r_{t-1} enters the cell only with input feeding.
/// Without attention (Cho et al. 2014) the order is before_cell, and the final states of all directions [B, D]
/// are both the summary and the context of every step.
///
/// Further layers stand upon the cell, each with the states of the one below as its input: h_t the highest
/// state, s_t the lowest. Bahdanau's attention is asked by s_{t-1}, Luong's by h_t; the readout is made of h_t.
/// All layers start from the same state.
///
/// Takes any attention. Teacher forcing is one fused op if the order is before_cell, the cell a plain GRU and
/// the attention states an additive form. After the cell without input feeding, and without attention, no state
/// depends on an attended context, so the cell runs over the whole target first. Otherwise step by step.
/// Parameters: embedding, attention, cell, above, bridge (W_b), readout (W_r; after the cell
/// "attention_vector").
struct RecurrentDecoder final : Decoder {
  Order order;
  bool input_feeding, fused;
  Embedding embedding;
  Dropout dropout;
  /// null: none
  std::unique_ptr<Attention> attention;
  int64_t context_size;
  RecurrentCell cell;
  /// The layers upon the cell, lowest first
  std::vector<RecurrentCell> above;
  bool residual;
  Linear bridge;
  Readout readout;

  /// @throws Error for the order after_cell without an attention.
  RecurrentDecoder(const DecoderSizes& sizes, std::unique_ptr<Attention> attention, const RngInput& rng,
                   const DecoderOptions& options = {});
  DecoderState start(const Encoded& source) const override;
  DecoderStep step(const Tensor& previous, DecoderState& state) const override;
  DecoderOutputs teacher_forced(const Tensor& previous, const Encoded& source,
                                const TeacherForcing& options = {}) const override;
  void params(ParamVisitor& visit) override;
  /// What the layers above make of the first one's states: of a step [B, H] (theirs change) or all [T, B, H].
  Var climb(Var state, std::vector<RecurrentState>& above) const;

  // What the orders differ in. Whoever takes a step calls these; who lays its weights out reads the columns.

  /// Of the cell: word [.., E] beside context [.., D], or after the cell beside what is fed back [.., R].
  Var cell_input(const Input& word, const Var& context, const Var& feed) const;
  /// Of the readout, from the new state [.., H], the highest. With lengths, of real steps alone,
  /// [T, B, ..] -> [N, ..]. Before the cell the state may come with its context beside it, [.., H + D], and
  /// none be given.
  Var readout_input(const Input& state, const Var& context, const Var& word,
                    const Tensor& lengths = {}) const;
  /// Of cell.weight_ih; what is fed back belongs to the word.
  InputColumns cell_columns() const;
  /// Of readout.linear.weight.
  InputColumns readout_columns() const;
};

/// The decoder as one of those; null when it is one's own.
const RecurrentDecoder* as_recurrent(const Decoder& decoder);

/// The generator of an encoder, any decoder and an output layer: Decoder::step, and copies of what its rows
/// need. The plain way, which the fast ones are tested against.
std::unique_ptr<Generator> composed_generator(const Encoder& encoder, const Decoder& decoder,
                                              const Linear& output);

/// The same with packed weights. It needs the library's encoder, not residual, and decoder of one layer, GRUs
/// (reset after, layer-normalised or not) in f32; otherwise, and with hidden positions, this is
/// composed_generator. An attention that states no form of its scores, or cuts, takes its own steps; with
/// others nothing is allocated after the first. A translation depends neither on its batch nor on threads.
/// With AMX, many rows are searched by another product than few, which rounds differently.
std::unique_ptr<Generator> make_generator(const Encoder& encoder, const Decoder& decoder,
                                          const Linear& output, const GeneratorOptions& options = {});

}  // namespace gradus::nn
