#pragma once

#include <gradus/nn/module.h>
#include <gradus/random.h>

namespace gradus::nn {

struct LinearOptions {
  bool bias = true;
};

/// y = x W^T + b. x [..., in_features] -> [..., out_features]. weight [out, in], bias [out]; both start from
/// U(-1/sqrt(in), 1/sqrt(in)), as torch.nn.Linear.
struct Linear {
  Parameter weight, bias;  ///< bias undefined without one

  Linear(int64_t in_features, int64_t out_features, Rng& rng, const LinearOptions& options = {},
         Caller caller = Caller::current());
  Var operator()(const Input& x) const;
  void params(ParamVisitor& visit);
};

}  // namespace gradus::nn
