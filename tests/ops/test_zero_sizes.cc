// Axes of size 0, anywhere: an op gives what its sums over nothing are, or an Error that says why not; it does
// not divide by the width, read a first number that is not there, or leave numbers unwritten.

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gradus/memory.h>
#include <gradus/op_case.h>
#include <gradus/ops/layer_norm.h>
#include <gradus/ops/loss.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/scaled_dot_product_attention.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>
#include <gradus/print.h>
#include <gradus/random.h>

#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

std::string family(const OpCase& c) { return c.name.substr(0, c.name.find(':')); }

Shape emptied(const Shape& shape, const std::set<int64_t>& gone) {
  Shape out = shape;
  for (int axis = 0; axis < shape.dims(); ++axis)
    if (gone.count(shape[axis])) out.set(axis, 0);
  return out;
}

// The inputs of a case with every axis of one of these sizes empty: 5 is H, then 15 are its three gates.
std::vector<Tensor> emptied_inputs(const OpCase& c, const std::set<int64_t>& gone) {
  std::vector<Tensor> out;
  Rng rng(3);
  for (const OpCase::Input& in : c.inputs) {
    const Shape shape = emptied(in.shape, gone);
    if (in.given.defined())
      out.push_back(shape == in.shape ? in.given.clone() : Tensor::zeros(shape, in.given.dtype()));
    else
      out.push_back(Tensor::uniform(shape, in.low, in.high, rng, DType::f64));
  }
  return out;
}

bool of_nothing(const OpCase& c) {
  const std::string op = family(c);
  return op == "logsumexp" || op == "mean" || op == "mse_loss" || op == "binary_cross_entropy_with_logits" ||
         op == "kl_div";
}

struct Ran {
  bool refused = false;
  Tensor value;
  std::vector<Tensor> gradients;
};

Ran run(const OpFunction& f, const std::vector<Tensor>& inputs, DType dtype) {
  std::vector<Var> args;
  for (const Tensor& t : inputs) args.push_back(is_floating(t.dtype()) ? variable(t.to(dtype)) : Var(t));
  Var y;
  try {
    y = f(args);
  } catch (const Error&) {
    return {true, {}, {}};
  }
  // What was taken forward can go back: an Error of this is none of the op's refusals.
  Ran ran{false, y.value(), {}};
  Gradients grads = backward(y, {.seed = Tensor::ones(y.shape(), y.dtype())});
  for (const Var& x : args) ran.gradients.push_back(grads.contains(x) ? grads[x] : Tensor());
  return ran;
}

// What is handed out next holds NaN: a number that nobody writes is seen.
void poison() {
  std::vector<std::shared_ptr<void>> held;
  for (int64_t bytes = 64; bytes <= 16384; bytes += bytes / 4)
    for (int i = 0; i < 8; ++i) {
      held.push_back(allocate(bytes));
      std::memset(held.back().get(), 0xff, static_cast<size_t>(bytes));
    }
}

void check_same(const Tensor& a, const Tensor& b) {
  CHECK(a.shape() == b.shape());
  CHECK(all_close(a, b, 1e-9, 1e-9));
}

// All sets of sizes that the case's inputs have.
std::vector<std::set<int64_t>> subsets(const OpCase& c) {
  std::set<int64_t> sizes;
  for (const OpCase::Input& in : c.inputs) sizes.insert(in.shape.begin(), in.shape.end());
  sizes.erase(0);
  std::vector<std::set<int64_t>> out{{}};
  for (int64_t size : sizes) {
    const size_t before = out.size();
    for (size_t i = 0; i < before; ++i) {
      out.push_back(out[i]);
      out.back().insert(size);
    }
  }
  out.erase(out.begin());
  return out;
}

}  // namespace

