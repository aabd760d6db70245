#pragma once

#include <gradus/nn/module.h>

namespace gradus::nn {

struct EMAOptions {
  double decay = 0.999;
  /// Decay min(decay, (1 + t) / (10 + t)) at update t = 1, 2, ...: a short run forgets its start.
  bool warmup = false;
};

/// Exponential moving average of a model's weights: average = decay average + (1 - decay) weights, after each
/// step; the first update copies. Often a better model than the last weights (Polyak & Juditsky 1992 averaged
/// all equally). torch.optim.swa_utils.get_ema_multi_avg_fn is the same without warm-up.
///
///   ema.update(model);                              // after optimizer.step
///   { EMAWeights use(ema, model); validate(model); }  // with the averages; the weights are back afterwards
class ExponentialMovingAverage {
 public:
  /// @throws Error when decay is not in [0, 1).
  explicit ExponentialMovingAverage(const EMAOptions& options = {}, Caller caller = Caller::current());

  /// @throws Error when the names and shapes are not those of the first update, and in a scope of EMAWeights.
  void update(const ParameterList& parameters);
  /// Exchanges averages and weights; a second call brings the weights back. Without an update yet nothing
  /// changes. @throws Error as update.
  void swap(const ParameterList& parameters);

  /// The averages under the parameters' names, and "updates"; empty before the first update.
  StateDict state_dict() const;
  /// @throws Error when "updates" is missing.
  void load_state_dict(const StateDict& dict);

 private:
  void must_fit(const ParameterList& parameters) const;

  EMAOptions options_;
  int64_t updates_ = 0;
  bool swapped_ = false;
  StateDict averages_;
};

/// Within its lifetime the parameters hold their averages, and there is no update.
class EMAWeights {
 public:
  /// @throws Error as ExponentialMovingAverage::swap.
  EMAWeights(ExponentialMovingAverage& ema, ParameterList parameters)
      : ema_(ema), parameters_(std::move(parameters)) {
    ema_.swap(parameters_);
  }
  ~EMAWeights() { ema_.swap(parameters_); }
  EMAWeights(const EMAWeights&) = delete;

 private:
  ExponentialMovingAverage& ema_;
  ParameterList parameters_;
};

}  // namespace gradus::nn
