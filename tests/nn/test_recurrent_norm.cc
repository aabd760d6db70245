// Regularised recurrent units: dropout with one mask over time, layer normalisation.

#include <algorithm>
#include <cmath>

#include <gradus/nn/data_parallel.h>
#include <gradus/nn/rnn.h>
#include <gradus/ops/gru.h>
#include <gradus/ops/lstm.h>
#include <gradus/ops/rnn.h>
#include <gradus/ops/reduce.h>

#include "../about.h"
#include "recurrent_units.h"

using namespace gradus;
using namespace gradus::test;

// ---- dropout ----

TEST_CASE("dropout is between layers alone; variational: one mask over time, another at each layer") {
  Rng rng(9);
  // relu(I x): what comes out is the product of the factors on the way.
  nn::RecurrentOptions options{
      .num_layers = 3, .dropout = 0.5, .cell = {.bias = false, .nonlinearity = nn::Nonlinearity::relu}};
  for (bool variational : {false, true}) {
    options.variational = variational;
    nn::RNN rnn(64, 64, rng, options);
    for (auto& w : rnn.weights) {
      set(w.weight_ih, one_if_equal);
      set(w.weight_hh, [](int64_t, int64_t) { return 0; });
    }
    Tensor ones = Tensor::ones({5, 2, 64});
    Training mode(1);
    RecurrentOutput y = rnn(ones);
    Tensor first = y.h_n.value().row(0), second = y.h_n.value().row(1), third = y.h_n.value().row(2);
    CHECK(same_bits(first, ones.row(0)));  // nothing is dropped below the first layer
    int64_t zeros = 0, other_mask = 0;
    for (int64_t i = 0; i < second.numel(); ++i) {
      CHECK((second.at(i) == 0 || second.at(i) == 2));
      CHECK((third.at(i) == 0 || third.at(i) == 4));
      zeros += second.at(i) == 0;
      other_mask += second.at(i) != 0 && third.at(i) == 0;
    }
    CHECK((zeros > 30 && zeros < 98));
    CHECK(other_mask > 10);
    CHECK(same_bits(third, y.output.value().row(4)));  // nor above the last
    bool same_over_time = true;
    for (int64_t t = 0; t < 4; ++t)
      same_over_time &= same_bits(y.output.value().row(t), y.output.value().row(4));
    CHECK(same_over_time == variational);
  }
}

TEST_CASE("a residual layer adds what was there before dropout") {
  Rng rng(9);
  nn::RNN rnn(64, 64, rng,
              {.num_layers = 2,
               .dropout = 0.5,
               .residual = true,
               .cell = {.bias = false, .nonlinearity = nn::Nonlinearity::relu}});
  for (auto& w : rnn.weights) {
    set(w.weight_ih, one_if_equal);
    set(w.weight_hh, [](int64_t, int64_t) { return 0; });
  }
  Training mode(1);
  RecurrentOutput y = rnn(Tensor::ones({2, 2, 64}));
  int64_t dropped = 0;
  for (int64_t i = 0; i < y.output.numel(); ++i) {
    double v = y.output.value().at(i);
    CHECK((v == 1 || v == 3));
    dropped += v == 1;
  }
  CHECK((dropped > 60 && dropped < 196));
}

TEST_CASE("dropout of the states: one mask over time, another for each direction, none outside Training") {
  Rng rng(10);
  nn::RNN rnn(1, 64, rng,
              {.bidirectional = true,
               .recurrent_dropout = 0.5,
               .cell = {.bias = false, .nonlinearity = nn::Nonlinearity::relu}});
  for (auto& w : rnn.weights) {
    set(w.weight_ih, [](int64_t, int64_t) { return 0; });
    set(w.weight_hh, one_if_equal);
  }
  Tensor x = Tensor::zeros({3, 2, 1}), h0 = Tensor::ones({2, 2, 64});
  for (double h : rnn(x, {}, h0).output.value().to_vector()) CHECK(h == 1);
  Training mode(2);
  Tensor y = rnn(x, {}, h0).output.value();
  int64_t differ = 0, dropped = 0;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t k = 0; k < 64; ++k) {
      // h_t = (2 m) h_{t-1}: 2, 4, 8 or 0, 0, 0. A new mask at each step would leave 2, 0, 0 somewhere.
      double forward = y.row(0).row(b).at(k), backward = y.row(2).row(b).at(64 + k);
      CHECK((forward == 0 || forward == 2));
      CHECK(y.row(1).row(b).at(k) == 2 * forward);
      CHECK(y.row(2).row(b).at(k) == 4 * forward);
      CHECK(y.row(0).row(b).at(64 + k) == 4 * backward);
      dropped += forward == 0;
      differ += forward != backward;
    }
  CHECK((dropped > 30 && dropped < 98));
  CHECK(differ > 20);
}

// ---- layer normalisation: the paper's equations in plain loops ----

