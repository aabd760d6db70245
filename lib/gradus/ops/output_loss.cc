#include <gradus/ops/output_loss.h>

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <gradus/kernels/cross_entropy.h>
#include <gradus/kernels/gemm.h>
#include <gradus/numeric.h>
#include <gradus/op_case.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>

namespace gradus {
namespace {

// Rows of logits in memory at a time, at most; the parts are even. For each part W is packed twice, and dW read and
// written once: with few rows that is dearer than the products.
constexpr int64_t kChunk = 384;

void check(const Var& hidden, const Var& weight, const Var& bias, const Tensor& targets) {
  const char* op = "linear_cross_entropy";
  if (weight.dims() != 2) fail(op, fmt::format("weight must be [V, H]: {}", weight.shape().str()));
  if (hidden.dims() == 0 || hidden.size(-1) != weight.size(1))
    fail(op, fmt::format("hidden's last dimension must be weight's: hidden {}, weight {}",
                         hidden.shape().str(), weight.shape().str()));
  if (bias.defined() && bias.shape() != Shape{weight.size(0)})
    fail(op, fmt::format("bias must be [V]: bias {}, weight {}", bias.shape().str(), weight.shape().str()));
  if (targets.shape() != hidden.shape().without(-1))
    fail(op, fmt::format("targets must have hidden's shape without the last axis: hidden {}, targets {}",
                         hidden.shape().str(), targets.shape().str()));
  if (weight.dtype() != hidden.dtype() || (bias.defined() && bias.dtype() != hidden.dtype()))
    fail(op, fmt::format("element types must agree: hidden {}, weight {}{}", name_of(hidden.dtype()),
                         name_of(weight.dtype()),
                         bias.defined() ? fmt::format(", bias {}", name_of(bias.dtype())) : std::string()));
}

// Gradients for dloss = 1; undefined where not wanted.
struct Result {
  double loss = 0, nll = 0;  // sums
  Tensor dhidden, dweight, dbias;
};

template <class T>
class ChunkedLoss {
 public:
  ChunkedLoss(const Tensor& hidden, const Tensor& weight, const Tensor& bias, const Tensor& targets,
              const CrossEntropyOptions& options, int64_t tokens, Result& out)
      : H_(weight.size(1)),
        V_(weight.size(0)),
        hidden_(data<T>(hidden)),
        weight_(data<T>(weight)),
        bias_(bias.defined() ? data<T>(bias) : nullptr),
        options_(options),
        out_(out) {
    for (int64_t r = 0; r < targets.numel(); ++r)
      if (targets.i32()[r] != options.ignore_index) {
        rows_.push_back(r);
        ids_.push_back(targets.i32()[r]);
      }
    scale_ = static_cast<T>(cross_entropy_scale("linear_cross_entropy", tokens, options));
    int64_t n = static_cast<int64_t>(rows_.size()), chunks = std::max<int64_t>(1, (n + kChunk - 1) / kChunk);
    most_ = (n + chunks - 1) / chunks;
    logits_ = Tensor({most_, V_}, weight.dtype());
    gathered_ = Tensor({most_, H_}, weight.dtype());
  }

  void run() {
    if (rows_.empty() && out_.dweight.defined()) out_.dweight.fill(0);
    for (size_t first = 0; first < rows_.size(); first += static_cast<size_t>(most_))
      chunk(first, std::min<int64_t>(most_, static_cast<int64_t>(rows_.size() - first)));
    if (out_.dbias.defined())
      for (int64_t k = 0; k < V_; ++k) data<T>(out_.dbias)[k] *= scale_;
  }

 private:
  void chunk(size_t first, int64_t count) {
    int64_t begin = rows_[first];
    bool adjoining = rows_[first + static_cast<size_t>(count) - 1] - begin == count - 1;
    const T* h = hidden_ + begin * H_;
    if (!adjoining) {
      for (int64_t i = 0; i < count; ++i)
        std::copy_n(hidden_ + rows_[first + static_cast<size_t>(i)] * H_, H_, data<T>(gathered_) + i * H_);
      h = data<T>(gathered_);
    }
    // 1. logits = h W^T, without the bias
    T* z = data<T>(logits_);
    kernels::gemm(false, true, count, V_, H_, T(1), h, H_, weight_, H_, T(0), z, V_);
    // 2. the bias, the loss, d = p - q in the place of the logits, and d's sum over the rows
    bool wanted = out_.dhidden.defined() || out_.dweight.defined() || out_.dbias.defined();
    kernels::CrossEntropySums sums = kernels::cross_entropy_of_layer(
        z, bias_, ids_.data() + first, count, V_, static_cast<T>(options_.label_smoothing), wanted,
        out_.dbias.defined() ? data<T>(out_.dbias) : nullptr);
    out_.loss += sums.loss;
    out_.nll += sums.nll;
    // 3. the other gradients; the division by the tokens rides along in the products
    if (out_.dweight.defined())
      kernels::gemm(true, false, V_, H_, count, scale_, z, V_, h, H_, T(first > 0), data<T>(out_.dweight),
                    H_);
    if (!out_.dhidden.defined()) return;
    T* dh = adjoining ? data<T>(out_.dhidden) + begin * H_ : data<T>(gathered_);  // h is not needed any more
    kernels::gemm(false, false, count, H_, V_, scale_, z, V_, weight_, H_, T(0), dh, H_);
    if (!adjoining)
      for (int64_t i = 0; i < count; ++i)
        std::copy_n(dh + i * H_, H_, data<T>(out_.dhidden) + rows_[first + static_cast<size_t>(i)] * H_);
  }

