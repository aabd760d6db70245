#include <gradus/ops/loss.h>

#include <algorithm>
#include <functional>
#include <type_traits>

#include <gradus/kernels/logarithm.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/reduce.h>

namespace gradus {
namespace {

using kernels::LossPart;

// Numbers whose terms are summed at a time, in the cache.
constexpr int64_t kBlock = 4096;

// part(what, x, t, y, n) writes the terms of n inputs and targets, or their derivatives by the one or the
// other. The backward works these out from the saved operands.
template <class Part>
Var pointwise(const char* op, const Var& input, const Var& target, Reduction reduction, Part part) {
  check_operands(input, target, op);
  if (input.shape() != target.shape())
    refuse(op, "input and target must have one shape: input {}, target {}", input.shape(), target.shape());
  if (reduction == Reduction::batchmean && input.dims() == 0)
    fail(op, "batchmean needs a first axis: input []");
  // What the sum of the terms is multiplied by.
  const double factor = reduction == Reduction::mean        ? 1 / static_cast<double>(input.numel())
                        : reduction == Reduction::batchmean ? 1 / static_cast<double>(input.size(0))
                                                            : 1;
  Tensor x = input.value(), t = target.value(), out;
  auto all = [part, op](LossPart what, const Tensor& of, const Tensor& with) {
    return by_kernel(op, [&](auto... a) { part(what, a...); }, of, with);
  };
  if (reduction == Reduction::none) {
    out = all(LossPart::term, x, t);
  } else {
    double sum = 0;
    with_type(x.dtype(), op, [&]<class T>(T) {
      T terms[kBlock];
      for (int64_t first = 0, all_of = x.numel(); first < all_of; first += kBlock) {
        int64_t n = std::min(kBlock, all_of - first);
        part(LossPart::term, data<T>(x) + first, data<T>(t) + first, terms, n);
        sum += kernels::sum(static_cast<const T*>(terms), n);
      }
    });
    out = Tensor::scalar(sum * factor, x.dtype());
  }
  return record(op, {input, target}, out, [=](const Tensor& dy, Grads& grads) {
    for (int i = 0; i < 2; ++i) {
      if (!grads.needed(i)) continue;
      Tensor g = all(i == 0 ? LossPart::dx : LossPart::dt, x, t);
      grads.add(i, reduction == Reduction::none ? zip(g, dy, std::multiplies<>())
                                                : scaled(g, factor * dy.item()));
    }
  });
}

void only_kl_div(const char* op, Reduction reduction) {
  if (reduction == Reduction::batchmean) fail(op, "batchmean is for kl_div only");
}

}  // namespace

namespace reference {
namespace {

Var reduce(const Var& terms, Reduction reduction) {
  if (reduction == Reduction::none) return terms;
  if (reduction == Reduction::mean) return mean(terms);
  return reduction == Reduction::sum ? sum(terms) : sum(terms) / static_cast<double>(terms.size(0));
}

Var mse_loss(const Var& x, const Var& t, Reduction reduction) { return reduce(pow(x - t, 2.0), reduction); }

Var binary_cross_entropy_with_logits(const Var& x, const Var& t, const BCEWithLogitsOptions& options) {
  Var s = sigmoid(x);
  return reduce(-(options.pos_weight * t * log(s) + (1 - t) * log(1 - s)), options.reduction);
}

Var kl_div(const Var& x, const Var& t, const KLDivOptions& options) {
  Var terms = options.log_target ? exp(t) * (t - x) : t * (log(t) - x);
  return reduce(terms, options.reduction);
}

Var nll_loss(const Var& x, const Tensor& targets, const NLLOptions& options) {
  int64_t C = x.size(-1);
  Tensor chosen = Tensor::zeros(x.shape(), x.dtype());
  double total = 0;
  for (int64_t r = 0; r < targets.numel(); ++r) {
    int32_t c = targets.i32()[r];
    if (c == options.ignore_index) continue;
    double w = options.weight.defined() ? options.weight.at(c) : 1;
    chosen.set(r * C + c, -w);
    total += w;
  }
  Var terms = sum(x * chosen, {.axes = {-1}});
  if (options.reduction == Reduction::none) return terms;
  return options.reduction == Reduction::mean ? sum(terms) * (total > 0 ? 1 / total : 0) : sum(terms);
}

}  // namespace
}  // namespace reference

Var mse_loss(const Input& input, const Var& target, Reduction reduction) {
  At at(input.caller());
  only_kl_div("mse_loss", reduction);
  return pointwise("mse_loss", input, target, reduction,
                   [](LossPart what, const auto* x, const auto* t, auto* y, int64_t n) {
                     for (int64_t i = 0; i < n; ++i) {
                       const auto d = x[i] - t[i];
                       y[i] = what == LossPart::term ? d * d : what == LossPart::dx ? 2 * d : -2 * d;
                     }
                   });
}

Var binary_cross_entropy_with_logits(const Input& input, const Var& target,
                                     const BCEWithLogitsOptions& options) {
  At at(input.caller());
  const char* op = "binary_cross_entropy_with_logits";
  only_kl_div(op, options.reduction);
  return pointwise(op, input, target, options.reduction,
                   [w = options.pos_weight](LossPart what, const auto* x, const auto* t, auto* y, int64_t n) {
                     using T = std::remove_pointer_t<decltype(y)>;
                     kernels::bce_with_logits(what, static_cast<T>(w), x, t, y, n);
                   });
}

Var kl_div(const Input& input, const Var& target, const KLDivOptions& options) {
  At at(input.caller());
  return pointwise(
      "kl_div", input, target, options.reduction,
      [logs = options.log_target](LossPart what, const auto* x, const auto* t, auto* y, int64_t n) {
        if (logs)
          kernels::kl_div_of_logs(what, x, t, y, n);
        else
          kernels::kl_div(what, x, t, y, n);
      });
}

Var nll_loss(const Input& log_probs, const Tensor& targets, const NLLOptions& options) {
  At at(log_probs.caller());
  const char* op = "nll_loss";
  only_kl_div(op, options.reduction);
  check_operand(log_probs, op);
  check_targets(op, "log_probs'", "log_probs", log_probs, targets);
  int64_t C = log_probs.size(-1), rows = targets.numel();
  count_targets(op, targets, C, {.ignore_index = options.ignore_index});
  if (options.weight.defined() && options.weight.shape() != Shape{C})
    refuse(op, "weight must be [C]: weight {}, log_probs {}", options.weight.shape(), log_probs.shape());
  // The factor and the loss of every row, and what the sum is divided by.
  Tensor factors(targets.shape(), log_probs.dtype());
  Tensor losses = Tensor::zeros(targets.shape(), log_probs.dtype());
  double total = 0, sum = 0;
  for (int64_t r = 0; r < rows; ++r) {
    int32_t c = targets.i32()[r];
    double w = c == options.ignore_index ? 0 : options.weight.defined() ? options.weight.at(c) : 1;
    factors.set(r, -w);
    total += w;
    if (factors.at(r) == 0) continue;
    double loss = factors.at(r) * log_probs.value().at(r * C + c);
    losses.set(r, loss);
    sum += loss;
  }
  double scale = options.reduction != Reduction::mean ? 1 : total > 0 ? 1 / total : 0;
  bool each = options.reduction == Reduction::none;
  Tensor out = each ? losses : Tensor::scalar(sum * scale, log_probs.dtype());
  return record(op, {log_probs}, out, [=, ids = targets](const Tensor& dy, Grads& dx) {
    Tensor g = dx.into(0);
    for (int64_t r = 0; r < rows; ++r) {
      if (factors.at(r) == 0) continue;
      int64_t i = r * C + ids.i32()[r];
      g.set(i, g.at(i) + factors.at(r) * (each ? dy.at(r) : scale * dy.item()));
    }
  });
}

namespace {

OpCase mse_case(const std::string& name, Reduction reduction) {
  OpFunction reference = calls(reference::mse_loss, reduction);
  return {"mse_loss" + name, {{3, 4}, {3, 4}}, calls(mse_loss, reduction), reference};
}

OpCase bce_case(const std::string& name, const BCEWithLogitsOptions& options) {
  return {"binary_cross_entropy_with_logits" + name,
          {OpCase::Input({2, 5}, -4, 4), OpCase::Input({2, 5}, 0, 1)},
          calls(binary_cross_entropy_with_logits, options),
          calls(reference::binary_cross_entropy_with_logits, options)};
}

OpCase kl_case(const std::string& name, const KLDivOptions& options) {
  return {"kl_div" + name,
          {OpCase::Input({2, 5}, -3, 0),
           options.log_target ? OpCase::Input({2, 5}, -3, 0) : OpCase::Input({2, 5}, 0.1, 1)},
          calls(kl_div, options),
          calls(reference::kl_div, options)};
}

OpCase nll_case(const std::string& name, const NLLOptions& options) {
  Tensor targets = Tensor::from_ids({2, 2}, {2, 0, 3, 2});
  return {"nll_loss" + name,
          {OpCase::Input({2, 2, 4}, -3, 0)},
          calls(nll_loss, targets, options),
          calls(reference::nll_loss, targets, options)};
}

}  // namespace

GRADUS_OP_CASES(mse_case("", Reduction::mean), mse_case(": sum", Reduction::sum),
                mse_case(": none", Reduction::none), bce_case("", {}),
                bce_case(": sum, pos_weight", {.reduction = Reduction::sum, .pos_weight = 3}),
                bce_case(": none", {.reduction = Reduction::none}), kl_case("", {}),
                kl_case(": batchmean", {.reduction = Reduction::batchmean}),
                kl_case(": log target, sum", {.reduction = Reduction::sum, .log_target = true}),
                kl_case(": none", {.reduction = Reduction::none}), nll_case("", {}),
                nll_case(": ignored", {.ignore_index = 2}),
                nll_case(": weights", {.weight = Tensor::from({4}, {0.5, 1, 2, 3}, DType::f64)}),
                nll_case(": none, weights",
                         {.reduction = Reduction::none, .weight = Tensor::from({4}, {0.5, 1, 2, 3})}),
                nll_case(": sum", {.reduction = Reduction::sum, .ignore_index = 0}));

}  // namespace gradus
