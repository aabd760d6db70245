// What test_recurrent.cc does not: LSTM, Bahdanau's GRU, layer-normalised units, residual stacks.

#include <algorithm>
#include <cmath>

#include <gradus/nn/gru.h>
#include <gradus/nn/lstm.h>
#include <gradus/nn/rnn.h>
#include <gradus/nn/seq2seq.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/lstm.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>

#include "../about.h"
#include "recurrent_units.h"

using namespace gradus;
using namespace gradus::test;

// ---- gradients ----

TEST_CASE("gradients of LSTM: directions, layers, biases, lengths with 0 and full, a start or none") {
  Rng rng(2);
  for (bool bidirectional : {false, true})
    for (int64_t layers : {1, 2})
      for (bool reference : {false, true}) {
        nn::LSTM lstm(3, 4, rng,
                      {.num_layers = layers, .bidirectional = bidirectional, .reference = reference});
        Shape start{layers * (bidirectional ? 2 : 1), 4, 4};
        CHECK_GRADIENTS(nn::gradcheck(lstm, {input(), kLengths, random(start, 2), random(start, 3)}));
      }
  nn::LSTM plain(3, 4, rng, {.bidirectional = true, .cell = {.bias = false}});
  CHECK_GRADIENTS(nn::gradcheck(plain, {input()}));
  CHECK_GRADIENTS(nn::gradcheck(plain, {input(), kLengths}));
}

TEST_CASE("gradients of every unit in a residual stack with both kinds of dropout, and of its cell") {
  for (const CellType& cell : all_cells()) {
    CAPTURE(text_of(cell));
    Rng rng(3);
    RecurrentOptions options = options_of(cell);
    options.residual = options.variational = true;
    options.dropout = 0.3;
    options.recurrent_dropout = 0.4;
    RecurrentStack stack = stack_of(options, rng);
    nn::RecurrentState start = start_of(options, 5);
    auto f = [&](const std::vector<Var>& in) {
      Training mode(9);
      return nn::checkable(stack(in[0], kLengths, {in[1], in.size() > 2 ? in[2] : Var()}));
    };
    std::vector<Tensor> inputs{input(), start.h.value()};
    if (start.c.defined()) inputs.push_back(start.c.value());
    CHECK_GRADIENTS(nn::gradcheck(nn::named_parameters(stack), f, inputs));

    nn::RecurrentCell one(cell, 3, 4, rng);
    auto step = [&](const std::vector<Var>& in) {
      return nn::checkable(one.step(in[0], {in[1], cell.kind == CellKind::lstm ? in[2] : Var()}).vars());
    };
    CHECK_GRADIENTS(nn::gradcheck(nn::named_parameters(one), step,
                                  {random({2, 3}, 1), random({2, 4}, 2), random({2, 4}, 3)}));
  }
}

// ---- what must be equal ----

TEST_CASE("fused and composed agree under dropout of the states, in value and in all gradients") {
  for (const CellType& cell : all_cells()) {
    CAPTURE(text_of(cell));
    RecurrentOptions options = options_of(cell);
    options.recurrent_dropout = 0.5;
    Rng rng(4), again(4);
    RecurrentStack fused = stack_of(options, rng);
    options.reference = true;
    RecurrentStack composed = stack_of(options, again);
    nn::to(fused, DType::f64);
    nn::to(composed, DType::f64);
    Var x = variable(input());
    auto run = [&](const RecurrentStack& stack) {
      Training mode(3);
      Var all = nn::checkable(stack(x, kLengths, start_of(options, 6)));
      return std::pair(all.value(), sum(all * Var(random(all.shape(), 7))));
    };
    auto [a, loss_a] = run(fused);
    auto [b, loss_b] = run(composed);
    CHECK(max_abs_difference(a, b) < 1e-12);
    Gradients ga = backward(loss_a), gb = backward(loss_b);
    // Normalising a state of which the mask leaves little makes gradients of a hundred: relative to their size.
    auto agree = [&cell](const Tensor& g, const Tensor& h) {
      double size = 1;
      if (cell.layer_norm)
        for (double v : h.to_vector()) size = worse(size, std::abs(v));
      return max_abs_difference(g, h) < 1e-12 * size;
    };
    CHECK(agree(ga[x], gb[x]));
    auto pa = nn::named_parameters(fused), pb = nn::named_parameters(composed);
    for (size_t i = 0; i < pa.size(); ++i) {
      CAPTURE(pa[i].name);
      CHECK(agree(ga[*pa[i].parameter], gb[*pb[i].parameter]));
    }
  }
}

