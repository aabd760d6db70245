#pragma once

#include <gradus/nn/check.h>
#include <gradus/nn/module.h>
#include <gradus/ops/dropout.h>

namespace gradus::nn {

/// Under Training each entry is dropped with probability p, the others divided by 1 - p (Srivastava et al.
/// 2014); otherwise x itself. The same Training seed drops the same entries.
struct Dropout {
  double p;

  /// @throws Error "[Dropout] p must be in [0, 1): 1.5"
  explicit Dropout(double probability = 0.5, Caller caller = Caller::current()) : p(probability) {
    At at(caller);
    must_be_probability("Dropout", "p", p);
  }
  Var operator()(const Input& x) const { return dropout(x, p); }
  void params(ParamVisitor&) {}
};

}  // namespace gradus::nn
