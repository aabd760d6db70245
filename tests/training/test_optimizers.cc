// The optimisers against PyTorch's paths, rows against dense gradients, and states that come back bit for
// bit.

#include <gradus/io/safetensors.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/nn/adaptive.h>
#include <gradus/nn/ema.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/scheduler.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>
#include <gradus/random.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "../about.h"
#include "../check.h"
#include "../io/scratch.h"
#include "../quick_doctest.h"
#include "../skip.h"
#include "golden.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

using Make = std::function<std::unique_ptr<nn::Optimizer>()>;

template <class O, class Options>
Make making(const Options& options) {
  return [options] { return std::make_unique<O>(options); };
}

// The optimisers of make_training.py, by its names.
const std::vector<std::pair<std::string, Make>>& optimizers() {
  static const std::vector<std::pair<std::string, Make>> all = {
      {"sgd", making<nn::SGD>(nn::SGDOptions{.lr = 0.1})},
      {"sgd momentum", making<nn::SGD>(nn::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1})},
      {"sgd dampening", making<nn::SGD>(nn::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.3})},
      {"sgd nesterov",
       making<nn::SGD>(nn::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true})},
      {"adagrad", making<nn::Adagrad>(nn::AdagradOptions{.lr = 0.5})},
      {"adagrad all",
       making<nn::Adagrad>(nn::AdagradOptions{
           .lr = 0.5, .lr_decay = 0.1, .weight_decay = 0.1, .initial_accumulator_value = 0.2, .eps = 1e-3})},
      {"rmsprop", making<nn::RMSprop>(nn::RMSpropOptions{.lr = 0.05})},
      {"rmsprop all",
       making<nn::RMSprop>(nn::RMSpropOptions{
           .lr = 0.05, .alpha = 0.9, .eps = 1e-4, .weight_decay = 0.1, .momentum = 0.8, .centered = true})},
      {"adadelta", making<nn::Adadelta>(nn::AdadeltaOptions{})},
      {"adadelta bahdanau", making<nn::Adadelta>(nn::AdadeltaOptions{.rho = 0.95, .eps = 1e-6})},
      {"adadelta all",
       making<nn::Adadelta>(nn::AdadeltaOptions{.lr = 0.5, .rho = 0.8, .eps = 1e-3, .weight_decay = 0.1})},
      {"adam", making<nn::Adam>(nn::AdamOptions{.lr = 0.05})},
      {"adam all", making<nn::Adam>(nn::AdamOptions{
                       .lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-4, .weight_decay = 0.1})},
      {"adamw", making<nn::AdamW>(nn::AdamWOptions{.lr = 0.05})},
      {"adamw all", making<nn::AdamW>(nn::AdamWOptions{
                        .lr = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-4, .weight_decay = 0.3})}};
  return all;
}

Gradients with_gradient(const Parameter& p, const Tensor& g) { return backward(sum(p.var() * Var(g))); }

// g + factor p
Tensor plus(const Tensor& g, double factor, const Tensor& p) {
  Tensor out = g.clone();
  for (int64_t i = 0; i < g.numel(); ++i) out.set(i, g.at(i) + factor * p.at(i));
  return out;
}

// An embedding of 7 words; words 0 and 6 never occur, and only some of the others at each step.
struct Table {
  nn::Embedding table;
  explicit Table(DType dtype = DType::f64) : table(make(dtype)) {}
  static nn::Embedding make(DType dtype) {
    Rng rng(1);
    nn::Embedding e(7, 3, rng);
    nn::to(e, dtype);
    return e;
  }
  Gradients gradients(int step) const {
    Rng rng(static_cast<uint64_t>(step));
    int32_t a = 1 + step % 4;
    Var y = table(Tensor::from_ids({4}, {a, 5, a, 1}));
    return backward(sum(y * Var(Tensor::uniform({4, 3}, -1, 1, rng, y.dtype()))));
  }
  Gradients dense(int step) const { return with_gradient(table.weight, gradients(step)[table.weight]); }
};

}  // namespace

