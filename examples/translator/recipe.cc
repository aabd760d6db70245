#include <translator/recipe.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <gradus/error.h>
#include <gradus/nn/adaptive.h>
#include <translator/trainer.h>

namespace translator {

namespace nn = gradus::nn;

std::unique_ptr<nn::Optimizer> make_optimizer(const TrainOptions& o) {
  double decay = o.weight_decay;
  if (o.optimizer == "adam")
    return std::make_unique<nn::Adam>(nn::AdamOptions{.lr = o.lr, .weight_decay = decay});
  if (o.optimizer == "adamw")
    return std::make_unique<nn::AdamW>(nn::AdamWOptions{.lr = o.lr, .weight_decay = decay});
  if (o.optimizer == "sgd")
    return std::make_unique<nn::SGD>(
        nn::SGDOptions{.lr = o.lr, .momentum = o.momentum, .weight_decay = decay});
  if (o.optimizer == "adagrad")
    return std::make_unique<nn::Adagrad>(nn::AdagradOptions{.lr = o.lr, .weight_decay = decay});
  if (o.optimizer == "rmsprop")
    return std::make_unique<nn::RMSprop>(
        nn::RMSpropOptions{.lr = o.lr, .weight_decay = decay, .momentum = o.momentum});
  if (o.optimizer == "adadelta")  // as Bahdanau et al. 2014
    return std::make_unique<nn::Adadelta>(
        nn::AdadeltaOptions{.lr = o.lr, .rho = 0.95, .eps = 1e-6, .weight_decay = decay});
  gradus::fail("train", "unknown optimizer \"" + o.optimizer +
                            "\": one of adam, adamw, sgd, adagrad, rmsprop, adadelta");
}

double default_lr(const std::string& optimizer, bool embedded) {
  if (optimizer == "sgd" || optimizer == "adadelta") return 1;  // Luong's and Zeiler's
  if (optimizer == "adagrad") return 0.05;
  if (optimizer == "rmsprop") return 1e-3;
  return embedded ? 3e-3 : 1e-3;
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
  gradus::fail("train", "unknown schedule \"" + schedule +
                            "\": one of linear, cosine, exponential, step, noam, plateau, constant");
}

std::map<std::string, std::string> recipe(const TrainOptions& o) {
  auto number = [](double x) { return fmt::format("{}", x); };
  return {{"--optimizer", o.optimizer},
          {"--momentum", number(o.momentum)},
          {"--lr", number(o.lr)},
          {"--weight-decay", number(o.weight_decay)},
          {"--schedule", o.schedule},
          {"--warmup", std::to_string(o.warmup)},
          {"--clip-norm", number(o.clip)},
          {"--clip-value", number(o.clip_value)},
          {"--label-smoothing", number(o.label_smoothing)},
          {"--ema", number(o.ema)},
          {"--scheduled-sampling", number(o.scheduled_sampling)}};
}

}  // namespace translator
