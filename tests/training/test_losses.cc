// The losses against PyTorch's numbers, in double and in float, values and gradients.

#include <gradus/ops/cross_entropy.h>
#include <gradus/ops/loss.h>
#include <gradus/ops/softmax.h>
#include <gradus/random.h>

#include <cmath>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "golden.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

using Call = std::function<Var(const std::vector<Var>&)>;

void check(const std::string& name, const Call& f) {
  CAPTURE(name);
  const auto& c = golden("losses").at("cases").at(name);
  for (DType dtype : {DType::f64, DType::f32}) {
    double tolerance = dtype == DType::f64 ? 1e-13 : 5e-6;
    std::vector<Var> in;
    for (const auto& input : c.at("inputs")) in.push_back(variable(tensor(input, dtype)));
    Var y = f(in);
    CHECK(all_close(y.value().to(DType::f64), tensor(c.at("output")), tolerance, tolerance));
    Gradients grads = backward(y, {.seed = tensor(c.at("seed"), dtype)});
    for (size_t i = 0; i < in.size(); ++i)
      CHECK(all_close(grads[in[i]].to(DType::f64), tensor(c.at("grads").at(i)), tolerance, tolerance));
  }
}

Tensor ids() { return Tensor::from_ids({3}, golden("losses").at("ids").get<std::vector<int32_t>>()); }
const std::vector<std::pair<std::string, Reduction>> kReductions = {
    {" mean", Reduction::mean}, {" sum", Reduction::sum}, {" none", Reduction::none}};

}  // namespace

TEST_CASE("losses have PyTorch's values and gradients") {
  Tensor weight = tensor(golden("losses").at("weight"));
  for (const auto& [name, r] : kReductions) {
    check("mse" + name, [r = r](auto& in) { return mse_loss(in[0], in[1], r); });
    check("bce" + name,
          [r = r](auto& in) { return binary_cross_entropy_with_logits(in[0], in[1], {.reduction = r}); });
    check("bce pos_weight" + name, [r = r](auto& in) {
      return binary_cross_entropy_with_logits(in[0], in[1], {.reduction = r, .pos_weight = 3});
    });
    check("nll" + name, [r = r](auto& in) { return nll_loss(in[0], ids(), {.reduction = r}); });
    check("nll weight" + name, [&, r = r](auto& in) {
      return nll_loss(in[0], ids(), {.reduction = r, .ignore_index = 0, .weight = weight});
    });
    check("cross_entropy" + name, [r = r](auto& in) {
      return cross_entropy(in[0], ids(), {.ignore_index = 3, .label_smoothing = 0.1, .reduction = r}).loss;
    });
  }
  auto kl = kReductions;
  kl.emplace_back(" batchmean", Reduction::batchmean);
  for (const auto& [name, r] : kl) {
    check("kl" + name, [r = r](auto& in) { return kl_div(in[0], in[1], {.reduction = r}); });
    check("kl log" + name,
          [r = r](auto& in) { return kl_div(in[0], in[1], {.reduction = r, .log_target = true}); });
  }
}

TEST_CASE("nll_loss of a log_softmax is cross_entropy") {
  Rng rng(3);
  Var x = variable(Tensor::uniform({3, 5}, -2, 2, rng, DType::f64));
  CHECK(nll_loss(log_softmax(x), ids()).item() ==
        about(cross_entropy(x, ids()).loss.item(), 1e-14));
}

TEST_CASE("losses at the ends: nothing overflows, 0 ln 0 is 0") {
  Var x = variable(f64({2}, {1000, -1000}));
  Var y = binary_cross_entropy_with_logits(x, f64({2}, {0, 1}), {.reduction = Reduction::none});
  CHECK(y.value().to_vector() == Numbers{1000, 1000});
  CHECK(gradient(y, x) == Numbers{1, -1});
  Var right = binary_cross_entropy_with_logits(x, f64({2}, {1, 0}), {.reduction = Reduction::none});
  CHECK(right.value().to_vector() == Numbers{0, 0});
  Var log_p = variable(f64({2}, {-1, -2})), t = variable(f64({2}, {0, 1}));
  Var kl = kl_div(log_p, t, {.reduction = Reduction::none});
  CHECK(kl.value().to_vector() == Numbers{0, 2});
  CHECK(gradient(kl, log_p) == Numbers{0, -1});
  CHECK(gradient(kl, t) == Numbers{0, 3});
  CHECK(nll_loss(log_p, Tensor::from_ids({}, {1}), {.ignore_index = 1}).item() == 0);
}

TEST_CASE("the losses of many numbers are the sums of all their terms") {
  const int64_t n = 10001;  // more than are summed at a time, and some
  Rng rng(3);
  Tensor x = Tensor::normal({n}, 0, 1, rng, DType::f64), t = Tensor::uniform({n}, 0.1, 0.9, rng, DType::f64);
  double mse = 0, bce = 0, kl = 0;
  for (int64_t i = 0; i < n; ++i) {
    double a = x.at(i), b = t.at(i);
    mse += (a - b) * (a - b);
    bce += std::log1p(std::exp(a)) - b * a;
    kl += b * (std::log(b) - a);
  }
  CHECK(mse_loss(x, t, Reduction::sum).item() == about(mse, 1e-12));
  CHECK(mse_loss(x, t).item() == about(mse / n, 1e-12));
  CHECK(binary_cross_entropy_with_logits(x, t, {.reduction = Reduction::sum}).item() ==
        about(bce, 1e-12));
  CHECK(kl_div(x, t, {.reduction = Reduction::sum}).item() == about(kl, 1e-12));
}

TEST_CASE("a target that is NaN is not taken for 0") {
  Var x = variable(Tensor::full({40}, -1));
  CHECK(std::isnan(kl_div(x, Tensor::full({40}, std::nan(""))).item()));
  CHECK(kl_div(x, Tensor::zeros({40})).item() == 0);
}

TEST_CASE("losses say what does not fit") {
  Var a = variable(Tensor::zeros({4, 1})), b = Tensor::zeros({4}), logits = variable(Tensor::zeros({2, 4}));
  CHECK(error_of([&] { mse_loss(a, b); }) ==
        "[mse_loss] input and target must have one shape: input [4, 1], target [4]");
  CHECK(error_of([&] { kl_div(a, Tensor::zeros({4, 1}, DType::f64)); }) ==
        "[kl_div] element types must agree: f32 and f64");
  CHECK(error_of([&] { mse_loss(b, b, Reduction::batchmean); }) == "[mse_loss] batchmean is for kl_div only");
  CHECK(error_of([&] { nll_loss(logits, Tensor::from_ids({2}, {0, 4})); }) ==
        "[nll_loss] targets must be in 0 .. 3: 4");
  CHECK(error_of([&] { nll_loss(logits, Tensor::from_ids({3}, {0, 1, 2})); }) ==
        "[nll_loss] targets must have log_probs' shape without the last axis: log_probs [2, 4], targets [3]");
  CHECK(error_of([&] { nll_loss(logits, Tensor::from_ids({2}, {0, 1}), {.weight = Tensor::ones({3})}); }) ==
        "[nll_loss] weight must be [C]: weight [3], log_probs [2, 4]");
  CHECK(error_of([&] {
          cross_entropy(logits, Tensor::from_ids({2}, {0, 1}), {.reduction = Reduction::batchmean});
        }) == "[cross_entropy] batchmean is for kl_div only");
}
