// Thread-local modes: NoGrad, Training, Scope, KeepValues, CheckFinite.

#include <functional>
#include <limits>
#include <thread>

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/dropout.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/scaled_dot_product_attention.h>

#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

TEST_CASE("nothing is recorded under NoGrad, and guards nest") {
  Var x = variable(f32({2}, {1, 2}));
  CHECK_FALSE(NoGrad::active());
  {
    NoGrad outer;
    {
      NoGrad inner;
      CHECK_FALSE((x * 2).requires_grad());
    }
    CHECK(NoGrad::active());
    CHECK_FALSE((x * 2).requires_grad());
    std::thread([&] { CHECK((x * 2).requires_grad()); }).join();  // modes belong to their thread
  }
  CHECK((x * 2).requires_grad());
}

TEST_CASE("an op of constants records nothing") {
  Var a = f32({2}, {1, 2});
  CHECK_FALSE((a * a).requires_grad());
}

TEST_CASE("Training numbers its random ops from 0 for each seed") {
  using Stream = std::pair<uint64_t, uint64_t>;
  CHECK_FALSE(Training::active());
  {
    Training on(42);
    CHECK(Training::active());
    CHECK(Training::next_stream() == Stream{42, 0});
    CHECK(Training::next_stream() == Stream{42, 1});
    {
      Training inner(7);
      CHECK(Training::next_stream() == Stream{7, 0});
    }
    CHECK(Training::next_stream() == Stream{42, 2});
    std::thread([] { CHECK_FALSE(Training::active()); }).join();
  }
  CHECK_FALSE(Training::active());
  Training again(42);
  CHECK(Training::next_stream() == Stream{42, 0});
}

TEST_CASE("Training has a share of all dropout, the innermost its own") {
  CHECK(Training::dropout_share() == 0);
  {
    Training outer(1);
    CHECK(Training::dropout_share() == 1);
    {
      Training inner(2, 0.25);
      CHECK(Training::dropout_share() == 0.25);
      for (double share : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()})
        CHECK(error_of([&] { Training wrong(3, share); })
                  .starts_with("[Training] dropout_share must be in [0, 1]: "));
      CHECK(Training::dropout_share() == 0.25);
      CHECK(Training::next_stream() == std::pair<uint64_t, uint64_t>{2, 0});
    }
    CHECK(Training::dropout_share() == 1);
  }
  CHECK(Training::dropout_share() == 0);
  CHECK_FALSE(Training::active());
}

TEST_CASE("a share of dropout is dropout with that much of its probability, in every op that drops") {
  Rng rng(4);
  auto draw = [&](const Shape& shape) { return variable(Tensor::normal(shape, 0, 1, rng)); };
  Var x = draw({5, 3, 8}), y = draw({4, 3, 8});
  auto ops = [&](double p) {
    return std::vector<std::function<Var()>>{
        [=] { return dropout(x, p); }, [=] { return variational_dropout(x, p); },
        [=] { return x * dropout_mask(x.shape(), p, x.dtype()); },
        [=] { return scaled_dot_product_attention(x, y, y, {.heads = 2, .dropout = p}).output; }};
  };
  const auto whole = ops(0.4), half = ops(0.2), none = ops(0);
  for (size_t i = 0; i < whole.size(); ++i) {
    CAPTURE(i);
    auto run = [](const std::function<Var()>& op, double share) {
      Training mode(9, share);
      return op().value();
    };
    CHECK(same_bits(run(whole[i], 0.5), run(half[i], 1)));
    CHECK(!same_bits(run(whole[i], 0.5), run(whole[i], 1)));
    if (i == 2) continue;  // of nothing dropped there is no mask
    CHECK(same_bits(run(whole[i], 0), run(none[i], 1)));
    CHECK(!same_bits(run(whole[i], 0), run(whole[i], 1)));
  }
  Training none_dropped(9, 0);
  CHECK_FALSE(dropout_mask({3}, 0.4, DType::f32).defined());
  CHECK(error_of([&] { dropout(x, 1.5); }).starts_with("[dropout] p must be in [0, 1): 1.5"));
}

