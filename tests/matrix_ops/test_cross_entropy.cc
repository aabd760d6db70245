#include <cmath>

#include <gradus/memory.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cross_entropy.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/output_loss.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "helpers.h"

using namespace gradus;
using helpers::op_error_of;
using helpers::random;

TEST_CASE("cross_entropy and linear_cross_entropy: all registered cases") {
  CHECK_OP_CASES("cross_entropy", 5);
  CHECK_OP_CASES("linear_cross_entropy", 5);
}

TEST_CASE("mean loss, sum of nll, tokens") {
  // Uniform logits: every loss is log V.
  Tensor logits = Tensor::zeros({3, 4}, DType::f64), targets = Tensor::from_ids({3}, {0, 9, 3});
  CrossEntropy r = cross_entropy(logits, targets, {.ignore_index = 9, .label_smoothing = 0.3});
  CHECK(r.tokens == 2);
  CHECK(r.nll == about(2 * std::log(4)));
  CHECK(r.loss.item() == about(std::log(4)));
  CHECK_FALSE(r.loss.requires_grad());
}

TEST_CASE("nll is not smoothed, loss is") {
  Tensor logits = Tensor::from({1, 2}, {2, 0}, DType::f64), targets = Tensor::from_ids({1}, {0});
  CrossEntropy r = cross_entropy(logits, targets, {.label_smoothing = 0.2});
  double p0 = std::log1p(std::exp(-2)), p1 = p0 + 2;
  CHECK(r.nll == about(p0));
  CHECK(r.loss.item() == about(0.9 * p0 + 0.1 * p1));
}

TEST_CASE("when nothing counts the loss is 0 and so are the gradients") {
  Var logits = variable(random({2, 3})), h = variable(random({2, 4})), w = variable(random({3, 4})),
      b = variable(random({3}));
  Tensor targets = Tensor::from_ids({2}, {-100, -100});
  CrossEntropy r = cross_entropy(logits, targets), s = linear_cross_entropy(h, w, b, targets);
  for (const CrossEntropy& e : {r, s}) {
    CHECK(e.loss.item() == 0);
    CHECK(e.nll == 0);
    CHECK(e.tokens == 0);
  }
  CHECK(backward(r.loss)[logits].to_vector() == std::vector<double>(6, 0));
  Gradients grads = backward(s.loss);
  CHECK(grads[h].to_vector() == std::vector<double>(8, 0));
  CHECK(grads[w].to_vector() == std::vector<double>(12, 0));
  CHECK(grads[b].to_vector() == std::vector<double>(3, 0));
}

TEST_CASE("backward twice on a kept graph, and a scaled loss") {
  Var logits = variable(random({2, 3})), h = variable(random({2, 4})), w = variable(random({3, 4}));
  Tensor targets = Tensor::from_ids({2}, {1, 0});
  for (const Var& x : {logits, h}) {
    Var loss = x.node() == logits.node() ? cross_entropy(logits, targets).loss
                                         : linear_cross_entropy(h, w, {}, targets).loss;
    Tensor once = backward(loss, {.retain_graph = true})[x].clone();
    Tensor threefold = backward(loss * 3.0, {.retain_graph = true})[x].clone();
    Tensor again = backward(loss)[x];
    CHECK(max_abs_difference(once, again) == 0);
    for (int64_t i = 0; i < once.numel(); ++i) CHECK(threefold.at(i) == about(3 * once.at(i)));
  }
}

TEST_CASE("what is returned may be changed without a later backward noticing") {
  Var logits = variable(random({2, 3}));
  Var loss = cross_entropy(logits, Tensor::from_ids({2}, {1, 0})).loss;
  Gradients first = backward(loss, {.retain_graph = true});
  std::vector<double> before = first[logits].to_vector();
  first.scale(100);
  CHECK(backward(loss)[logits].to_vector() == before);
}

TEST_CASE("the product and the loss in one equal the two apart, over several chunks, in float") {
  int64_t N = 700, H = 16, V = 50;
  Tensor targets({N}, DType::i32);
  for (int64_t i = 0; i < N; ++i)
    targets.i32()[i] = i % 7 == 3 || i > 650 ? -100 : static_cast<int32_t>(i * 13 % V);
  CrossEntropyOptions options{.label_smoothing = 0.1};
  Var h = variable(random({N, H}, DType::f32, 1)), w = variable(random({V, H}, DType::f32, 2)),
      b = variable(random({V}, DType::f32, 3));
  CrossEntropy one = linear_cross_entropy(h, w, b, targets, options),
               two = cross_entropy(linear(h, w, b), targets, options);
  CHECK(one.tokens == two.tokens);
  CHECK(one.nll == about(two.nll, 1e-6));
  CHECK(one.loss.item() == about(two.loss.item(), 1e-6));
  Gradients a = backward(one.loss), c = backward(two.loss);
  for (const Var& x : {h, w, b}) CHECK(max_abs_difference(a[x], c[x]) < 1e-7);
}

TEST_CASE("all the logits are never in memory") {
  int64_t N = 4096, H = 8, V = 2000;
  Var h = variable(random({N, H}, DType::f32)), w = variable(random({V, H}, DType::f32, 2));
  Tensor targets = Tensor::zeros({N}, DType::i32);
  release_cached_memory();
  int64_t cached = memory_stats().cached;
  backward(linear_cross_entropy(h, w, {}, targets).loss);
  CHECK(memory_stats().cached - cached < N * V * 4 / 4);
}

