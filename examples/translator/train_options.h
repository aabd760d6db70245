#pragma once

#include <string>

#include <translator/fields.h>
#include <translator/recipe.h>

namespace translator {

/// At a learning rate of 0.001 a step then takes all of a weight.
constexpr double kMostDecay = 1000;

/// How a model is trained. What an option is for is said once, in the lists below. 0 stands for none, or for a
/// default.
struct TrainOptions {
  int64_t epochs = 10;
  double max_minutes = 0;
  int64_t batch_size = 64;
  std::string optimizer = "adam";
  double lr = 1e-3;
  double momentum = 0;
  double weight_decay = 0;
  std::string schedule = "linear";
  /// Steps; 0: 100, or a tenth of the run if that is less.
  int64_t warmup = 0;
  double clip = 1;
  /// Before the norm is taken.
  double clip_value = 0;
  double ema = 0;
  double scheduled_sampling = 0;
  double label_smoothing = 0;
  /// Steps; 0: once an epoch.
  int64_t validate_every = 0;
  bool check_finite = false;
  uint64_t seed = 42;
  int threads = 1;
  /// Sentences translated at a validation, for BLEU and exact match.
  int64_t validation_translations = 200;
  /// Model directory.
  std::string out = {};
  bool quiet = false;
  /// Stands before the progress bar, of one run among many; validations are not printed then.
  std::string title = {};

  /// The recipe: what a run cannot change when it goes on.
  Fields recipe();
  /// What it can change, and its batches, which it compares by itself.
  Fields budget();
};

inline Fields TrainOptions::budget() {
  return {{"-e,--epochs", Whole{&epochs, 0, 1000000},
           "Passes over the data (default: 12, 7 for the embedded corpus; no limit with --max-minutes)"},
          {"--max-minutes", Number{&max_minutes, 1e-6, 1e7},
           "Stop after so many minutes, learning rate decayed by then (default: no limit)"},
          {"-b,--batch-size", Whole{&batch_size, 1, 1000000}, "Sentence pairs a step"},
          {"--validate-every", Whole{&validate_every, 1, 1000000000},
           "Steps between validations (default: once an epoch)"},
          {"--check-finite", Switch{&check_finite},
           "Stop at the first NaN or infinity, say where it came from, and keep all for `translator replay`"}};
}

inline Fields TrainOptions::recipe() {
  return {{"--optimizer", Word{&optimizer, optimizer_names()},
           "What changes the weights; adadelta as Bahdanau's (rho 0.95, eps 1e-6)"},
          // A run may be blown up to see what --check-finite says, but a float must hold the rate.
          {"--lr", Number{&lr, kAboveZero, 1e30},
           "Highest learning rate (default: 0.001, 0.003 for the embedded corpus; sgd and adadelta 1, "
           "adagrad 0.05)"},
          {"--momentum", Number{&momentum, 0, 0.9999}, "Of sgd and rmsprop"},
          {"--weight-decay", Number{&weight_decay, 0, kMostDecay},
           "Pull of all weights to 0; adamw decouples it (default: 0; adamw 0.01)"},
          {"--schedule", Word{&schedule, schedule_names()},
           "Learning rate over the run; step is halved from the middle on, noam the inverse root of the steps, "
           "plateau is halved when validation stalls"},
          {"--warmup", Whole{&warmup, 1, 1000000000},
           "Steps over which the learning rate rises first (default: 100, a tenth of the run at most)"},
          {"--clip-norm,--clip", Number{&clip, 0, 1e9},
           "Global gradient norm at most; 0: any (default: 1; with --clip-value any)"},
          {"--clip-value", Number{&clip_value, 1e-30, 1e9},
           "Every entry of a gradient at most (default: any)"},
          {"--ema", Number{&ema, 0, 0.999999},
           "Validate and keep a moving average of the weights with this decay, as 0.999 (default: none)"},
          {"--scheduled-sampling", Number{&scheduled_sampling, 0, 1},
           "Feed the model's own word instead of the reference with a probability that rises to this"},
          {"--label-smoothing", Number{&label_smoothing, 0, 0.9}, "Spread over all words"}};
}

}  // namespace translator
