#include <gradus/nn/dropout.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/gru.h>
#include <gradus/nn/init.h>
#include <gradus/nn/layer_norm.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/rnn.h>
#include <gradus/ops/arithmetic.h>

#include <cmath>

#include "helpers.h"

using namespace gradus;
using namespace gradus::test;

TEST_CASE("gradients of the small layers") {
  Rng rng(1);
  nn::Linear linear(3, 4, rng), plain(3, 4, rng, {.bias = false});
  CHECK_GRADIENTS(nn::gradcheck(linear, {random({2, 5, 3}, 1)}));
  CHECK_GRADIENTS(nn::gradcheck(plain, {random({5, 3}, 2)}));
  nn::LayerNorm norm(5);
  nn::init::uniform_(norm.weight, 0.5, 1.5, rng);
  nn::init::uniform_(norm.bias, -1, 1, rng);
  CHECK_GRADIENTS(nn::gradcheck(norm, {random({3, 5}, 3)}));
  nn::Embedding table(6, 3, rng);
  CHECK_GRADIENTS(nn::gradcheck(table, {Tensor::from_ids({2, 3}, {1, 4, 1, 0, 1, 5})}));
  nn::Embedding padded(6, 3, rng, {.padding_idx = 0});
  Tensor ids = Tensor::from_ids({3}, {0, 2, 2});
  Gradients grads = backward(padded(ids), {.seed = Tensor::ones({3, 3})});
  CHECK(grads[padded.weight].to_vector() ==
        std::vector<double>{0, 0, 0, 0, 0, 0, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(padded.weight.value().row(0).to_vector() == std::vector<double>{0, 0, 0});
}

TEST_CASE("gradients of the cells, with and without a previous state") {
  Rng rng(2);
  Tensor x = random({3, 4}, 1), h = random({3, 5}, 2);
  for (bool bias : {true, false}) {
    for (bool reset_after : {true, false}) {
      nn::GRUCell gru(4, 5, rng, {.bias = bias, .reset_after = reset_after});
      CHECK_GRADIENTS(nn::gradcheck(gru, {x, h}));
      CHECK(all_close(gru(x.to(DType::f32)).value(), gru(x.to(DType::f32), Tensor::zeros({3, 5})).value()));
    }
    for (nn::Nonlinearity f : {nn::Nonlinearity::tanh, nn::Nonlinearity::relu}) {
      nn::RNNCell rnn(4, 5, rng, {.bias = bias, .nonlinearity = f});
      CHECK_GRADIENTS(nn::gradcheck(rnn, {x, h}));
      CHECK(all_close(rnn(x.to(DType::f32)).value(), rnn(x.to(DType::f32), Tensor::zeros({3, 5})).value()));
    }
  }
}

TEST_CASE("dropout: nothing outside Training, the same mask for the same seed, mean kept") {
  nn::Dropout drop(0.3);
  Tensor x = Tensor::ones({20000});
  CHECK(same_bits(drop(x).value(), x));
  auto once = [&](uint64_t seed) {
    Training mode(seed);
    return drop(x).value();
  };
  Tensor a = once(5);
  CHECK(same_bits(a, once(5)));
  CHECK(!same_bits(a, once(6)));
  double sum = 0, dropped = 0;
  for (double v : a.to_vector()) {
    sum += v;
    dropped += v == 0;
    CHECK((v == 0 || std::abs(v - 1 / 0.7) < 1e-6));
  }
  CHECK(std::abs(sum / 20000 - 1) < 0.02);
  CHECK(std::abs(dropped / 20000 - 0.3) < 0.015);
  {
    Training mode(5);
    CHECK(!same_bits(drop(x).value(), drop(x).value()));  // two calls within one step differ
    CHECK(variational_dropout(Tensor::zeros({0, 2, 3}), 0.5).shape() == Shape{0, 2, 3});
  }
}

TEST_CASE("modules refuse sizes that make no sense") {
  Rng rng(3);
  CHECK(error_of([&] { nn::Linear(0, 3, rng); }) == "[Linear] in_features must be positive: 0");
  CHECK(error_of([&] { nn::Embedding(4, -1, rng); }) == "[Embedding] embedding_dim must be positive: -1");
  CHECK(error_of([&] { nn::Embedding(4, 2, rng, {.padding_idx = 4}); }) ==
        "[Embedding] padding_idx must be in 0 .. 3, or -1 for none: 4");
  CHECK(error_of([&] { nn::LayerNorm(4, -1e-5); }) == "[LayerNorm] eps must not be negative: -1e-05");
  CHECK(error_of([&] { nn::Dropout(1.0); }) == "[Dropout] p must be in [0, 1): 1");
  CHECK(error_of([&] { nn::GRU(3, 4, rng, {.num_layers = 0}); }) == "[GRU] num_layers must be positive: 0");
  CHECK(error_of([&] { nn::RNN(3, 4, rng, {.dropout = -0.5}); }) == "[RNN] dropout must be in [0, 1): -0.5");
}

// ---- initialisers ----

namespace {

// Largest entry of |Q Q^T - gain^2 I| of the rows begin .. end-1.
double from_orthonormal_rows(const Tensor& q, int64_t begin, int64_t end, double gain = 1) {
  double worst = 0;
  for (int64_t i = begin; i < end; ++i)
    for (int64_t j = begin; j < end; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < q.size(1); ++k) sum += q.at(i * q.size(1) + k) * q.at(j * q.size(1) + k);
      worst = worse(worst, std::abs(sum - (i == j ? gain * gain : 0)));
    }
  return worst;
}

}  // namespace

TEST_CASE("orthogonal matrices are orthogonal, wide, tall and in blocks") {
  Rng rng(1);
  Parameter square(Tensor::zeros({100, 100}, DType::f64)), wide(Tensor::zeros({5, 9}, DType::f64)),
      tall(Tensor::zeros({9, 5}, DType::f64)), gates(Tensor::zeros({3 * 16, 16}, DType::f64)),
      f32(Tensor::zeros({8, 8}));
  nn::init::orthogonal_(square, rng);
  CHECK(from_orthonormal_rows(square.value(), 0, 100) < 1e-14);
  nn::init::orthogonal_(wide, rng, {.gain = 2});
  CHECK(from_orthonormal_rows(wide.value(), 0, 5, 2) < 1e-14);
  nn::init::orthogonal_(tall, rng);
  Tensor transposed({5, 9}, DType::f64);
  for (int64_t i = 0; i < 9; ++i)
    for (int64_t k = 0; k < 5; ++k) transposed.set(k * 9 + i, tall.value().at(i * 5 + k));
  CHECK(from_orthonormal_rows(transposed, 0, 5) < 1e-14);
  nn::init::orthogonal_(gates, rng, {.blocks = 3});
  for (int64_t block = 0; block < 3; ++block)
    CHECK(from_orthonormal_rows(gates.value(), block * 16, (block + 1) * 16) < 1e-14);
  CHECK(!same_bits(gates.value().rows(0, 16), gates.value().rows(16, 32)));
  nn::init::orthogonal_(f32, rng);
  CHECK(from_orthonormal_rows(f32.value(), 0, 8) < 1e-6);
  CHECK(error_of([&] { nn::init::orthogonal_(square, rng, {.blocks = 3}); }) ==
        "[orthogonal_] the first axis must divide into the blocks: [100, 100], 3 blocks");
}

TEST_CASE("initialisers have the ranges their papers give") {
  Rng rng(2);
  Parameter p(Tensor::zeros({300, 100}));
  CHECK(error_of([&] { nn::init::normal_(p, 0, -1, rng); }) == "[normal_] deviation must not be negative: -1");
  CHECK(error_of([&] { nn::init::uniform_(p, 1, 0, rng); }) == "[uniform_] low must not be above high: 1, 0");
  auto moments = [&] {
    double sum = 0, squares = 0, largest = 0;
    for (double v : p.value().to_vector()) {
      sum += v;
      squares += v * v;
      largest = worse(largest, std::abs(v));
    }
    double n = static_cast<double>(p.value().numel());
    CHECK(std::abs(sum / n) < 0.02 * std::sqrt(squares / n));
    return std::pair(std::sqrt(squares / n), largest);
  };
  auto near = [](double x, double y) { return std::abs(x / y - 1) < 0.02; };
  nn::init::xavier_uniform_(p, rng);
  auto [deviation, largest] = moments();
  CHECK(near(deviation, std::sqrt(2.0 / 400)));
  CHECK(largest <= std::sqrt(6.0 / 400));
  nn::init::xavier_uniform_(p, rng, {.blocks = 3});
  CHECK(near(moments().first, std::sqrt(2.0 / 200)));
  nn::init::xavier_normal_(p, rng, {.gain = 2});
  CHECK(near(moments().first, 2 * std::sqrt(2.0 / 400)));
  nn::init::kaiming_uniform_(p, rng, {.gain = std::sqrt(2.0)});
  CHECK(near(moments().first, std::sqrt(2.0 / 100)));
  nn::init::normal_(p, 0, 3, rng);
  CHECK(near(moments().first, 3));
  nn::init::constant_(p, 0.25);
  CHECK(p.value().at(77) == 0.25);
  nn::init::zeros_(p);
  CHECK(p.value().at(77) == 0);
  nn::Linear linear(100, 300, rng);
  for (double v : linear.weight.value().to_vector()) CHECK(std::abs(v) <= 0.1);
}