TEST_CASE("every optimiser takes PyTorch's steps") {
  const auto& j = golden("optimizers");
  REQUIRE(j.at("paths").size() == optimizers().size());
  for (const auto& [name, make] : optimizers()) {
    CAPTURE(name);
    for (DType dtype : {DType::f64, DType::f32}) {
      CAPTURE(name_of(dtype));
      double tolerance = dtype == DType::f64 ? 1e-12 : 2e-5;
      Parameter p(tensor(j.at("start"), dtype));
      auto optimizer = make();
      for (size_t k = 0; k < j.at("gradients").size(); ++k) {
        Tensor g = plus(tensor(j.at("gradients").at(k), dtype), 0.5, p.value());
        // half of the factor rides along
        optimizer->step({{"p", &p}}, backward(sum(p.var() * Var(g)) * 2.0), 0.5);
        CAPTURE(k);
        CHECK(
            all_close(p.value().to(DType::f64), tensor(j.at("paths").at(name).at(k)), tolerance, tolerance));
      }
    }
  }
}

TEST_CASE("Muon takes PyTorch's steps, of wide and tall matrices, with any number of threads") {
  ThreadPool pool(3);
  for (const auto& [shape, j] : golden("muon").items()) {
    for (DType dtype : {DType::f64, DType::f32}) {
      CAPTURE(shape);
      CAPTURE(name_of(dtype));
      double tolerance = dtype == DType::f64 ? 1e-12 : 2e-5;
      Parameter p(tensor(j.at("start"), dtype)), same(p.value().clone());
      std::vector<NamedParameter> named{{"p", &p}}, twice{{"p", &same}};
      const nn::MuonOptions options{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.3};
      nn::Muon muon(named, options), shared(twice, options);
      for (size_t k = 0; k < j.at("gradients").size(); ++k) {
        Tensor g = tensor(j.at("gradients").at(k), dtype);
        muon.step(named, backward(sum(p.var() * Var(plus(g, 0.5, p.value()))) * 2.0), 0.5);
        shared.step(twice, backward(sum(same.var() * Var(plus(g, 0.5, same.value()))) * 2.0), 0.5, &pool);
        CAPTURE(k);
        CHECK(all_close(p.value().to(DType::f64), tensor(j.at("path").at(k)), tolerance, tolerance));
        CHECK(same.value().to_vector() == p.value().to_vector());
      }
    }
  }
}

TEST_CASE("Muon's way is its polynomial's, of sizes that are taken by blocks, in every precision") {
  // What one step from 0 moves, with a momentum of 0 and no decay: 0.2 sqrt(longer) U V^T.
  auto way = [](const Tensor& g) {
    Parameter p(Tensor::zeros(g.shape(), g.dtype()));
    nn::Muon({{"p", &p}}, {.lr = 1, .momentum = 0, .weight_decay = 0}).step({{"p", &p}}, with_gradient(p, g));
    return p.value().to(DType::f64);
  };
  auto defined = [](const Tensor& g) {
    const double norm = std::sqrt(sum(Var(g) * Var(g)).item());
    Var x = Var(g) * (1 / norm);
    for (int k = 0; k < 5; ++k) {
      const Var a = matmul(x, transpose(x, 0, 1));
      x = x * 3.4445 - matmul(a, x) * 4.7750 + matmul(matmul(a, a), x) * 2.0315;
    }
    return (x * (-0.2 * std::sqrt(static_cast<double>(std::max(g.size(0), g.size(1)))))).value();
  };
  Rng rng(7);
  for (const Shape& shape : {Shape{2, 4}, Shape{70, 70}, Shape{70, 139}, Shape{70, 140}, Shape{300, 130}}) {
    CAPTURE(shape.str());
    const Tensor g = Tensor::normal(shape, 0, 1, rng, DType::f64), wanted = defined(g);
    CHECK(all_close(way(g), wanted, 1e-12, 1e-12));
    CHECK(all_close(way(g.to(DType::f32)), wanted, 2e-4, 2e-4));
  }
  if (!kernels::bf16_ready()) return skipped("this CPU has no AVX512_BF16");
  // Of much that goes one way only: rounded to bfloat16, P A P would move it by three times its length.
  Tensor left = Tensor::normal({128, 128}, 0, 1, rng, DType::f64);
  for (int64_t i = 0; i < left.numel(); ++i) left.f64()[i] *= std::exp(-0.05 * static_cast<double>(i % 128));
  const Tensor right = Tensor::normal({128, 512}, 0, 1, rng, DType::f64),
               g = matmul(Var(left), Var(right)).value(), wanted = defined(g);
  set_float32_matmul_precision(MatmulPrecision::medium);
  const Tensor medium = way(g.to(DType::f32));
  set_float32_matmul_precision(MatmulPrecision::highest);
  const Var apart = medium, of = wanted;
  CHECK(sum((apart - of) * (apart - of)).item() < 1e-3 * sum(of * of).item());
}

