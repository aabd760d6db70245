#include <cmath>

#include <gradus/nn/encoder.h>
#include <gradus/nn/gru.h>
#include <gradus/nn/rnn.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>

#include "recurrent_units.h"

using namespace gradus;
using namespace gradus::test;

namespace {

// Batch-first golden tensors to time-major ones.
Tensor time_major(const Tensor& x) { return transpose(x, 0, 1).value(); }

}  // namespace

TEST_CASE("gradients of GRU: every option, lengths with 0 and full, with and without h0") {
  Rng rng(1);
  for (bool bidirectional : {false, true})
    for (int64_t layers : {1, 2})
      for (bool reset_after : {true, false})
        for (bool reference : {false, true}) {
          CAPTURE(bidirectional);
          CAPTURE(layers);
          CAPTURE(reset_after);
          CAPTURE(reference);
          nn::GRU gru(3, 4, rng,
                      {.num_layers = layers,
                       .bidirectional = bidirectional,
                       .cell = {.reset_after = reset_after},
                       .reference = reference});
          Tensor h0 = random({layers * (bidirectional ? 2 : 1), 4, 4}, 2);
          CHECK_GRADIENTS(nn::gradcheck(gru, {input(), kLengths, h0}));
        }
  nn::GRU plain(3, 4, rng, {.bidirectional = true, .cell = {.bias = false}});
  CHECK_GRADIENTS(nn::gradcheck(plain, {input()}));
  CHECK_GRADIENTS(nn::gradcheck(plain, {input(), kLengths}));
  CHECK_GRADIENTS(nn::gradcheck(plain, {input(), Tensor(), random({2, 4, 4}, 3)}));
}

TEST_CASE("gradients of RNN: every option") {
  Rng rng(2);
  for (bool bidirectional : {false, true})
    for (nn::Nonlinearity f : {nn::Nonlinearity::tanh, nn::Nonlinearity::relu}) {
      nn::RNN rnn(3, 4, rng, {.num_layers = 2, .bidirectional = bidirectional, .cell = {.nonlinearity = f}});
      CHECK_GRADIENTS(nn::gradcheck(rnn, {input(), kLengths, random({bidirectional ? 4 : 2, 4, 4}, 2)}));
    }
  nn::RNN plain(3, 4, rng, {.cell = {.bias = false}});
  CHECK_GRADIENTS(nn::gradcheck(plain, {input()}));
}

TEST_CASE("gradients of the two final states") {
  Rng rng(3);
  nn::GRU gru(3, 4, rng, {.num_layers = 2, .bidirectional = true});
  auto f = [&](const std::vector<Var>& in) {
    nn::RecurrentOutput out = gru(in[0], kLengths);
    return concat({out.forward_final, out.backward_final}, 1);
  };
  CHECK_GRADIENTS(nn::gradcheck(nn::named_parameters(gru), f, {input()}));
}

TEST_CASE("fused GRU and its composed twin agree in value and in all gradients") {
  for (bool reset_after : {true, false}) {
    Rng rng(4), again(4);
    nn::RecurrentOptions options{
        .num_layers = 2, .bidirectional = true, .cell = {.reset_after = reset_after}};
    nn::GRU fused(3, 4, rng, options);
    options.reference = true;
    nn::GRU composed(3, 4, again, options);
    nn::to(fused, DType::f64);
    nn::to(composed, DType::f64);
    Var x = variable(input());
    auto run = [&](const nn::GRU& gru) {
      nn::RecurrentOutput out = gru(x, kLengths);
      Var weights = random(out.output.shape(), 7), of_final = random(out.h_n.shape(), 8);
      return std::pair(out, sum(weights * out.output) + sum(of_final * out.h_n));
    };
    auto [a, loss_a] = run(fused);
    auto [b, loss_b] = run(composed);
    CHECK(max_abs_difference(a.output.value(), b.output.value()) < 1e-12);
    CHECK(max_abs_difference(a.h_n.value(), b.h_n.value()) < 1e-12);
    Gradients ga = backward(loss_a), gb = backward(loss_b);
    CHECK(max_abs_difference(ga[x], gb[x]) < 1e-12);
    auto pa = nn::named_parameters(fused), pb = nn::named_parameters(composed);
    for (size_t i = 0; i < pa.size(); ++i) {
      CAPTURE(pa[i].name);
      CHECK(max_abs_difference(ga[*pa[i].parameter], gb[*pb[i].parameter]) < 1e-12);
    }
  }
}

