#pragma once

#include <memory>
#include <unordered_map>

#include <gradus/nn/module.h>
#include <gradus/parallel.h>

namespace gradus::nn {

/// Norm of all gradients together, sqrt(sum of squares over all parameters), summed in double. Rows of an
/// embedding's gradient with the same id are summed first (in place; the gradient stays the same one): the
/// dense norm is the truth. Gradients of kept intermediate values do not count. NaN or infinity when a
/// gradient is not finite.
/// The sum runs over fixed blocks: the same bits with any number of threads in `pool` (null: this one).
double grad_norm(Gradients& grads, ThreadPool* pool = nullptr);

/// Scales all gradients by max_norm / norm where norm > max_norm; returns the norm before. When it is not
/// finite nothing is scaled: test std::isfinite of the result and skip the step. A pass over memory that
/// `step`'s grad_scale saves: `adam.step(model, grads, clip_factor(grad_norm(grads), max_norm))`.
double clip_grad_norm(Gradients& grads, double max_norm);

/// min(1, max_norm / norm), the factor that clip_grad_norm multiplies by; 1 when norm is not finite.
double clip_factor(double norm, double max_norm);

/// Changes parameters by their gradients; keeps what it must remember per parameter (by identity, not by
/// name). A parameter that the gradients lack is left alone, as PyTorch's with grad None.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One step. Every gradient is multiplied by grad_scale as it is read.
  /// @throws Error when the gradients have none of the parameters.
  /// With a pool its threads share the elements of each parameter; the result is the same.
  void step(const std::vector<NamedParameter>& parameters, const Gradients& grads, double grad_scale = 1,
            ThreadPool* pool = nullptr);
  template <Module M>
  void step(M& module, const Gradients& grads, double grad_scale = 1, ThreadPool* pool = nullptr) {
    step(named_parameters(module), grads, grad_scale, pool);
  }

  double lr() const { return lr_; }
  void set_lr(double lr) { lr_ = lr; }

  /// The state as named tensors ("m.encoder.weight", ..., "step.encoder.weight"), enough to go on bit for
  /// bit.
  StateDict state_dict(const std::vector<NamedParameter>& parameters) const;
  template <Module M>
  StateDict state_dict(const M& module) const {
    return state_dict(nn::named_parameters(visited(module)));
  }
  /// @throws Error for names that are unknown and for shapes that are not the parameters'. Parameters without
  /// state in the dictionary start afresh.
  void load_state_dict(const std::vector<NamedParameter>& parameters, const StateDict& dict);
  template <Module M>
  void load_state_dict(M& module, const StateDict& dict) {
    load_state_dict(nn::named_parameters(module), dict);
  }

 protected:
  struct State {
    std::shared_ptr<Node> node;  // keeps the key alive, so that no other parameter gets its address
    int64_t step = 0;
    std::vector<Tensor> slots;   // in the order of slot_names(), in the parameter's shape
  };

  explicit Optimizer(const char* name, double lr) : name_(name), lr_(lr) {}
  virtual std::vector<std::string> slot_names() const = 0;
  virtual bool lazy() const { return false; }
  /// Updates elements begin .. begin + grad.numel() - 1 of `value`; state.step counts this step already.
  virtual void apply(const Tensor& grad, double grad_scale, const Tensor& value, int64_t begin, State& state) = 0;

 private:
  State& prepare(const Parameter& p);
  void apply_rows(const Gradients::Entry& entry, double grad_scale, const Tensor& value, State& state, ThreadPool* pool);
  void apply_shared(const Tensor& grad, double grad_scale, const Tensor& value, State& state, ThreadPool* pool);

  const char* name_;
  double lr_;
  std::unordered_map<const Node*, State> states_;
  Tensor scratch_;  // all zero between steps: row gradients are laid out here
};

struct SGDOptions {
  double lr = 0.01;
  double momentum = 0;
  double weight_decay = 0;  ///< L2 term added to the gradient
  bool nesterov = false;
};

/// p -= lr u, u = momentum u + g (first u = g), Nesterov: p -= lr (g + momentum u). PyTorch's form: lr is
/// outside u.
class SGD : public Optimizer {
 public:
  explicit SGD(const SGDOptions& options = {});

 private:
  std::vector<std::string> slot_names() const override;
  void apply(const Tensor& grad, double grad_scale, const Tensor& value, int64_t begin, State& state) override;
  SGDOptions options_;
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;        ///< outside the root
  double weight_decay = 0;  ///< L2 term added to the gradient, as torch.optim.Adam
  /// Of an embedding, update only the rows that occurred (torch.optim.SparseAdam). Faster for large
  /// vocabularies, but a different algorithm: a row that does not occur neither moves on by its momentum nor
  /// lets its averages decay.
  bool lazy = false;
};

/// m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  p -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
/// (Kingma & Ba 2015).
class Adam : public Optimizer {
 public:
  explicit Adam(const AdamOptions& options = {});

 private:
  std::vector<std::string> slot_names() const override;
  bool lazy() const override { return options_.lazy; }
  void apply(const Tensor& grad, double grad_scale, const Tensor& value, int64_t begin, State& state) override;
  AdamOptions options_;
};

}  // namespace gradus::nn
