#include <gradus/nn/adaptive.h>

#include <gradus/kernels/optimizer.h>
#include <gradus/nn/check.h>
#include <gradus/ops/operands.h>

namespace gradus::nn {

Adagrad::Adagrad(const AdagradOptions& options, Caller caller)
    : Optimizer("Adagrad", options.lr, options.weight_decay, caller), options_(options) {
  At at(caller);
  must_not_be_negative("Adagrad", "lr_decay", options.lr_decay);
  must_not_be_negative("Adagrad", "eps", options.eps);
  must_not_be_negative("Adagrad", "initial_accumulator_value", options.initial_accumulator_value);
}

void Adagrad::apply(const Update& update, const Elements& part) {
  double lr = update.lr / (1 + static_cast<double>(part.state.step - 1) * options_.lr_decay);
  part.visit("Adagrad", [&](auto* g, auto* p, int64_t n) {
    kernels::adagrad({lr, update.grad_scale, update.weight_decay}, options_.eps, g, p, part.slot(0, p), n);
  });
}

RMSprop::RMSprop(const RMSpropOptions& options, Caller caller)
    : Optimizer("RMSprop", options.lr, options.weight_decay, caller), options_(options) {
  At at(caller);
  must_be_probability("RMSprop", "alpha", options.alpha);
  must_not_be_negative("RMSprop", "eps", options.eps);
  must_not_be_negative("RMSprop", "momentum", options.momentum);
}

std::vector<std::string> RMSprop::slot_names() const {
  std::vector<std::string> names = {"square_avg"};
  if (options_.centered) names.push_back("grad_avg");
  if (options_.momentum != 0) names.push_back("momentum");
  return names;
}

void RMSprop::apply(const Update& update, const Elements& part) {
  part.visit("RMSprop", [&](auto* g, auto* p, int64_t n) {
    auto* mean = options_.centered ? part.slot(1, p) : nullptr;
    auto* velocity = options_.momentum != 0 ? part.slot(options_.centered ? 2 : 1, p) : nullptr;
    kernels::rmsprop({update.lr, update.grad_scale, update.weight_decay},
                     {options_.alpha, options_.eps, options_.momentum}, g, p, part.slot(0, p), mean, velocity,
                     n);
  });
}

Adadelta::Adadelta(const AdadeltaOptions& options, Caller caller)
    : Optimizer("Adadelta", options.lr, options.weight_decay, caller), options_(options) {
  At at(caller);
  must_be_probability("Adadelta", "rho", options.rho);
  if (!(options.eps > 0)) refuse("Adadelta", "eps must be positive, or nothing moves: {}", options.eps);
}

void Adadelta::apply(const Update& update, const Elements& part) {
  part.visit("Adadelta", [&](auto* g, auto* p, int64_t n) {
    kernels::adadelta({update.lr, update.grad_scale, update.weight_decay}, {options_.rho, options_.eps}, g, p,
                      part.slot(0, p), part.slot(1, p), n);
  });
}

}  // namespace gradus::nn
