#pragma once

#include <gradus/nn/optimizer.h>

// The optimisers with a learning rate of its own for each element, before Adam. PyTorch's forms and defaults.

namespace gradus::nn {

struct AdagradOptions {
  double lr = 0.01;
  /// lr / (1 + (t - 1) lr_decay) at step t = 1, 2, ...
  double lr_decay = 0;
  /// L2 term added to the gradient, here and below
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
};

/// sum += g^2;  p -= lr g / (sqrt(sum) + eps)                                   Duchi, Hazan & Singer 2011
class Adagrad : public Optimizer {
 public:
  /// @throws Error for a negative option.
  explicit Adagrad(const AdagradOptions& options = {}, Caller caller = Caller::current());

 private:
  std::vector<std::string> slot_names() const override { return {"sum"}; }
  double slot_start() const override { return options_.initial_accumulator_value; }
  bool lazy(const Update& update) const override { return update.weight_decay == 0; }
  void apply(const Update& update, const Elements& part) override;
  AdagradOptions options_;
};

struct RMSpropOptions {
  double lr = 0.01;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
};

/// v = alpha v + (1 - alpha) g^2;  u = momentum u + g / (sqrt(v) + eps);  p -= lr u  (Tieleman & Hinton 2012)
/// centered: the deviation, v - m^2 under the root in place of v, m = alpha m + (1 - alpha) g (Graves 2013)
class RMSprop : public Optimizer {
 public:
  /// @throws Error for a negative option, and for alpha outside [0, 1).
  explicit RMSprop(const RMSpropOptions& options = {}, Caller caller = Caller::current());

 private:
  std::vector<std::string> slot_names() const override;
  void apply(const Update& update, const Elements& part) override;
  RMSpropOptions options_;
};

struct AdadeltaOptions {
  /// The method has none; a factor on its own step
  double lr = 1;
  double rho = 0.9;
  /// Under both roots: also what the first step's size comes from
  double eps = 1e-6;
  double weight_decay = 0;
};

/// v = rho v + (1 - rho) g^2;  d = g sqrt(a + eps) / sqrt(v + eps);  a = rho a + (1 - rho) d^2;  p -= lr d
/// (Zeiler 2012). Bahdanau et al. 2014 train with {.rho = 0.95, .eps = 1e-6} and the global norm clipped at
/// 1; it starts slowly, and Adam has replaced it in practice.
class Adadelta : public Optimizer {
 public:
  /// @throws Error for a negative rate or decay, rho outside [0, 1), and eps not positive.
  explicit Adadelta(const AdadeltaOptions& options = {}, Caller caller = Caller::current());

 private:
  std::vector<std::string> slot_names() const override { return {"square_avg", "acc_delta"}; }
  void apply(const Update& update, const Elements& part) override;
  AdadeltaOptions options_;
};

}  // namespace gradus::nn
