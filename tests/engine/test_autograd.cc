// How gradients travel: sums over consumers, repeated and partial backward passes, who owns which numbers.

#include <functional>

#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>

#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

TEST_CASE("a value with two consumers adds up their gradients") {
  Var x = variable(f64({2}, {1, 2}));
  Var h = x * 3;
  Var loss = sum(h * h) + sum(h * 10);
  Gradients grads = backward(loss, {.keep = {h}});
  CHECK(grads[h].to_vector() == Numbers{16, 22});  // 2 h + 10
  CHECK(grads[x].to_vector() == Numbers{48, 66});
}

TEST_CASE("the same Var on both sides of an op") {
  Var x = variable(f64({2}, {3, 4}));
  CHECK(gradient(x * x, x) == Numbers{6, 8});
  CHECK(gradient(x + x, x) == Numbers{2, 2});
  CHECK(gradient(x - x, x) == Numbers{0, 0});
  CHECK(gradient(x / x, x) == Numbers{0, 0});
}

TEST_CASE("the gradient of a leaf with regard to itself is the seed") {
  Var x = variable(f64({}, {5}));
  CHECK(backward(x)[x].item() == 1);
  Var v = variable(f64({2}, {1, 2}));
  CHECK(backward(v, {.seed = f64({2}, {3, 4})})[v].to_vector() == Numbers{3, 4});
}

TEST_CASE("a loss that is not a scalar needs a seed of its shape and type") {
  Var x = variable(f32({2}, {1, 2})), y = x * x;
  CHECK(error_of([&] { backward(y); }) ==
        "[backward] the loss must be a scalar, or BackwardOptions::seed given: shape [2]");
  CHECK(error_of([&] { backward(y, {.seed = f32({3}, {1, 1, 1})}); }) ==
        "[backward] the seed must have the loss's shape and type: [3] f32 and [2] f32");
  CHECK(error_of([&] { backward(y, {.seed = f64({2}, {1, 1})}); }) ==
        "[backward] the seed must have the loss's shape and type: [2] f64 and [2] f32");
  Tensor seed = f32({2}, {10, 1});
  CHECK(backward(y, {.seed = seed})[x].to_vector() == Numbers{20, 4});
  CHECK(seed.to_vector() == Numbers{10, 1});
  // One element is enough of a scalar.
  Var one = variable(f32({1, 1}, {3}));
  CHECK(backward(one * one)[one].to_vector() == Numbers{6});
}

TEST_CASE("a loss that depends on nothing is refused") {
  Var c = f32({}, {1});
  const std::string refused = "[backward] the loss depends on nothing that needs a gradient";
  CHECK(error_of([&] { backward(c * 2); }) == refused + "; hint: made under NoGrad, or of constants alone?");
  CHECK(error_of([&] { backward(Var()); }) == refused + "; hint: moved from, or never computed?");
}

TEST_CASE("gradients of what the loss does not depend on are refused by name") {
  Parameter w(f32({2}, {1, 2}), "w"), unused(f32({2, 3}, {1, 2, 3, 4, 5, 6}), "encoder.weight");
  Var h = w.var() * 2, loss = sum(tanh(h));
  Gradients grads = backward(loss);
  CHECK(grads.contains(w));
  CHECK_FALSE(grads.contains(unused));
  CHECK(error_of([&] { grads[unused]; }) ==
        "[gradients] no gradient of encoder.weight [2, 3]: the loss does not depend on it");
  CHECK(error_of([&] { grads[h]; }) ==
        "[gradients] no gradient of mul [2]: the loss does not depend on it, or it was not named in "
        "BackwardOptions::keep");
  CHECK(error_of([&] { grads[Var(f32({}, {1}))]; }) == "[gradients] a constant has no gradient");
}

TEST_CASE("a second backward needs retain_graph in the first") {
  Var x = variable(f64({}, {3}), "x");
  Var h = x * x, loss = h * h;
  CHECK(backward(loss, {.retain_graph = true})[x].item() == 108);
  CHECK(backward(loss, {.retain_graph = true})[x].item() == 108);
  // From another value of the same graph.
  CHECK(backward(h, {.retain_graph = true})[x].item() == 6);
  CHECK(backward(loss)[x].item() == 108);
  CHECK(
      error_of([&] { backward(loss); }) ==
      "[backward] the graph behind mul was freed by an earlier backward; give that one retain_graph = true");
}

TEST_CASE("an op without a backward is refused where a gradient is wanted, and only there") {
  Var x = variable(f64({}, {2}));
  CHECK(error_of([&] { record("own", {x}, x.value(), nullptr); }) == "[own] the backward is empty");
  CHECK(record("own", {x.value()}, x.value(), nullptr).item() == 2);
  for (const Tensor& none : {Tensor(), Tensor::from_ids({1}, {2})})
    CHECK(error_of([&] { record("own", {x}, none, [](const Tensor&, Grads&) {}); }) ==
          "[own] the output must be f32 or f64 numbers");
}

