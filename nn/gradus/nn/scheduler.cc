#include <gradus/nn/scheduler.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <gradus/nn/check.h>
#include <gradus/ops/operands.h>

namespace gradus::nn {
namespace {

// The tensors of these names, in their order.
std::vector<Tensor> entries(const char* where, const StateDict& dict, const std::vector<std::string>& names) {
  std::vector<Tensor> out(names.size());
  for (const auto& [name, value] : dict) {
    auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) fail(where, "the saved state is not a scheduler's: unexpected " + name);
    out[static_cast<size_t>(at - names.begin())] = value;
  }
  for (size_t i = 0; i < names.size(); ++i)
    if (!out[i].defined()) fail(where, "the saved state is not a scheduler's: missing " + names[i]);
  return out;
}

Tensor number(double x) { return Tensor::scalar(x, DType::f64); }

}  // namespace

Schedule step_lr(double step_size, double gamma) {
  must_be_positive("step_lr", "step_size", step_size);
  return [=](double base, double t) { return base * std::pow(gamma, std::floor(t / step_size)); };
}

Schedule multi_step_lr(std::vector<double> milestones, double gamma) {
  return [milestones = std::move(milestones), gamma](double base, double t) {
    auto passed = std::count_if(milestones.begin(), milestones.end(), [t](double m) { return m <= t; });
    return base * std::pow(gamma, static_cast<double>(passed));
  };
}

Schedule exponential_lr(double gamma) {
  return [=](double base, double t) { return base * std::pow(gamma, t); };
}

Schedule cosine_annealing_lr(double T_max, double eta_min) {
  must_be_positive("cosine_annealing_lr", "T_max", T_max);
  return [=](double base, double t) {
    return eta_min + (base - eta_min) * (1 + std::cos(std::numbers::pi * t / T_max)) / 2;
  };
}

Schedule linear_lr(double start_factor, double end_factor, double total_iters) {
  return [=](double base, double t) {
    double done = total_iters > 0 ? std::min(1.0, t / total_iters) : 1;
    return base * (start_factor + (end_factor - start_factor) * done);
  };
}

Schedule noam_lr(double model_size, double warmup, double factor) {
  must_be_positive("noam_lr", "model_size", model_size);
  must_be_positive("noam_lr", "warmup", warmup);
  return [=](double, double t) {
    double s = t + 1;
    return factor / std::sqrt(model_size) * std::min(1 / std::sqrt(s), s * std::pow(warmup, -1.5));
  };
}

Schedule with_warmup(double steps, Schedule after) {
  must_be_positive("with_warmup", "steps", steps);
  if (!after) fail("with_warmup", "needs a schedule to go on with");
  return [=, after = std::move(after)](double base, double t) {
    return after(base, t) * std::min(1.0, (t + 1) / steps);
  };
}

Scheduler::Scheduler(Optimizer& optimizer, Schedule schedule)
    : optimizer_(optimizer), schedule_(std::move(schedule)) {
  if (!schedule_) fail("Scheduler", "needs a schedule");
  for (int g = 0; g < optimizer.num_groups(); ++g) base_.push_back(optimizer.lr(g));
  step_to(0);
}

void Scheduler::step_to(double t) {
  t_ = t;
  for (size_t g = 0; g < base_.size(); ++g) optimizer_.set_lr(schedule_(base_[g], t), static_cast<int>(g));
}

StateDict Scheduler::state_dict() const {
  return {{"t", number(t_)},
          {"base_lrs", Tensor::from({static_cast<int64_t>(base_.size())}, base_, DType::f64)}};
}

void Scheduler::load_state_dict(const StateDict& dict) {
  std::vector<Tensor> found = entries("Scheduler", dict, {"t", "base_lrs"});
  if (found[1].numel() != static_cast<int64_t>(base_.size()))
    refuse("Scheduler", "the saved state has {} groups, the optimizer {}", found[1].numel(), base_.size());
  const double t = found[0].item();
  std::vector<double> base = found[1].to_vector();
  for (double b : base) must_not_be_negative("Scheduler", "lr", schedule_(b, t));  // before the first change
  base_ = std::move(base);
  step_to(t);
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options)
    : optimizer_(optimizer),
      options_(options),
      best_(options.maximize ? -std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::infinity()) {
  if (!(options.factor > 0 && options.factor < 1))
    refuse("ReduceLROnPlateau", "factor must be in (0, 1): {}", options.factor);
}

bool ReduceLROnPlateau::step(double metric) {
  double margin = options_.threshold;
  if (options_.relative) margin = std::isfinite(best_) ? margin * best_ : 0;
  bool better = options_.maximize ? metric > best_ + margin : metric < best_ - margin;
  if (better) best_ = metric;
  bad_ = better || cooldown_ > 0 ? 0 : bad_ + 1;
  if (cooldown_ > 0) --cooldown_;
  if (bad_ <= options_.patience) return false;
  for (int g = 0; g < optimizer_.num_groups(); ++g) {
    double before = optimizer_.lr(g), after = std::max(before * options_.factor, options_.min_lr);
    if (before - after > options_.eps) optimizer_.set_lr(after, g);
  }
  cooldown_ = options_.cooldown;
  bad_ = 0;
  return true;
}

StateDict ReduceLROnPlateau::state_dict() const {
  return {{"best", number(best_)},
          {"bad", number(static_cast<double>(bad_))},
          {"cooldown", number(static_cast<double>(cooldown_))}};
}

void ReduceLROnPlateau::load_state_dict(const StateDict& dict) {
  std::vector<Tensor> found = entries("ReduceLROnPlateau", dict, {"best", "bad", "cooldown"});
  if (std::isnan(found[0].item())) fail("ReduceLROnPlateau", "best must be a number: nan");
  const int64_t bad = saved_count("ReduceLROnPlateau", "bad", found[1].item());
  cooldown_ = saved_count("ReduceLROnPlateau", "cooldown", found[2].item());
  bad_ = bad;
  best_ = found[0].item();
}

}  // namespace gradus::nn
