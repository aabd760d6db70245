// Interchange with PyTorch's recurrent modules: names, outputs, gradients.

#include <gradus/nn/gru.h>
#include <gradus/nn/lstm.h>
#include <gradus/nn/rnn.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>

#include "recurrent_units.h"

using namespace gradus;
using namespace gradus::test;

TEST_CASE("PyTorch's state dicts load key for key, and give its outputs and all its gradients") {
  Rng rng(1);
  auto check = [](const std::string& file, auto& module) {
    CAPTURE(file);
    nn::to(module, DType::f64);
    nn::StateDict dict;
    for (const std::string& name : golden_names(file, "state_dict"))
      dict.emplace_back(name, golden(file, "state_dict", name));
    nn::load_state_dict(module, dict);  // throws for a name that is missing or unexpected, or a wrong shape
    Var x = variable(golden(file, "inputs", "x")), h0 = variable(golden(file, "inputs", "h0")), c0;
    Tensor lengths = Tensor::from_ids({3}, {4, 1, 3});
    RecurrentOutput y;
    if constexpr (requires { module(x, lengths, h0, c0); }) {
      c0 = variable(golden(file, "inputs", "c0"));
      y = module(x, lengths, h0, c0);
    } else {
      y = module(x, lengths, h0);
    }
    Var loss;
    auto compare = [&](const char* name, const Var& value) {
      CAPTURE(name);
      CHECK(all_close(value.value(), golden(file, "outputs", name), 1e-11, 1e-12));
      Var part = sum(value * Var(golden(file, "upstream", name)));
      loss = loss.defined() ? loss + part : part;
    };
    compare("output", y.output);
    compare("h_n", y.h_n);
    if (c0.defined()) compare("c_n", y.c_n);
    Gradients grads = backward(loss);
    CHECK(all_close(grads[x], golden(file, "grads", "x"), 1e-11, 1e-12));
    CHECK(all_close(grads[h0], golden(file, "grads", "h0"), 1e-11, 1e-12));
    if (c0.defined()) CHECK(all_close(grads[c0], golden(file, "grads", "c0"), 1e-11, 1e-12));
    for (const auto& p : nn::named_parameters(module)) {
      CAPTURE(p.name);
      CHECK(all_close(grads[*p.parameter], golden(file, "parameter_grads", p.name), 1e-11, 1e-12));
    }
  };
  for (bool reference : {false, true}) {
    nn::GRU gru(2, 3, rng, {.num_layers = 2, .bidirectional = true, .reference = reference});
    nn::LSTM lstm(2, 3, rng, {.num_layers = 2, .bidirectional = true, .reference = reference});
    nn::LSTM bare(2, 3, rng, {.cell = {.bias = false}, .reference = reference});
    nn::RNN tanh(2, 3, rng, {.num_layers = 2, .bidirectional = true, .reference = reference});
    nn::RNN relu(2, 3, rng, {.cell = {.nonlinearity = nn::Nonlinearity::relu}, .reference = reference});
    check("data/torch_gru", gru);
    check("data/torch_lstm", lstm);
    check("data/torch_lstm_no_bias", bare);
    check("data/torch_rnn_tanh", tanh);
    check("data/torch_rnn_relu", relu);
  }
}

TEST_CASE("names in the state dict, of LSTM and of what PyTorch does not have") {
  Rng rng(1);
  nn::LSTM lstm(3, 4, rng, {.bidirectional = true});
  CHECK(names(nn::state_dict(lstm)) == std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0",
                                                                "bias_hh_l0", "weight_ih_l0_reverse",
                                                                "weight_hh_l0_reverse", "bias_ih_l0_reverse",
                                                                "bias_hh_l0_reverse"});
  CHECK(nn::state_dict(lstm)[0].second.shape() == Shape{16, 3});
  nn::GRU bahdanau(3, 4, rng, {.cell = {.bahdanau = true}});
  CHECK(names(nn::state_dict(bahdanau)) ==
        std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0"});
  nn::LSTM normed(3, 4, rng, {.cell = {.layer_norm = true}});
  CHECK(names(nn::state_dict(normed)) ==
        std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "weight_ln_ih_l0", "bias_ln_ih_l0",
                                 "weight_ln_hh_l0", "bias_ln_hh_l0", "weight_ln_c_l0", "bias_ln_c_l0"});
  nn::RNNCell normed_cell(3, 4, rng, {.layer_norm = true});
  CHECK(names(nn::state_dict(normed_cell)) ==
        std::vector<std::string>{"weight_ih", "weight_hh", "weight_ln", "bias_ln"});
}
