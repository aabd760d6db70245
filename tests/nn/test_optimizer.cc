#include <gradus/nn/embedding.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/optimizer.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/embedding.h>
#include <gradus/ops/reduce.h>

#include <cmath>
#include <limits>

#include "../about.h"
#include "helpers.h"

using namespace gradus;
using namespace gradus::test;

namespace {

// The gradients of sum(p * g) with respect to p are g.
Gradients with_gradient(const Parameter& p, const Tensor& g) { return backward(sum(p.var() * Var(g))); }

// Embedding tables under test: the gradient has rows with repeated ids.
struct Table {
  nn::Embedding table;
  explicit Table(DType dtype = DType::f64) : table(make(dtype)) {}
  static nn::Embedding make(DType dtype) {
    Rng rng(1);
    nn::Embedding e(6, 3, rng);
    nn::to(e, dtype);
    return e;
  }
  // Ids 1 and 4, the first twice.
  Gradients gradients(double factor = 1) const {
    Var y = table(Tensor::from_ids({3}, {1, 4, 1}));
    return backward(sum(y * Var(random({3, 3}, 9, y.dtype()))) * factor);
  }
  // The same as one dense tensor.
  Gradients dense(double factor = 1) const {
    return with_gradient(table.weight, gradients(factor)[table.weight]);
  }
};

}  // namespace

TEST_CASE("Adam takes the golden steps") {
  auto in = [](const std::string& name) { return golden("adam_step", "inputs", name); };
  auto out = [](const std::string& name) { return golden("adam_step", "outputs", name); };
  for (DType dtype : {DType::f64, DType::f32}) {
    double tolerance = dtype == DType::f64 ? 1e-11 : 2e-6;
    Parameter p(in("p").to(dtype));
    std::vector<NamedParameter> named{{"p", &p}};
    nn::Adam adam({.lr = 0.01});
    for (int t = 1; t <= 3; ++t) {
      std::string n = std::to_string(t);
      adam.step(named, with_gradient(p, in("g" + n).to(dtype)));
      nn::StateDict state = adam.state_dict(named);
      CHECK(all_close(p.value().to(DType::f64), out("p_after_" + n), tolerance, tolerance));
      REQUIRE(state.size() == 4);
      CHECK(state[0].first == "m.p");
      CHECK(state[1].first == "v.p");
      CHECK(state[2].first == "step.p");
      CHECK(all_close(state[0].second.to(DType::f64), out("m_after_" + n), tolerance, tolerance));
      CHECK(all_close(state[1].second.to(DType::f64), out("v_after_" + n), tolerance, tolerance));
      CHECK(state[2].second.item() == t);
      CHECK(state[3].first == "lr");
      CHECK(p.value().at(3) == 0);  // never had a gradient: does not move
    }
  }
}

TEST_CASE("Adam scales the gradient while it reads it, and decays weights as torch.optim.Adam") {
  Tensor start = random({7}, 1), g = random({7}, 2), scaled(g.shape(), DType::f64),
         decayed(g.shape(), DType::f64);
  for (int64_t i = 0; i < 7; ++i) {
    scaled.set(i, g.at(i) * 0.25);
    decayed.set(i, g.at(i) + 0.1 * start.at(i));
  }
  auto after = [&](const nn::AdamOptions& options, const Tensor& gradient, double scale) {
    Parameter p(start.clone());
    nn::Adam(options).step({{"p", &p}}, with_gradient(p, gradient), scale);
    return p.value();
  };
  CHECK(all_close(after({}, g, 0.25), after({}, scaled, 1), 1e-13, 1e-13));
  CHECK(all_close(after({.weight_decay = 0.1}, g, 1), after({}, decayed, 1), 1e-13, 1e-13));
}

