#pragma once

#include <gradus/nn/optimizer.h>

// The optimisers with a learning rate of its own for each element, before Adam. PyTorch's forms and defaults.

namespace gradus::nn {

struct AdagradOptions {
  double lr = 0.01;
  double lr_decay = 0;      ///< lr / (1 + (t - 1) lr_decay) at step t = 1, 2, ...
  double weight_decay = 0;  ///< L2 term added to the gradient, here and below
  double initial_accumulator_value = 0;
  double eps = 1e-10;  ///< outside the root
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
  double alpha = 0.99;  ///< how much of the average stays
  double eps = 1e-8;    ///< outside the root
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;  ///< divide by the deviation instead of the root mean square (Graves 2013)
};

/// v = alpha v + (1 - alpha) g^2;  u = momentum u + g / (sqrt(v) + eps);  p -= lr u        Tieleman & Hinton
/// 2012 centered: v - m^2 in place of v under the root, m = alpha m + (1 - alpha) g
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
  double lr = 1;  ///< the method has none; a factor on its own step
  double rho = 0.9;
  double eps = 1e-6;  ///< under both roots: also what the first step's size comes from
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