TEST_CASE("a bidirectional GRU over a padded batch has the golden numbers") {
  auto in = [](const char* name) { return golden("bigru_masked_sequence", "inputs", name); };
  auto out = [](const char* name) { return golden("bigru_masked_sequence", "outputs", name); };
  auto grad = [](const char* name) { return golden("bigru_masked_sequence", "grads", name); };
  Rng rng(1);
  for (bool reference : {false, true}) {
    nn::GRU gru(2, 3, rng, {.bidirectional = true, .reference = reference});
    nn::to(gru, DType::f64);
    const std::vector<std::pair<std::string, std::string>> names{
        {"Wf_ih", "weight_ih_l0"},       {"Wf_hh", "weight_hh_l0"},         {"bf_ih", "bias_ih_l0"},
        {"bf_hh", "bias_hh_l0"},         {"Wb_ih", "weight_ih_l0_reverse"}, {"Wb_hh", "weight_hh_l0_reverse"},
        {"bb_ih", "bias_ih_l0_reverse"}, {"bb_hh", "bias_hh_l0_reverse"}};
    nn::StateDict dict;
    for (const auto& [theirs, ours] : names) dict.emplace_back(ours, in(theirs.c_str()));
    nn::load_state_dict(gru, dict);

    Var x = variable(time_major(in("x")));
    nn::RecurrentOutput y = gru(x, Tensor::from_ids({2}, {4, 2}));
    CHECK(all_close(y.output.value(), time_major(out("annotations")), 1e-11, 1e-11));
    CHECK(all_close(y.forward_final.value(), out("forward_final"), 1e-11, 1e-11));
    CHECK(all_close(y.backward_final.value(), out("backward_final"), 1e-11, 1e-11));
    CHECK(all_close(y.h_n.value().row(0), out("forward_final"), 1e-11, 1e-11));
    CHECK(all_close(y.h_n.value().row(1), out("backward_final"), 1e-11, 1e-11));

    Var loss = sum(y.output * Var(time_major(golden("bigru_masked_sequence", "upstream", "annotations")))) +
               sum(y.forward_final * Var(golden("bigru_masked_sequence", "upstream", "forward_final"))) +
               sum(y.backward_final * Var(golden("bigru_masked_sequence", "upstream", "backward_final")));
    Gradients grads = backward(loss);
    CHECK(all_close(grads[x], time_major(grad("x")), 1e-11, 1e-11));
    auto parameters = nn::named_parameters(gru);
    for (size_t i = 0; i < names.size(); ++i) {
      CAPTURE(names[i].first);
      CHECK(all_close(grads[*parameters[i].parameter], grad(names[i].first.c_str()), 1e-11, 1e-11));
    }
  }
}

TEST_CASE("padding changes nothing, and its gradient is 0") {
  Rng rng(5);
  nn::GRU gru(3, 4, rng, {.num_layers = 2, .bidirectional = true});
  nn::RNN rnn(3, 4, rng, {.num_layers = 2, .bidirectional = true});
  auto check = [](const auto& module) {
    Tensor x = input(1, DType::f32), garbage = x.clone();
    for (int64_t t = 0; t < 4; ++t)
      for (int64_t b = 0; b < 4; ++b)
        if (t >= kLengths.i32()[b]) garbage.row(t).row(b).fill(50);
    Var v = variable(garbage);
    nn::RecurrentOutput clean = module(x, kLengths), padded = module(v, kLengths);
    CHECK(same_bits(clean.output.value(), padded.output.value()));
    CHECK(same_bits(clean.h_n.value(), padded.h_n.value()));
    Gradients grads = backward(sum(padded.output) + sum(padded.h_n));
    for (int64_t t = 0; t < 4; ++t)
      for (int64_t b = 0; b < 4; ++b) {
        bool real = t < kLengths.i32()[b];
        for (const Tensor& all : {grads[v], padded.output.value()})
          for (double n : all.row(t).row(b).to_vector()) CHECK((real ? std::abs(n) > 0 : n == 0));
      }
    for (double h : padded.h_n.value().row(0).row(1).to_vector())
      CHECK(h == 0);  // length 0: the state it began with

    // A sequence alone, without padding, gives the same numbers.
    Tensor alone({3, 1, 3}, DType::f32);
    for (int64_t t = 0; t < 3; ++t) alone.row(t).row(0).copy_from(x.row(t).row(0));
    nn::RecurrentOutput single = module(alone);
    for (int64_t t = 0; t < 3; ++t)
      CHECK(all_close(single.output.value().row(t).row(0), clean.output.value().row(t).row(0), 1e-5, 1e-6));
    CHECK(all_close(single.backward_final.value().row(0), clean.backward_final.value().row(0), 1e-5, 1e-6));
  };
  check(gru);
  check(rnn);
}

