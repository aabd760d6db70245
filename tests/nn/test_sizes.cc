// Sizes that a configuration file may say and no machine has: a clear error from every module that takes sizes,
// before any memory is asked for.

#include <cmath>
#include <cstdint>

#include <gradus/nn/adaptive.h>
#include <gradus/nn/attention/additive.h>
#include <gradus/nn/attention/attention.h>
#include <gradus/nn/decoder.h>
#include <gradus/nn/encoder.h>
#include <gradus/nn/gru.h>
#include <gradus/nn/init.h>
#include <gradus/nn/layer_norm.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/lstm.h>
#include <gradus/nn/optimizer.h>
#include <gradus/nn/positions.h>
#include <gradus/nn/rnn.h>
#include <gradus/nn/search.h>
#include <gradus/nn/seq2seq.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/embedding.h>
#include <gradus/ops/reduce.h>
#include <gradus/parallel.h>

#include "../about.h"
#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

constexpr int64_t kHuge = int64_t{1} << 61, kMost = INT32_MAX;

// What f throws is an Error with a word of these sizes: never memory that is not there, never nothing.
void must_refuse(const char* what, const Code& f) {
  CAPTURE(what);
  std::string text = "(no error)";
  try {
    f();
  } catch (const Error& e) {
    text = e.what();
  }
  CAPTURE(text);
  CHECK((contains(text, "must be at most") || contains(text, "too many elements") ||
         contains(text, "there is no room for") || contains(text, "must be positive")));
  CHECK_FALSE(contains(text, "negative"));
}

}  // namespace

TEST_CASE("every module refuses sizes beyond all memory") {
  Rng rng(1);
  CHECK(error_of([&] { nn::Linear(kHuge, 8, rng); }) ==
        "[Linear] in_features must be at most 2147483647: 2305843009213693952");
  for (int64_t n : {kHuge, 2 * kHuge, INT64_MAX, kMost + 1, kMost}) {
    CAPTURE(n);
    must_refuse("Linear, in", [&] { nn::Linear(n, n, rng); });
    must_refuse("Linear, out", [&] { nn::Linear(n < kMost ? 8 : kMost, n, rng); });
    must_refuse("Embedding", [&] { nn::Embedding(n, n, rng); });
    must_refuse("Embedding, dim", [&] { nn::Embedding(kMost, n, rng); });
    must_refuse("GRU", [&] { nn::GRU(8, n, rng); });
    must_refuse("LSTM", [&] { nn::LSTM(8, n, rng); });
    must_refuse("RNN", [&] { nn::RNN(8, n, rng); });
    must_refuse("GRU, both", [&] { nn::GRU(n, n, rng, {.bidirectional = true}); });
    must_refuse("GRUCell", [&] { nn::GRUCell(8, n, rng); });
    must_refuse("LSTMCell", [&] { nn::LSTMCell(n, n, rng); });
    must_refuse("Encoder", [&] { nn::Encoder(100, 8, n, rng); });
    must_refuse("Encoder, vocabulary", [&] { nn::Encoder(n, n, 8, rng); });
    must_refuse("MultiheadAttention", [&] { nn::MultiheadAttention(n, 1, rng); });
    must_refuse("LearnedPositions", [&] { nn::LearnedPositions(n, n, rng); });
    must_refuse("TransformerEncoder", [&] { nn::TransformerEncoder(1, n, 1, rng); });
    must_refuse("TransformerEncoder, feed-forward",
                [&] { nn::TransformerEncoder(1, 1024, 1, rng, {.dim_feedforward = n}); });
    must_refuse("Seq2Seq, hidden", [&] {
      nn::Seq2Seq({.source_vocabulary = 50, .target_vocabulary = 50, .embedding_dim = 8, .hidden_size = n},
                  rng);
    });
    must_refuse("Seq2Seq, embedding", [&] {
      nn::Seq2Seq({.source_vocabulary = kMost, .target_vocabulary = 50, .embedding_dim = n, .hidden_size = 8},
                  rng);
    });
    must_refuse("TransformerSeq2Seq", [&] {
      nn::TransformerSeq2Seq({.source_vocabulary = 50, .target_vocabulary = 50, .d_model = n, .num_heads = 1},
                             rng);
    });
    if (n > kMost) {
      must_refuse("LayerNorm", [&] { nn::LayerNorm{n}; });
      must_refuse("SinusoidalPositions", [&] { nn::SinusoidalPositions{n}; });
      must_refuse("score vector", [&] { nn::score_vector(n, rng); });
      for (const std::string& name : nn::attention_names()) {
        CAPTURE(name);
        if (name == "uniform" || name == "oracle" || name == "dot" || name == "scaled-dot")
          continue;  // no weights
        must_refuse("attention", [&] { nn::make_attention(name, {n / 2 + 1, 1 << 30, n}, rng); });
      }
    }
    if (n > 1000) {
      must_refuse("GRU, layers", [&] { nn::GRU(1, 1, rng, {.num_layers = n}); });
      must_refuse("TransformerDecoder, layers", [&] { nn::TransformerDecoder(n, 2, 1, rng); });
    }
  }
  CHECK(error_of([&] { nn::Encoder(10, 2, 2, rng, {.rnn = {.num_layers = 100000000}}); }) ==
        "[Encoder] num_layers must be at most 1000: 100000000");
}