TEST_CASE("a cell step by step is the module over time") {
  for (const CellType& cell : all_cells()) {
    CAPTURE(text_of(cell));
    Rng rng(5);
    nn::RecurrentCell one(cell, 3, 4, rng);
    nn::to(one, DType::f64);
    Tensor x = input();
    Tensor all = one.over_time(x, {}).value();
    nn::RecurrentState state;
    for (int64_t t = 0; t < 4; ++t) {
      state = one.step(x.row(t), state);
      CHECK(max_abs_difference(state.h.value(), all.row(t)) < 1e-14);
    }
  }
}

TEST_CASE("the backward direction is the forward one on the flipped sequence") {
  for (const CellType& cell : all_cells()) {
    CAPTURE(text_of(cell));
    Rng rng(6);
    RecurrentStack stack = stack_of(options_of(cell, 1), rng);
    nn::to(stack, DType::f64);
    nn::StateDict dict = nn::state_dict(stack);
    size_t half = dict.size() / 2;
    for (size_t i = 0; i < half; ++i) dict[half + i].second = dict[i].second;
    nn::load_state_dict(stack, dict);
    Tensor x = input(), flipped(x.shape(), x.dtype());
    for (int64_t t = 0; t < 4; ++t) flipped.row(t).copy_from(x.row(3 - t));
    RecurrentOutput y = stack(x), z = stack(flipped);
    Tensor backward = slice(y.output, -1, 4, 8).value(), forward = slice(z.output, -1, 0, 4).value();
    for (int64_t t = 0; t < 4; ++t) CHECK(max_abs_difference(backward.row(t), forward.row(3 - t)) < 1e-14);
    CHECK(max_abs_difference(y.backward_final.value(), z.forward_final.value()) < 1e-14);
    if (cell.kind == CellKind::lstm)
      CHECK(max_abs_difference(y.c_n.value().row(1), z.c_n.value().row(0)) < 1e-14);
  }
}

TEST_CASE("a stack in reverse is the forward one on each sequence flipped, and its output flipped back") {
  // Each sequence's real steps the other way round.
  auto flipped = [](const Tensor& x) {
    Tensor out = x.clone();
    for (int64_t b = 0; b < 4; ++b)
      for (int64_t t = 0, n = kLengths.i32()[b], I = x.size(2); t < n; ++t)
        for (int64_t i = 0; i < I; ++i) out.set((t * 4 + b) * I + i, x.at(((n - 1 - t) * 4 + b) * I + i));
    return out;
  };
  for (const CellType& cell : all_cells()) {
    CAPTURE(text_of(cell));
    RecurrentOptions options = options_of(cell, 2, false);
    options.residual = true;
    Rng rng(11), again(11);
    RecurrentStack forward = stack_of(options, rng);
    options.reverse = true;
    RecurrentStack stack = stack_of(options, again);
    nn::to(forward, DType::f64);
    nn::to(stack, DType::f64);
    RecurrentOutput y = stack(input(), kLengths), z = forward(flipped(input()), kLengths);
    CHECK(max_abs_difference(y.output.value(), flipped(z.output.value())) < 1e-14);
    CHECK(max_abs_difference(y.h_n.value(), z.h_n.value()) < 1e-14);
    CHECK(max_abs_difference(y.forward_final.value(), z.forward_final.value()) < 1e-14);
    CHECK_FALSE(y.backward_final.defined());
    if (cell.kind == CellKind::lstm) CHECK(max_abs_difference(y.c_n.value(), z.c_n.value()) < 1e-14);
    Var x = input();
    for (int64_t layer = 0; layer < 2; ++layer) x = stack.joined(layer, x, stack.states(layer, x));
    CHECK(max_abs_difference(x.value(), stack(input()).output.value()) < 1e-13);
  }
  Rng rng(1);
  nn::GRU gru(3, 4, rng, {.num_layers = 2, .reverse = true});
  CHECK_GRADIENTS(nn::gradcheck(gru, {input(), kLengths, random({2, 4, 4}, 2)}));
  CHECK(error_of([&] { nn::GRU(3, 4, rng, {.bidirectional = true, .reverse = true}); }) ==
        "[GRU] reverse is for one direction; bidirectional reads both ways already");
}