TEST_CASE("SGD: plain, momentum, Nesterov, weight decay") {
  auto two_steps = [](const nn::SGDOptions& options) {
    Parameter p(Tensor::from({2}, {1, -2}, DType::f64));
    nn::SGD sgd(options);
    sgd.step({{"p", &p}}, with_gradient(p, Tensor::from({2}, {0.5, 1}, DType::f64)));
    sgd.step({{"p", &p}}, with_gradient(p, Tensor::from({2}, {1, -1}, DType::f64)), 0.5);
    return p.value();
  };
  auto is = [](const Tensor& t, double a, double b) {
    return all_close(t, Tensor::from({2}, {a, b}, DType::f64), 1e-13, 1e-13);
  };
  // Step 1 with g = (0.5, 1), step 2 with g = (0.5, -0.5) after scaling.
  CHECK(is(two_steps({.lr = 0.1}), 1 - 0.05 - 0.05, -2 - 0.1 + 0.05));
  // u1 = g1; u2 = 0.9 u1 + g2 = (0.95, 0.4)
  CHECK(is(two_steps({.lr = 0.1, .momentum = 0.9}), 1 - 0.05 - 0.095, -2 - 0.1 - 0.04));
  // p -= lr (g + 0.9 u): first (0.95, 1.9), then (0.5 + 0.855, -0.5 + 0.36)
  CHECK(is(two_steps({.lr = 0.1, .momentum = 0.9, .nesterov = true}), 1 - 0.095 - 0.1355, -2 - 0.19 + 0.014));
  // g + 0.5 p: first (1, 0), p = (0.9, -2); then (0.95, -1.5)
  CHECK(is(two_steps({.lr = 0.1, .weight_decay = 0.5}), 0.9 - 0.095, -2 + 0.15));
  CHECK(error_of([] { nn::SGD({.nesterov = true}); }) == "[SGD] nesterov needs a momentum, and no dampening");
}

TEST_CASE("the global norm and clipping have the golden numbers") {
  Parameter a(Tensor::zeros({2, 2}, DType::f64)), b(Tensor::zeros({3}, DType::f64));
  auto gradients = [&] {
    return backward(sum(a.var() * Var(golden("grad_clip", "inputs", "g1"))) +
                    sum(b.var() * Var(golden("grad_clip", "inputs", "g2"))));
  };
  Gradients grads = gradients();
  CHECK(nn::grad_norm(grads) == about(13.25, 1e-14));
  CHECK(nn::clip_grad_norm(grads, 5) == about(13.25, 1e-14));
  CHECK(all_close(grads[a], golden("grad_clip", "outputs", "g1_clipped"), 1e-11, 1e-11));
  CHECK(all_close(grads[b], golden("grad_clip", "outputs", "g2_clipped"), 1e-11, 1e-11));
  Gradients small = gradients();
  CHECK(nn::clip_grad_norm(small, 100) == about(13.25, 1e-14));
  CHECK(same_bits(small[a], golden("grad_clip", "inputs", "g1")));
  CHECK(nn::clip_factor(10, 5) == 0.5);
  CHECK(nn::clip_factor(3, 5) == 1);
}

TEST_CASE("repeated ids are summed before the norm is taken, and clipping scales their rows") {
  Table t;
  Gradients grads = t.gradients(), dense = t.dense();
  REQUIRE(grads.find(t.table.weight)->rows.size() == 1);
  CHECK(nn::grad_norm(grads) == about(nn::grad_norm(dense), 1e-14));
  CHECK(grads.find(t.table.weight)->rows[0].ids.numel() == 2);
  nn::clip_grad_norm(grads, 0.1);
  nn::clip_grad_norm(dense, 0.1);
  CHECK(all_close(grads[t.table.weight], dense[t.table.weight], 1e-13, 1e-13));
  CHECK(nn::grad_norm(grads) == about(0.1, 1e-12));
}

TEST_CASE("a norm that is not finite is returned and scales nothing") {
  Parameter p(Tensor::zeros({2}));
  Tensor g = Tensor::from({2}, {1, std::numeric_limits<double>::quiet_NaN()});
  Gradients grads = with_gradient(p, g);
  CHECK(std::isnan(nn::clip_grad_norm(grads, 0.5)));
  CHECK(grads[p].at(0) == 1);
  CHECK(nn::clip_factor(std::numeric_limits<double>::infinity(), 1) == 1);
}

