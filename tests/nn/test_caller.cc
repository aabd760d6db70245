// Errors and nodes name the line of the user's code that called.

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/attention/hard.h>
#include <gradus/nn/gru.h>
#include <gradus/nn/init.h>
#include <gradus/nn/layer_norm.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/lstm.h>
#include <gradus/nn/rnn.h>
#include <gradus/nn/scheduled_sampling.h>
#include <gradus/nn/scheduler.h>
#include <gradus/nn/search.h>
#include <gradus/nn/seq2seq.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/ops.h>
#include <gradus/trace.h>

#include "caller.h"

using namespace gradus;
using namespace gradus::testing;

namespace caller_test {
namespace {

std::string here(int line) { return "(test_caller.cc:" + std::to_string(line) + ")"; }

// A user's op made of others, as docs tell to write one.
Var halves(const Input& x) {
  At at(x.caller());
  return matmul(x, x) / 2;
}

}  // namespace

TEST_CASE("an op's error names the line of its call, and a hint follows") {
  Tensor x = Tensor::zeros({64, 256}), w = Tensor::zeros({512, 512});
  int line = 0;
  std::string text;
  text = text_of([&] { line = __LINE__, linear(x, w); });
  CHECK(text == "[linear] input's last dimension must be in_features: input [64, 256], weight [512, 512] " +
                    here(line) + "; hint: 512 = 2 x 256: bidirectional?");
  text = text_of([&] { line = __LINE__, linear(x, Tensor::zeros({256, 10})); });
  CHECK(text == "[linear] input's last dimension must be in_features: input [64, 256], weight [256, 10] " +
                    here(line) + "; hint: weight is [out_features, in_features]: transposed?");
  text = text_of([&] { line = __LINE__, matmul(x, Tensor::zeros({10, 256})); });
  CHECK(text ==
        "[matmul] inner dimensions must agree: [64, 256] and [10, 256] " + here(line) +
            "; hint: transpose the second operand?");
  text = text_of([&] { line = __LINE__, matmul(x, Tensor::zeros({10, 11})); });
  CHECK(text ==
        "[matmul] inner dimensions must agree: [64, 256] and [10, 11] " + here(line));
}

TEST_CASE("operators and functions over lists as well") {
  Var a = variable(Tensor::zeros({2, 3})), b = variable(Tensor::zeros({4, 3}));
  Parameter p(Tensor::zeros({5}), "p");
  int line = 0;
  std::string text;
  text = text_of([&] { line = __LINE__, a + b; });
  CHECK(text ==
        "[add] shapes do not broadcast: [2, 3] and [4, 3] " + here(line));
  text = text_of([&] { line = __LINE__, p * b; });
  CHECK(text == "[mul] shapes do not broadcast: [5] and [4, 3] " + here(line));
  text = text_of([&] { line = __LINE__, 2 * Var() + a; });
  CHECK(text == "[mul] the input is undefined " + here(line) + "; hint: moved from, or never computed?");
  text = text_of([&] { line = __LINE__, concat({a, b}, 1); });
  CHECK(text.find(here(line)) != std::string::npos);
  text = text_of([&] { line = __LINE__, stack({a, b}, 0); });
  CHECK(text.find(here(line)) != std::string::npos);
}

TEST_CASE("of nested calls the outermost one is named") {
  Rng rng(1);
  nn::Linear layer(3, 4, rng);
  int line = 0;
  std::string text;
  text = text_of([&] { line = __LINE__, layer(Tensor::zeros({2, 6})); });
  CHECK(text ==
        "[linear] input's last dimension must be in_features: input [2, 6], weight [4, 3] " + here(line) +
            "; hint: 6 = 2 x 3: bidirectional?");
  text = text_of([&] { line = __LINE__, halves(Tensor::zeros({2, 6})); });
  CHECK(text.find(here(line)) != std::string::npos);
  nn::RNN rnn(3, 4, rng);
  text = text_of([&] { line = __LINE__, rnn(Tensor::zeros({2, 6})); });
  CHECK(text.find(here(line)) != std::string::npos);
}

TEST_CASE("a call inside an expression does not lend its line to what comes after it") {
  Var x = variable(Tensor::zeros({2, 3}));
  int inner = 0;
  auto user_layer = [&](const Var& v) { return inner = __LINE__, linear(v, Tensor::zeros({5, 4})); };
  std::string text = text_of([&] {
    user_layer(
        tanh(x));
  });
  CHECK(text.find(here(inner)) != std::string::npos);
  // Nor does an error leave its line behind.
  CHECK(At::current().line() == 0);
  CHECK(text_of([] { fail("corpus", "has no words"); }) == "[corpus] has no words");
}

TEST_CASE("what knows no line by itself names that of the op it happens in") {
  auto picks = [](const Input& x, int64_t i) {
    At at(x.caller());
    return x.value().at(i);
  };
  Tensor x = Tensor::zeros({2});
  CHECK_ERROR("[tensor] position 2 is outside: shape [2]", picks(x, 2));
  CHECK_TEXT("[tensor] position 2 is outside: shape [2]", x.at(2));
}

TEST_CASE("nodes know their line") {
  Var x = variable(Tensor::zeros({2, 3}));
  Var y = tanh(x);
  CHECK(y.node()->caller.line() == __LINE__ - 1);
  Var z = halves(variable(Tensor::zeros({2, 2})));
  CHECK(to_string(z.node()->caller) == "test_caller.cc:" + std::to_string(__LINE__ - 1));
  CHECK(z.node()->inputs[0]->caller.line() == __LINE__ - 2);  // the product inside
  Var own = record("own", {x}, x.value(), [](const Tensor&, Grads&) {});
  CHECK(own.node()->caller.line() == __LINE__ - 1);
}

TEST_CASE("a mistake inside a backward belongs to the call of its op") {
  Var x = variable(Tensor::zeros({2, 3}));
  std::string text;
  int line = __LINE__ + 1;
  Var y = record("own", {x}, x.value(), [](const Tensor&, Grads& dx) { dx.add(0, Tensor::zeros({7})); });
  CHECK(text_of([&] { backward(sum(y)); }) ==
        "[own] the gradient must have its input's shape: input 0 [2, 3], gradient [7] " + here(line));
  text = text_of([&] { line = __LINE__, backward(x); });
  CHECK(text ==
        "[backward] the loss must be a scalar, or BackwardOptions::seed given: shape [2, 3] " + here(line));
}

// ---- one wrong call of each public module ----

namespace {

constexpr int64_t T = 3, S = 4, B = 2, E = 8, V = 10;  // a target, a source, sentences, sizes, words

Tensor numbers(Shape shape) { return Tensor::zeros(shape); }
Tensor ids(int64_t rows, int32_t id) {
  return Tensor::from_ids({rows, B}, std::vector<int32_t>(static_cast<size_t>(rows * B), id));
}
Tensor lengths() { return Tensor::from_ids({B}, {4, 2}); }

// Everything in it is right but one word of the target, which is not in the vocabulary.
nn::Seq2SeqBatch bad_batch() { return {ids(S, 4), lengths(), ids(T, V), ids(T, 4), T * B}; }

nn::Encoded encoded(int64_t size) {
  return {numbers({S, B, size}), numbers({B, size}), {}, length_mask(lengths(), S)};
}

}  // namespace

TEST_CASE("layers name the line of a wrong call") {
  Rng rng(1);
  Tensor wrong = numbers({T, B, E + 1}), x = numbers({T, B, E}), row = numbers({B, E + 1});
  CHECK_NAMES_THIS_LINE(nn::Linear(E, 4, rng)(wrong));
  CHECK_NAMES_THIS_LINE(nn::Embedding(V, E, rng)(ids(T, V)));
  CHECK_NAMES_THIS_LINE(nn::LayerNorm(E)(wrong));
  CHECK_NAMES_THIS_LINE(nn::GRU(E, 4, rng)(wrong));
  CHECK_NAMES_THIS_LINE(nn::LSTM(E, 4, rng)(wrong));
  CHECK_NAMES_THIS_LINE(nn::RNN(E, 4, rng)(wrong));
  CHECK_NAMES_THIS_LINE(nn::GRU(E, 4, rng)(x, Tensor::from_ids({B}, {1, T + 1})));
  CHECK_NAMES_THIS_LINE(nn::GRUCell(E, 4, rng)(row));
  CHECK_NAMES_THIS_LINE(nn::LSTMCell(E, 4, rng)(row));
  CHECK_NAMES_THIS_LINE(nn::RNNCell(E, 4, rng)(row));
  CHECK_NAMES_THIS_LINE(nn::RecurrentCell({}, E, 4, rng).step(row));
  CHECK_NAMES_THIS_LINE(nn::RecurrentCell({}, E, 4, rng).over_time(wrong, {}));
  CHECK_NAMES_THIS_LINE(
      nn::RecurrentStack("own", E, 4, rng)(wrong));
  CHECK_NAMES_THIS_LINE(cross_entropy(x, ids(T, E)));
  CHECK_NAMES_THIS_LINE(nll_loss(x, ids(T, E)));
  CHECK_NAMES_THIS_LINE(mse_loss(x, wrong));
  CHECK_NAMES_THIS_LINE(binary_cross_entropy_with_logits(x, wrong));
  CHECK_NAMES_THIS_LINE(kl_div(x, wrong));
}

TEST_CASE("attentions name the line of a wrong call") {
  Rng rng(1);
  Tensor row = numbers({B, E + 1}), h = numbers({S, B, E}), mask = length_mask(lengths(), S);
  for (const std::string& name : nn::attention_names()) {
    CAPTURE(name);
    auto attention = nn::make_attention(name, {E, E, 5}, rng);
    nn::AttentionMemory memory = attention->prepare(h, mask);
    if (name == "uniform" || name == "oracle") {  // look at no query
      memory.given = numbers({T, B, S + 1});
      if (name == "oracle")
        CHECK_NAMES_THIS_LINE(attention->step(numbers({B, E}), memory, attention->start(memory)));
      continue;
    }
    CHECK_NAMES_THIS_LINE(attention->step(row, memory, attention->start(memory)));
    CHECK_NAMES_THIS_LINE(attention->sequence(numbers({T, B, E + 1}), memory));
    auto* scored = dynamic_cast<nn::ScoredAttention*>(attention.get());
    if (scored) CHECK_NAMES_THIS_LINE(scored->scores(row, memory, attention->start(memory)));
    bool projects = memory.keys.value().raw() != memory.annotations.value().raw();
    if (projects) CHECK_NAMES_THIS_LINE(attention->prepare(numbers({S, B, E + 1}), mask));
  }
  CHECK_NAMES_THIS_LINE(nn::reinforce(numbers({T, B}), numbers({T, B + 1}), numbers({T, B}), 0));
}

TEST_CASE("encoder, decoders and models name the line of a wrong call") {
  Rng rng(1);
  CHECK_NAMES_THIS_LINE(nn::Encoder(V, E, 4, rng)(ids(S, V), lengths()));
  CHECK_NAMES_THIS_LINE(nn::Readout(E, 4, nn::ReadoutKind::tanh, rng)(numbers({B, E + 1})));
  nn::DecoderSizes sizes{V, E, E, E, E};
  auto attention = [&] { return nn::make_attention("general", {E, E, 5}, rng); };
  const nn::Order before = nn::Order::before_cell, after = nn::Order::after_cell;
  std::vector<std::unique_ptr<nn::Decoder>> decoders;
  auto add = [&](std::unique_ptr<nn::Attention> made, const nn::DecoderOptions& options) {
    decoders.push_back(std::make_unique<nn::RecurrentDecoder>(sizes, std::move(made), rng, options));
  };
  add(attention(), {.order = before});
  add(nn::make_attention("bahdanau", {E, E, 5}, rng), {.order = before});
  add(attention(), {.order = after});
  add(attention(), {.order = after, .input_feeding = true});
  add(nullptr, {});
  for (size_t i = 0; i < decoders.size(); ++i) {
    CAPTURE(i);
    const nn::Decoder& decoder = *decoders[i];
    nn::DecoderState state = decoder.start(encoded(E));
    CHECK_REFUSES(decoder.start(encoded(E + 1)));
    CHECK_REFUSES(decoder.step(ids(T, V).row(0), state));
    CHECK_REFUSES(decoder.teacher_forced(ids(T, V), encoded(E)));
    CHECK_REFUSES(
        decoder.teacher_forced(ids(T, V), encoded(E), {.lengths = Tensor::from_ids({B}, {3, 1})}));
    auto& recurrent = static_cast<const nn::RecurrentDecoder&>(decoder);
    CHECK_NAMES_THIS_LINE(recurrent.cell_input(numbers({B, E}), numbers({B + 1, E}), numbers({B + 1, E})));
    CHECK_NAMES_THIS_LINE(recurrent.readout_input(numbers({B, E}), numbers({B + 1, E}), numbers({B, E})));
  }
  nn::Seq2Seq gru({.source_vocabulary = V, .target_vocabulary = V, .embedding_dim = E, .hidden_size = E},
                  rng);
  CHECK_REFUSES(gru.loss(bad_batch()));
  CHECK_REFUSES(gru.align(bad_batch()));
  CHECK_NAMES_THIS_LINE(nn::translate(gru, ids(S, 4), lengths(), {.beam_size = 0}));
  CHECK_NAMES_THIS_LINE(nn::scheduled_sampling(*gru.generator(), bad_batch(), 2, rng));
}

TEST_CASE("the Transformer's parts name the line of a wrong call") {
  Rng rng(1);
  Tensor wrong = numbers({T, B, E + 1}), x = numbers({T, B, E}), memory = numbers({S, B, E});
  nn::MultiheadAttention heads(E, 2, rng);
  nn::KeyValueCache cache;
  CHECK_NAMES_THIS_LINE(heads(wrong, wrong, wrong));
  CHECK_NAMES_THIS_LINE(heads.project_memory(wrong));
  CHECK_NAMES_THIS_LINE(heads.attend(wrong, heads.project_memory(memory)));
  CHECK_NAMES_THIS_LINE(heads.step(numbers({1, B, E + 1}), cache));
  CHECK_NAMES_THIS_LINE(nn::SinusoidalPositions(E)(wrong));
  CHECK_NAMES_THIS_LINE(nn::LearnedPositions(2, E, rng)(x));
  CHECK_NAMES_THIS_LINE(nn::FeedForward(E, rng, {})(wrong));
  CHECK_NAMES_THIS_LINE(nn::TransformerEncoderLayer(E, 2, rng)(wrong));
  CHECK_NAMES_THIS_LINE(nn::TransformerEncoder(1, E, 2, rng)(wrong));
  CHECK_NAMES_THIS_LINE(nn::TransformerEncoderLayer(E, 2, rng)(wrong, {.causal = true}));
  CHECK_NAMES_THIS_LINE(nn::TransformerEncoder(1, E, 2, rng)(wrong, {.causal = true}));
  CHECK_NAMES_THIS_LINE(nn::TransformerDecoderLayer(E, 2, rng)(wrong, memory));
  nn::TransformerLayerCache layer_cache{{}, heads.project_memory(memory).value()};
  CHECK_NAMES_THIS_LINE(nn::TransformerDecoderLayer(E, 2, rng).step(numbers({1, B, E + 1}), layer_cache));
  nn::TransformerDecoder decoder(1, E, 2, rng);
  std::vector<nn::TransformerLayerCache> caches = decoder.start(memory);
  CHECK_NAMES_THIS_LINE(decoder(wrong, memory));
  CHECK_NAMES_THIS_LINE(decoder.start(wrong));
  CHECK_NAMES_THIS_LINE(decoder.step(numbers({1, B, E + 1}), caches));
  nn::TransformerSeq2Seq model(
      {.source_vocabulary = V, .target_vocabulary = V, .d_model = E, .num_layers = 1}, rng);
  CHECK_REFUSES(model.loss(bad_batch()));
  CHECK_REFUSES(model.align(bad_batch()));
  CHECK_REFUSES(model.encode(ids(S, V), length_mask(lengths(), S)));
  CHECK_REFUSES(model.embed_target(ids(T, V)));
  CHECK_NAMES_THIS_LINE(nn::translate(model, ids(S, 4), lengths(), {.beam_size = 0}));
}

TEST_CASE("initialisers name the line of a wrong call") {
  Rng rng(1);
  Parameter vector(numbers({4}), "v");
  CHECK_NAMES_THIS_LINE(nn::init::xavier_uniform_(vector, rng));
  CHECK_NAMES_THIS_LINE(nn::init::xavier_normal_(vector, rng));
  CHECK_NAMES_THIS_LINE(nn::init::kaiming_uniform_(vector, rng));
  CHECK_NAMES_THIS_LINE(nn::init::kaiming_normal_(vector, rng));
  CHECK_NAMES_THIS_LINE(nn::init::orthogonal_(vector, rng));
}

}  // namespace caller_test