TEST_CASE("two losses over a shared part: the shared part is freed with the first") {
  Var x = variable(f64({}, {2}));
  Var shared = exp(x);
  Var a = shared * 2, b = log(shared);
  backward(a);
  CHECK(
      error_of([&] { backward(b); }) ==
      "[backward] the graph behind exp was freed by an earlier backward; give that one retain_graph = true");
}

TEST_CASE("a kept value's gradient is what arrived at it") {
  Var x = variable(f64({2}, {1, 2}));
  Var h = x * 2, y = h * 5, loss = sum(y);
  Gradients grads = backward(loss, {.keep = {h, y, loss}});
  CHECK(grads[loss].item() == 1);
  CHECK(grads[y].to_vector() == Numbers{1, 1});
  CHECK(grads[h].to_vector() == Numbers{5, 5});
  CHECK(grads[x].to_vector() == Numbers{10, 10});
  Var elsewhere = x * 7;
  CHECK_FALSE(backward(sum(x * 1), {.keep = {elsewhere}}).contains(elsewhere));
}

TEST_CASE("a tap gives each consumer a gradient of its own") {
  Var x = variable(f64({2}, {1, 2}));
  Var a = tap(x, "left"), b = tap(x, "right");
  CHECK(a.value().raw() == x.value().raw());
  Var loss = sum(a * 2) + sum(b * b);
  Gradients grads = backward(loss, {.keep = {a, b}});
  CHECK(grads[a].to_vector() == Numbers{2, 2});
  CHECK(grads[b].to_vector() == Numbers{2, 4});
  CHECK(grads[x].to_vector() == Numbers{4, 6});
}

TEST_CASE("stop_gradient is a constant with the same numbers") {
  Var x = variable(f64({2}, {3, 4}));
  Var c = stop_gradient(x);
  CHECK_FALSE(c.requires_grad());
  CHECK(gradient(x * c, x) == Numbers{3, 4});
  CHECK(error_of([&] { backward(sum(c)); }) ==
        "[backward] the loss depends on nothing that needs a gradient; hint: made under NoGrad, or of "
        "constants alone?");
}

TEST_CASE("one dy handed to two inputs is not mixed up when one of them is added to") {
  Var a = variable(f64({2}, {1, 2})), b = variable(f64({2}, {3, 4}));
  Var both = record("both", {a, b}, f64({2}, {4, 6}), [](const Tensor& dy, Grads& dx) {
    dx.add(0, dy);
    dx.add(1, dy);
  });
  // `a` receives more after (and before) `both` was visited; neither b nor the kept dy may see it.
  Var loss = sum(both) + sum(a * 3);
  Gradients grads = backward(loss, {.keep = {both}});
  CHECK(grads[a].to_vector() == Numbers{4, 4});
  CHECK(grads[b].to_vector() == Numbers{1, 1});
  CHECK(grads[both].to_vector() == Numbers{1, 1});

  Var twice = a + a;
  Gradients again = backward(sum(twice * 1), {.keep = {twice}});
  CHECK(again[a].to_vector() == Numbers{2, 2});
  CHECK(again[twice].to_vector() == Numbers{1, 1});
}

TEST_CASE("a tensor that a closure saved is not changed by accumulation") {
  Var a = variable(f64({2}, {1, 2}));
  Tensor saved = f64({2}, {10, 20});
  auto op = [&] {
    return record("own", {a}, f64({2}, {0, 0}), [saved](const Tensor&, Grads& dx) { dx.add(0, saved); });
  };
  Gradients grads = backward(sum(op() + op() + a));
  CHECK(grads[a].to_vector() == Numbers{21, 41});
  CHECK(saved.to_vector() == Numbers{10, 20});
}

TEST_CASE("into() lends the accumulator itself, again to a second slot of the same node") {
  Var x = variable(f64({2}, {1, 2}));
  std::vector<void*> lent;
  auto op = [&] {
    return record("into", {x, x}, f64({}, {0}), [&lent](const Tensor& dy, Grads& dx) {
      Tensor first = dx.into(0), second = dx.into(1);
      lent.push_back(first.raw());
      first.set(0, first.at(0) + dy.item());
      second.set(1, second.at(1) + 10 * dy.item());
      dx.add(0, f64({2}, {100, 100}));
      first.set(0, first.at(0) + 1000);
    });
  };
  Gradients grads = backward(op() + op() * 2);
  CHECK(grads[x].to_vector() == Numbers{2203, 230});
  REQUIRE(lent.size() == 2);
  CHECK(lent[0] == lent[1]);  // no new tensor for the second op
}