TEST_CASE("a permuted batch gives permuted results") {
  Rng rng(6);
  nn::GRU gru(3, 4, rng, {.num_layers = 2, .bidirectional = true});
  const int64_t order[] = {2, 0, 3, 1};
  Tensor x = input(1, DType::f32), permuted(x.shape(), DType::f32), lengths({4}, DType::i32);
  for (int64_t b = 0; b < 4; ++b) {
    lengths.set(b, kLengths.at(order[b]));
    for (int64_t t = 0; t < 4; ++t) permuted.row(t).row(b).copy_from(x.row(t).row(order[b]));
  }
  nn::RecurrentOutput y = gru(x, kLengths), z = gru(permuted, lengths);
  for (int64_t b = 0; b < 4; ++b) {
    for (int64_t t = 0; t < 4; ++t)
      CHECK(all_close(z.output.value().row(t).row(b), y.output.value().row(t).row(order[b]), 1e-5, 1e-6));
    CHECK(all_close(z.forward_final.value().row(b), y.forward_final.value().row(order[b]), 1e-5, 1e-6));
  }
}

TEST_CASE("dropout sits between the layers, and only under Training") {
  Rng rng(7);
  nn::GRU gru(3, 4, rng, {.num_layers = 2, .dropout = 0.5});
  Tensor x = input(1, DType::f32);
  Tensor quiet = gru(x).output.value();
  CHECK(same_bits(quiet, gru(x).output.value()));
  auto trained = [&](uint64_t seed) {
    Training mode(seed);
    nn::RecurrentOutput y = gru(x);
    CHECK(same_bits(y.h_n.value().row(0), gru(x).h_n.value().row(0)));  // the first layer sees x itself
    return y.output.value();
  };
  CHECK(same_bits(trained(1), trained(1)));
  CHECK(!same_bits(trained(1), trained(2)));
  CHECK(!same_bits(trained(1), quiet));
}

TEST_CASE("recurrent modules say what they need") {
  Rng rng(8);
  nn::GRU gru(3, 4, rng, {.bidirectional = true});
  Tensor x = Tensor::zeros({5, 2, 3});
  CHECK(error_of([&] { gru(Tensor::zeros({5, 2, 8})); }) ==
        "[GRU] x must be [T, B, 3], time first: [5, 2, 8]");
  CHECK(error_of([&] { gru(Tensor::zeros({0, 2, 3})); }) ==
        "[GRU] x must be [T, B, 3], time first: [0, 2, 3]; hint: a step at least");
  CHECK(error_of([&] { gru.joined(0, x, {}); }) ==
        "[GRU] states must be 5 in each of the directions, of which there are 2");
  // Of words without a batch, too: there is no EncoderCell.
  CHECK(error_of([&] { nn::Encoder(9, 3, 4, rng)(Tensor::from_ids({5}, {1, 2, 3, 4, 5}), {}); }) ==
        "[Encoder] x must be [T, B, 3], time first: [5, 3]; hint: a step alone is a cell's: of RNNCell, "
        "GRUCell or LSTMCell");
  CHECK(error_of([&] { gru(x, Tensor::from_ids({3}, {1, 2, 3})); }) ==
        "[GRU] lengths must be i32 [B] = [2]: i32 [3]");
  CHECK(error_of([&] { gru(x, Tensor::from_ids({2}, {1, 6})); }) == "[GRU] lengths must be in 0 .. 5: 6");
  CHECK(error_of([&] { gru(x, {}, Tensor::zeros({1, 2, 4})); }) ==
        "[GRU] h0 must be [num_layers * directions, B, hidden_size] = [2, 2, 4]: [1, 2, 4]");
}
