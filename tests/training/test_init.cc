// Initialisers that tests/nn does not have: gains, fans of kernels, and the special matrices.

#include <gradus/nn/init.h>
#include <gradus/random.h>

#include <algorithm>
#include <cmath>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "golden.h"

using namespace gradus;
using namespace gradus::testing;
namespace init = gradus::nn::init;

namespace {

struct Moments {
  double mean, deviation, low, high;
};

Moments moments(const Parameter& p) {
  Numbers v = p.value().to_vector();
  double n = static_cast<double>(v.size()), sum = 0, squares = 0;
  for (double x : v) sum += x;
  for (double x : v) squares += (x - sum / n) * (x - sum / n);
  return {sum / n, std::sqrt(squares / n), *std::min_element(v.begin(), v.end()),
          *std::max_element(v.begin(), v.end())};
}

}  // namespace

TEST_CASE("gains are PyTorch's") {
  for (const auto& [name, gain] : golden("gains").items()) {
    if (name == "conv") continue;  // there is no convolution here
    CAPTURE(name);
    double ours =
        name == "leaky_relu 0.2" ? init::calculate_gain("leaky_relu", 0.2) : init::calculate_gain(name);
    CHECK(ours == about(gain.get<double>(), 1e-13));
  }
  CHECK(error_of([] { init::calculate_gain("swish"); }) ==
        "[calculate_gain] unknown nonlinearity \"swish\": one of linear, sigmoid, tanh, relu, "
        "leaky_relu, selu");
}

TEST_CASE("kaiming: either fan, further axes count") {
  Rng rng(1);
  Parameter p(Tensor::zeros({60, 20, 5, 3}, DType::f64));
  init::kaiming_normal_(p, rng, {.gain = 2});
  CHECK(moments(p).deviation == about(2 / std::sqrt(20 * 15), 0.02));
  init::kaiming_normal_(p, rng, {.mode = init::Fan::out});
  CHECK(moments(p).deviation == about(1 / std::sqrt(60 * 15), 0.02));
  init::kaiming_uniform_(p, rng, {.mode = init::Fan::out});
  CHECK(moments(p).deviation == about(1 / std::sqrt(60 * 15), 0.02));
  CHECK(moments(p).high <= std::sqrt(3.0 / (60 * 15)));
  Parameter bias(Tensor::zeros({3}));
  CHECK(error_of([&] { init::kaiming_normal_(bias, rng); }) ==
        "[kaiming_normal_] needs a weight [out, in, ...]: [3]");
}

TEST_CASE("zeros_") {
  Parameter p(Tensor::full({2, 3}, 5));
  init::zeros_(p);
  CHECK(p.value().to_vector() == Numbers(6, 0.0));
}
