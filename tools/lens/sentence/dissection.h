#pragma once

#include <cstdint>
#include <vector>

#include <gradus/nn/seq2seq.h>

#include "anatomy.h"
#include "reading.h"

namespace lens {

/// One target word. Everything is under teacher forcing: `previous` comes in, `target` should come out.
struct Step {
  int64_t t = 0;
  int32_t previous = 0, target = 0;
  // What comes in.
  /// [1, E] embedding of `previous`
  gradus::Var word;
  /// [1, H]
  gradus::Var state_before;
  /// [1, H] of an LSTM
  gradus::Var cell_before;
  /// [1, R] with input feeding
  gradus::Var feed;
  gradus::Var value_annotations,
      /// [S, 1, D], the same numbers: one for each path of the gradient
      score_annotations;
  gradus::nn::AttentionState attention_before;
  // What is computed.
  Attending attending;
  gradus::Var state, cell, readout, logits, probabilities, loss;
};

/// A translator's network taken apart for one sentence pair: the library's modules, called in pieces. Needs a
/// network in double precision; refers to it.
class Dissection {
 public:
  /// source ends with </s>; target without <s> and </s>.
  /// @throws gradus::Error when the network has no attention, or one that is known to be no softmax of scores.
  Dissection(const gradus::nn::Seq2Seq& network, std::vector<int32_t> source,
             const std::vector<int32_t>& target);

  /// Reads the source and takes all steps.
  void run(Reading& reading, std::vector<Step>& steps) const;
  /// Losses of the first `count` steps, a row for each shift of read_source. Without a graph.
  std::vector<std::vector<double>> shifted_losses(const std::vector<gradus::Tensor>& shifts,
                                                  size_t count) const;
  /// Computes a step's stages from number `from` of `stages` on, the earlier ones being there, up to `last`.
  void compute(Step& step, size_t from = 0, Stage last = Stage::loss) const;
  /// The same for variants of one step, where weights are large with one product for all. Without a graph.
  void compute_all(std::vector<Step>& variants, size_t from, Stage last) const;

  const std::vector<Stage>& stages() const { return stages_; }
  bool luong_order() const { return decoder_.order == gradus::nn::Order::after_cell; }
  const Anatomy& anatomy() const { return anatomy_; }
  const gradus::nn::Seq2Seq& network() const { return network_; }
  const gradus::nn::RecurrentDecoder& decoder() const { return decoder_; }
  const std::vector<int32_t>& source() const { return source_; }
  /// with </s>
  const std::vector<int32_t>& target() const { return target_; }
  /// The sum of the losses, as the network itself computes it.
  double network_loss() const;

 private:
  struct Walk;
  void start(Walk& walk, const Reading& reading) const;
  void enter(Walk& walk, Step& step, const Reading& reading, size_t t) const;
  void leave(Walk& walk, const Step& step) const;
  void compute_stage(Step& step, Stage stage) const;

  const gradus::nn::Seq2Seq& network_;
  const gradus::nn::RecurrentDecoder& decoder_;
  std::vector<int32_t> source_, target_;
  Anatomy anatomy_;
  std::vector<Stage> stages_;
};

/// -log softmax(logits)_target, as log(1 + exp(logsumexp of the others - logit_target)). It has all its digits
/// however small it is: 1 - p is never formed, so that finite differences of the loss of a sure step mean
/// something.
double exact_loss(const gradus::Tensor& logits, int64_t target);
/// Of logits [T, B, V], [B][T].
std::vector<std::vector<double>> exact_losses(const gradus::Tensor& logits,
                                              const std::vector<int32_t>& target);

}  // namespace lens
