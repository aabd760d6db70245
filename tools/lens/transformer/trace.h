#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dissection.h"

namespace lens::transformer {

/// A number of the engine beside the same by finite differences.
struct Compared {
  /// of Run::parts
  size_t part = 0;
  /// its name; or of "x" and "m" one way: "x, value", "m, key"; of the output, too, "z"
  std::string station;
  /// whose loss
  int64_t step = 0;
  /// of scores and weights
  int64_t head = -1;
  /// An element; (row, -1) a row, (-1, -1) all of it along a random direction of length 1.
  int64_t row = -1, column = -1;
  double engine = 0, numeric = 0;
  /// |engine - numeric| / max(|engine|, |numeric|, floor), see docs/trace-schema.md
  double error = 0;
};

/// The gradient of one target word's loss within one part.
struct PartGradients {
  /// zeros where nothing arrived; undefined as the field is
  std::array<gradus::Tensor, kFields> at = {};
  /// [H, R, C] dL/dalpha_ij = g_i . v_j, g_i what arrives at what head h found for i
  gradus::Tensor gain;
  /// [H, R] the same of the mixture: sum_j alpha_ij gain_ij
  gradus::Tensor mix;
  /// LayerNorm opened, a row each: [R, 4] the mean of x, 1/sigma, mean(dy gamma),
  /// mean(dy gamma xhat).
  gradus::Tensor norm;

  const gradus::Tensor& operator[](Field f) const { return at[f]; }
  /// Of a station: the sum over its fields.
  gradus::Tensor of(const Station& station) const;
};

/// And in the whole network.
struct Gradients {
  std::vector<PartGradients> parts;
  /// [S, 1, E], [T, 1, E] of the words, where they come in
  gradus::Tensor source, target;
  /// [S, 1, E] of the encoder's output, in one piece
  gradus::Tensor memory;
  /// [T, 1, V]
  gradus::Tensor logits;
};

/// Where to look: a part, and of one that attends a head (else -1).
struct Spot {
  size_t part = 0;
  int64_t head = -1;
};

struct Trace {
  Run run;
  /// by target word
  std::vector<Gradients> steps;
  std::vector<Compared> checks;
  /// the step that was compared in full
  int64_t shown = 0;
  /// where
  Spot spot;
  /// the sum over the steps
  double loss = 0;
  /// The same from the network's fused ops; NaN where that has a mask and this none.
  double network_loss = 0;
  // How far identities that hold exactly are off, each the largest over all steps, parts and heads.
  /// |sum of the ways - what arrives in one piece|
  double way_residual = 0;
  /// |sum_j dL/de_ij|
  double score_sum = 0;
  /// |dL/de_ij - alpha_ij (gain_ij - mix_i)|
  double identity_residual = 0;
  /// |LayerNorm's three terms - dL/dx|
  double norm_residual = 0;
  /// of all checks
  double worst() const;
};

/// The step with the largest loss.
int64_t worst_step(const Run& run);
/// What is asked for of a spot; what is left open is -1.
struct Wanted {
  std::optional<Part> part = {};
  int64_t layer = -1, head = -1;
};
/// The head, among those that are wanted, in which the gradient of a step's loss by the scores is largest; of
/// feed-forward parts the layer that the largest gradient arrives at.
Spot strongest(const Trace& trace, int64_t step, const Wanted& wanted = {});
/// Its length there; without a head that of what the part adds to the residual.
double score_gradient(const Trace& trace, int64_t step, const Spot& spot);

/// The losses and their gradients; nothing compared with differences.
/// @throws gradus::Error when the network taken apart does not compute what it computes in one piece.
Trace differentiate(const Dissection& d);
/// Adds `checks`: by central differences, in double precision, on all processors, in always the same order. Of
/// every step, part, station, way and head, all of it along a direction of length 1, and the likeliest logits;
/// of the step `shown`, at the spot, each row of every station, and each number of the row that has the largest
/// gradient. What takes long gets a bar of that name.
void check(const Dissection& d, Trace& trace, const std::string& bar_name = {});

/// The row of a part at which a step's loss is explained: in the decoder the step's own, in the encoder the one
/// that the largest gradient of scores arrives at.
int64_t row_of(const Trace& trace, int64_t step, const Spot& spot);

/// How much gradient of a step's loss comes from target words after the one that comes in at it: 0 with a
/// causal mask.
double gradient_from_later(const Trace& trace, int64_t step);

/// A head of a tensor [1, H, R, C], as [R, C].
gradus::Tensor head_of(const gradus::Tensor& x, int64_t head);

/// Where a step's loss looks, by source word, each adding up to 1: what is drawn in place of gradients, and the
/// gradient itself.
struct Shares {
  /// Attention rollout (Abnar & Zuidema 2020): the weights' mean over heads, half and half with the residual,
  /// multiplied through all layers.
  std::vector<double> rollout;
  /// Weights times what their gradient lowers the loss by, of all heads and layers of cross-attention.
  std::vector<double> weighted;
  /// |dL_t/dx_j|, x the word as it comes into the encoder.
  std::vector<double> gradient;
};
/// With `word_of` by word: those of its pieces added, of the gradient as vectors.
Shares shares_of(const Trace& trace, int64_t step, const std::vector<int32_t>& word_of = {});

}  // namespace lens::transformer