TEST_CASE("into() does not write to what a kept value or another input shares") {
  Var x = variable(f64({2}, {1, 2})), other = variable(f64({2}, {0, 0}));
  Var first = record("first", {x, other}, f64({2}, {1, 2}), [](const Tensor& dy, Grads& dx) {
    dx.add(0, dy);
    dx.add(1, dy);
  });
  // Recorded before `first`, so that its into() comes when x's slot already shares dy.
  Var y = sum(first) + sum(slice(x, 0, 0, 1));
  Gradients grads = backward(y, {.keep = {first}});
  CHECK(grads[x].to_vector() == Numbers{2, 1});
  CHECK(grads[other].to_vector() == Numbers{1, 1});
  CHECK(grads[first].to_vector() == Numbers{1, 1});
}

TEST_CASE("closures that break the rules are told so") {
  Var x = variable(f32({2}, {1, 2}));
  auto op = [&](Backward b) { return record("mine", {x, Var(f32({}, {1}))}, f32({}, {1}), std::move(b)); };
  CHECK(error_of([&] { backward(op([](auto&, Grads& dx) { dx.add(0, f32({3}, {1, 1, 1})); })); }) ==
        "[mine] the gradient must have its input's shape: input 0 [2], gradient [3]");
  CHECK(error_of([&] { backward(op([](auto&, Grads& dx) { dx.add(0, f64({2}, {1, 1})); })); }) ==
        "[mine] the gradient must have its input's element type: input 0 f32, gradient f64");
  CHECK(error_of([&] { backward(op([](auto&, Grads& dx) { dx.into(1); })); }) ==
        "[mine] input 1 is a constant: ask needed(1) first");
  backward(op([](auto&, Grads& dx) {
    CHECK(dx.needed(0));
    CHECK_FALSE(dx.needed(1));
    dx.add(1, f32({5}, {1, 1, 1, 1, 1}));  // nobody wants it: whatever it is
  }));
  CHECK(error_of([] { variable(Tensor::zeros({2}, DType::i32)); }) ==
        "[variable] gradients exist for f32 and f64 only: i32");
}

TEST_CASE("a closure that names an input that there is not is told how many there are") {
  Var x = variable(f32({2}, {1, 2})), table = variable(f32({3, 2}, {1, 2, 3, 4, 5, 6}));
  auto told = [&](const Var& input, const std::function<void(Grads&)>& closure) {
    return error_of([&] {
      Var y = record("mine", {input}, f32({2}, {1, 1}), [&](const Tensor&, Grads& dx) { closure(dx); });
      backward(y, {.seed = f32({2}, {1, 1})});
    });
  };
  const Tensor g = f32({2}, {1, 1}), one = f32({1, 2}, {1, 1}), ids = Tensor::from_ids({1}, {2});
  for (int i : {1, 2, 1000, -1}) {
    const std::string text = "[mine] there is no input " + std::to_string(i) + ": recorded with 1";
    CHECK(told(x, [&](Grads& dx) { dx.add(i, g); }) == text);
    CHECK(told(x, [&](Grads& dx) { dx.into(i); }) == text);
    CHECK(told(x, [&](Grads& dx) { dx.needed(i); }) == text);
    CHECK(told(x, [&](Grads& dx) { dx.add_rows(i, ids, one); }) == text);
  }
  CHECK(told(x, [](Grads& dx) { dx.add(0, Tensor()); }) == "[mine] the gradient of input 0 is undefined");
  // Rows go to memory by their ids: those must be the input's.
  CHECK(told(table, [&](Grads& dx) { dx.add_rows(0, ids, one); }) == "(no error)");
  CHECK(told(table, [&](Grads& dx) { dx.add_rows(0, Tensor::from_ids({1}, {3}), one); }) ==
        "[mine] ids of input 0 must be in 0 .. 2: 3");
  CHECK(told(table, [&](Grads& dx) { dx.add_rows(0, Tensor::from_ids({1}, {-1}), one); }) ==
        "[mine] ids of input 0 must be in 0 .. 2: -1");
  const std::string rule =
      "[mine] rows must be those of ids i32 [N], each as a row of input 0 f32 [3, 2]: ids ";
  CHECK(told(table, [&](Grads& dx) { dx.add_rows(0, Tensor::from_ids({2}, {0, 1}), one); }) ==
        rule + "i32 [2], rows f32 [1, 2]");
  CHECK(told(table, [&](Grads& dx) { dx.add_rows(0, g, one); }) == rule + "f32 [2], rows f32 [1, 2]");
  CHECK(told(table, [&](Grads& dx) { dx.add_rows(0, ids, f64({1, 2}, {1, 1})); }) ==
        rule + "i32 [1], rows f64 [1, 2]");
  CHECK(contains(told(table, [&](Grads& dx) { dx.add_rows(0, Tensor(), one); }), rule));
  Var scalar = variable(f32({}, {1}));
  CHECK(told(scalar, [&](Grads& dx) { dx.add_rows(0, ids, one); }) ==
        "[mine] input 0 is a scalar and has no rows");
}

