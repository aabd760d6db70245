#include <translator/training/train_options.h>

#include <algorithm>
#include <functional>

#include <gradus/kernels/products/gemm.h>
#include <gradus/nn/adaptive.h>
#include <gradus/nn/check.h>
#include <gradus/nn/scheduler.h>

namespace translator {
namespace {

namespace nn = gradus::nn;

struct OptimizerKind {
  std::string name;
  double lr;  // where none is given; 0: by the data
  std::function<nn::Optimizer*(const TrainOptions& o, const nn::ParameterList& matrices)> make;
};

const std::vector<OptimizerKind> kOptimizers = {
    {"adam", 0, [](auto& o, auto&) { return new nn::Adam({.lr = o.lr, .weight_decay = o.weight_decay}); }},
    {"adamw", 0, [](auto& o, auto&) { return new nn::AdamW({.lr = o.lr, .weight_decay = o.weight_decay}); }},
    {"muon", 0,
     [](auto& o, auto& matrices) {
       return new nn::Muon(matrices, {.lr = o.lr, .weight_decay = o.weight_decay});
     }},
    {"sgd", 1,  // Luong's
     [](auto& o, auto&) {
       return new nn::SGD({.lr = o.lr, .momentum = o.momentum, .weight_decay = o.weight_decay});
     }},
    {"adagrad", 0.05,
     [](auto& o, auto&) { return new nn::Adagrad({.lr = o.lr, .weight_decay = o.weight_decay}); }},
    {"rmsprop", 1e-3,
     [](auto& o, auto&) {
       return new nn::RMSprop({.lr = o.lr, .weight_decay = o.weight_decay, .momentum = o.momentum});
     }},
    {"adadelta", 1,  // Zeiler's; the rest as Bahdanau et al. 2014
     [](auto& o, auto&) {
       return new nn::Adadelta({.lr = o.lr, .rho = 0.95, .eps = 1e-6, .weight_decay = o.weight_decay});
     }}};

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerKind& kind : kOptimizers) names.push_back(kind.name);
  return names;
}

const std::vector<std::string> kSchedules = {"linear", "cosine",  "exponential", "step",
                                             "noam",   "plateau", "constant"};

const OptimizerKind& optimizer_kind(const std::string& optimizer) {
  for (const OptimizerKind& kind : kOptimizers)
    if (kind.name == optimizer) return kind;
  nn::unknown_name("train", "optimizer", optimizer, optimizer_names());
}

}  // namespace

Fields TrainOptions::budget() {
  return {
      {"-e,--epochs", Whole{&epochs, 0, 1000000},
       "Passes over the data (default: by the pairs, 12 to 80, and more of fewer than 200; 6 for the embedded "
       "corpus; no limit with --max-minutes)"},
      {"--max-minutes", Number{&max_minutes, 1e-6, 1e7, kOrZero},
       "Stop after so many minutes, learning rate decayed by then (default: no limit)"},
      {"-b,--batch-size", Whole{&batch_size, 1, 1000000},
       "Sentence pairs a step (default: by the pairs, 8 to 64; 32 for the embedded corpus)"},
      {"--validate-every", Whole{&validate_every, 1, 1000000000, kOrZero},
       "Steps between validations (default: once an epoch, 100 with fewer than 200 pairs of your own)"},
      {"--patience", Whole{&patience, 1, 1000000, kOrZero},
       "Stop after so many validations in a row that are no better by --metric (default: never)"},
      {"--keep", Whole{&keep, 1, 1000, kOrZero},
       "Keep so many of the best models as model directories DIR/kept/step-N (default: none; 5 with "
       "--average)"},
      {"--average", Switch{&average},
       "At the end, put the mean of the kept models' weights in the best one's place where it is better by "
       "--metric"},
      {"--check-finite", Switch{&check_finite},
       "Stop at the first NaN or infinity, say where it came from, and keep all for `translator replay`"},
      {"--precision", Word{&precision, {"f32", "bf16"}},
       "What larger products of matrices round their factors to in training: bf16 keeps 8 bits of 24 and makes "
       "them nearly twice as fast, on CPUs with AVX512_BF16"},
      {"--shortlist,!--no-shortlist", Switch{&shortlist},
       "Learn which target words each source word brings along, for translate --shortlist (default: from "
       "10,000 target words on, where it pays)"}};
}