TEST_CASE("a kept intermediate value does not count in the norm") {
  Parameter p(Tensor::from({2}, {1, 2}, DType::f64));
  Var y = p.var() * 3.0;
  Gradients grads = backward(sum(y), {.keep = {y}});
  CHECK(nn::grad_norm(grads) == about(std::sqrt(18.0), 1e-14));
}

TEST_CASE("row gradients step exactly as dense ones, momentum of unseen rows included") {
  Table rows, dense;
  nn::Adam a({.lr = 0.1}), b({.lr = 0.1});
  for (int step = 0; step < 4; ++step) {
    a.step(rows.table, rows.gradients(step + 1), 0.5);
    b.step(dense.table, dense.dense(step + 1), 0.5);
    CHECK(all_close(rows.table.weight.value(), dense.table.weight.value(), 1e-13, 1e-13));
  }
  Tensor before = rows.table.weight.value().clone();
  Gradients other = backward(sum(rows.table(Tensor::from_ids({1}, {0}))));
  a.step(rows.table, other);
  CHECK(max_abs_difference(rows.table.weight.value().row(1), before.row(1)) >
        1e-3);  // moves on by its momentum
  CHECK(same_bits(rows.table.weight.value().row(2), before.row(2)));                  // never occurred
}

// Rows without a history are passed over; when each one comes, and what comes between, must not show.
TEST_CASE("rows that come one after the other step as dense gradients do, to the bit") {
  for (bool other_kind : {false, true}) {
    for (bool decay_from_the_middle : {false, true}) {
      CAPTURE(other_kind);
      CAPTURE(decay_from_the_middle);
      Parameter rows(Tensor::full({40, 3}, 0.5, DType::f32)), dense(Tensor::full({40, 3}, 0.5, DType::f32));
      nn::Adam a({.lr = 0.1}), b({.lr = 0.1});
      for (int32_t step = 0; step < 8; ++step) {
        Tensor ids = Tensor::from_ids({4}, {step, step + 1, 39 - 3 * step, 20});
        auto sparse = [&](const Parameter& w) {
          return backward(sum(embedding(w.var(), ids) * (step + 1.0)));
        };
        auto full = [&](const Parameter& w) {
          Gradients g = sparse(w);
          return with_gradient(w, g[w]);
        };
        bool as_rows = !(other_kind && step == 4);
        Gradients first = as_rows ? sparse(rows) : full(rows), second = full(dense);
        REQUIRE(first.find(rows)->dense.defined() == !as_rows);
        if (decay_from_the_middle && step == 3) {
          a.add_group({{"w", &rows}}, {.weight_decay = 0.1});
          b.add_group({{"w", &dense}}, {.weight_decay = 0.1});
        }
        a.step({{"w", &rows}}, first);
        b.step({{"w", &dense}}, second);
        CHECK(same_bits(rows.value(), dense.value()));
      }
      CHECK(same_bits(rows.value().row(19), Tensor::full({3}, 0.5, DType::f32)) == !decay_from_the_middle);
    }
  }
}

TEST_CASE("an optimiser's state comes back bit for bit") {
  auto run = [](bool interrupt) {
    Table t(DType::f32);
    auto adam = std::make_unique<nn::Adam>(nn::AdamOptions{.lr = 0.05});
    for (int step = 0; step < 6; ++step) {
      if (interrupt && step == 3) {
        nn::StateDict state = adam->state_dict(t.table), numbers = nn::state_dict(t.table);
        adam->step(t.table, t.gradients());  // must not reach into the snapshot
        nn::load_state_dict(t.table, numbers);
        adam = std::make_unique<nn::Adam>(nn::AdamOptions{.lr = 0.05});
        adam->load_state_dict(t.table, state);
      }
      adam->step(t.table, t.gradients(step));
    }
    return t.table.weight.value();
  };
  CHECK(same_bits(run(false), run(true)));
}