TEST_CASE("a gradient with the output's shape is summed over stretched axes") {
  Var x = variable(f64({2, 1}, {1, 2}));
  Var y = record("stretch", {x}, f64({3, 2, 2}, Numbers(12, 1)),
                 [](const Tensor& dy, Grads& dx) { dx.add(0, dy); });
  CHECK(gradient(y, x) == Numbers{6, 6});
}

TEST_CASE("a parameter's update leaves the numbers alone that a live graph saved") {
  Parameter w(f64({2}, {3, 4}), "w");
  Var loss = sum(w.var() * w.var());
  w.update([](const Tensor& t) { t.fill(100); });
  CHECK(w.value().to_vector() == Numbers{100, 100});
  CHECK(backward(loss)[w].to_vector() == Numbers{6, 8});

  // Nobody holds them now: in place.
  loss = Var();
  void* where = w.value().raw();
  w.update([](const Tensor& t) { t.fill(7); });
  CHECK(w.value().raw() == where);
  CHECK(backward(sum(w.var() * w.var()))[w].to_vector() == Numbers{14, 14});
}

TEST_CASE("a parameter can be assigned, in its shape") {
  Parameter w(Tensor::zeros({3, 4}), "w");
  CHECK(error_of([&] { w.assign(Tensor::zeros({4, 3})); }) ==
        "[assign] the shape must stay: parameter [3, 4], value [4, 3]");
  w.assign(Tensor::ones({3, 4}, DType::f64));
  CHECK(backward(sum(w.var() * w.var()))[w].dtype() == DType::f64);
  Parameter moved = std::move(w);
  CHECK(moved.value().at(0) == 1);
}

TEST_CASE("gradients add parameter by parameter, rows as rows") {
  Parameter a(f64({2}, {1, 2}), "a"), b(f64({}, {1}), "b"), table(f64({3, 1}, {1, 2, 3}), "table");
  auto rows = [&](std::vector<int32_t> ids) {
    int64_t n = static_cast<int64_t>(ids.size());
    return sum(gather_rows(table, Tensor::from_ids({n}, ids)));
  };
  Gradients one = backward(sum(a.var() * 2) + rows({0, 2})),
            two = backward(sum(a.var() * 3) + b.var() + rows({2}));
  one.add(two);
  CHECK(one[a].to_vector() == Numbers{5, 5});
  CHECK(one[b].item() == 1);
  CHECK_FALSE(one.find(table)->dense.defined());
  CHECK(one[table].to_vector() == Numbers{1, 0, 2});
  CHECK(two[a].to_vector() == Numbers{3, 3});

  one.add(backward(sum(table.var() * 10)));  // dense and rows
  CHECK(one[table].to_vector() == Numbers{11, 10, 12});
  one.scale(2);
  CHECK(one[table].to_vector() == Numbers{22, 20, 24});
  CHECK(one[a].to_vector() == Numbers{10, 10});
  one.add(one);
  CHECK(one[b].item() == 4);
}

TEST_CASE("scaling one gradient leaves those alone that share its numbers") {
  Var a = variable(f64({2}, {1, 2})), b = variable(f64({2}, {3, 4}));
  Gradients grads = backward(sum(a + b)), copy = grads;
  grads.scale(10);
  CHECK(grads[a].to_vector() == Numbers{10, 10});
  CHECK(grads[b].to_vector() == Numbers{10, 10});
  CHECK(copy[a].to_vector() == Numbers{1, 1});
}

TEST_CASE("row gradients mix with dense ones in one backward") {
  Var table = variable(f64({3, 2}, {1, 2, 3, 4, 5, 6}));
  Tensor ids = Tensor::from_ids({2}, {1, 1});
  Var loss = sum(gather_rows(table, ids)) + sum(table * 10) + sum(slice(table, 0, 0, 1)) +
             sum(gather_rows(table, Tensor::from_ids({1}, {2})));
  CHECK(backward(loss)[table].to_vector() == Numbers{11, 11, 12, 12, 11, 11});
}

TEST_CASE("gradients that cannot be added up are left as they were") {
  Parameter p(Tensor::ones({2})), q(Tensor::ones({2}));
  Gradients one = backward(sum(q * 3) + sum(p));
  p.assign(Tensor::ones({2}, DType::f64));
  const Gradients other = backward(sum(p));
  CHECK_THROWS_AS(one.add(other), Error);
  CHECK(one[q].to_vector() == Numbers{3, 3});
  CHECK(one[p].to_vector() == Numbers{1, 1});
}