Fields TrainOptions::recipe() {
  return {
      {"--batch-tokens", Whole{&batch_tokens, 1, 1000000000, kOrZero},
       "In place of --batch-size: tokens a step, of both sides together, padding included (default: none)"},
      {"--accumulate", Whole{&accumulate, 1, 1000000},
       "Batches whose gradients are summed up for a step: as one batch so much larger, in the memory of one"},
      {"--optimizer", Word{&optimizer, optimizer_names()},
       "What changes the weights; muon: matrices of hidden layers, with adamw for the rest; adadelta as "
       "Bahdanau's, rho 0.95, eps 1e-6 (default: adam; muon of 200 to 20,000 own pairs, or for a "
       "transformer 256 wide or wider)"},
      // A run may be blown up to see what --check-finite says, but a float must hold the rate.
      {"--lr", Number{&lr, kAboveZero, 1e30},
       "Highest learning rate (default: 0.003, of own pairs more for fewer than 256 units, at most 0.01; "
       "a transformer's 0.512 over its width, at most 0.004, with muon 0.005, for the embedded corpus 0.002; "
       "sgd and adadelta 1, adagrad 0.05, rmsprop 0.001; a third of it with --from and few pairs)"},
      {"--momentum", Number{&momentum, 0, 0.9999}, "Of sgd and rmsprop"},
      {"--weight-decay", Number{&weight_decay, 0, kMostDecay},
       "Pull of all weights to 0; muon and adamw decouple it (default: 0; muon 0.1, adamw 0.01)"},
      {"--schedule", Word{&schedule, kSchedules},
       "Learning rate over the run; step is halved from the middle on, noam the inverse root of the steps, "
       "plateau is halved when validation stalls"},
      {"--warmup", Whole{&warmup, 1, 1000000000, kOrZero},
       "Steps over which the learning rate rises first (default: 100; a transformer's 1000, with muon 400, "
       "but for the embedded corpus; a quarter of the run at most)"},
      {"--clip-norm,--clip", Number{&clip, 0, 1e9},
       "Global gradient norm at most; 0: any (default: 1; with --clip-value any)"},
      {"--clip-value", Number{&clip_value, 1e-30, 1e9, kOrZero},
       "Every entry of a gradient at most (default: any)"},
      {"--metric", Word{&metric, {"loss", "bleu", "chrf", "exact"}},
       "What the best model is, for what is kept, --patience and a plateau: validation loss, or a score of "
       "greedy translations of the validation pairs, the first 1000 at most"},
      {"--ema", Number{&ema, 0, 0.999999},
       "Validate and keep a moving average of the weights with this decay (default: 0.999; none for the "
       "embedded corpus)"},
      {"--dropout-warmup", Number{&dropout_warmup, 0, 10000},
       "Passes over which dropout rises from none: what was read once cannot be known by heart. In a "
       "quarter of the usual passes it rises half as fast (default: by the number of pairs; with --from 0)"},
      {"--scheduled-sampling", Number{&scheduled_sampling, 0, 1},
       "Feed the model's own word instead of the reference with a probability that rises to this"},
      {"--subword-dropout", Number{&subword_dropout, 0, 0.9},
       "Split words into pieces anew each epoch, leaving out merges with this probability: BPE-dropout; "
       "unigram draws splits, the more evenly the higher it is (default: 0.1 below 20,000 pairs, else 0)"},
      {"--word-dropout", Number{&word_dropout, 0, 0.9},
       "Put <unk> in the place of words that are read, of source and target, with this probability"},
      {"--label-smoothing", Number{&label_smoothing, 0, 0.9}, "Spread over all words (default: 0.1)"},
      {"--guided-alignment", Number{&guided_alignment, 0, 1000},
       "Learn from links between words where to look: what the attention's weights cost beside them counts so "
       "much (default: 0, not at all)"},
      {"--links", Word{&links, {"given", "learnt"}},
       "With --guided-alignment: those in the data's third column, or what fast_align makes of the pairs "
       "(default: given where the data have any)"},
      {"--freeze", Free{&freeze, "NAMES"},
       "Parameters that stay as they are, with commas between: names, or what stands before one of their dots "
       "(encoder)"}};
}

std::string TrainOptions::faster() const {
  const bool could = precision == "f32" && gradus::kernels::bf16_ready() && !gradus::kernels::amx_ready();
  return could ? "--precision bf16 takes about two thirds of that here." : "";
}

std::unique_ptr<nn::Optimizer> make_optimizer(const TrainOptions& o, const nn::ParameterList& matrices) {
  return std::unique_ptr<nn::Optimizer>(optimizer_kind(o.optimizer).make(o, matrices));
}

double default_lr(const std::string& optimizer, const std::string& model, int64_t width, bool embedded) {
  const double own = optimizer_kind(optimizer).lr, wide = static_cast<double>(width);
  if (own > 0) return own;
  if (model == "transformer" && embedded) return 2e-3;
  // Muon's steps are as large in each direction, however many there are.
  if (model == "transformer") return optimizer == "muon" ? 5e-3 : 4e-3 * std::min(1.0, 128 / wide);
  return embedded ? 3e-3 : std::clamp(3e-3 * 256 / wide, 3e-3, 1e-2);
}

double learning_rate(const std::string& schedule, double base, double progress, int64_t step,
                     int64_t warmup) {
  double n = static_cast<double>(std::max<int64_t>(1, warmup)), t = static_cast<double>(step);
  if (schedule == "noam") return nn::noam_lr(1, n, base * std::sqrt(n))(base, t);
  double warm = std::min(1.0, (t + 1) / n);
  if (schedule == "linear") return base * warm * std::max(0.05, 1 - progress);
  if (schedule == "cosine") return warm * nn::cosine_annealing_lr(1)(base, progress);
  if (schedule == "exponential") return warm * nn::exponential_lr(0.01)(base, progress);
  if (schedule == "step") return warm * nn::multi_step_lr({0.5, 0.625, 0.75, 0.875}, 0.5)(base, progress);
  if (schedule == "constant" || schedule == "plateau") return warm * base;
  nn::unknown_name("train", "schedule", schedule, kSchedules);
}

std::map<std::string, std::string> recipe(const TrainOptions& options) {
  TrainOptions copy = options;
  std::map<std::string, std::string> out;
  for (const Field& f : copy.recipe()) out[f.option()] = f.text();
  return out;
}

}  // namespace translator
