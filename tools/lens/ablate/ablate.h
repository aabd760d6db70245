#pragma once

#include <functional>
#include <string>
#include <vector>

#include <common/terminal.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/recurrent_cell.h>

#include "commands.h"
#include "page/output.h"

// A small encoder-decoder whose gradient can be stopped on one of its ways, to see which way teaches what.

namespace lens {

/// The way on which gradient is stopped: from the mixture to the annotations (alpha_tj g_t), at the scores
/// (neither annotations nor attention's own weights learn from where they look), or from a state to the last.
enum class Cut { none, value, score, recurrent };
/// "none", "value", "score", "recurrent".
std::string name_of(Cut cut);
/// @throws gradus::Error for another name.
Cut cut_of(const std::string& name);

/// Digits [L, B] and what is to be said for them.
struct Digits {
  gradus::Tensor source, target;
};
Digits draw(const AblateTask& task, uint64_t stream, int64_t count);
/// The source position that target word t is about.
int64_t position_of(const AblateTask& task, int64_t t);

/// Encoder: a GRU in one direction. Decoder: Bahdanau's order, additive attention, a start state of zeros, so
/// that all it knows of the source has come through attention.
struct ToyTranslator {
  gradus::nn::Embedding source_embedding, target_embedding;
  gradus::nn::RecurrentCell encoder, decoder;
  gradus::nn::Linear query, key, v, output;

  ToyTranslator(int64_t hidden, gradus::Rng& rng);
  void params(gradus::nn::ParamVisitor& visit);

  struct Result {
    /// nats a digit
    gradus::Var loss;
    /// the annotations [B, L, H] as mixture and scores read them
    gradus::Var value, score;
    /// the states as their successors read them
    std::vector<gradus::Var> recurrent;
    /// h_1 .. h_L [B, H] themselves
    std::vector<gradus::Var> states;
    /// [T, B, L]
    gradus::Tensor weights;
    /// digits that are the likeliest
    int64_t right = 0;
  };
  Result operator()(const Digits& digits, Cut cut) const;
};

/// Norms of what reaches the encoder's states on each way, over a batch; exactly 0 where nothing does.
struct Ways {
  double value = 0, score = 0, recurrent = 0;
};
Ways ways_of(const ToyTranslator& model, const Digits& digits, Cut cut);

/// After an epoch; the first one before any.
struct AblateEpoch {
  /// on sentences that were not trained on
  double loss = 0;
  /// digits right
  double accuracy = 0;
  /// weight on the position that the digit comes from, mean
  double on_place = 0;
  /// weight on the position after it, whose state has just read the digit too
  double one_later = 0;
  Ways ways;
  /// [T, L], mean weights
  std::vector<std::vector<double>> alignment;
};
struct Ablation {
  Cut cut = Cut::none;
  std::vector<AblateEpoch> epochs;
  /// the last epoch with each of the seeds after task.seed
  std::vector<AblateEpoch> repeats = {};
};
/// All from the same start and on the same data; `told` is called after each epoch.
Ablation ablate(const AblateTask& task, Cut cut, const std::function<void()>& told = {});

/// What the numbers say, a sentence each, worked out from them.
std::vector<std::string> findings(const AblateTask& task, const std::vector<Ablation>& all);
json to_json(const AblateTask& task, const std::vector<Ablation>& all);
std::string ablate_text(const AblateTask& task, const std::vector<Ablation>& all,
                        const translator::TerminalStyle& style);

}  // namespace lens
