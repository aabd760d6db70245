#include <translator/recipe.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include <gradus/nn/adaptive.h>
#include <gradus/nn/check.h>
#include <gradus/nn/scheduler.h>
#include <translator/train_options.h>

namespace translator {

namespace nn = gradus::nn;

namespace {

struct OptimizerKind {
  std::string name;
  double lr;  // where none is given; 0: by the data
  std::function<nn::Optimizer*(const TrainOptions& o)> make;
};

const std::vector<OptimizerKind> kOptimizers = {
    {"adam", 0, [](auto& o) { return new nn::Adam({.lr = o.lr, .weight_decay = o.weight_decay}); }},
    {"adamw", 0, [](auto& o) { return new nn::AdamW({.lr = o.lr, .weight_decay = o.weight_decay}); }},
    {"sgd", 1,  // Luong's
     [](auto& o) { return new nn::SGD({.lr = o.lr, .momentum = o.momentum, .weight_decay = o.weight_decay}); }},
    {"adagrad", 0.05, [](auto& o) { return new nn::Adagrad({.lr = o.lr, .weight_decay = o.weight_decay}); }},
    {"rmsprop", 1e-3,
     [](auto& o) {
       return new nn::RMSprop({.lr = o.lr, .weight_decay = o.weight_decay, .momentum = o.momentum});
     }},
    {"adadelta", 1,  // Zeiler's; the rest as Bahdanau et al. 2014
     [](auto& o) {
       return new nn::Adadelta({.lr = o.lr, .rho = 0.95, .eps = 1e-6, .weight_decay = o.weight_decay});
     }}};

const OptimizerKind& optimizer_kind(const std::string& optimizer) {
  for (const OptimizerKind& kind : kOptimizers)
    if (kind.name == optimizer) return kind;
  nn::unknown_name("train", "optimizer", optimizer, optimizer_names());
}

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerKind& kind : kOptimizers) names.push_back(kind.name);
  return names;
}

std::vector<std::string> schedule_names() {
  return {"linear", "cosine", "exponential", "step", "noam", "plateau", "constant"};
}

std::unique_ptr<nn::Optimizer> make_optimizer(const TrainOptions& o) {
  return std::unique_ptr<nn::Optimizer>(optimizer_kind(o.optimizer).make(o));
}

double default_lr(const std::string& optimizer, bool embedded) {
  const double own = optimizer_kind(optimizer).lr;
  return own > 0 ? own : embedded ? 3e-3 : 1e-3;
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
  nn::unknown_name("train", "schedule", schedule, schedule_names());
}

std::map<std::string, std::string> recipe(const TrainOptions& options) {
  TrainOptions copy = options;
  std::map<std::string, std::string> out;
  for (const Field& f : copy.recipe()) out[f.option()] = f.text();
  return out;
}

}  // namespace translator
