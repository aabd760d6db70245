#pragma once

#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <string>

#include <gradus/nn/optimizer.h>
#include <translator/model/fields.h>

namespace translator {

/// At a learning rate of 0.001 a step then takes all of a weight.
constexpr double kMostDecay = 1000;

/// How a run goes, for another process that has this memory, too.
struct Watched {
  /// share of the run
  std::atomic<double> done = 0;
  /// of training since the last validation, nats a token
  std::atomic<double> loss = NAN;
  /// validation loss of the best model, nats a token
  std::atomic<double> best = NAN;
};

/// How a model is trained. What an option is for is said once, in the lists below. 0 stands for none, or for a
/// default.
struct TrainOptions {
  int64_t epochs = 10;
  double max_minutes = 0;
  int64_t batch_size = 64;
  int64_t batch_tokens = 0;
  int64_t accumulate = 1;
  std::string optimizer = "adam";
  double lr = 1e-3;
  double momentum = 0;
  double weight_decay = 0;
  std::string schedule = "linear";
  /// steps; 0: usual_warmup, or a quarter of the run if that is less
  int64_t warmup = 0;
  /// steps
  int64_t usual_warmup = 100;
  double clip = 1;
  /// before the norm is taken
  double clip_value = 0;
  double ema = 0;
  /// passes
  double dropout_warmup = 0;
  double scheduled_sampling = 0;
  double subword_dropout = 0;
  double word_dropout = 0;
  double guided_alignment = 0;
  /// "given" or "learnt"
  std::string links = "given";
  double label_smoothing = 0;
  std::string freeze = {};
  /// steps; 0: once an epoch
  int64_t validate_every = 0;
  std::string metric = "loss";
  int64_t patience = 0;
  int64_t keep = 0;
  bool average = false;
  bool check_finite = false;
  /// of the products of a step: "f32" or "bf16"
  std::string precision = "f32";
  /// learn one (translator/model/shortlist.h) before training
  bool shortlist = false;
  uint64_t seed = 42;
  int threads = 1;
  /// sentences, for BLEU and exact match; with --metric loss
  int64_t validation_translations = 200;
  /// what such data need, told when the speed is known; 0: nothing is told
  double usual_epochs = 0;
  /// model directory
  std::string out = {};
  bool quiet = false;
  /// Before the progress bar, of one run among many; validations are not printed then.
  std::string title = {};
  /// told how the run goes, which shows no bar and no validations itself then
  Watched* watched = nullptr;

  /// what a run cannot change when it goes on
  Fields recipe();
  /// what it can change, and its batches, which it compares by itself
  Fields budget();

  /// Sentences that a validation translates: one that a model is chosen by needs more of them.
  int64_t translated() const { return metric == "loss" ? validation_translations : 1000; }
  bool silent() const { return quiet || watched; }
  /// A sentence, where this machine could be faster.
  std::string faster() const;
  int64_t kept() const { return keep > 0 ? keep : average ? 5 : 0; }
};

/// The optimiser that the options name; `matrices` are those of the hidden layers, which Muon tells apart.
/// @throws gradus::Error for an unknown name.
std::unique_ptr<gradus::nn::Optimizer> make_optimizer(const TrainOptions& options,
                                                      const gradus::nn::ParameterList& matrices);

/// What --lr is when it is not given: of Adam and its like by the network and the data, of the others their
/// own. `width` is that of the states, d_model of the Transformer.
double default_lr(const std::string& optimizer, const std::string& model, int64_t width, bool embedded);

/// The learning rate from its base, the share of the run that is over (by epochs or by time, so that
/// --max-minutes decays too), the steps done, and the length of the warm-up.
///   linear       max(1/20, 1 - progress)
///   cosine       half a cosine down to 0
///   exponential  down to a hundredth
///   step         halved at 4/8, 5/8, 6/8 and 7/8 of the run, as Luong et al. 2015 over ten epochs
///   noam         after the warm-up with the inverse root of the steps (Vaswani et al. 2017); its peak is the
///                base
///   constant, plateau   as they are; a plateau halves the base itself
/// All but noam's are multiplied by the share of the warm-up that is over.
double learning_rate(const std::string& schedule, double base, double progress, int64_t step, int64_t warmup);

/// The options that a run cannot change when it goes on, by the names of the command line.
std::map<std::string, std::string> recipe(const TrainOptions& options);

}  // namespace translator