TEST_CASE("every op, with every axis empty that can be: a defined result, the twin's, or an Error") {
  std::map<std::string, int> defined, refused;
  for (const OpCase& c : op_cases()) {
    CAPTURE(c.name);
    for (const std::set<int64_t>& gone : subsets(c)) {
      const std::vector<Tensor> inputs = emptied_inputs(c, gone);
      std::string shapes;
      for (const Tensor& t : inputs) shapes += t.shape().str() + " ";
      CAPTURE(shapes);
      poison();
      const Ran ran = run(c.op, inputs, DType::f64), single = run(c.op, inputs, DType::f32);
      CHECK(ran.refused == single.refused);
      ++(ran.refused ? refused : defined)[family(c)];
      if (ran.refused) continue;
      // As NumPy has it, the logarithm of an empty sum is minus infinity and the mean of nothing NaN.
      if (!of_nothing(c)) {
        CHECK(all_finite(ran.value));
        CHECK(all_finite(single.value));
      }
      for (const Tensor& g : ran.gradients)
        if (g.defined()) CHECK(all_finite(g));
      for (const Tensor& g : single.gradients)
        if (g.defined()) CHECK(all_finite(g));
      if (!c.reference) continue;
      const Ran twin = run(c.reference, inputs, DType::f64);
      if (twin.refused) continue;
      if (!of_nothing(c)) check_same(ran.value, twin.value);
      for (size_t i = 0; i < ran.gradients.size(); ++i) {
        CHECK(ran.gradients[i].defined() == twin.gradients[i].defined());
        if (ran.gradients[i].defined() && twin.gradients[i].defined())
          check_same(ran.gradients[i], twin.gradients[i]);
      }
    }
  }
  // Each op took some of them: nothing was refused altogether. (Shapes and targets of two, and a mask, are no
  // inputs of their cases.)
  for (const auto& [op, count] : refused) {
    if (op == "expand" || op == "nll_loss" || op == "packed_self_attention") continue;
    CAPTURE(op);
    CHECK(defined[op] > 0);
  }
}

TEST_CASE("rows of width 0") {
  Var x = variable(Tensor::zeros({3, 0}));
  CHECK(softmax(x).shape() == Shape{3, 0});
  CHECK(log_softmax(x).shape() == Shape{3, 0});
  CHECK(softmax(x, {.axis = 0}).shape() == Shape{3, 0});
  CHECK(sum(x, {.axes = {1}}).value().to_vector() == Numbers{0, 0, 0});
  CHECK(logsumexp(x, {.axes = {1}}).value().to_vector() == Numbers{-kInf, -kInf, -kInf});
  CHECK(gradient(logsumexp(x, {.axes = {1}}), x).empty());
  CHECK(layer_norm(x, Tensor::ones({0}), Tensor::zeros({0})).shape() == Shape{3, 0});
  CHECK(op_error_of([&] { max(x, {.axes = {1}}); }) == "[max] nothing to take the maximum of: shape [3, 0]");
  CHECK(op_error_of([&] { argmax(x.value()); }) == "[argmax] the last axis must have entries: shape [3, 0]");
  CHECK(mse_loss(x, x, Reduction::sum).item() == 0);
  CHECK(kl_div(x, x, {.reduction = Reduction::batchmean}).item() == 0);
  CHECK(expand(variable(Tensor::zeros({0, 1})), {2, 0, 3}).shape() == Shape{2, 0, 3});
  CHECK(nll_loss(variable(Tensor::zeros({0, 3})), Tensor::from_ids({0}, {})).item() == 0);
  CHECK(nll_loss(x, Tensor::from_ids({3}, {7, 7, 7}), {.ignore_index = 7}).item() == 0);
  CHECK(contains(op_error_of([&] { nll_loss(x, Tensor::from_ids({3}, {0, 7, 7}), {.ignore_index = 7}); }),
                 "[nll_loss] targets must be in 0 .. -1: 0"));
  CHECK_FALSE(describe(x.value()).empty());
  // Keys of no width are all alike.
  Var q = Tensor::zeros({1, 1, 0}), k = Tensor::zeros({2, 1, 0}), v = f32({2, 1, 2}, {1, 2, 3, 6});
  CHECK(scaled_dot_product_attention(q, k, v).output.value().to_vector() == Numbers{2, 4});
}
