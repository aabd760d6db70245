#pragma once

#include <gradus/nn/module.h>

namespace gradus::nn {

/// Under Training each entry is dropped with probability p, the others divided by 1 - p (Srivastava et al.
/// 2014); otherwise x itself. The same Training seed drops the same entries.
struct Dropout {
  double p;

  /// @throws Error "[Dropout] p must be in [0, 1): 1.5"
  explicit Dropout(double p = 0.5, Caller caller = Caller::current());
  Var operator()(const Input& x) const;
  void params(ParamVisitor&) {}
};

}  // namespace gradus::nn