TEST_CASE("a state that does not fit is refused with all names") {
  Rng rng(1);
  nn::Linear layer(2, 3, rng);
  nn::Adam adam;
  nn::StateDict wrong{{"m.weight", Tensor::zeros({2, 3})},
                      {"v.weight", Tensor::zeros({3, 2})},
                      {"m.gone", Tensor::zeros({1})}};
  CHECK(error_of([&] { adam.load_state_dict(layer, wrong); }) ==
        "[Adam] the saved state must be one of these parameters: missing step.weight; unexpected m.gone; "
        "wrong shape m.weight (parameter [3, 2], given [2, 3])");
}

TEST_CASE("optimisers refuse gradients of another model, and leave alone what has no gradient") {
  Rng rng(1);
  nn::Linear layer(2, 3, rng), other(2, 3, rng);
  nn::Adam adam;
  Gradients grads = backward(sum(other(random({4, 2}, 1, DType::f32))));
  CHECK(error_of([&] { adam.step(layer, grads); }) ==
        "[Adam] the gradients have none of the 2 parameters; hint: does the loss come from this module?");
  Tensor bias = layer.bias.value().clone();
  adam.step(layer, backward(sum(layer.weight.var() * 2.0)));
  CHECK(same_bits(layer.bias.value(), bias));
  CHECK(adam.state_dict(layer).size() == 4);  // m, v and step of the weight, and lr
  grads = backward(sum(layer(random({4, 2}, 1, DType::f32))));
  nn::to(layer, DType::f64);
  CHECK(error_of([&] { adam.step(layer, grads); }) ==
        "[Adam] weight is f64 and its gradient f32; hint: was the module converted in between?");
  CHECK(error_of([] { nn::Adam({.beta2 = 1}); }) == "[Adam] betas must be in [0, 1): 1");
}

TEST_CASE("an optimiser's averages change their element type with their parameter") {
  Table t(DType::f32);
  nn::Adam adam;
  adam.step(t.table, t.gradients());
  nn::to(t.table, DType::f64);
  adam.step(t.table, t.gradients());
  for (size_t slot : {0, 1}) CHECK(adam.state_dict(t.table)[slot].second.dtype() == DType::f64);
}

TEST_CASE("each group has its own learning rate back from a state") {
  Parameter a(Tensor::zeros({1})), b(Tensor::zeros({1}));
  const std::vector<NamedParameter> both{{"a", &a}, {"b", &b}};
  nn::SGD first({.lr = 0.2}), second({.lr = 1});
  for (nn::SGD* sgd : {&first, &second}) sgd->add_group({{"b", &b}}, {.lr = 0.7});
  first.set_lr(0.3, 1);
  second.load_state_dict(both, first.state_dict(both));
  CHECK(second.lr(0) == 0.2);
  CHECK(second.lr(1) == 0.3);
}

TEST_CASE("the norm has the rows of every lookup, though no id comes twice") {
  Table t;
  Gradients grads = backward(sum(t.table(Tensor::from_ids({2}, {1, 4})) * 2.0) +
                             sum(t.table(Tensor::from_ids({1}, {0})) * 3.0));
  REQUIRE(grads.find(t.table.weight)->rows.size() == 2);
  CHECK(nn::grad_norm(grads) == about(std::sqrt(6 * 4.0 + 3 * 9.0), 1e-14));
}

TEST_CASE("a state that is loaded takes the place of what was there") {
  Table t;
  nn::Adam adam;
  adam.step(t.table, t.gradients());
  const nn::StateDict before = adam.state_dict(t.table);
  adam.step(t.table, t.gradients(2));
  adam.load_state_dict(t.table, before);
  const nn::StateDict after = adam.state_dict(t.table);
  REQUIRE(after.size() == before.size());
  for (size_t i = 0; i < after.size(); ++i) CHECK(same_bits(after[i].second, before[i].second));
}

TEST_CASE("a group that names no weight decay has the optimiser's own") {
  Parameter a(Tensor::full({1}, 1, DType::f64)), b(Tensor::full({1}, 1, DType::f64));
  nn::SGD sgd({.lr = 0.1, .weight_decay = 0.5});
  sgd.add_group({{"b", &b}}, {});
  sgd.step({{"a", &a}, {"b", &b}}, backward(sum(a.var()) + sum(b.var())));
  CHECK(same_bits(a.value(), b.value()));
}
