#pragma once

#include <map>
#include <string>
#include <vector>

#include <gradus/autograd.h>

#include "../function_ref.h"

// Small fixed inputs with outputs and gradients that were worked out independently of this library (see
// data/README.md).

namespace golden {

using Values = std::map<std::string, gradus::Var>;

/// One file of data/. All tensors are f64; those in `config` too.
struct File {
  std::map<std::string, gradus::Tensor> inputs, outputs, upstream, grads;
  /// lists and single numbers come as [n] resp. []
  std::map<std::string, gradus::Tensor> config;
  double loss_value = 0;
};

/// @throws when the file is missing or has another form.
File load(const std::string& name);

/// What is checked: outputs by name, of the inputs of a file.
using Function = gradus::testing::FunctionRef<Values(const Values& in, const File& file)>;

struct Options {
  bool in_double = true;
  bool in_float = true;
};

/// Runs f on the inputs of a file, in double and in float, and compares every output that f returns, the
/// value of the file's loss (sum of upstream times output), and the gradient of every input. The tolerances,
/// absolute plus relative, are those that the makers of the numbers give: 1e-11 and 2e-6. Returns one line
/// for each difference. f must return every output that has an upstream gradient.
std::vector<std::string> differences(const std::string& name, const Function& f, const Options& options = {});

/// Of the entry "lengths": which annotations are real.
gradus::Tensor mask_of(const Values& in, const File& file);

/// Ids or lengths: a config entry as i32.
gradus::Tensor ids(const File& file, const std::string& key);

/// "" when |a - b| <= tolerance (1 + |b|) everywhere; the worst place otherwise.
std::string compare(const gradus::Tensor& a, const gradus::Tensor& b, double tolerance);

}  // namespace golden

#define CHECK_GOLDEN(...) CHECK(golden::differences(__VA_ARGS__) == std::vector<std::string>{})