TEST_CASE("heads that are more than columns") {
  Rng rng(1);
  CHECK(error_of([&] { nn::MultiheadAttention(6, 7, rng); }) ==
        "[MultiheadAttention] embed_dim must be a multiple of num_heads: 6, 7; hint: at most 6 heads");
  CHECK(contains(error_of([&] { nn::MultiheadAttention(8, kHuge + 1, rng); }), "num_heads must be at most"));
}

TEST_CASE("a search's options are looked at before room is made for them") {
  Rng rng(2);
  nn::Seq2Seq model({.source_vocabulary = 12, .target_vocabulary = 12, .embedding_dim = 4, .hidden_size = 4},
                    rng);
  Tensor source = Tensor::from_ids({2, 1}, {5, 3}), lengths = Tensor::from_ids({1}, {2});
  for (int64_t beam : {int64_t{1001}, kHuge, INT64_MAX})
    CHECK(error_of([&] { nn::translate(model, source, lengths, {.beam_size = beam}); }) ==
          "[translate] beam_size must be at most 1000: " + std::to_string(beam));
  CHECK(nn::translate(model, source, lengths, {.beam_size = 1000, .max_length = 2})[0].size() > 0);
  CHECK(error_of([&] { nn::translate(model, source, lengths, {.max_length = -1}); }) ==
        "[translate] min_length, max_length, no_repeat_ngram, exact_stop and together must be at least 0");
}

TEST_CASE("a gradient that somebody emptied is none") {
  Parameter p(Tensor::ones({2}), "p"), q(Tensor::ones({2}), "q");
  Gradients grads = backward(sum(p.var() + q.var()));
  for (Gradients::Entry& entry : grads.entries())
    if (entry.node == p.var().node()) entry.dense = Tensor();
  CHECK_FALSE(grads.contains(p));
  CHECK(contains(error_of([&] { grads[p]; }), "[gradients] no gradient of p [2]"));
  CHECK(nn::clip_grad_value(grads, 10) == 1);
  CHECK(nn::grad_norm(grads) == about(std::sqrt(2.0)));
  nn::SGD sgd({.lr = 1});
  sgd.step({{"p", &p}, {"q", &q}}, grads);
  CHECK(p.value().to_vector() == Numbers{1, 1});
  CHECK(q.value().to_vector() == Numbers{0, 0});
}

TEST_CASE("parameters with an axis of size 0 are stepped over") {
  for (const Shape& shape : {Shape{5, 0}, Shape{0, 5}, Shape{0}, Shape{3, 0, 2}}) {
    CAPTURE(shape.str());
    Parameter p(Tensor::zeros(shape), "p");
    const std::vector<NamedParameter> all = {{"p", &p}};
    nn::Adam adam;
    nn::SGD sgd({.lr = 0.1, .momentum = 0.9});
    nn::Adadelta adadelta;
    for (nn::Optimizer* optimizer : {static_cast<nn::Optimizer*>(&adam), static_cast<nn::Optimizer*>(&sgd),
                                     static_cast<nn::Optimizer*>(&adadelta)}) {
      Gradients grads = backward(sum(p.var()));
      CHECK(nn::grad_norm(grads) == 0);
      CHECK(nn::clip_grad_value(grads, 1) == 0);
      optimizer->step(all, grads);
      if (shape.dims() == 2 && shape[0] > 0) {  // rows that have no width
        Gradients rows = backward(sum(embedding(p, Tensor::from_ids({3}, {1, 4, 1}))));
        CHECK(nn::grad_norm(rows) == 0);
        optimizer->step(all, rows);
      }
    }
  }
}