TEST_CASE("Muon moves queries, keys and values of one in_proj_weight each for itself") {
  Rng rng(5);
  const Tensor start = Tensor::normal({6, 2}, 0, 1, rng, DType::f64),
               g = Tensor::normal({6, 2}, 0, 1, rng, DType::f64);
  Parameter all(start.clone()), whole(start.clone()), apart[3];
  for (int k = 0; k < 3; ++k) apart[k] = Parameter(start.rows(2 * k, 2 * k + 2).clone());
  std::vector<NamedParameter> one{{"self_attn.in_proj_weight", &all}}, other{{"linear1.weight", &whole}},
      three{{"q", &apart[0]}, {"k", &apart[1]}, {"v", &apart[2]}};
  nn::Muon of_one(one), of_other(other), of_three(three);
  for (int step = 0; step < 2; ++step) {
    of_one.step(one, with_gradient(all, g));
    of_other.step(other, with_gradient(whole, g));
    for (int k = 0; k < 3; ++k) of_three.step({three[k]}, with_gradient(apart[k], g.rows(2 * k, 2 * k + 2)));
  }
  for (int k = 0; k < 3; ++k)
    CHECK(all.value().rows(2 * k, 2 * k + 2).to_vector() == apart[k].value().to_vector());
  CHECK_FALSE(all_close(all.value(), whole.value(), 1e-5, 1e-5));
  // Of four rows it cannot be three matrices: it is one.
  Parameter four(start.rows(0, 4).clone()), same(start.rows(0, 4).clone());
  nn::Muon odd({{"in_proj_weight", &four}}), even({{"linear", &same}});
  odd.step({{"in_proj_weight", &four}}, with_gradient(four, g.rows(0, 4)));
  even.step({{"linear", &same}}, with_gradient(same, g.rows(0, 4)));
  CHECK(four.value().to_vector() == same.value().to_vector());
}

TEST_CASE("Muon moves each gate of a recurrent cell for itself") {
  Rng rng(6);
  const Shape of_input{6, 5}, of_states{6, 2};
  const Tensor input = Tensor::normal(of_input, 0, 1, rng, DType::f64),
               states = Tensor::normal(of_states, 0, 1, rng, DType::f64);
  Parameter ih(Tensor::zeros(of_input, DType::f64)), hh(Tensor::zeros(of_states, DType::f64));
  const std::vector<NamedParameter> cell{{"gru.weight_ih_l0", &ih}, {"gru.weight_hh_l0", &hh}};
  nn::Muon muon(cell);
  muon.step(cell, backward(sum(ih.var() * Var(input)) + sum(hh.var() * Var(states))));
  for (const auto& [all, g] : {std::pair{&ih, input}, std::pair{&hh, states}})
    for (int64_t gate = 0; gate < 3; ++gate) {
      Parameter one(Tensor::zeros({2, g.size(1)}, DType::f64));
      const std::vector<NamedParameter> apart{{"linear.weight", &one}};
      nn::Muon(apart).step(apart, with_gradient(one, g.rows(2 * gate, 2 * gate + 2)));
      CHECK(all->value().rows(2 * gate, 2 * gate + 2).to_vector() == one.value().to_vector());
    }
  // A weight_ih by itself, and a weight_hh of another form, are one matrix.
  for (const char* name : {"gru.weight_ih_l0", "weight"}) {
    Parameter p(Tensor::zeros(of_input, DType::f64));
    const std::vector<NamedParameter> named{{name, &p}};
    nn::Muon(named).step(named, with_gradient(p, input));
    CHECK_FALSE(all_close(p.value(), ih.value(), 1e-5, 1e-5));
  }
  Parameter odd(Tensor::zeros(of_input, DType::f64));
  const std::vector<NamedParameter> named{{"weight_hh", &odd}};
  nn::Muon(named).step(named, with_gradient(odd, input));
  CHECK_FALSE(all_close(odd.value(), ih.value(), 1e-5, 1e-5));
}

