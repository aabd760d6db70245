// A wrong size, option or name: the error names the line that constructs, whatever the parts are made of.

#include <gradus/nn/adaptive.h>
#include <gradus/nn/attention/additive.h>
#include <gradus/nn/attention/given.h>
#include <gradus/nn/attention/hard.h>
#include <gradus/nn/attention/history.h>
#include <gradus/nn/attention/location.h>
#include <gradus/nn/attention/multihead.h>
#include <gradus/nn/attention/multiplicative.h>
#include <gradus/nn/ema.h>
#include <gradus/nn/gru.h>
#include <gradus/nn/lstm.h>
#include <gradus/nn/optimizer.h>
#include <gradus/nn/rnn.h>
#include <gradus/nn/scheduler.h>
#include <gradus/nn/seq2seq.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/numeric.h>
#include <gradus/ops.h>
#include <gradus/trace.h>

#include <cmath>
#include <memory>

#include "caller.h"

using namespace gradus;
using namespace gradus::testing;

namespace caller_constructors_test {
namespace {

constexpr int64_t E = 8, V = 10;

// A user's layer, as docs tell to write one.
struct Mlp {
  nn::Linear up, down;
  static constexpr int kLine = __LINE__ + 1;
  Mlp(int64_t in, int64_t hidden, Rng& rng) : up(in, hidden, rng), down(hidden, 1, rng) {}
};

}  // namespace

TEST_CASE("layers name the line that constructs them") {
  Rng rng(1);
  CHECK_ERROR("[Linear] in_features must be positive: 0", nn::Linear(0, 4, rng));
  CHECK_ERROR("[Linear] out_features must be positive: -4", nn::Linear(3, -4, rng));
  CHECK_ERROR("[LayerNorm] n must be positive: 0", nn::LayerNorm(0));
  CHECK_ERROR("[Embedding] num_embeddings must be positive: 0", nn::Embedding(0, E, rng));
  CHECK_ERROR("[Embedding] embedding_dim must be positive: 0", nn::Embedding(V, 0, rng));
  CHECK_ERROR("[Embedding] padding_idx must be in 0 .. 9, or -1 for none: 10",
              nn::Embedding(V, E, rng, {.padding_idx = 10}));
  CHECK_ERROR("[Dropout] p must be in [0, 1): 1.5", nn::Dropout(1.5));
  CHECK_ERROR("[RNN] hidden_size must be positive: 0", nn::RNN(E, 0, rng));
  CHECK_ERROR("[GRU] input_size must be positive: -1", nn::GRU(-1, E, rng));
  CHECK_ERROR("[GRU] num_layers must be positive: 0", nn::GRU(E, E, rng, {.num_layers = 0}));
  CHECK_ERROR("[LSTM] dropout must be in [0, 1): 1", nn::LSTM(E, E, rng, {.dropout = 1}));
  CHECK_ERROR("[LSTM] recurrent_dropout must be in [0, 1): -0.5",
              nn::LSTM(E, E, rng, {.recurrent_dropout = -0.5}));
  CHECK_ERROR("[RNNCell] input_size must be positive: 0", nn::RNNCell(0, E, rng));
  CHECK_ERROR("[GRUCell] hidden_size must be positive: 0", nn::GRUCell(E, 0, rng));
  CHECK_ERROR("[LSTMCell] hidden_size must be positive: 0", nn::LSTMCell(E, 0, rng));
  CHECK_ERROR("[RecurrentCell] hidden_size must be positive: 0", nn::RecurrentCell({}, E, 0, rng));
  CHECK_ERROR("[own] num_layers must be positive: -1",
              nn::RecurrentStack("own", E, E, rng, {.num_layers = -1}));
  CHECK_ERROR("[GRU] the cell's kind is another unit's",
              nn::GRU(E, E, rng, {.cell = {.kind = nn::CellKind::lstm}}));
  CHECK_ERROR("[LSTM] nonlinearity is an option of an RNN",
              nn::LSTM(E, E, rng, {.cell = {.nonlinearity = nn::Nonlinearity::relu}}));
  CHECK_ERROR("[LSTMCell] reset_after and bahdanau are options of a GRU",
              nn::LSTMCell(E, E, rng, {.reset_after = false}));
  CHECK_ERROR("[RNNCell] forget_bias is an option of an LSTM", nn::RNNCell(E, E, rng, {.forget_bias = 1}));
  CHECK_TEXT("[cell_name] this cell is none of gru, gru-reset-before, gru-bahdanau, lstm, rnn, rnn-relu",
              nn::cell_name({.bias = false}));
  CHECK_NAMES_THIS_LINE(nn::RecurrentParameters({}, -1, E, rng));
  CHECK_TEXT(
      "[cell_type] unknown cell \"gur\": one of gru, gru-reset-before, gru-bahdanau, lstm, rnn, rnn-relu; "
      "hint: gru?",
      nn::cell_type("gur"));
  CHECK_TEXT(
      "[cell_type] unknown cell \"transformer\": one of gru, gru-reset-before, gru-bahdanau, lstm, rnn, "
      "rnn-relu",
      nn::cell_type("transformer"));
}

TEST_CASE("attentions name the line that constructs them") {
  Rng rng(1);
  CHECK_ERROR(
      "[make_attention] unknown attention \"genral\": one of bahdanau, dot, scaled-dot, general, concat, "
      "concat-identity, location, location-aware, local-m, local-p, coverage, multihead, hard, uniform, "
      "oracle; hint: general?",
      nn::make_attention("genral", {E, E, E}, rng));
  CHECK_REFUSES(nn::attention_kind("foo"));
  CHECK_ERROR(
      "[DotAttention] query and annotations must have one size: 8 and 16 (general attention has a matrix "
      "between them)",
      nn::make_attention("dot", {E, 2 * E, E}, rng));
  CHECK_ERROR("[MultiheadAttention] embed_dim must be a multiple of num_heads: 8, 3; hint: 2 or 4 heads?",
              nn::make_attention("multihead", {E, E, E, {.heads = 3}}, rng));
  CHECK_ERROR("[make_score] multihead has no scores of its own to build on",
              nn::make_score({E, E, E, {.score = "multihead"}}, "general", rng));
  CHECK_TEXT("[register_attention] the name \"general\" is taken",
              nn::register_attention({.name = "general", .aliases = {}, .description = "", .make = nullptr}));
  CHECK_REFUSES(
      nn::AttentionRegistration({.name = "luong", .aliases = {}, .description = "", .make = nullptr}));
  for (const std::string& name : nn::attention_names()) {
    CAPTURE(name);
    CHECK_ERROR("[Attention] temperature must be positive: 0",
                nn::make_attention(name, {E, E, E, {.temperature = 0}}, rng));
    CHECK_ERROR("[Attention] top_k must not be negative: -1",
                nn::make_attention(name, {E, E, E, {.top_k = -1}}, rng));
  }
  nn::AttentionSizes no_query{0, E, E}, nothing{E, E, E, {.temperature = -1}};
  CHECK_ERROR("[Linear] in_features must be positive: 0", nn::AdditiveAttention(no_query, rng));
  CHECK_ERROR("[Linear] in_features must be positive: -8", nn::ConcatAttention({-2 * E, E, E}, rng));
  CHECK_ERROR("[score_vector] n must be positive: 0", nn::score_vector(0, rng));
  CHECK_NAMES_THIS_LINE(nn::ConcatIdentityAttention(no_query, rng));
  CHECK_NAMES_THIS_LINE(nn::DotAttention({E, E + 1, E}, rng));
  CHECK_NAMES_THIS_LINE(nn::DotAttention({E, E + 1, E}, rng, 2.0));
  CHECK_NAMES_THIS_LINE(nn::ScaledDotAttention({E, E + 1, E}, rng));
  CHECK_NAMES_THIS_LINE(nn::GeneralAttention(no_query, rng));
  CHECK_ERROR("[Linear] out_features must be positive: 0",
              nn::LocationAttention({E, E, E, {.max_positions = 0}}, rng));
  CHECK_ERROR("[LocalAttention] window must be positive: 0",
              nn::LocalMonotonicAttention({E, E, E, {.window = 0}}, rng));
  CHECK_NAMES_THIS_LINE(nn::LocalPredictiveAttention({E, E, 0}, rng));
  CHECK_NAMES_THIS_LINE(nn::LocalMonotonicAttention({E, E, E, {.score = "foo"}}, rng));
  CHECK_NAMES_THIS_LINE(nn::HardAttention({E, E, E, {.score = "foo"}}, rng));
  CHECK_ERROR("[LocationAwareAttention] filter_width must be odd and positive: 4",
              nn::LocationAwareAttention({E, E, E, {.filter_width = 4}}, rng));
  CHECK_NAMES_THIS_LINE(nn::LocationAwareAttention({E, E, E, {.filters = 0}}, rng));
  CHECK_NAMES_THIS_LINE(nn::CoverageAttention(no_query, rng));
  CHECK_NAMES_THIS_LINE(nn::MultiheadSourceAttention({E, E, E, {.heads = 0}}, rng));
  CHECK_REFUSES(nn::UniformAttention(nothing, rng));
  CHECK_REFUSES(nn::OracleAttention(nothing, rng));
}

TEST_CASE("encoder, decoders and models name the line that constructs them") {
  Rng rng(1);
  CHECK_ERROR("[Embedding] num_embeddings must be positive: 0", nn::Encoder(0, E, E, rng));
  CHECK_ERROR("[Encoder] hidden_size must be positive: 0", nn::Encoder(V, E, 0, rng));
  CHECK_ERROR("[Dropout] p must be in [0, 1): 2", nn::Encoder(V, E, E, rng, {.rnn = {.dropout = 2}}));
  CHECK_NAMES_THIS_LINE(nn::Readout(0, E, nn::ReadoutKind::maxout, rng));
  nn::DecoderSizes sizes{V, E, E, E, E}, bad{V, 0, E, E, E};
  auto attention = [&] { return nn::make_attention("general", {E, E, E}, rng); };
  const nn::DecoderOptions after{.order = nn::Order::after_cell};
  CHECK_ERROR("[Embedding] embedding_dim must be positive: 0", nn::RecurrentDecoder(bad, attention(), rng));
  CHECK_NAMES_THIS_LINE(nn::RecurrentDecoder(bad, attention(), rng, after));
  CHECK_NAMES_THIS_LINE(nn::RecurrentDecoder(bad, nullptr, rng));
  CHECK_ERROR("[RecurrentDecoder] order after_cell needs an attention; hint: before_cell goes without one",
              nn::RecurrentDecoder(sizes, nullptr, rng, after));
  CHECK_ERROR("[Linear] in_features must be positive: 0", nn::RecurrentDecoder({V, E, E, 0, E}, nullptr, rng));
  nn::Seq2SeqConfig c{.source_vocabulary = V, .target_vocabulary = V, .embedding_dim = E, .hidden_size = E};
  auto with = [&](auto change) {
    nn::Seq2SeqConfig copy = c;
    change(copy);
    return copy;
  };
  CHECK_ERROR("[Seq2Seq] unknown readout \"tan\": one of tanh, maxout; hint: tanh?",
              nn::Seq2Seq(with([](auto& o) { o.readout = "tan"; }), rng));
  CHECK_ERROR("[Seq2Seq] unknown decoder \"loung\": one of auto, bahdanau, luong; hint: luong?",
              nn::Seq2Seq(with([](auto& o) { o.decoder = "loung"; }), rng));
  CHECK_NAMES_THIS_LINE(nn::Seq2Seq(with([](auto& o) { o.attention = "foo"; }), rng));
  CHECK_REFUSES(nn::Seq2Seq(with([](auto& o) { o.rnn.cell = nn::cell_type("foo"); }), rng));
  CHECK_NAMES_THIS_LINE(nn::Seq2Seq(with([](auto& o) { o.target_vocabulary = 0; }), rng));
  CHECK_NAMES_THIS_LINE(nn::Seq2Seq(with([](auto& o) { o.attention_options.temperature = 0; }), rng));
}

TEST_CASE("the Transformer's parts name the line that constructs them") {
  Rng rng(1);
  CHECK_ERROR("[MultiheadAttention] embed_dim must be a multiple of num_heads: 10, 4; hint: 2 or 5 heads?",
              nn::MultiheadAttention(10, 4, rng));
  CHECK_ERROR(
      "[MultiheadAttention] embed_dim must be a multiple of num_heads: 4, 512; hint: the number of heads comes "
      "second: exchanged?",
      nn::MultiheadAttention(4, 512, rng));
  CHECK_ERROR("[MultiheadAttention] num_heads must be positive: 0", nn::MultiheadAttention(10, 0, rng));
  CHECK_ERROR("[MultiheadAttention] dropout must be in [0, 1): 1",
              nn::MultiheadAttention(8, 2, rng, {.dropout = 1}));
  CHECK_ERROR("[Transformer] unknown activation \"gleu\": one of relu, gelu; hint: gelu?",
              nn::FeedForward(E, rng, {.activation = "gleu"}));
  CHECK_NAMES_THIS_LINE(nn::FeedForward(E, rng, {.dim_feedforward = 0}));
  CHECK_NAMES_THIS_LINE(nn::TransformerEncoderLayer(E, 3, rng));
  CHECK_NAMES_THIS_LINE(nn::TransformerDecoderLayer(E, 3, rng));
  CHECK_ERROR("[Transformer] num_layers must be positive: 0", nn::TransformerEncoder(0, E, 2, rng));
  CHECK_NAMES_THIS_LINE(nn::TransformerEncoder(1, E, 3, rng));
  CHECK_NAMES_THIS_LINE(nn::TransformerDecoder(1, E, 3, rng));
  CHECK_NAMES_THIS_LINE(nn::TransformerDecoder(-1, E, 2, rng));
  CHECK_TEXT("[SinusoidalPositions] embedding_dim must be positive: 0", nn::SinusoidalPositions(0));
  CHECK_ERROR("[LearnedPositions] max_positions must be positive: 0", nn::LearnedPositions(0, E, rng));
  CHECK_ERROR("[make_positions] unknown positions \"sinus\": one of sinusoidal, learned, none",
              nn::make_positions("sinus", 9, E, rng));
  CHECK_NAMES_THIS_LINE(nn::make_positions("learned", 0, E, rng));
  nn::TransformerConfig c{.source_vocabulary = V, .target_vocabulary = V, .d_model = E, .num_layers = 1};
  auto with = [&](auto change) {
    nn::TransformerConfig copy = c;
    change(copy);
    return copy;
  };
  CHECK_NAMES_THIS_LINE(nn::TransformerSeq2Seq(with([](auto& o) { o.num_heads = 3; }), rng));
  CHECK_NAMES_THIS_LINE(nn::TransformerSeq2Seq(with([](auto& o) { o.positions = "foo"; }), rng));
  CHECK_NAMES_THIS_LINE(nn::TransformerSeq2Seq(with([](auto& o) { o.activation = "foo"; }), rng));
  CHECK_NAMES_THIS_LINE(nn::TransformerSeq2Seq(with([](auto& o) { o.dropout = 1; }), rng));
  CHECK_NAMES_THIS_LINE(nn::TransformerSeq2Seq(with([](auto& o) { o.target_vocabulary = 0; }), rng));
}

TEST_CASE("optimisers, averages and schedulers name the line that constructs them") {
  nn::SGD sgd;
  CHECK_ERROR("[SGD] lr must not be negative: -0.1", nn::SGD({.lr = -0.1}));
  CHECK_ERROR("[SGD] weight_decay must not be negative: -1", nn::SGD({.weight_decay = -1}));
  CHECK_ERROR("[SGD] momentum must not be negative: -0.9", nn::SGD({.momentum = -0.9}));
  CHECK_ERROR("[SGD] nesterov needs a momentum, and no dampening", nn::SGD({.nesterov = true}));
  CHECK_ERROR("[Adam] lr must be finite: nan", nn::Adam({.lr = std::nan("")}));
  CHECK_ERROR("[Adam] betas must be in [0, 1): 1", nn::Adam({.beta2 = 1}));
  CHECK_ERROR("[Adam] eps must not be negative: -1e-08", nn::Adam({.eps = -1e-8}));
  CHECK_ERROR("[AdamW] betas must be in [0, 1): -0.5", nn::AdamW({.beta1 = -0.5}));
  CHECK_ERROR("[Adagrad] initial_accumulator_value must not be negative: -1",
              nn::Adagrad({.initial_accumulator_value = -1}));
  CHECK_ERROR("[RMSprop] alpha must be in [0, 1): 1", nn::RMSprop({.alpha = 1}));
  CHECK_ERROR("[RMSprop] momentum must not be negative: -1", nn::RMSprop({.momentum = -1}));
  CHECK_ERROR("[Adadelta] rho must be in [0, 1): 1.5", nn::Adadelta({.rho = 1.5}));
  CHECK_ERROR("[Adadelta] eps must be positive, or nothing moves: 0", nn::Adadelta({.eps = 0}));
  CHECK_ERROR("[ExponentialMovingAverage] decay must be in [0, 1): 1",
              nn::ExponentialMovingAverage({.decay = 1}));
  CHECK_TEXT("[Scheduler] needs a schedule", nn::Scheduler(sgd, nullptr));
  CHECK_TEXT("[ReduceLROnPlateau] factor must be in (0, 1): 2", nn::ReduceLROnPlateau(sgd, {.factor = 2}));
  CHECK_ERROR("[ThreadPool] needs at least one thread: 0", ThreadPool(0));
}

TEST_CASE("tensors, parameters and their parts name the line of a wrong call") {
  Tensor t = Tensor::zeros({2, 3});
  Parameter p(t, "p"), none;
  Rng rng(1);
  CHECK_ERROR("[shape] an axis cannot have the negative size -1", Tensor::zeros({2, -1}));
  CHECK_ERROR("[shape] a tensor has at most 6 axes", Shape({1, 1, 1, 1, 1, 1, 1}));
  CHECK_TEXT("[shape] axis 2 does not exist: shape [2, 3]", t.shape()[2]);
  CHECK_TEXT("[shape] axis -3 does not exist: shape [2, 3]", t.size(-3));
  CHECK_TEXT("[shape] axis 5 does not exist: shape [2, 3]", p.var().size(5));
  CHECK_REFUSES(t.shape().stride(2));
  CHECK_REFUSES(t.shape().without(2));
  CHECK_REFUSES(t.shape().axis(2, "own"));
  CHECK_REFUSES(Shape({1, 2}).append(-1));
  CHECK_TEXT("[own] shapes do not broadcast: [2] and [3]", broadcast({2}, {3}, "own"));
  CHECK_ERROR("[tensor] 5 numbers do not fill the shape [2, 3]", Tensor::from({2, 3}, {1, 2, 3, 4, 5}));
  CHECK_NAMES_THIS_LINE(Tensor::from_ids({2}, {1}));
  CHECK_ERROR("[uniform] needs f32 or f64 numbers: i32", Tensor::uniform({2}, 0, 1, rng, DType::i32));
  CHECK_NAMES_THIS_LINE(Tensor::normal({2}, 0, 1, rng, DType::u8));
  CHECK_TEXT("[tensor] i32 numbers were asked of a [2, 3] f32 tensor", t.i32());
  CHECK_TEXT("[tensor] f32 numbers were asked of an undefined tensor; hint: moved from, or never made?",
             Tensor().f32());
  CHECK_REFUSES(t.f64());
  CHECK_REFUSES(t.u8());
  CHECK_REFUSES(data<double>(t));
  CHECK_TEXT("[tensor] position 6 is outside: shape [2, 3]", t.at(6));
  CHECK_REFUSES(t.set(-1, 0));
  CHECK_TEXT("[item] the tensor must have one element: shape [2, 3]", t.item());
  CHECK_REFUSES(p.var().item());
  CHECK_TEXT("[reshape] the number of elements must stay: [2, 3] to [4]", t.reshape({4}));
  CHECK_REFUSES(t.reshape({-1, 4}));
  CHECK_REFUSES(t.reshape({-1, -1}));
  CHECK_REFUSES(t.reshape(Shape{7}));
  CHECK_TEXT("[rows] entries 1 to 3 are outside: shape [2, 3]", t.rows(1, 3));
  CHECK_REFUSES(t.row(2));
  CHECK_REFUSES(t.copy_from(Tensor::zeros({3, 2})));
  CHECK_REFUSES(max_abs_difference(t, Tensor::zeros({3, 2})));
  CHECK_REFUSES(broadcast_to(t, {3, 3}, "own"));
  CHECK_REFUSES(sum_to(t, {3, 3}));
  CHECK_REFUSES(zip(t, Tensor::zeros({3}), [](auto a, auto) { return a; }));
  CHECK_REFUSES(zip(t, t, Tensor::zeros({3}), [](auto a, auto, auto) { return a; }));
  CHECK_REFUSES(map(Tensor::from_ids({1}, {1}), [](auto a) { return a; }));
  CHECK_REFUSES(visit_floating(Tensor::from_ids({1}, {1}), "own", [](auto*) {}));
  CHECK_REFUSES(with_type(DType::u8, "own", [](auto) {}));
  CHECK_ERROR("[variable] gradients exist for f32 and f64 only: i32", Parameter(Tensor::from_ids({1}, {1})));
  CHECK_NAMES_THIS_LINE(variable(Tensor::from_ids({1}, {1})));
  CHECK_TEXT("[assign] the shape must stay: parameter [2, 3], value [3]", p.assign(Tensor::zeros({3})));
  CHECK_TEXT("[update] the parameter is undefined", none.update([](const Tensor&) {}));
  CHECK_REFUSES(none.assign(Tensor()));
  CHECK_ERROR("[gradients] no gradient of p [2, 3]: the loss does not depend on it", Gradients()[p]);
  CHECK_ERROR("[gradients] a constant has no gradient", Gradients()[t]);
  CHECK_TEXT("[trace] no node is labelled \"x\"", Trace().find("x"));
  CHECK_TEXT("[below] n must be positive: 0", rng.below(0));
  CHECK_ERROR("[length_mask] lengths must be in 0 .. 3: 4", length_mask(Tensor::from_ids({1}, {4}), 3));
  CHECK_NAMES_THIS_LINE(real_rows(Tensor::from_ids({1}, {4}), 3));
  CHECK_NAMES_THIS_LINE(concat_rows({}, t));
  CHECK_REFUSES(dropout_mask({2}, 1, DType::f32));
  CHECK_NAMES_THIS_LINE(argmax(Tensor()));
}

TEST_CASE("within a user's layer it is the line of the layer's own constructor") {
  Rng rng(1);
  CHECK(text_of([&] { Mlp(2, 0, rng); }) ==
        "[Linear] out_features must be positive: 0" + place(__FILE__, Mlp::kLine));
  // An At around it names a further one.
  int line = 0;
  std::string text = text_of([&] {
    line = __LINE__ + 1;
    At at(Caller::current());
    Mlp(2, 0, rng);
  });
  CHECK(text == "[Linear] out_features must be positive: 0" + place(__FILE__, line));
}

TEST_CASE("a program can leave the place out") {
  Rng rng(1);
  try {
    nn::MultiheadAttention(10, 4, rng);
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.message() ==
          "[MultiheadAttention] embed_dim must be a multiple of num_heads: 10, 4; hint: 2 or 5 heads?");
    CHECK(e.message() != e.what());
  }
  CHECK(Error("own").message() == "own");
}

TEST_CASE("what the standard library constructs names no line of the standard library") {
  Rng rng(1);
  std::vector<nn::Linear> layers;
  CHECK(text_of([&] { std::make_unique<nn::Linear>(0, 4, rng); }) ==
        "[Linear] in_features must be positive: 0");
  CHECK(text_of([&] { layers.emplace_back(0, 4, rng); }) == "[Linear] in_features must be positive: 0");
  CHECK(text_of([&] { std::make_unique<Mlp>(2, 0, rng); }).find(place(__FILE__, Mlp::kLine)) !=
        std::string::npos);
}

TEST_CASE("a constructor within an expression does not lend its line to what comes after it") {
  Rng rng(1);
  int inner = 0;
  auto user = [&](const nn::Linear&) { return inner = __LINE__, nn::Linear(0, 4, rng); };
  std::string text = text_of([&] { user(nn::Linear(3, 4, rng)); });
  CHECK(text.find(place(__FILE__, inner)) != std::string::npos);
}

}  // namespace caller_constructors_test
