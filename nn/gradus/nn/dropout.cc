#include <gradus/nn/dropout.h>

#include <gradus/nn/check.h>
#include <gradus/ops/dropout.h>

namespace gradus::nn {

Dropout::Dropout(double probability, Caller caller) : p(probability) {
  At at(caller);
  must_be_probability("Dropout", "p", p);
}

Var Dropout::operator()(const Input& x) const {
  At at(x.caller());
  return dropout(x, p);
}

}  // namespace gradus::nn
