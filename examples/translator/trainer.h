#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include <gradus/nn/optimizer.h>
#include <gradus/parallel.h>
#include <translator/evaluation.h>
#include <translator/model.h>

namespace translator {

struct TrainOptions {
  int64_t epochs = 10;            ///< passes over the data; 0: as many as max_minutes allow
  double max_minutes = 0;         ///< stop after so long; 0: no limit
  int64_t batch_size = 64;        ///< sentence pairs
  double lr = 1e-3;               ///< of Adam, at its highest; rises over the warm-up, then falls linearly to a twentieth
  int64_t warmup = 100;           ///< steps, a tenth of the run at most
  double clip = 1;                ///< global gradient norm at most
  double label_smoothing = 0;
  uint64_t seed = 42;
  int threads = 1;
  int64_t validate_every = 0;     ///< steps between two validations; 0: once an epoch
  int64_t validation_translations = 200;  ///< sentences translated at a validation, for BLEU and exact match
  std::string out;                ///< model directory
  bool quiet = false;
};

/// What a validation found, as shown and logged.
struct Validation {
  int64_t epoch = 0, step = 0;
  double train_loss = 0;          ///< nats per token since the last validation
  Evaluation evaluation;
  double tokens_per_second = 0;   ///< target tokens
  double seconds = 0;             ///< since training began, validations included
  bool best = false;
};

/// Trains a model on sentence pairs: teacher forcing, Adam, clipping, batches of similar length. Threads share the model,
/// each differentiating its share of every batch. Writes model.safetensors (the best by validation loss),
/// last.safetensors (to go on from) and train.log (JSON lines) into options.out.
class Trainer {
 public:
  Trainer(Model& model, std::vector<SentencePair> train, std::vector<SentencePair> valid, const TrainOptions& options);

  /// Goes on from last.safetensors in options.out. @throws gradus::Error when it does not fit the model, InputError when
  /// it was made from other data.
  void resume();
  /// Writes the untrained model, so that the directory is whole from the first second.
  void save_start() const;
  /// Sentences whose translation is shown at each validation.
  void set_probes(std::vector<SentencePair> probes) { probes_ = std::move(probes); }
  /// Until epochs or minutes are over, or `stop` is set (then the state is saved at once and false is returned).
  bool run(const std::atomic<bool>& stop);

  const std::vector<Validation>& validations() const { return validations_; }
  double best_loss() const { return best_loss_; }
  int64_t step() const { return step_; }
  double seconds() const { return seconds_; }

 private:
  std::vector<std::vector<size_t>> batches_of(int64_t epoch) const;
  struct StepResult {
    double nll;
    int64_t tokens;
    double norm;
  };
  StepResult train_step(const std::vector<size_t>& batch);
  double progress() const;
  double learning_rate() const;
  void validate(class Progress& bar);
  void log(const std::string& json_line) const;
  void save_last() const;
  void save_best() const;
  std::string describe(const Validation& v) const;

  Model& model_;
  std::vector<EncodedPair> train_;
  std::vector<SentencePair> valid_, probes_;
  TrainOptions options_;
  gradus::nn::Adam adam_;
  gradus::ThreadPool pool_;
  int64_t epoch_ = 0, batch_ = 0, step_ = 0, batches_per_epoch_ = 0, skipped_ = 0, warmup_ = 1;
  uint64_t fingerprint_ = 0;  // of the training pairs as ids
  double best_loss_ = 0, seconds_ = 0, seconds_before_ = 0;
  double window_nll_ = 0, window_seconds_ = 0, last_norm_ = 0;
  int64_t window_tokens_ = 0;
  std::vector<Validation> validations_;
};

}  // namespace translator
