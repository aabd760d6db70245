#pragma once

#include <map>
#include <string>
#include <vector>

#include <gradus/nn/module.h>
#include <translator/inference/evaluation.h>

// Which models of a run are its best, and where they are kept.

namespace translator {

/// What --metric says of a validation: the loss in nats per token, bleu, chrf and exact in per cent.
double score_of(const Evaluation& evaluation, const std::string& metric, bool lowercase);
/// The same as what is better the lower it is.
inline double cost_of(double score, const std::string& metric) { return metric == "loss" ? score : -score; }

/// The mean of the weights that safetensors files hold; of one file, what it holds.
/// @throws InputError or gradus::Error naming the file, for one whose weights have other names or shapes.
gradus::nn::StateDict mean_of_weights(const std::vector<std::string>& files);

/// The best models of a run so far, each a model directory, DIR/kept/step-N. Of two that cost the same the
/// earlier one is better.
class Checkpoints {
 public:
  struct Checkpoint {
    int64_t step;
    double cost;
  };

  /// At most `most` of them; 0: nothing is ever written.
  Checkpoints(const std::string& directory, int64_t most);

  /// Writes the model, whose metadata are `facts`, if it is among the best.
  void offer(const Model& model, Checkpoint checkpoint, const std::map<std::string, std::string>& facts);
  /// Takes out what is not among the best: of what offer() displaced, and of a run that was killed. To be
  /// called when `text` is on the disk.
  void tidy() const;

  /// best first
  const std::vector<Checkpoint>& best() const { return best_; }
  std::string path(int64_t step) const;

  /// The steps and costs, for a state to go on from: "120 0.53;80 0.61".
  std::string text() const;
  /// Takes them over; those that are no more there are left out. False for a text that is none.
  bool read(const std::string& text);

  /// The mean of their weights, as mean_of_weights.
  gradus::nn::StateDict mean() const;

 private:
  std::string weights(int64_t step) const;
  std::string directory_;
  size_t most_;
  std::vector<Checkpoint> best_;
};

}  // namespace translator