  int64_t H_, V_, most_ = 0;
  const T *hidden_, *weight_, *bias_;
  const CrossEntropyOptions& options_;
  Result& out_;
  std::vector<int64_t> rows_;  // those that count
  std::vector<int32_t> ids_;
  T scale_;
  Tensor logits_, gathered_;
};

}  // namespace

// Composed of elementary ops. Not in the header: there the name would be ambiguous to other references.
namespace reference {
namespace {

CrossEntropy linear_cross_entropy(const Var& hidden, const Var& weight, const Var& bias,
                                  const Tensor& targets, const CrossEntropyOptions& options = {}) {
  return gradus::cross_entropy(gradus::linear(hidden, weight, bias), targets, options);
}

}  // namespace
}  // namespace reference

CrossEntropy linear_cross_entropy(const Input& hidden, const Var& weight, const Var& bias,
                                  const Tensor& targets, const CrossEntropyOptions& options) {
  At at(hidden.caller());
  check(hidden, weight, bias, targets);
  if (options.reduction == Reduction::none)
    fail("linear_cross_entropy", "reduction none needs the logits: use cross_entropy(linear(...))");
  int64_t tokens = count_targets("linear_cross_entropy", targets, weight.size(0), options);
  Result result;
  auto wanted = [](const Var& x) { return x.requires_grad() && !NoGrad::active(); };
  auto zeros_for = [&](const Var& x) { return wanted(x) ? Tensor::zeros(x.shape(), x.dtype()) : Tensor(); };
  result.dhidden = zeros_for(hidden);
  if (wanted(weight))
    result.dweight = Tensor(weight.shape(), weight.dtype());  // the first chunk overwrites it
  result.dbias = zeros_for(bias);
  with_type(hidden.dtype(), "linear_cross_entropy", [&](auto type) {
    ChunkedLoss<decltype(type)>(hidden.value(), weight.value(), bias.value(), targets, options, tokens,
                                result)
        .run();
  });
  std::vector<Var> inputs = {hidden, weight};
  if (bias.defined()) inputs.push_back(bias);
  std::vector<Tensor> saved = {result.dhidden, result.dweight, result.dbias};
  double value = result.loss * cross_entropy_scale("linear_cross_entropy", tokens, options);
  Var loss = record("linear_cross_entropy", inputs, Tensor::scalar(value, hidden.dtype()),
                    [saved](const Tensor& dy, Grads& dx) {
                      double factor = dy.item();
                      for (int i = 0; i < 3; ++i) {
                        const Tensor& d = saved[static_cast<size_t>(i)];
                        if (!d.defined()) continue;
                        dx.add(i, factor == 1 ? d : map(d, [factor](auto v) {
                                 return static_cast<decltype(v)>(v * factor);
                               }));
                      }
                    });
  return {loss, result.nll, tokens};
}

namespace {

OpCase loss_case(const std::string& name, std::vector<OpCase::Input> inputs, const Tensor& targets,
                 const CrossEntropyOptions& options) {
  auto bias = [](const std::vector<Var>& in) { return in.size() > 2 ? in[2] : Var(); };
  return {"linear_cross_entropy" + name, inputs,
          [=](auto& in) { return linear_cross_entropy(in[0], in[1], bias(in), targets, options).loss; },
          [=](auto& in) {
            return reference::linear_cross_entropy(in[0], in[1], bias(in), targets, options).loss;
          }};
}

// More rows than a chunk holds, every third of them padding.
Tensor many_targets() {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 1200; ++i) ids.push_back(i % 3);
  return Tensor::from_ids({1200}, ids);
}

}  // namespace

GRADUS_OP_CASES(
    loss_case("", {{4, 3}, {5, 3}, {5}}, Tensor::from_ids({4}, {2, 0, 4, 2}), {}),
    loss_case(": smoothed, padding between", {{2, 3, 2}, {4, 2}, {4}},
              Tensor::from_ids({2, 3}, {3, 0, 1, 0, 2, 2}), {.ignore_index = 0, .label_smoothing = 0.1}),
    loss_case(": no bias, padding at the end", {{4, 3}, {3, 3}}, Tensor::from_ids({4}, {2, 1, 9, 9}),
              {.ignore_index = 9, .weight = 0.7}),
    loss_case(": sum", {{4, 3}, {5, 3}, {5}}, Tensor::from_ids({4}, {2, 0, 4, 2}),
              {.reduction = Reduction::sum}),
    loss_case(": nothing counts", {{2, 3}, {4, 3}, {4}}, Tensor::from_ids({2}, {0, 0}), {.ignore_index = 0}),
    loss_case(": several chunks", {{1200, 2}, {3, 2}, {3}}, many_targets(), {.ignore_index = 1}),
    {"linear_cross_entropy: scaled",
     {{2, 3}, {5, 3}, {5}},
     [](auto& in) {
       return 0.5 * linear_cross_entropy(in[0], in[1], in[2], Tensor::from_ids({2}, {2, 0})).loss;
     },
     [](auto& in) {
       return 0.5 * reference::linear_cross_entropy(in[0], in[1], in[2], Tensor::from_ids({2}, {2, 0})).loss;
     }});

}  // namespace gradus
