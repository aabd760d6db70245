#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include <gradus/nn/module.h>
#include <gradus/numeric.h>
#include <gradus/parallel.h>

namespace gradus::nn {

/// sqrt(sum of squares of all parameters' gradients), in double; NaN or infinity when one is not finite. Rows
/// of an embedding's gradient with the same id are summed first (in place; the gradient stays the same one).
/// The sum runs over fixed blocks: the same bits with any number of threads in `pool` (null: this one).
double grad_norm(Gradients& grads, ThreadPool* pool = nullptr);

/// Scales all gradients by clip_factor; returns the norm before. When it is not finite, skip the step. A pass
/// over memory that `step`'s grad_scale saves: `adam.step(model, grads, clip_factor(grad_norm(grads), 5))`.
/// @throws Error "[clip_grad_norm] max_norm must be positive: -1".
double clip_grad_norm(Gradients& grads, double max_norm);

/// min(1, max_norm / norm); 1 when norm is not finite. @throws Error when max_norm is not positive.
double clip_factor(double norm, double max_norm);

/// Every entry into [-max_value, max_value] (Joulin & Mikolov 2015 clip at 15), of rows once they are summed;
/// NaN stays NaN. Returns the largest |entry| before. @throws Error when max_value is not positive.
double clip_grad_value(Gradients& grads, double max_value);

/// What a group of parameters has of its own; what is not given is the optimiser's.
struct ParamGroupOptions {
  std::optional<double> lr = {}, weight_decay = {};
};

/// Changes parameters by their gradients; keeps what it must remember per parameter (by identity, not by
/// name). A parameter that the gradients lack is left alone, as PyTorch's with grad None.
///
/// Rows of an embedding without a gradient are treated as if it were 0: they move on by momentum and decay.
/// Only where that changes nothing (SGD without momentum and weight decay, Adagrad without weight decay) are
/// they not touched at all.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One step. Every gradient is multiplied by grad_scale as it is read.
  /// @throws Error when the gradients have none of the parameters, and for a grad_scale that is not finite.
  /// With a pool its threads share the elements of each parameter; the result is the same.
  void step(const ParameterList& parameters, const Gradients& grads, double grad_scale = 1,
            ThreadPool* pool = nullptr);

  /// Gives these parameters a learning rate or a weight decay of their own. Returns the number of the group;
  /// group 0 has all that are in no other. @throws Error when one is in a group already.
  int add_group(const ParameterList& parameters, const ParamGroupOptions& options);
  int num_groups() const { return static_cast<int>(groups_.size()); }
  /// Numbers that it keeps at least for each number of a parameter: two of Adam.
  virtual size_t slots() const { return slot_names().size(); }

  /// Learning rate of a group. A Scheduler sets those of all groups.
  /// @throws Error "[Adam] group 3 does not exist: 2 groups", "[Adam] lr must not be negative: -1" or finite.
  double lr(int group = 0) const { return groups_[checked(group)].lr; }
  void set_lr(double lr, int group = 0);

  /// The state as named tensors ("m.encoder.weight", ..., "step.encoder.weight", and "lr" [groups]), enough
  /// to go on bit for bit. The other options and the members of the groups are the program's to repeat.
  StateDict state_dict(const ConstParameterList& parameters) const;
  /// @throws Error for names that are unknown, for shapes that are not the parameters', and for steps and
  /// learning rates that are none. Parameters without state in the dictionary start afresh; without "lr" in it
  /// the learning rates stay.
  void load_state_dict(const ParameterList& parameters, const StateDict& dict);

 protected:
  struct State {
    int64_t step = 0;
    std::vector<Tensor> slots;  // in the order of slots_of(parameter), in its shape
  };
  /// What a step does to the parameters of one group.
  struct Update {
    double lr, weight_decay, grad_scale = 1;
  };
  /// Elements begin .. begin + grad.numel() - 1 of a parameter's value, and what belongs to them.
  struct Elements {
    const Tensor &grad, &value;
    int64_t begin;
    State& state;

    /// f(gradient, numbers, how many), as pointers of the parameter's type.
    template <class F>
    void visit(const char* optimizer, F&& f) const {
      visit_floating(value, optimizer, [&](auto* numbers) {
        f(data<std::remove_pointer_t<decltype(numbers)>>(grad), numbers + begin, grad.numel());
      });
    }
    /// A slot's elements, as pointers of the same type.
    template <class T>
    T* slot(size_t i, const T*) const {
      return data<T>(state.slots[i]) + begin;
    }
  };

