#pragma once

#include <exception>
#include <memory>
#include <optional>

#include <gradus/nn/attention/formed.h>
#include <gradus/nn/decoder.h>
#include <gradus/nn/packed/steps.h>
#include <gradus/nn/packed/encoder.h>

namespace gradus::nn::packed {

/// The weights of a GRU decoder, grouped by the vector that they multiply, so that a step reads each one once:
///   the word (and attention vector fed back)   W_ih's share and the readout's
///   the new state                              W_hh and W1 for the next step, the readout's share for this one
///   the annotations, once for each source      W2, and W_ih's and the readout's share of the context
/// The context c = sum_s a_s H_s is needed only as W c = sum_s a_s (W H_s). So the annotations are projected
/// once for each source, and a step only adds up these "values", without reading W again (but where the
/// attention is its `own`, which makes contexts).
struct DecoderWeights {
  int64_t E, H, A = 0;
  /// of scores / temperature; none without attention, and where it is `own`
  std::optional<ScoreForm> form;
  /// one that the kernels do not have: it takes its own steps, row by row
  const Attention* own = nullptr;
  /// Bahdanau's order (and no attention at all): the context enters the cell
  bool context_first;
  /// input feeding
  bool feed;
  /// Length of a value: 3H + Q where it enters the cell and the readout, Q (H, 2H for maxout) in Luong's order.
  int64_t context;
  const Embedding* embedding;
  GateNorm norm_ih, norm_hh;
  const float *b_ih, *b_hh, *readout_bias;
  /// the readout is the larger of each two, else tanh
  bool maxout;
  Matrix input, state, value, key, bridge, out;
  /// where the readout's share begins in a state's product
  int64_t readout_at;

  /// False when there is no such form of it: one's own decoder, another cell than the GRU, plain or
  /// layer-normalised, more layers, or not f32.
  static bool fits(const Decoder& decoder, const Linear& output);
  /// Of what fits.
  DecoderWeights(const RecurrentDecoder& decoder, const Linear& output, const Layout& layout);
};

/// Decoding by these weights. All memory is there after the first step.
class PackedDecoder : public PackedSteps {
 public:
  PackedDecoder(std::shared_ptr<const DecoderWeights> weights, const Annotations& source,
                const IncrementalOptions& options);
  void select(const std::vector<int64_t>& rows) override;
  void join(const IncrementalDecoder& started) override;

 private:
  Tensor run(const Tensor& previous) override;
  void run_step(int member);
  void attend(const Share& rows);
  void look(const Share& rows);
  void read_out(const Share& rows);

  std::shared_ptr<const DecoderWeights> w_;
  std::function<void(int)> job_ = [this](int member) { run_step(member); };
  // What steps look at: keys and values of so many words (without attention the one value), of additive scores
  // exp(2 keys), unless the numbers are too large for that, and the memory of an attention with its own steps.
  struct Source {
    int64_t words;
    Tensor keys, values, exp_keys;
    bool by_exp = false;
    AttentionMemory memory = {};
  };
  const Source& source_of(int64_t row) const {
    return sources_[static_cast<size_t>(sentences_.of_rows()[static_cast<size_t>(row)])];
  }

  // By sentence.
  std::vector<Source> sources_;
  RowSentences sentences_;
  int64_t S_ = 0;
  // exp(2 query)
  Tensor exp_query_;
  // By row: input [E (+ H)], its product, state [H], its product, context, readout [H].
  Tensor input_, input_spare_, of_input_, state_, state_spare_, of_state_, of_state_spare_, context_,
      readout_;
  // Where the attention takes its own steps: its state by row, the contexts, by member what it threw.
  std::vector<AttentionState> looked_;
  Tensor found_;
  std::vector<std::exception_ptr> faults_;
};

}  // namespace gradus::nn::packed