TEST_CASE("what stands in ignored rows has no influence") {
  Tensor h = random({3, 4}), w = random({5, 4}, DType::f64, 2), targets = Tensor::from_ids({3}, {1, -100, 4});
  Tensor spoilt = h.clone();
  for (int64_t i = 4; i < 8; ++i) spoilt.set(i, NAN);
  Var a = variable(h), b = variable(spoilt);
  CrossEntropy x = linear_cross_entropy(a, w, {}, targets), y = linear_cross_entropy(b, w, {}, targets);
  CHECK(x.loss.item() == y.loss.item());
  CHECK(max_abs_difference(backward(x.loss)[a], backward(y.loss)[b]) == 0);
}

TEST_CASE("cross_entropy: what is refused") {
  Tensor logits = random({6, 10}), targets = Tensor::from_ids({6}, {0, 1, 2, 3, 4, 12});
  CHECK(op_error_of([&] { cross_entropy(logits, targets); }) ==
        "[cross_entropy] targets must be in 0 .. 9: 12");
  CHECK(op_error_of([&] { cross_entropy(logits, Tensor::full({6}, -1, DType::i32)); }) ==
        "[cross_entropy] targets must be in 0 .. 9: -1");
  CHECK(op_error_of([&] { cross_entropy(logits, targets.rows(0, 5)); }) ==
        "[cross_entropy] targets must have the logits' shape without the last axis: logits [6, 10], targets "
        "[5]");
  CHECK(op_error_of([&] { cross_entropy(logits, Tensor::zeros({6})); }) ==
        "[cross_entropy] targets must be i32: f32");
  CHECK(op_error_of([&] { cross_entropy(logits, targets, {.label_smoothing = 1}); }) ==
        "[cross_entropy] label_smoothing must be in [0, 1): 1");
}

TEST_CASE("linear_cross_entropy: what is refused") {
  Tensor h = random({6, 4}), w = random({10, 4}), targets = Tensor::from_ids({6}, {0, 1, 2, 3, 4, 12});
  auto text = [](const Var& hidden, const Var& weight, const Var& bias, const Tensor& t) {
    return op_error_of([&] { linear_cross_entropy(hidden, weight, bias, t); });
  };
  CHECK(text(h, w, {}, targets) == "[linear_cross_entropy] targets must be in 0 .. 9: 12");
  CHECK(text(h, random({10, 5}), {}, targets) ==
        "[linear_cross_entropy] hidden's last dimension must be weight's: hidden [6, 4], weight [10, 5]");
  CHECK(text(h, w, random({9}), targets) ==
        "[linear_cross_entropy] bias must be [V]: bias [9], weight [10, 4]");
  CHECK(text(h, random({4}), {}, targets) == "[linear_cross_entropy] weight must be [V, H]: [4]");
  CHECK(text(h, w, {}, targets.rows(0, 5)) ==
        "[linear_cross_entropy] targets must have hidden's shape without the last axis: hidden [6, 4], "
        "targets [5]");
  CHECK(text(h, w.to(DType::f32), {}, targets) ==
        "[linear_cross_entropy] element types must agree: hidden f64, weight f32");
  CHECK(op_error_of([&] { linear_cross_entropy(h, w, {}, targets, {}, nullptr, -1); }) ==
        "[linear_cross_entropy] parts must not be negative: -1");
}

TEST_CASE("threads that share the output layer give what one gives, and the same bits however many they are") {
  int64_t N = 700, H = 16, V = 50;
  Tensor targets({N}, DType::i32);
  for (bool holes : {false, true}) {
    CAPTURE(holes);
    for (int64_t i = 0; i < N; ++i)
      targets.i32()[i] = holes && i % 7 == 3 ? -100 : static_cast<int32_t>(i * 13 % V);
    Var h = variable(random({N, H}, DType::f32, 1)), w = variable(random({V, H}, DType::f32, 2)),
        b = variable(random({V}, DType::f32, 3));
    auto run = [&](int threads, int parts) {
      ThreadPool pool(threads);
      CrossEntropy found = linear_cross_entropy(h, w, b, targets, {.label_smoothing = 0.1}, &pool, parts);
      return std::pair(found, backward(found.loss));
    };
    auto [whole, expected] = run(1, 1);
    for (int parts : {2, 3, 5}) {  // V has room for three
      CAPTURE(parts);
      auto [one, first] = run(1, parts);
      CHECK(one.tokens == whole.tokens);
      CHECK(one.nll == about(whole.nll, 1e-9));
      CHECK(one.loss.item() == about(whole.loss.item(), 1e-6));
      for (const Var& x : {h, w, b}) CHECK(max_abs_difference(first[x], expected[x]) < 1e-7);
      for (int threads : {2, 3}) {
        auto [again, second] = run(threads, parts);
        CHECK(again.nll == one.nll);
        CHECK(again.loss.item() == one.loss.item());
        for (const Var& x : {h, w, b}) CHECK(max_abs_difference(second[x], first[x]) == 0);
      }
    }
  }
}

TEST_CASE("threads that share the output layer hold one set of logits and one gradient of the weight") {
  int64_t N = 100, H = 32, V = 20000;
  Var h = variable(random({N, H}, DType::f32)), w = variable(random({V, H}, DType::f32, 2));
  Tensor targets = Tensor::zeros({N}, DType::i32);
  ThreadPool pool(4);
  release_cached_memory();
  int64_t cached = memory_stats().cached, once = (N * V + V * H) * 4;
  linear_cross_entropy(h, w, {}, targets, {}, &pool);
  CHECK(memory_stats().cached - cached > once);
  CHECK(memory_stats().cached - cached < once * 6 / 5);
}