TEST_CASE("Muon changes what is no matrix of its as AdamW does") {
  Table muon_table, adam_table;
  Parameter of_muon(f64({2}, {1, -2})), of_adam(f64({2}, {1, -2})), matrix(f64({2, 2}, {1, 2, 3, 4}));
  nn::Muon muon({{"matrix", &matrix}}, {.lr = 0.1, .weight_decay = 0.2});
  nn::AdamW adam({.lr = 0.1, .weight_decay = 0.2});
  for (int step = 0; step < 3; ++step) {
    muon.step({{"bias", &of_muon}}, with_gradient(of_muon, f64({2}, {0.3, step - 1.0})));
    adam.step({{"bias", &of_adam}}, with_gradient(of_adam, f64({2}, {0.3, step - 1.0})));
    muon.step(muon_table.table, muon_table.gradients(step));
    adam.step(adam_table.table, adam_table.gradients(step));
  }
  CHECK(of_muon.value().to_vector() == of_adam.value().to_vector());
  CHECK(muon_table.table.weight.value().to_vector() == adam_table.table.weight.value().to_vector());
  // A gradient of nothing leaves the decay alone: no NaN of 0 / 0.
  muon.step({{"matrix", &matrix}}, with_gradient(matrix, Tensor::zeros({2, 2}, DType::f64)));
  CHECK(all_close(matrix.value(), f64({2, 2}, {0.98, 1.96, 2.94, 3.92}), 1e-15, 1e-15));
  CHECK(error_of([&] { nn::Muon({{"bias", &of_muon}}); }) == "[Muon] bias must have two axes: [2]");
  CHECK(error_of([] { nn::Muon({}, {.momentum = 1}); }) == "[Muon] momentum must be in [0, 1): 1");
}

TEST_CASE("Muon keeps one average of a matrix, and goes on from a state that has two") {
  Parameter matrix(f64({2, 2}, {1, 2, 3, 4})), again(f64({2, 2}, {0, 0, 0, 0}));
  const std::vector<NamedParameter> named{{"matrix", &matrix}}, resumed{{"matrix", &again}};
  const Tensor g = f64({2, 2}, {0.5, -1, 2, 0.25});
  nn::Muon muon(named), other(resumed);
  muon.step(named, with_gradient(matrix, g));
  nn::StateDict state = muon.state_dict(named);
  REQUIRE(state.size() == 3);
  CHECK(state[0].first == "m.matrix");
  CHECK(state[1].first == "step.matrix");
  CHECK(state[2].first == "lr");
  state.emplace_back("v.matrix", Tensor::zeros({2, 2}));  // AdamW's, which it never used
  again.assign(matrix.value().clone());
  other.load_state_dict(resumed, state);
  CHECK(other.state_dict(resumed).size() == 3);
  muon.step(named, with_gradient(matrix, g));
  other.step(resumed, with_gradient(again, g));
  CHECK(again.value().to_vector() == matrix.value().to_vector());
}