TEST_CASE("several layers are single layers, one upon the other; residual ones add what they read") {
  for (const CellType& cell : all_cells())
    for (bool residual : {false, true}) {
      CAPTURE(text_of(cell));
      CAPTURE(residual);
      Rng rng(7);
      RecurrentOptions options = options_of(cell, 3);
      options.residual = residual;
      RecurrentStack deep = stack_of(options, rng);
      Tensor x = input(1, DType::f32);
      RecurrentOutput y = deep(x, kLengths);
      Var in = x;
      for (int64_t layer = 0; layer < 3; ++layer) {
        RecurrentStack one = stack_of(options_of(cell, 1), rng, layer > 0 ? 8 : 3);
        nn::StateDict dict;
        const std::string from = "_l" + std::to_string(layer);
        for (const auto& [name, value] : nn::state_dict(deep)) {
          size_t at = name.find(from);
          if (at == std::string::npos) continue;
          dict.emplace_back(name.substr(0, at) + "_l0" + name.substr(at + 3), value);
        }
        nn::load_state_dict(one, dict);
        RecurrentOutput part = one(in, kLengths);
        for (int64_t k = 0; k < 2; ++k) {
          CHECK(same_bits(part.h_n.value().row(k), y.h_n.value().row(2 * layer + k)));
          if (cell.kind == CellKind::lstm)
            CHECK(same_bits(part.c_n.value().row(k), y.c_n.value().row(2 * layer + k)));
        }
        in = residual && layer > 0 ? part.output + in : part.output;
      }
      CHECK(same_bits(in.value(), y.output.value()));
    }
}

TEST_CASE("a stack taken state by state is the stack, and a state becomes what it is told to") {
  for (const CellType& cell : all_cells())
    for (bool bidirectional : {false, true}) {
      CAPTURE(text_of(cell));
      CAPTURE(bidirectional);
      Rng rng(3);
      RecurrentOptions options = options_of(cell, 3, bidirectional);
      options.residual = true;
      RecurrentStack stack = stack_of(options, rng);
      nn::to(nn::named_parameters(stack), DType::f64);
      Var x = input();
      for (int64_t layer = 0; layer < 3; ++layer) x = stack.joined(layer, x, stack.states(layer, x));
      CHECK(max_abs_difference(x.value(), stack(input()).output.value()) < 1e-13);

      CHECK(error_of([&] { stack.states(3, input()); }) == "[Stack] layers are 0 .. 2: 3");
      auto plain = stack.states(0, input());
      auto twice = stack.states(0, input(), [](const Var& h, int64_t, int64_t) {
        return nn::StateUse{h * 2.0, h};
      });
      auto forgetful = stack.states(0, input(), [](const Var& h, int64_t d, int64_t t) {
        return nn::StateUse{h, t == (d ? 1 : 2) ? h * 0.0 : h};
      });
      for (size_t d = 0; d < plain.size(); ++d)
        for (size_t t = 0; t < 4; ++t) {
          CHECK(max_abs_difference(twice[d][t].value(), (plain[d][t] * 2.0).value()) == 0);
          bool behind = d ? t < 1 : t > 2;
          const double moved = max_abs_difference(forgetful[d][t].value(), plain[d][t].value());
          CHECK((behind ? moved > 0 : moved == 0));
        }
    }
}

