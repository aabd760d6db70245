#pragma once

#include <atomic>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gradus/nn/ema.h>
#include <gradus/nn/optimizer.h>
#include <gradus/nn/scheduler.h>
#include <gradus/parallel.h>
#include <translator/inference/evaluation.h>
#include <translator/model/model.h>
#include <translator/training/checkpoints.h>
#include <translator/training/epoch.h>
#include <translator/training/insight.h>
#include <translator/training/run_log.h>
#include <translator/training/train_options.h>
#include <translator/training/training_step.h>

namespace translator {

/// What a validation found, as shown and logged.
struct Validation {
  int64_t epoch = 0, step = 0;
  /// nats per token since the last validation
  double train_loss = 0;
  Evaluation evaluation = {};
  /// by --metric, see score_of
  double score = 0;
  /// target tokens
  double tokens_per_second = 0;
  /// since training began, validations included
  double seconds = 0;
  bool best = false;
};

constexpr const char* kDivergedAdvice = "A lower --lr may help; --check-finite says where it begins";

/// Trains a model on sentence pairs: teacher forcing (or scheduled sampling), clipping, batches of similar
/// length. Threads share the model, each differentiating its share of every batch. Writes model.safetensors
/// (the best by options.metric), last.safetensors (to go on from) and train.log (JSON lines)
/// into options.out, kept/step-N with options.keep; with check_finite, where it stops, not-finite-STEP as well.
class Trainer {
 public:
  Trainer(Model& model, std::vector<SentencePair> train, std::vector<SentencePair> valid,
          const TrainOptions& options);

  /// Goes on from last.safetensors in options.out. @throws InputError naming the file and what in it is not, or
  /// is of other data, options or another network; gradus::Error for a damaged file.
  void resume();
  /// Writes the untrained model, so that the directory is whole from the first second: into options.out, or
  /// where it is made before it goes there.
  void save_start(const std::string& where) const;
  /// Sentences whose translation is shown at each validation; the attention of the first one as well.
  void set_probes(std::vector<SentencePair> probes) { probes_ = std::move(probes); }
  /// Until epochs, minutes or patience are over, or `stop` is set: then the state is saved at once, and false
  /// returned.
  bool run(const std::atomic<bool>& stop);

  /// what it learns from
  const std::vector<EncodedPair>& pairs() const { return train_; }
  const std::vector<Validation>& validations() const { return validations_; }
  double best_loss() const { return best_loss_; }
  double best_score() const { return cost_of(best_cost_, options_.metric); }
  /// Whether options.patience ended it, or would.
  bool out_of_patience() const { return options_.patience > 0 && since_best_ >= options_.patience; }
  /// Whether it ended because two validations and what was trained between them had no finite loss.
  bool diverged() const { return diverged_; }
  /// The steps whose weights' mean is the best model; none where it is that of a step.
  const std::vector<int64_t>& averaged() const { return averaged_; }
  int64_t step() const { return step_; }
  /// Steps over which the rate rises.
  int64_t warmup() const;
  /// Passes over the data, in part too.
  double epochs() const;
  double dropout_share() const;
  double seconds() const { return seconds_; }

 private:
  void split_anew();
  void begin_epoch();
  EpochOptions epoch_options() const;
  int64_t steps_of(const std::vector<Batch>& batches) const;
  gradus::nn::OutputGradients step_gradients();
  int64_t train_step();  // returns its target words
  double progress() const;
  double rate() const;
  [[noreturn]] void stop_for(const struct StepBatch& batch);
  void feed_own_words(std::vector<gradus::nn::Seq2SeqBatch>& parts, size_t nth);
  Evaluation evaluate_now() const;
  bool validate(class Progress& bar);
  bool average();
  void look_for_divergence(class Progress& bar);
  /// Whether a validation follows `step` steps, `batch` of them in this epoch, as far as the steps tell.
  bool validates_after(int64_t step, int64_t batch) const;
  RunLog::Details look_closer(const Evaluation& evaluation) const;
  bool interrupted(class Progress& bar);
  void show(class Progress& bar, const RunLog::Details& details) const;
  void save_last(const std::string& where) const;
  void take_numbers(const class StateFacts& facts);
  void take_tensors(const std::string& path, int64_t measured, const gradus::nn::StateDict& tensors);
  void must_be_counts_of_steps(const std::string& path, const gradus::nn::StateDict& moments,
                               const gradus::nn::StateDict& averages) const;
  std::map<std::string, std::string> facts_of(double loss, double score) const;
  void save_best(const std::string& where) const;
  std::string describe(const Validation& v, int width) const;

  Model& model_;
  gradus::nn::ParameterList trained_;
  std::vector<EncodedPair> train_;
  // of train_, where each epoch splits them anew
  std::vector<SentencePair> texts_;
  std::vector<SentencePair> valid_, probes_;
  TrainOptions options_;
  std::unique_ptr<gradus::nn::Optimizer> optimizer_;
  gradus::nn::ReduceLROnPlateau plateau_;
  gradus::nn::ExponentialMovingAverage ema_;
  // options.lr, or what a plateau has left of it
  double base_lr_;
  gradus::ThreadPool pool_;
  StepMeter meter_;
  RunLog log_;
  // of this epoch, options.accumulate of them a step
  std::vector<Batch> batches_;
  // batch_ and batches_per_epoch_ count steps.
  int64_t epoch_ = 0, batch_ = 0, step_ = 0, batches_per_epoch_ = 0, skipped_ = 0;
  // no epoch has more
  int64_t tokens_per_epoch_ = 0;
  // the last validation was interrupted
  bool validation_due_ = false;
  const std::atomic<bool>* stop_ = nullptr;
  std::map<std::string, std::string> fingerprints_;
  Checkpoints checkpoints_;
  // of the best model by options.metric
  double best_loss_ = INFINITY, best_cost_ = INFINITY;
  // counted in validations
  int64_t since_best_ = 0;
  // whether the last validation's loss was finite
  bool finite_ = true;
  bool diverged_ = false;
  std::vector<int64_t> averaged_;
  double seconds_ = 0;
  // moving average of a word's cost, nats
  double baseline_ = 0;
  double window_nll_ = 0, window_seconds_ = 0, last_norm_ = 0;
  int64_t window_tokens_ = 0;
  std::vector<Validation> validations_;
};

}  // namespace translator
