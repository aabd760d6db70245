#include <gradus/nn/adaptive.h>

#include <fmt/core.h>

#include <gradus/error.h>
#include <gradus/kernels/update_rules.h>
#include <gradus/nn/check.h>
#include <gradus/numeric.h>

namespace gradus::nn {

// ---- Adagrad ----

Adagrad::Adagrad(const AdagradOptions& options, Caller caller)
    : Optimizer("Adagrad", options.lr, options.weight_decay, caller), options_(options) {
  At at(caller);
  must_not_be_negative("Adagrad", "lr_decay", options.lr_decay);
  must_not_be_negative("Adagrad", "eps", options.eps);
  must_not_be_negative("Adagrad", "initial_accumulator_value", options.initial_accumulator_value);
}

void Adagrad::apply(const Update& update, const Elements& part) {
  double lr = update.lr / (1 + static_cast<double>(part.state.step - 1) * options_.lr_decay);
  visit_floating(part.value, "Adagrad", [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    kernels::adagrad({lr, update.grad_scale, update.weight_decay}, options_.eps, data<T>(part.grad),
                     p + part.begin, part.slot<T>(0), part.size());
  });
}

// ---- RMSprop ----

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
  visit_floating(part.value, "RMSprop", [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    T* mean = options_.centered ? part.slot<T>(1) : nullptr;
    T* velocity = options_.momentum != 0 ? part.slot<T>(options_.centered ? 2 : 1) : nullptr;
    kernels::rmsprop({update.lr, update.grad_scale, update.weight_decay},
                     {options_.alpha, options_.eps, options_.momentum}, data<T>(part.grad), p + part.begin,
                     part.slot<T>(0), mean, velocity, part.size());
  });
}

// ---- Adadelta ----

Adadelta::Adadelta(const AdadeltaOptions& options, Caller caller)
    : Optimizer("Adadelta", options.lr, options.weight_decay, caller), options_(options) {
  At at(caller);
  must_be_probability("Adadelta", "rho", options.rho);
  if (!(options.eps > 0))
    fail("Adadelta", fmt::format("eps must be positive, or nothing moves: {}", options.eps));
}

void Adadelta::apply(const Update& update, const Elements& part) {
  visit_floating(part.value, "Adadelta", [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    kernels::adadelta({update.lr, update.grad_scale, update.weight_decay}, {options_.rho, options_.eps},
                      data<T>(part.grad), p + part.begin, part.slot<T>(0), part.slot<T>(1), part.size());
  });
}

}  // namespace gradus::nn
