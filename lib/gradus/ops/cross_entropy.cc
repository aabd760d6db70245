#include <gradus/ops/cross_entropy.h>

#include <algorithm>
#include <functional>

#include <gradus/kernels/softmax.h>
#include <gradus/op_case.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/softmax.h>
#include <gradus/walk.h>

namespace gradus {

double cross_entropy_scale(const char* op, int64_t tokens, const CrossEntropyOptions& options) {
  if (options.reduction == Reduction::batchmean) fail(op, "batchmean is for kl_div only");
  if (options.reduction != Reduction::mean) return options.weight;
  return options.weight / static_cast<double>(std::max<int64_t>(tokens, 1));
}

int64_t count_targets(const char* op, const Tensor& targets, int64_t V, const CrossEntropyOptions& options) {
  if (targets.dtype() != DType::i32) refuse(op, "targets must be i32: {}", targets.dtype());
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
    refuse(op, "label_smoothing must be in [0, 1): {}", options.label_smoothing);
  int64_t count = 0;
  const int32_t* id = targets.i32();
  for (int64_t i = 0; i < targets.numel(); ++i) {
    if (id[i] == options.ignore_index) continue;
    if (id[i] < 0 || id[i] >= V) refuse(op, "targets must be in 0 .. {}: {}", V - 1, id[i]);
    ++count;
  }
  return count;
}

namespace reference {
namespace {

Var cross_entropy(const Var& logits, const Tensor& targets, const CrossEntropyOptions& options = {}) {
  check_targets("cross_entropy", "the logits'", "logits", logits, targets);
  int64_t V = logits.size(-1), tokens = count_targets("cross_entropy", targets, V, options);
  Tensor q = Tensor::zeros(logits.shape(), logits.dtype());
  double s = options.label_smoothing;
  for (int64_t r = 0; r < targets.numel(); ++r) {
    int32_t target = targets.i32()[r];
    if (target == options.ignore_index) continue;
    for (int64_t k = 0; k < V; ++k) q.set(r * V + k, s / static_cast<double>(V) + (k == target ? 1 - s : 0));
  }
  Var log_p = gradus::log_softmax(logits);
  double scale = -cross_entropy_scale("cross_entropy", tokens, options);
  Var sums = options.reduction == Reduction::none ? sum(log_p * q, -1) : sum(log_p * q);
  return sums * scale;
}

}  // namespace
}  // namespace reference

CrossEntropy cross_entropy(const Input& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  At at(logits.caller());
  check_targets("cross_entropy", "the logits'", "logits", logits, targets);
  int64_t V = logits.size(-1), rows = targets.numel();
  int64_t tokens = count_targets("cross_entropy", targets, V, options);
  bool wanted = logits.requires_grad() && !NoGrad::active();
  double scale = cross_entropy_scale("cross_entropy", tokens, options);
  bool each = options.reduction == Reduction::none;
  double loss = 0, nll = 0;
  Tensor losses = each ? Tensor(targets.shape(), logits.dtype()) : Tensor();
  Tensor dlogits = wanted ? Tensor(logits.shape(), logits.dtype()) : Tensor();
  with_type(logits.dtype(), "cross_entropy", [&]<class T>(T) {
    const T* x = data<T>(logits.value());
    T* d = data_or_null<T>(dlogits);
    // A few rows at a time, so that they are still in the cache when they are divided by the tokens.
    int64_t block = each ? 1 : std::clamp<int64_t>(32768 / std::max<int64_t>(V, 1), 1, 256);
    for (int64_t r = 0; r < rows; r += block) {
      int64_t count = std::min(block, rows - r);
      T* d_block = wanted ? d + r * V : nullptr;
      kernels::CrossEntropySums sums = kernels::cross_entropy_rows(
          x + r * V, targets.i32() + r, count, V, options.ignore_index,
          static_cast<T>(options.label_smoothing), d_block);
      loss += sums.loss;
      nll += sums.nll;
      if (each) losses.set(r, sums.loss * scale);
      if (wanted)
        for (int64_t i = 0; i < count * V; ++i) d_block[i] *= static_cast<T>(scale);
    }
  });
  Tensor out = each ? losses : Tensor::scalar(loss * scale, logits.dtype());
  Var result = record("cross_entropy", {logits}, out, [dlogits, each](const Tensor& dy, Grads& dx) {
    // Not scaled in place: under retain_graph this closure runs again.
    if (!each) return dx.add(0, scaled(dlogits, dy.item()));
    Shape column = dy.shape();
    column.append(1);
    dx.add(0, zip_broadcast(dlogits, dy.reshape(column), "cross_entropy", std::multiplies<>()));
  });
  return {result, nll, tokens};
}

namespace {

Tensor sample_targets() { return Tensor::from_ids({4}, {2, 0, 4, 2}); }

OpCase cross_entropy_case(const std::string& name, const Shape& logits, const Tensor& targets,
                          const CrossEntropyOptions& options) {
  return {"cross_entropy" + name, {OpCase::Input(logits, -3, 3)},
          [=](auto& in) { return cross_entropy(in[0], targets, options).loss; },
          [=](auto& in) { return reference::cross_entropy(in[0], targets, options); }};
}

}  // namespace

GRADUS_OP_CASES(
    cross_entropy_case("", {4, 5}, sample_targets(), {}),
    cross_entropy_case(": label smoothing", {4, 5}, sample_targets(), {.label_smoothing = 0.1}),
    cross_entropy_case(": padding", {4, 5}, sample_targets(), {.ignore_index = 2, .label_smoothing = 0.2}),
    cross_entropy_case(": weight", {4, 5}, sample_targets(), {.ignore_index = 4, .weight = 0.3}),
    cross_entropy_case(": sum", {4, 5}, sample_targets(),
                       {.label_smoothing = 0.1, .reduction = Reduction::sum}),
    cross_entropy_case(
        ": none", {2, 2, 5}, sample_targets().reshape(Shape{2, 2}),
        {.ignore_index = 4, .label_smoothing = 0.1, .weight = 2, .reduction = Reduction::none}),
    cross_entropy_case(": over time", {2, 2, 5}, sample_targets().reshape(Shape{2, 2}), {.ignore_index = 0}),
    cross_entropy_case(": nothing counts", {2, 3}, Tensor::from_ids({2}, {1, 1}), {.ignore_index = 1}),
    {"cross_entropy: scaled",
     {{4, 5}},
     [](auto& in) { return 3.0 * cross_entropy(in[0], sample_targets()).loss; },
     [](auto& in) { return 3.0 * reference::cross_entropy(in[0], sample_targets()); }});

}  // namespace gradus
