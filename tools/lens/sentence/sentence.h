#pragma once

#include <span>
#include <string>
#include <vector>

#include "dissection.h"

namespace lens {

/// A number of the engine beside the same by finite differences.
struct Compared {
  /// "e", "c", ... or "h"
  std::string station;
  int64_t step = 0;
  /// Where: an element of the station's grid; (row, -1), a row along a random direction of length 1; (-1,
  /// column), a column or, of "h", the columns from there on to the next that was compared.
  int64_t row = 0, column = -1;
  double engine = 0, numeric = 0;
  /// |engine - numeric| / max(|engine|, |numeric|, 10^-4 of the grid's largest), see docs/trace-schema.md.
  double error = 0;
};

/// The gradient of one step's loss L_t, taken apart.
struct StepGradients {
  /// By station: s_prev, q, k, u, e, alpha, c, s, a, z, p; undefined where there is none, or nothing arrived.
  gradus::Tensor at(const std::string& station) const;
  std::vector<std::pair<std::string, gradus::Tensor>> stations;
  // dL_t/dh_j by the way it came, [S, D] each; they add up to `full`.
  /// through this step's mixture: alpha_tj g_t
  gradus::Tensor value;
  /// through this step's scores
  gradus::Tensor score;
  /// through what the steps before this one read of h_j
  gradus::Tensor earlier;
  /// through the encoder's next state (previous one, backwards)
  gradus::Tensor neighbours;
  /// through the decoder's first state
  gradus::Tensor start;
  /// what arrived at the states, in one piece
  gradus::Tensor full;
  /// [S, E] dL_t/dx_j, what of it arrived at the words' embeddings
  gradus::Tensor words;
  /// false: the scores do not read the annotations at all
  bool score_path = false;
  /// [M, S] dL_t/dalpha_tj = g_t . (what word j puts into the mixture)
  gradus::Tensor gain;
  /// [M] the same of the mixture: sum_j alpha_tj gain_tj
  gradus::Tensor mix;
};

/// A sentence pair with every step's gradient, and every gradient checked.
struct SentenceTrace {
  Reading reading;
  std::vector<Step> steps;
  std::vector<StepGradients> gradients;
  std::vector<Compared> checks;
  /// the step that was compared in full
  int64_t shown = 0;
  /// sum of the steps' losses
  double loss = 0;
  /// the same from the network's fused ops
  double network_loss = 0;
  // How far identities that hold exactly are off, each the largest over all steps.
  /// |sum of the paths - full|
  double path_residual = 0;
  /// |sum_j dL/de_tj|
  double score_sum = 0;
  /// |dL/de_tj - alpha_tj (gain_tj - mix_t) / temperature|
  double identity_residual = 0;
  /// of all checks
  double worst() const;
};

/// What was compared of a station in a step, of h path by path, too.
struct StationChecks {
  int64_t count = 0;
  /// nullptr: nothing was
  const Compared* worst = nullptr;
};
StationChecks checks_of(const SentenceTrace& trace, int64_t step, const std::string& station);

/// The stations of a step in the order in which they are computed.
std::vector<std::string> station_names(const Dissection& d);
/// The value at a station; undefined where the step has no such.
const gradus::Var& station(const Step& step, const std::string& name);
/// A station's name in words: "context".
std::string station_title(const std::string& name, bool luong_order);
struct StationInfo {
  const char *name, *title;
  /// of s_prev and h, which come in, without meaning
  Stage made;
  /// a row for each source word
  bool by_word;
  gradus::Var& (*place)(Step&);
};
/// What is computed in a step, before it is known which of them a model has.
std::span<const StationInfo> stations_made();

/// @throws gradus::Error when a network's loss, put together of its parts, is not finite or not that of the
/// whole; @param otherwise What it means that they differ.
void require_same_loss(double apart, double whole, const std::string& otherwise);
/// What keeps a network's attention from being taken apart.
std::string more_than_softmax(const gradus::nn::Seq2Seq& network);

/// The loss and its gradients, nothing compared with differences.
/// @throws gradus::Error as trace_sentence does.
SentenceTrace differentiate(const Dissection& d);
/// The same with `checks`.
/// @param shown the step to compare in full; -1: the one with the largest loss.
/// @param bar_name as run_jobs has it
/// @throws gradus::Error when the taken-apart network does not compute what the network computes: then its
/// attention does something between scores and context that a softmax does not.
SentenceTrace trace_sentence(const Dissection& d, int64_t shown = -1, const std::string& bar_name = {});

/// A step's weights by source word, the mean of its heads.
std::vector<float> mean_weights(const Step& step);

/// The gradient of a target word's loss, which is the sum of its pieces', by the way it came: value, score,
/// earlier, neighbours, start, full and words, a row for each source word, in which its pieces' rows are added.
/// `*_word_of` as in translator::Segmented, </s> among them.
StepGradients gradients_of_word(const SentenceTrace& trace, int32_t word,
                                const std::vector<int32_t>& target_word_of,
                                const std::vector<int32_t>& source_word_of);

/// Compares the gradients of a trace with central differences, in double precision, on all processors. Shown
/// step: every element of vectors and of matrices of up to kMatrixElements; each row and each column of larger
/// ones, along a direction of length 1. Other steps: some elements, some random directions, and the rows of the
/// annotations. The results are always in the same order. What takes long gets a bar of that name.
std::vector<Compared> check_trace(const Dissection& d, const SentenceTrace& trace,
                                  const std::string& bar_name = {});
constexpr int64_t kMatrixElements = 1024;
/// Numbers that are small within their grid are compared with this part of the largest number in it: a sum of
/// many terms of that size is not known better.
constexpr double kFloor = 1e-4;
/// A gradient is known to this part of its loss: the last digits of that, which logits of some size round away,
/// divided by a step of differences.
constexpr double kOfLoss = 1e-6;

/// The step with the largest loss.
int64_t worst_step(const std::vector<Step>& steps);

/// The eight largest entries of x, downwards; the last gives way to a target that is not among them.
std::vector<int32_t> likeliest(const gradus::Tensor& x, int32_t target);

}  // namespace lens
