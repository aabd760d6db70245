// The trace of a backward: nodes, the contribution of every edge, and the tables for people.

#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>
#include <gradus/random.h>
#include <gradus/trace.h>

#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

TEST_CASE("the contributions of the edges sum to the gradient of their node") {
  Rng rng(3);
  Var x = variable(Tensor::uniform({4, 3}, -1, 1, rng, DType::f64), "x");
  Var h = tap(tanh(x), "h");
  Var loss = sum(h * h) + sum(slice(h, 0, 1, 3)) + sum(select(h, 1, 0)) +
             sum(gather_rows(h, Tensor::from_ids({3}, {0, 2, 0}))) +
             mean(x + Tensor::ones({2, 4, 3}, DType::f64)) +
             sum(gather_rows(x, Tensor::from_ids({2}, {1, 1})));
  Trace trace;
  Gradients traced = backward(loss, {.retain_graph = true, .trace = &trace});
  Gradients plain = backward(loss);
  CHECK(max_abs_difference(traced[x], plain[x]) < 1e-15);

  int inner = 0;
  for (const Trace::Node& node : trace.nodes) {
    Tensor total = Tensor::zeros(node.shape, DType::f64);
    int arrived = 0;
    for (const Trace::Edge& edge : trace.edges) {
      if (edge.from != node.id) continue;
      ++arrived;
      REQUIRE(edge.contribution.shape() == node.shape);
      for (int64_t i = 0; i < total.numel(); ++i) total.set(i, total.at(i) + edge.contribution.at(i));
    }
    if (arrived == 0) continue;  // the loss itself
    ++inner;
    CAPTURE(node.op);
    CHECK(max_abs_difference(total, node.grad) < 1e-14);
  }
  CHECK(inner == static_cast<int>(trace.nodes.size()) - 1);
  // h * h sends two contributions, slice, select and gather_rows one each.
  const Trace::Node& at = trace.find("h");
  int edges = 0;
  for (const Trace::Edge& edge : trace.edges) edges += edge.from == at.id;
  CHECK(edges == 5);
}

TEST_CASE("contributions are copies: later accumulation does not reach them") {
  Var x = variable(f64({2}, {1, 2}), "x");
  Trace trace;
  Var first = sum(x * 2), second = sum(x * 3);
  backward(first + second, {.trace = &trace});
  REQUIRE(trace.find("x").leaf);
  Numbers seen;
  for (const Trace::Edge& edge : trace.edges)
    if (edge.from == trace.find("x").id) seen.push_back(edge.contribution.at(0));
  CHECK(seen == Numbers{3, 2});
  CHECK(trace.find("x").grad.to_vector() == Numbers{5, 5});
}

TEST_CASE("no gradient is not the same as a gradient of zero") {
  Var zero = variable(f64({}, {1}), "zero"), never = variable(f64({}, {1}), "never");
  Var y = record("partial", {zero, never}, f64({}, {2}), [](const Tensor&, Grads& dx) {
    dx.add(0, f64({}, {0}));
  });
  Trace trace;
  Gradients grads = backward(y * 2, {.trace = &trace});
  REQUIRE(trace.find("zero").grad.defined());
  CHECK(trace.find("zero").grad.item() == 0);
  CHECK_FALSE(trace.find("never").grad.defined());
  CHECK(grads.contains(zero));
  CHECK_FALSE(grads.contains(never));
}

TEST_CASE("nodes are found by label or by scope and op") {
  Var x = variable(f64({}, {2}), "x");
  Var y;
  {
    Scope decoder("decoder");
    Scope step("t0");
    y = exp(x);
  }
  Trace trace;
  backward(tap(y, "scores") * 1, {.trace = &trace});
  CHECK(trace.find("x").leaf);
  CHECK(trace.find("scores").op == "tap");
  CHECK(trace.find("decoder.t0/exp").op == "exp");
  CHECK(trace.find("mul").op == "mul");
  CHECK(error_of([&] { trace.find("keys"); }) == "[trace] no node is labelled \"keys\"");
  CHECK(trace.nodes.front().label == "x");  // oldest first
  CHECK(trace.nodes.back().op == "mul");
}

TEST_CASE("values are in the trace under KeepValues") {
  KeepValues on;
  Var x = variable(f64({}, {3}), "x");
  Var y = tap(x * x, "y");
  Trace trace;
  backward(y, {.trace = &trace});
  CHECK(trace.find("y").value.item() == 9);
  CHECK(trace.find("x").value.item() == 3);
}

TEST_CASE("the tape is a table of what was recorded") {
  Var w = variable(Tensor::zeros({2, 3}), "w"), b = variable(Tensor::zeros({3}), "b");
  Var y;
  {
    Scope layer("layer");
    y = tanh(w * Var(Tensor::ones({3})) + b);
  }
  CHECK(tape(sum(y)) ==
        "%0   parameter \"w\"                    f32 [2, 3]\n"
        "%1   parameter \"b\"                    f32 [3]\n"
        "%2   mul(%0, constant)                f32 [2, 3]  in layer\n"
        "%3   add(%2, %1)                      f32 [2, 3]  in layer\n"
        "%4   tanh(%3)                         f32 [2, 3]  in layer\n"
        "%5   sum(%4)                          f32 []\n");
  CHECK(tape(Var(Tensor::zeros({1}))) == "");
}