TEST_CASE("groups have learning rates and weight decays of their own, and a schedule moves both") {
  const auto& j = golden("optimizers");
  Parameter p(tensor(j.at("start"))), q(plus(tensor(j.at("start")), 1, Tensor::ones({5}, DType::f64)));
  nn::AdamW adam({.lr = 0.05});
  CHECK(adam.add_group({{"q", &q}}, {.lr = 0.01, .weight_decay = 0.5}) == 1);
  nn::Scheduler scheduler(adam, nn::step_lr(3, 0.5));
  std::vector<NamedParameter> both{{"p", &p}, {"q", &q}};
  for (size_t k = 0; k < j.at("gradients").size(); ++k) {
    Tensor g = tensor(j.at("gradients").at(k));
    adam.step(both, backward(sum(p.var() * Var(plus(g, 0.5, p.value()))) +
                             sum(q.var() * Var(plus(g, -0.5, q.value())))));
    scheduler.step();
    CHECK(all_close(p.value(), tensor(j.at("groups").at(k).at(0)), 1e-12, 1e-12));
    CHECK(all_close(q.value(), tensor(j.at("groups").at(k).at(1)), 1e-12, 1e-12));
  }
  nn::StateDict state = adam.state_dict(both);
  CHECK(state.back().first == "lr");
  CHECK(all_close(state.back().second, f64({2}, {0.05 / 16, 0.01 / 16}), 1e-14));
  CHECK(error_of([&] { adam.add_group({{"q", &q}}, {}); }) ==
        "[AdamW] a parameter can be in one group only: q");
  nn::AdamW one_group;
  CHECK(error_of([&] { one_group.load_state_dict(both, state); }) ==
        "[AdamW] the saved state must be one of these parameters: wrong shape lr (groups 1, given [2])");
}

TEST_CASE("rows of an embedding step as the dense gradient does, whatever the optimiser") {
  for (const auto& [name, make] : optimizers()) {
    CAPTURE(name);
    Table rows, dense;
    Tensor start = rows.table.weight.value().clone();
    auto a = make(), b = make();
    for (int step = 0; step < 8; ++step) {
      a->step(rows.table, rows.gradients(step));
      b->step(dense.table, dense.dense(step));
    }
    CHECK(all_close(rows.table.weight.value(), dense.table.weight.value(), 1e-13, 1e-13));
    bool decays = name.find("all") != std::string::npos || name.rfind("adamw", 0) == 0 ||
                  name == "sgd momentum" || name == "sgd nesterov";
    for (int64_t never : {0, 6})
      CHECK(same_bits(rows.table.weight.value().row(never), start.row(never)) == !decays);
  }
}

TEST_CASE("a state that went through a file goes on to the last bit, whatever the optimiser") {
  scratch::Directory directory;
  for (const auto& [name, make] : optimizers()) {
    CAPTURE(name);
    Table whole(DType::f32), broken(DType::f32);
    auto a = make(), b = make();
    for (int step = 0; step < 4; ++step) {
      a->step(whole.table, whole.gradients(step));
      b->step(broken.table, broken.gradients(step));
    }
    std::string path = directory.file("state.safetensors");
    save_safetensors(path, {b->state_dict(broken.table), {}});
    Tensor weights = broken.table.weight.value().clone();
    b->step(broken.table, broken.gradients(77));  // after the save, lost with the crash
    broken.table.weight.assign(weights);
    b = make();
    b->set_lr(99);  // the learning rate is in the state
    b->load_state_dict(broken.table, load_safetensors(path).tensors);
    for (int step = 4; step < 9; ++step) {
      a->step(whole.table, whole.gradients(step));
      b->step(broken.table, broken.gradients(step));
    }
    CHECK(same_bits(whole.table.weight.value(), broken.table.weight.value()));
  }
}