TEST_CASE("padding changes nothing, and a permuted batch gives permuted results, with every unit") {
  for (const CellType& cell : all_cells()) {
    CAPTURE(text_of(cell));
    Rng rng(8);
    RecurrentOptions options = options_of(cell);
    options.residual = true;
    RecurrentStack stack = stack_of(options, rng);
    nn::to(stack, DType::f64);
    Tensor x = input(), garbage = x.clone();
    for (int64_t t = 0; t < 4; ++t)
      for (int64_t b = 0; b < 4; ++b)
        if (t >= kLengths.i32()[b]) garbage.row(t).row(b).fill(50);
    Var v = variable(garbage);
    RecurrentOutput clean = stack(x, kLengths), padded = stack(v, kLengths);
    CHECK(same_bits(nn::checkable(clean).value(), nn::checkable(padded).value()));
    Gradients grads = backward(sum(nn::checkable(padded)));
    for (int64_t t = 0; t < 4; ++t)
      for (int64_t b = 0; b < 4; ++b)
        if (t >= kLengths.i32()[b])
          for (int64_t k = 0; k < 3; ++k) CHECK(grads[v].row(t).row(b).at(k) == 0);

    // Sequence 0 alone, without padding.
    Tensor alone({3, 1, 3}, DType::f64);
    for (int64_t t = 0; t < 3; ++t) alone.row(t).row(0).copy_from(x.row(t).row(0));
    RecurrentOutput single = stack(alone);
    auto close = [](const Tensor& a, const Tensor& b) { return max_abs_difference(a, b) < 1e-13; };
    for (int64_t t = 0; t < 3; ++t)
      CHECK(close(single.output.value().row(t).row(0), clean.output.value().row(t).row(0)));
    CHECK(close(single.backward_final.value().row(0), clean.backward_final.value().row(0)));

    const int64_t order[] = {2, 0, 3, 1};
    Tensor permuted(x.shape(), x.dtype()), lengths({4}, DType::i32);
    for (int64_t b = 0; b < 4; ++b) {
      lengths.set(b, kLengths.at(order[b]));
      for (int64_t t = 0; t < 4; ++t) permuted.row(t).row(b).copy_from(x.row(t).row(order[b]));
    }
    RecurrentOutput z = stack(permuted, lengths);
    for (int64_t b = 0; b < 4; ++b) {
      for (int64_t t = 0; t < 4; ++t)
        CHECK(close(z.output.value().row(t).row(b), clean.output.value().row(t).row(order[b])));
      if (cell.kind == CellKind::lstm)
        CHECK(close(z.c_n.value().row(3).row(b), clean.c_n.value().row(3).row(order[b])));
    }
  }
}

// ---- small print ----

TEST_CASE("directions left open: one for RNN, GRU and LSTM, two for an encoder, whatever else is asked for") {
  Rng rng(17);
  for (const nn::RecurrentOptions& open :
       {nn::RecurrentOptions(), {.num_layers = 2}, {.cell = {.bias = false}}}) {
    nn::RecurrentOptions one = open, both = open;
    one.bidirectional = false;
    both.bidirectional = true;
    nn::Seq2SeqConfig config{
        .source_vocabulary = 5, .target_vocabulary = 5, .embedding_dim = 3, .hidden_size = 4};
    auto model = [&](const nn::RecurrentOptions& rnn) {
      config.rnn = rnn;
      return nn::Seq2Seq(config, rng).encoder.rnn.directions();
    };
    CHECK(nn::RNN(3, 4, rng, open).directions() == 1);
    CHECK(nn::GRU(3, 4, rng, open).directions() == 1);
    CHECK(nn::LSTM(3, 4, rng, open).directions() == 1);
    CHECK(nn::GRU(3, 4, rng, both).directions() == 2);
    CHECK(nn::Encoder(5, 3, 4, rng, {.rnn = open}).rnn.directions() == 2);
    CHECK(nn::Encoder(5, 3, 4, rng, {.rnn = open}).annotation_size == 8);
    CHECK(nn::Encoder(5, 3, 4, rng, {.rnn = one}).annotation_size == 4);
    CHECK(model(open) == 2);
    CHECK(model(both) == 2);
    CHECK(model(one) == 1);
  }
}

TEST_CASE("every named cell has its name back, layer-normalised or not; a cell that is none of them has none") {
  for (const std::string& name : nn::cell_names())
    for (bool layer_norm : {false, true}) {
      CellType cell = nn::cell_type(name);
      cell.layer_norm = layer_norm;
      CHECK(nn::cell_name(cell) == name);
      CHECK(cell.is_plain_gru() == (name == "gru" && !layer_norm));
      cell.bias = false;
      CHECK(!cell.is_plain_gru());
      CHECK_THROWS_AS(nn::cell_name(cell), Error);
    }
  CHECK_THROWS_AS(nn::cell_name({.kind = CellKind::lstm}), Error);
}

TEST_CASE("the example of docs/recurrent-layers.md") {
  Rng rng(16);
  Tensor x = random({5, 2, 64}, 1, DType::f32), lengths = Tensor::from_ids({2}, {5, 3});
  Tensor x_t = x.row(0), h_before = random({2, 128}, 2, DType::f32),
         c_before = random({2, 128}, 3, DType::f32);
  nn::LSTM lstm(64, 128, rng, {.num_layers = 2, .dropout = 0.3, .bidirectional = true});
  nn::RecurrentOutput y = lstm(x, lengths);
  CHECK(y.output.shape() == Shape{5, 2, 256});
  CHECK(y.h_n.shape() == Shape{4, 2, 128});
  CHECK(y.c_n.shape() == Shape{4, 2, 128});
  nn::LSTMCell cell(64, 128, rng);
  auto [h, c] = cell(x_t, h_before, c_before);
  CHECK(h.shape() == Shape{2, 128});
  CHECK(c.shape() == Shape{2, 128});
  nn::LSTMCell small(3, 4, rng);
  CHECK_GRADIENTS(nn::gradcheck(small, {random({2, 3}, 1), random({2, 4}, 2), random({2, 4}, 3)}));
}