  /// @throws Error when lr or weight_decay is negative or not finite.
  Optimizer(const char* name, double lr, double weight_decay, const Caller& caller);
  virtual std::vector<std::string> slot_names() const = 0;
  virtual double slot_start() const { return 0; }
  /// True when rows of an embedding without a gradient are not to be touched.
  virtual bool lazy(const Update&) const { return false; }
  /// state.step counts this step already.
  virtual void apply(const Update& update, const Elements& part) = 0;
  /// Gradient, value and first slot of one of matrices_: in one thread, while others change others.
  virtual void apply_matrix(const Update&, const Tensor&, const Tensor&, const Tensor&) {}

  // By parameter; as a key it stays alive, so that no other one gets its address.
  template <class T>
  using ByParameter = std::unordered_map<std::shared_ptr<Node>, T>;
  ByParameter<int64_t> matrices_;  // what is changed by whole matrices: so many, one below another

 private:
  size_t checked(int group) const;
  // The names of a parameter's slots: of one of matrices_ the first alone.
  std::vector<std::string> slots_of(const Parameter& p) const;
  State& prepare(const Parameter& p);
  void apply_rows(const Update& update, Gradients::Entry once, const Tensor& value, State& state);
  void apply_shared(const Update& update, const Tensor& grad, const Tensor& value, State& state,
                    ThreadPool* pool);

  const char* name_;
  std::vector<Update> groups_;
  ByParameter<size_t> memberships_;  // the groups of those not in group 0
  ByParameter<State> states_;
};

struct SGDOptions {
  double lr = 0.01;
  double momentum = 0;
  double dampening = 0;
  /// L2 term added to the gradient
  double weight_decay = 0;
  bool nesterov = false;
};

/// p -= lr u, u = momentum u + (1 - dampening) g (first u = g), Nesterov: p -= lr (g + momentum u). PyTorch's
/// form: lr is outside u.
class SGD : public Optimizer {
 public:
  /// @throws Error for a negative rate, decay or momentum, and for nesterov without a momentum or with
  /// dampening.
  explicit SGD(const SGDOptions& options = {}, Caller caller = Caller::current());

 private:
  std::vector<std::string> slot_names() const override {
    if (options_.momentum == 0) return {};
    return {"momentum"};
  }
  // A row whose gradient is 0 stays where it is.
  bool lazy(const Update& update) const override {
    return options_.momentum == 0 && update.weight_decay == 0;
  }
  void apply(const Update& update, const Elements& part) override;
  SGDOptions options_;
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  /// L2 term added to the gradient, as torch.optim.Adam
  double weight_decay = 0;
};

/// m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  p -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
/// (Kingma & Ba 2015).
class Adam : public Optimizer {
 public:
  /// @throws Error for a negative rate, decay or eps, and for betas outside [0, 1).
  explicit Adam(const AdamOptions& options = {}, Caller caller = Caller::current());

 protected:
  Adam(const char* name, const AdamOptions& options, bool decoupled, const Caller& caller);

 private:
  std::vector<std::string> slot_names() const override { return {"m", "v"}; }
  void apply(const Update& update, const Elements& part) override;
  AdamOptions options_;
  bool decoupled_;
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};

/// Adam with the weight decay taken out of the gradient: p = (1 - lr weight_decay) p before each step
/// (Loshchilov & Hutter 2019). The averages do not see it.
class AdamW : public Adam {
 public:
  /// @throws Error as Adam.
  explicit AdamW(const AdamWOptions& o = {}, Caller caller = Caller::current())
      : Adam("AdamW", {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay}, true, caller) {}
};

struct MuonOptions {
  double lr = 1e-3, momentum = 0.95, weight_decay = 0.1;
};

/// For matrices of hidden layers (Jordan et al. 2024), scaled so that AdamW's rates fit (Liu et al. 2025,
/// 2502.16982): m = b m + (1 - b) g;  u = b m + (1 - b) g = U S V^T, of which all directions are learnt alike:
///   p = (1 - lr weight_decay) p - 0.2 lr sqrt(max(rows, columns)) U V^T
/// U V^T comes, about, of u / |u| by five x <- 3.4445 x - 4.7750 x x^T x + 2.0315 (x x^T)^2 x. As PyTorch's
/// Muon with adjust_lr_fn="match_rms_adamw"; an in_proj_weight is three, and a recurrent cell's weight_ih and
/// weight_hh one a gate. All that is none of them has AdamW.
class Muon : public Adam {
 public:
  /// @throws Error as Adam, for a momentum outside [0, 1), and for one of `matrices` without two axes.
  explicit Muon(const ParameterList& matrices, const MuonOptions& o = {}, Caller caller = Caller::current());
  /// Of a matrix one.
  size_t slots() const override { return 1; }

 private:
  void apply_matrix(const Update&, const Tensor& grad, const Tensor& value, const Tensor& mean) override;
  double momentum_;
};

}  // namespace gradus::nn