namespace {

using Row = std::vector<double>;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// gain (x - mean) / sqrt(var + 1e-5) + offset, from position `at` of the norm's vectors.
Row normalised(const Row& x, const nn::RecurrentParameters::Norm& norm, size_t at = 0) {
  double mean = 0, var = 0;
  for (double v : x) mean += v / static_cast<double>(x.size());
  for (double v : x) var += (v - mean) * (v - mean) / static_cast<double>(x.size());
  Row y;
  for (size_t k = 0; k < x.size(); ++k)
    y.push_back(norm.weight.value().at(static_cast<int64_t>(at + k)) * (x[k] - mean) / std::sqrt(var + 1e-5) +
                norm.bias.value().at(static_cast<int64_t>(at + k)));
  return y;
}

// Rows begin .. end of W times x.
Row product(const Parameter& w, const Row& x, int64_t begin, int64_t end) {
  Row y;
  for (int64_t r = begin; r < end; ++r) {
    y.push_back(0);
    for (size_t k = 0; k < x.size(); ++k) y.back() += w.value().row(r).at(static_cast<int64_t>(k)) * x[k];
  }
  return y;
}

Row plus(Row a, const Row& b) {
  for (size_t k = 0; k < a.size(); ++k) a[k] += b[k];
  return a;
}

}  // namespace

TEST_CASE("layer-normalised units are the paper's equations") {
  constexpr int64_t H = 4;
  const Row x = random({1, 3}, 1).to_vector(), h = random({1, H}, 2).to_vector();
  const Row c = random({1, H}, 3).to_vector();
  for (CellType type : all_cells()) {
    if (!type.layer_norm) continue;
    CAPTURE(text_of(type));
    Rng rng(11);
    nn::RecurrentCell cell(type, 3, H, rng);
    nn::to(cell, DType::f64);
    for (auto& norm : cell.norms)
      for (Parameter* p : {&norm.weight, &norm.bias})
        set(*p, [&](int64_t, int64_t) { return rng.uniform() * 2 - 0.5; });
    nn::RecurrentState next = cell.step(random({1, 3}, 1), {random({1, H}, 2), random({1, H}, 3)});
    auto ih = [&](int64_t a, int64_t b) { return product(cell.weight_ih, x, a * H, b * H); };
    auto hh = [&](int64_t a, int64_t b, const Row& state) {
      return product(cell.weight_hh, state, a * H, b * H);
    };
    Row want;
    if (type.kind == CellKind::rnn) {
      for (double v : normalised(plus(ih(0, 1), hh(0, 1, h)), cell.norms[0]))
        want.push_back(type.nonlinearity == nn::Nonlinearity::tanh ? std::tanh(v) : std::max(v, 0.0));
    } else if (type.kind == CellKind::lstm) {
      Row a = plus(normalised(ih(0, 4), cell.norms[0]), normalised(hh(0, 4, h), cell.norms[1])), now;
      for (size_t k = 0; k < H; ++k)
        now.push_back(logistic(a[H + k]) * c[k] + logistic(a[k]) * std::tanh(a[2 * H + k]));
      Row of_c = normalised(now, cell.norms[2]);
      for (size_t k = 0; k < H; ++k) {
        want.push_back(logistic(a[3 * H + k]) * std::tanh(of_c[k]));
        CHECK(next.c.value().at(static_cast<int64_t>(k)) == about(now[k], 1e-12));
      }
    } else {
      Row gates = plus(normalised(ih(0, 2), cell.norms[0]), normalised(hh(0, 2, h), cell.norms[1]));
      Row in_n = normalised(ih(2, 3), cell.norms[0], 2 * H), rh;
      for (size_t k = 0; k < H; ++k) rh.push_back(logistic(gates[k]) * h[k]);
      bool after = type.reset_after && !type.bahdanau;
      Row of_h = normalised(hh(2, 3, after ? h : rh), cell.norms[1], 2 * H);
      for (size_t k = 0; k < H; ++k) {
        double n = std::tanh(in_n[k] + (after ? logistic(gates[k]) : 1) * of_h[k]);
        double z = logistic(gates[H + k]);
        want.push_back(type.bahdanau ? z * n + (1 - z) * h[k] : (1 - z) * n + z * h[k]);
      }
    }
    for (size_t k = 0; k < H; ++k)
      CHECK(next.h.value().at(static_cast<int64_t>(k)) == about(want[k], 1e-12));
  }
}

