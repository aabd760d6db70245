#include <gradus/nn/ema.h>

#include <algorithm>

#include <gradus/nn/check.h>
#include <gradus/kernels/optimizer.h>
#include <gradus/ops/operands.h>

namespace gradus::nn {

ExponentialMovingAverage::ExponentialMovingAverage(const EMAOptions& options, Caller caller)
    : options_(options) {
  At at(caller);
  must_be_probability("ExponentialMovingAverage", "decay", options.decay);
}

void ExponentialMovingAverage::must_fit(const ParameterList& parameters) const {
  const char* where = "ExponentialMovingAverage";
  if (averages_.size() != parameters.size())
    refuse(where, "has averages of {} parameters, the module has {}", averages_.size(), parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, average] = averages_[i];
    const NamedParameter& p = parameters[i];
    if (name != p.name || average.shape() != p.parameter->shape())
      refuse(where, "the module must be the same: average of {} {}, parameter {} {}", name, average.shape(),
             p.name, p.parameter->shape());
  }
}

void ExponentialMovingAverage::update(const ParameterList& parameters) {
  if (swapped_)
    fail("ExponentialMovingAverage", "no update while the averages are in the weights' place",
         "end the scope of EMAWeights, or swap back, first");
  if (averages_.empty()) {
    for (const NamedParameter& p : parameters) averages_.emplace_back(p.name, p.parameter->value().clone());
    updates_ = 1;
    return;
  }
  must_fit(parameters);
  ++updates_;
  double t = static_cast<double>(updates_), decay = options_.decay;
  if (options_.warmup) decay = std::min(decay, (1 + t) / (10 + t));
  for (size_t i = 0; i < parameters.size(); ++i) {
    Tensor value = parameters[i].parameter->value(), &average = averages_[i].second;
    average = average.to(value.dtype());
    if (!average.sole_owner())
      average = average.clone();  // a state dictionary holds it: that one is a snapshot
    with_type(value.dtype(), "ExponentialMovingAverage", [&]<class T>(T) {
      kernels::move_average(decay, data<T>(value), data<T>(average), value.numel());
    });
  }
}

void ExponentialMovingAverage::swap(const ParameterList& parameters) {
  if (!averages_.empty()) must_fit(parameters);
  for (size_t i = 0; i < averages_.size(); ++i) {
    Tensor weights = parameters[i].parameter->value();
    parameters[i].parameter->assign(averages_[i].second.to(weights.dtype()));
    averages_[i].second = weights;
  }
  swapped_ = !swapped_;
}

StateDict ExponentialMovingAverage::state_dict() const {
  StateDict out = averages_;
  if (updates_ > 0) out.emplace_back("updates", Tensor::scalar(static_cast<double>(updates_), DType::f64));
  return out;
}

void ExponentialMovingAverage::load_state_dict(const StateDict& dict) {
  StateDict averages;
  int64_t updates = 0;
  for (const auto& [name, value] : dict) {
    if (name == "updates")
      updates = saved_count("ExponentialMovingAverage", name, value.item());
    else
      averages.emplace_back(name, value);
  }
  if (updates == 0 && !averages.empty())
    fail("ExponentialMovingAverage", "the saved state has no \"updates\"");
  averages_ = std::move(averages);
  updates_ = updates;
}

}  // namespace gradus::nn