TEST_CASE("threads share the work of a step and change nothing") {
  Rng rng(5);
  Tensor start = Tensor::uniform({300, 301}, -1, 1, rng), g = Tensor::uniform({300, 301}, -1, 1, rng);
  for (const auto& [name, make] : optimizers()) {
    CAPTURE(name);
    ThreadPool pool(3);
    Parameter a(start.clone()), b(start.clone());
    auto alone = make(), shared = make();
    for (int step = 0; step < 3; ++step) {
      alone->step({{"p", &a}}, with_gradient(a, g), 0.5);
      shared->step({{"p", &b}}, with_gradient(b, g), 0.5, &pool);
    }
    CHECK(same_bits(a.value(), b.value()));
  }
}

TEST_CASE("optimisers refuse options that make no sense") {
  CHECK(error_of([] { nn::SGD({.momentum = 0.9, .dampening = 0.1, .nesterov = true}); }) ==
        "[SGD] nesterov needs a momentum, and no dampening");
  CHECK(error_of([] { nn::RMSprop({.alpha = 1}); }) == "[RMSprop] alpha must be in [0, 1): 1");
  CHECK(error_of([] { nn::Adadelta({.eps = 0}); }) == "[Adadelta] eps must be positive, or nothing moves: 0");
  CHECK(error_of([] { nn::AdamW({.beta1 = 1}); }) == "[AdamW] betas must be in [0, 1): 1");
  CHECK(error_of([] { nn::Adagrad({.initial_accumulator_value = -1}); }) ==
        "[Adagrad] initial_accumulator_value must not be negative: -1");
}

TEST_CASE("clipping by value, rows of embeddings summed first") {
  Parameter a(Tensor::zeros({2}, DType::f64)), b(Tensor::zeros({2}, DType::f64));
  Gradients grads = backward(sum(a.var() * f64({2}, {3, -4})) + sum(b.var() * f64({2}, {0.6, 0.8})));
  CHECK(nn::clip_grad_value(grads, 0.7) == 4);
  CHECK(grads[a].to_vector() == Numbers{0.7, -0.7});
  CHECK(grads[b].to_vector() == Numbers{0.6, 0.7});

  Table t;
  Gradients rows = t.gradients(3), dense = t.dense(3);
  CHECK(nn::clip_grad_value(rows, 0.3) == about(nn::clip_grad_value(dense, 0.3), 1e-14));
  CHECK(all_close(rows[t.table.weight], dense[t.table.weight], 1e-13, 1e-14));
  CHECK(rows.find(t.table.weight)->rows.size() == 1);  // still rows
  Gradients bad = with_gradient(a, f64({2}, {1, std::numeric_limits<double>::quiet_NaN()}));
  CHECK(std::isnan(nn::clip_grad_value(bad, 0.5)));
  CHECK(bad[a].at(0) == 0.5);
  CHECK(std::isnan(bad[a].at(1)));
  CHECK(error_of([&] { nn::clip_grad_value(bad, 0); }) == "[clip_grad_value] max_value must be positive: 0");
}

TEST_CASE("clipping leaves the closures of a retained graph alone") {
  Parameter p(f64({2}, {1, 2}));
  Var loss = sum(p.var() * f64({2}, {3, 4}));
  Gradients first = backward(loss, {.retain_graph = true});
  nn::clip_grad_value(first, 1);
  CHECK(backward(loss)[p].to_vector() == Numbers{3, 4});
}

TEST_CASE("Muon scales each gradient while it reads it") {
  Parameter p(f64({2, 2}, {1, 2, 3, 4})), q(p.value().clone());
  nn::Muon scaled({{"p", &p}}), plain({{"q", &q}});
  for (double scale : {1.0, 0.125}) {
    const Tensor g = scale == 1 ? f64({2, 2}, {3, 1, -2, 5}) : f64({2, 2}, {-1, 4, 2, 1});
    scaled.step({{"p", &p}}, backward(sum(p.var() * Var(g)) * (1 / scale)), scale);
    plain.step({{"q", &q}}, backward(sum(q.var() * Var(g))));
    CHECK(p.value().to_vector() == q.value().to_vector());
  }
}