TEST_CASE("scopes nest into paths that nodes remember") {
  Var x = variable(f32({}, {2}));
  CHECK(Scope::path() == "");
  Var inside;
  {
    Scope decoder("decoder");
    {
      Scope step("t3");
      Scope attention("attention");
      CHECK(Scope::path() == "decoder.t3.attention");
      inside = x * x;
    }
    CHECK(Scope::path() == "decoder");
  }
  CHECK(Scope::path() == "");
  REQUIRE(inside.node()->scope);
  CHECK(*inside.node()->scope == "decoder.t3.attention");
  CHECK_FALSE(x.node()->scope);
}

TEST_CASE("values are kept under KeepValues only") {
  Var x = variable(f32({2}, {2, 3}));
  Var plain = x * 2;
  CHECK_FALSE(plain.node()->value.defined());
  KeepValues on;
  CHECK(KeepValues::active());
  Var y = x * Var(f32({}, {5}));
  CHECK(y.node()->value.to_vector() == Numbers{10, 15});
  REQUIRE(y.node()->input_values.size() == 2);
  CHECK(y.node()->input_values[1].item() == 5);
  backward(sum(y));
  CHECK_FALSE(y.node()->value.defined());  // freed with the graph
}

TEST_CASE("CheckFinite names op, scope, shape and the inputs' ranges") {
  Var x = variable(f32({3}, {0, 1, 2})), zero = f32({}, {0});
  CHECK(log(x).value().at(0) == -std::numeric_limits<double>::infinity());
  CheckFinite on;
  CHECK(CheckFinite::active());
  Scope scope("decoder.t3");
  CHECK(error_of([&] { log(x); }) ==
        "[log] the output is not finite: f32 [3], 0 .. 0.6931, 1 infinite, scope \"decoder.t3\"; "
        "input 0: f32 [3], 0 .. 2");
  CHECK(error_of([&] { x / zero; }) ==
        "[div] the output is not finite: f32 [3], 1 NaN, 2 infinite, scope \"decoder.t3\"; "
        "input 0: f32 [3], 0 .. 2; input 1: f32 [], 0 .. 0");
  NoGrad quiet;
  CHECK(
      error_of([&] { log(Var(f32({1}, {0}))); }) ==
      "[log] the output is not finite: f32 [1], 1 infinite, scope \"decoder.t3\"; input 0: f32 [1], 0 .. 0");
  CHECK(exp(x).numel() == 3);
}

TEST_CASE("check_finite stops at the op whose backward made the first infinity") {
  Var x = variable(f64({2}, {0, 4}), "x");
  auto loss = [&] {
    Scope encoder("encoder");
    return sum(sqrt(x) * 3);
  };
  CHECK(error_of([&] { backward(loss(), {.check_finite = true}); }) ==
        "[sqrt backward] the gradient of input 0 is not finite: f64 [2], 0.75 .. 0.75, 1 infinite, scope "
        "\"encoder\"; the gradient that arrived: f64 [2], 3 .. 3; "
        "record under KeepValues to see the inputs' ranges");
  {
    KeepValues on;
    CHECK(error_of([&] { backward(loss(), {.check_finite = true}); }) ==
          "[sqrt backward] the gradient of input 0 is not finite: f64 [2], 0.75 .. 0.75, 1 infinite, scope "
          "\"encoder\"; "
          "input 0: f64 [2], 0 .. 4; the gradient that arrived: f64 [2], 3 .. 3");
  }
  {
    CheckFinite on;  // keeps the inputs too
    CHECK_THROWS_WITH_AS(
        backward(loss(), {.check_finite = true}),
        doctest::Contains("input 0: f64 [2], 0 .. 4; the gradient that arrived: f64 [2], 3 .. 3 "
                          "(test_modes.cc:"),
        NotFinite);
  }
  Gradients grads = backward(loss());  // unchecked: it goes through
  CHECK_FALSE(all_finite(grads[x]));
  CHECK(backward(sum(x * 2), {.check_finite = true})[x].to_vector() == Numbers{2, 2});
}