TEST_CASE("an LSTM's forget bias is added once, to the forget gate alone") {
  Rng a(13), b(13);
  nn::LSTM with(3, 4, a, {.cell = {.forget_bias = 1}}), without(3, 4, b);
  auto dw = nn::state_dict(with), dn = nn::state_dict(without);
  for (size_t i = 0; i < dw.size(); ++i)
    for (int64_t k = 0; k < dw[i].second.numel(); ++k) {
      bool forget = dw[i].first == "bias_ih_l0" && k >= 4 && k < 8;
      CHECK(dw[i].second.at(k) == about(dn[i].second.at(k) + (forget ? 1 : 0), 1e-6));
    }
}

TEST_CASE("an LSTM carries what a plain RNN of the same seed forgets") {
  // A forget gate held open: c stays, whatever comes.
  Rng rng(14);
  nn::LSTM lstm(1, 4, rng);
  auto& w = lstm.weights[0];
  for (Parameter* p : {&w.weight_ih, &w.weight_hh, &w.bias_hh}) set(*p, [](int64_t, int64_t) { return 0; });
  set(w.bias_ih, [](int64_t row, int64_t) { return row < 4 ? -1e4 : row < 8 ? 1e4 : 0; });
  RecurrentOutput y = lstm(random({50, 2, 1}, 1, DType::f32), {}, {}, Tensor::full({1, 2, 4}, 0.7));
  for (double c : y.c_n.value().to_vector()) CHECK(c == about(0.7));
}

TEST_CASE("LSTM and cells say what they need") {
  Rng rng(15);
  nn::LSTM lstm(3, 4, rng);
  Tensor x = Tensor::zeros({5, 2, 3});
  CHECK(error_of([&] { lstm(x, {}, {}, Tensor::zeros({2, 2, 4})); }) ==
        "[LSTM] c0 must be [num_layers * directions, B, hidden_size] = [1, 2, 4]: [2, 2, 4]");
  CHECK(error_of([&] { nn::LSTM(3, 4, rng, {.recurrent_dropout = 1}); }) ==
        "[LSTM] recurrent_dropout must be in [0, 1): 1");
  CHECK(error_of([&] { nn::LSTMCell(0, 4, rng); }) == "[LSTMCell] input_size must be positive: 0");
  const nn::GRUCell cell(3, 4, rng);
  CHECK(error_of([&] { cell(x); }) == "[gru_cell] x must be [B, input_size]: [5, 2, 3]");
  CHECK(error_of([&] { nn::cell_type("gur"); }) ==
        "[cell_type] unknown cell \"gur\": one of gru, gru-reset-before, gru-bahdanau, lstm, rnn, rnn-relu; "
        "hint: gru?");
  Var w_ih = Tensor::zeros({16, 3}), w_hh = Tensor::zeros({16, 4});
  CHECK(error_of([&] {
          gradus::lstm(x, {}, {Tensor::zeros({12, 3}), w_hh});
        }) ==
        "[lstm] weight_ih must be [4 hidden_size, input_size]: input [5, 2, 3], weight_ih [12, 3], weight_hh "
        "[16, 4]");
  CHECK(error_of([&] { gradus::lstm(x, {{}, Tensor::zeros({3, 4})}, {w_ih, w_hh}); }) ==
        "[lstm] the initial cell must be [B, hidden_size] = [2, 4]: [3, 4]");
  CHECK(error_of([&] { gradus::lstm(x, {}, {w_ih, w_hh}, {.state_mask = Tensor::zeros({2, 5})}); }) ==
        "[lstm] state_mask must be [B, hidden_size] = [2, 4]: [2, 5]");
  CHECK(error_of([&] { gradus::rnn(x.row(0), {}, {w_ih, w_hh}); }) ==
        "[rnn] input must be [T, B, input_size]: input [2, 3]");
}