TEST_CASE("layer normalisation takes away the scale of the weights") {
  for (CellType type : all_cells()) {
    if (!type.layer_norm) continue;
    CAPTURE(text_of(type));
    Rng rng(12);
    RecurrentStack stack = stack_of(options_of(type, 1, false), rng);
    nn::to(stack, DType::f64);
    for (Parameter* p : {&stack.weights[0].weight_ih, &stack.weights[0].weight_hh})
      p->update([](const Tensor& t) { for (int64_t i = 0; i < t.numel(); ++i) t.set(i, 100 * t.at(i)); });
    nn::RecurrentState start = start_of(stack.options, 4);
    Tensor before = stack(input(), {}, start).output.value();
    for (Parameter* p : {&stack.weights[0].weight_ih, &stack.weights[0].weight_hh})
      p->update([](const Tensor& t) { for (int64_t i = 0; i < t.numel(); ++i) t.set(i, 3 * t.at(i)); });
    CHECK(max_abs_difference(stack(input(), {}, start).output.value(), before) < 1e-5);
  }
}

TEST_CASE(
    "shards of a batch on threads give the batch's gradients, and the same bits on any number of threads") {
  for (CellType type : all_cells()) {
    if (!type.layer_norm) continue;
    CAPTURE(text_of(type));
    Rng rng(13);
    RecurrentOptions options = options_of(type);
    options.residual = true;
    RecurrentStack stack = stack_of(options, rng);
    nn::to(stack, DType::f64);
    Tensor x = random({4, 4, 3}, 14);
    auto of_shards = [&](int threads, int shards) {
      ThreadPool pool(threads);
      int64_t each = 4 / shards;
      return nn::parallel_gradients(pool, shards, [&](int shard) {
        Tensor part({4, each, 3}, x.dtype()), lengths({each}, DType::i32);
        for (int64_t b = 0; b < each; ++b) {
          lengths.set(b, kLengths.at(shard * each + b));
          for (int64_t t = 0; t < 4; ++t) part.row(t).row(b).copy_from(x.row(t).row(shard * each + b));
        }
        return sum(stack(part, lengths).output);
      });
    };
    nn::ParallelGradients whole = of_shards(1, 1), one = of_shards(1, 2), two = of_shards(2, 2);
    for (const NamedParameter& p : nn::named_parameters(stack)) {
      CAPTURE(p.name);
      Tensor g = whole.gradients[*p.parameter];
      double size = 1;
      for (double v : g.to_vector()) size = worse(size, std::abs(v));
      CHECK(same_bits(one.gradients[*p.parameter], two.gradients[*p.parameter]));
      CHECK(max_abs_difference(two.gradients[*p.parameter], g) < 1e-12 * size);
    }
  }
}

TEST_CASE("the layer-normalised ops say what they need") {
  Tensor x = Tensor::zeros({5, 2, 3}), w_ih = Tensor::zeros({12, 3}), w_hh = Tensor::zeros({12, 4});
  Tensor ones = Tensor::ones({12});
  CHECK(error_of([&] { gru(x, {}, {.ih = w_ih, .hh = w_hh, .norm_ih = {ones, {}}}); }) ==
        "[layer_norm_gru] norm_hh must be [3 hidden_size] = [12]: weight none, bias none");
  RecurrentWeights normed{.ih = w_ih, .hh = w_hh, .norm_ih = {ones, {}}, .norm_hh = {ones, {}}};
  CHECK(error_of([&] { gru(x.row(0), {}, normed); }) ==
        "[layer_norm_gru] input must be [T, B, input_size]: input [2, 3]");
  normed.bias_ih = ones;
  CHECK(error_of([&] { gru(x, {}, normed); }) ==
        "[layer_norm_gru] a normalised unit has no biases, the offsets of its norms stand in: "
        "bias_ih [12], bias_hh none");
  Tensor sixteen = Tensor::ones({16}), four = Tensor::ones({4});
  CHECK(error_of([&] {
          lstm(x, {}, {.ih = Tensor::zeros({16, 3}), .hh = Tensor::zeros({16, 4}), .norm_ih = {sixteen, {}},
                       .norm_hh = {sixteen, {}}, .norm_c = {four, ones}});
        }) == "[layer_norm_lstm] norm_c must be [hidden_size] = [4]: weight [4], bias [12]");
  RecurrentWeights w{.ih = Tensor::zeros({4, 3}), .hh = Tensor::zeros({4, 4}), .norm_ih = {four, {}}};
  CHECK(error_of([&] { rnn(x, {}, w, {.lengths = Tensor::from_ids({2}, {6, 0})}); }) ==
        "[layer_norm_rnn] lengths must be in 0 .. 5: 6");
  w.norm_hh = {four, {}};
  CHECK(error_of([&] { rnn(x, {}, w); }) ==
        "[layer_norm_rnn] this unit has no norm_hh: weight [4], bias none");
  w.norm_hh = {};
  w.norm_ih = {{}, four};  // an offset alone is not passed over
  CHECK(error_of([&] { rnn(x, {}, w); }) ==
        "[layer_norm_rnn] norm_ih must be [hidden_size] = [4]: weight none, bias [4]");
  w.norm_ih = {};
  w.norm_ih.weight = Tensor::ones({4}, DType::f64);
  CHECK(error_of([&] { rnn(x, {}, w); }) == "[layer_norm_rnn] element types must agree: f32 and f64");
}
