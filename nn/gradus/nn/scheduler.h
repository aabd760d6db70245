#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <gradus/nn/optimizer.h>

namespace gradus::nn {

/// The learning rate at time t = 0, 1, 2, ... (steps or epochs, whatever the program counts; fractions are
/// allowed) from the rate at the start. Any function will do: [](double base, double t) { ... }.
using Schedule = std::function<double(double base, double t)>;

// PyTorch's schedules, closed form in place of its recursions.

/// base gamma^floor(t / step_size). @throws Error when step_size is not positive.
Schedule step_lr(double step_size, double gamma = 0.1);
/// base gamma^(number of milestones <= t)
Schedule multi_step_lr(std::vector<double> milestones, double gamma = 0.1);
/// base gamma^t
Schedule exponential_lr(double gamma);
/// eta_min + (base - eta_min) (1 + cos(pi t / T_max)) / 2; rises again after T_max (Loshchilov & Hutter 2017)
/// @throws Error when T_max is not positive.
Schedule cosine_annealing_lr(double T_max, double eta_min = 0);
/// base times a factor that goes from start_factor at t = 0 to end_factor at total_iters and stays there.
/// Linear decay to nothing is linear_lr(1, 0, T), warm-up linear_lr(1.0 / n, 1, n - 1).
Schedule linear_lr(double start_factor, double end_factor, double total_iters);
/// factor model_size^-0.5 min(s^-0.5, s warmup^-1.5), s = t + 1, whatever the base: linear warm-up, then the
/// inverse root (Vaswani et al. 2017, 5.3). @throws Error unless model_size and warmup are positive.
Schedule noam_lr(double model_size, double warmup = 4000, double factor = 1);
/// `after`, on the same clock, times min(1, (t + 1) / steps). @throws Error for no `after` or steps <= 0.
Schedule with_warmup(double steps, Schedule after);

/// Sets an optimiser's learning rates, those of all groups, each from its own start.
///
///   Scheduler scheduler(adam, with_warmup(400, cosine_annealing_lr(10000)));
///   for (...) { adam.step(model, grads); scheduler.step(); }
class Scheduler {
 public:
  /// Takes the optimiser's present rates as base, and sets those of t = 0. The optimiser must outlive this.
  /// @throws Error "[Scheduler] needs a schedule" for an empty function.
  Scheduler(Optimizer& optimizer, Schedule schedule);
  void step() { step_to(t_ + 1); }
  /// Sets the rates of time t.
  void step_to(double t);

  /// "t" and "base_lrs" [groups].
  StateDict state_dict() const;
  /// Goes on from there, rates included. @throws Error for other names, and another number of groups.
  void load_state_dict(const StateDict& dict);

 private:
  Optimizer& optimizer_;
  Schedule schedule_;
  std::vector<double> base_;
  double t_ = 0;
};

struct PlateauOptions {
  /// true: larger is better (BLEU); false: smaller (a loss)
  bool maximize = false;
  double factor = 0.1;
  /// Bad metrics in a row that are tolerated
  int64_t patience = 10;
  /// How much better counts
  double threshold = 1e-4;
  /// Of the threshold: a share of the best metric, or absolute
  bool relative = true;
  /// Metrics after a reduction that are not counted
  int64_t cooldown = 0;
  double min_lr = 0;
  /// Smaller changes of the rate are not made
  double eps = 1e-8;
};

/// Multiplies the learning rates by a factor when a metric has stopped getting better, as
/// torch.optim.lr_scheduler.ReduceLROnPlateau.
class ReduceLROnPlateau {
 public:
  /// @throws Error when factor is not in (0, 1).
  ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options = {});
  /// Takes note of a metric; true when the rates were to be reduced. NaN counts as bad.
  bool step(double metric);
  double best() const { return best_; }

  /// "best", "bad" and "cooldown". The learning rates are the optimiser's own state.
  StateDict state_dict() const;
  /// @throws Error for other names.
  void load_state_dict(const StateDict& dict);

 private:
  Optimizer& optimizer_;
  PlateauOptions options_;
  double best_;
  int64_t bad_ = 0, cooldown_ = 0;
};

}  // namespace gradus::nn
