#include <gradus/nn/optimizer.h>
#include <gradus/nn/search.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "shared_output.h"

using namespace gradus;
using nn::kBos, nn::kEos, nn::kPad;
using testing::error_of;

namespace transformer_test {
namespace {

nn::TransformerConfig tiny() {
  return {.source_vocabulary = 9,
          .target_vocabulary = 8,
          .d_model = 6,
          .num_heads = 2,
          .num_layers = 2,
          .dim_feedforward = 5,
          .activation = "gelu"};
}

nn::TransformerSeq2Seq make(const nn::TransformerConfig& config, DType dtype = DType::f32) {
  Rng rng(3);
  nn::TransformerSeq2Seq model(config, rng);
  nn::to(model, dtype);
  return model;
}

// Two pairs, of 4 and 2 words with </s>.
nn::Seq2SeqBatch batch() {
  nn::Seq2SeqBatch b;
  b.source = Tensor::from_ids({4, 2}, {5, 8, 6, kEos, 5, kPad, kEos, kPad});
  b.source_lengths = Tensor::from_ids({2}, {4, 2});
  b.target_in = Tensor::from_ids({3, 2}, {kBos, kBos, 4, 6, 7, kPad});
  b.target_out = Tensor::from_ids({3, 2}, {4, 6, 7, kEos, kEos, kPad});
  b.target_tokens = 5;
  return b;
}

// Teacher-forced logits [T, B, V].
Tensor all_logits(const nn::TransformerSeq2Seq& model, const nn::Seq2SeqBatch& b) {
  NoGrad guard;
  Tensor mask = length_mask(b.source_lengths, b.source.size(0));
  Var hidden =
      model.decoder(model.embed_target(b.target_in), model.encode(b.source, mask), {.memory_mask = mask})
          .output;
  return linear(hidden, model.output_weight, model.output_bias).value();
}

}  // namespace

TEST_CASE("shards of a Transformer may share its output layer, tied to the word vectors or not") {
  for (bool tie : {false, true}) {
    CAPTURE(tie);
    nn::TransformerConfig config = tiny();
    config.tie_embeddings = config.tie_source = tie;
    if (tie) config.target_vocabulary = config.source_vocabulary;
    nn::TransformerSeq2Seq model = make(config, DType::f64);
    check_shared_output(model, batch());
  }
}

TEST_CASE("the whole Transformer passes the gradient check") {
  for (bool norm_first : {false, true})
    for (bool tie : {false, true}) {
      CAPTURE(norm_first);
      CAPTURE(tie);
      nn::TransformerConfig config = tiny();
      config.norm_first = norm_first;
      config.tie_embeddings = tie;
      config.tie_source = tie && norm_first;
      if (config.tie_source) config.target_vocabulary = config.source_vocabulary;
      config.positions = tie ? "sinusoidal" : "learned";
      config.temperature = tie ? 1 : 0.4;
      nn::TransformerSeq2Seq model = make(config, DType::f64);
      CHECK(nn::named_parameters(model).back().name == "output.bias");
      nn::StateDict dict = nn::state_dict(model);
      CHECK(std::any_of(dict.begin(), dict.end(), [](auto& e) { return e.first == "output.weight"; }) != tie);
      nn::Seq2SeqBatch b = batch();
      nn::LossOptions options{.label_smoothing = 0.1, .weight = 2};
      GradcheckReport report = nn::gradcheck(model, [&] { return model.loss(b, options).loss; });
      CHECK_MESSAGE(report.ok, report.message);
      CHECK(report.checked > 500);
    }
}

TEST_CASE("without its mask a Transformer's loss depends on words after the one it is of") {
  for (bool causal : {true, false}) {
    CAPTURE(causal);
    nn::TransformerConfig config = tiny();
    config.causal = causal;
    nn::TransformerSeq2Seq model = make(config, DType::f64);
    nn::Seq2SeqBatch one;
    one.source = Tensor::from_ids({3, 1}, {5, 6, kEos});
    one.source_lengths = Tensor::from_ids({1}, {3});
    one.target_in = Tensor::from_ids({3, 1}, {kBos, 4, 7});
    one.target_out = Tensor::from_ids({3, 1}, {4, kPad, kPad});  // the first word's loss alone
    one.target_tokens = 1;
    GradcheckReport report = nn::gradcheck(model, [&] { return model.loss(one).loss; });
    CHECK_MESSAGE(report.ok, report.message);
    const double before = model.loss(one).nll;
    one.target_in = Tensor::from_ids({3, 1}, {kBos, 4, 5});
    CHECK((model.loss(one).nll == before) == causal);
  }
}

TEST_CASE("padding changes nothing: a batch costs what its sentences cost alone") {
  nn::TransformerSeq2Seq model = make(tiny(), DType::f64);
  NoGrad guard;
  nn::Seq2SeqBatch first, second;
  first.source = Tensor::from_ids({4, 1}, {5, 6, 5, kEos});
  first.source_lengths = Tensor::from_ids({1}, {4});
  first.target_in = Tensor::from_ids({3, 1}, {kBos, 4, 7});
  first.target_out = Tensor::from_ids({3, 1}, {4, 7, kEos});
  second.source = Tensor::from_ids({2, 1}, {8, kEos});
  second.source_lengths = Tensor::from_ids({1}, {2});
  second.target_in = Tensor::from_ids({2, 1}, {kBos, 6});
  second.target_out = Tensor::from_ids({2, 1}, {6, kEos});
  double apart = model.loss(first).nll + model.loss(second).nll;
  CHECK(model.loss(batch()).nll == about(apart, 1e-12));
}

TEST_CASE(
    "decoding with the cache gives the logits and weights of teacher forcing, through a selection of rows") {
  nn::TransformerSeq2Seq model = make(tiny());
  nn::Seq2SeqBatch b = batch();
  Tensor logits = all_logits(model, b), weights = model.align(b);  // [T, B, V], [T, B, S]
  auto decoder = model.generator()->start(b.source, b.source_lengths, {.rows_per_sentence = 2});
  std::vector<int64_t> sentence = {0, 1};
  auto step = [&](int64_t t) {
    std::vector<int32_t> previous;
    for (int64_t s : sentence) previous.push_back(b.target_in.i32()[t * 2 + s]);
    int64_t R = static_cast<int64_t>(sentence.size());
    Tensor got = decoder->step(Tensor::from_ids({R}, previous)), seen = decoder->weights();
    REQUIRE(got.shape() == Shape{R, 8});
    REQUIRE(seen.shape() == Shape{R, 4});
    for (int64_t r = 0; r < R; ++r) {
      CHECK(all_close(got.row(r), logits.row(t).row(sentence[r]), 1e-4, 1e-5));
      CHECK(all_close(seen.row(r), weights.row(t).row(sentence[r]), 1e-4, 1e-6));
    }
  };
  step(0);
  decoder->select({1, 0, 0});
  sentence = {1, 0, 0};
  step(1);
  decoder->select({2});
  sentence = {0};
  step(2);
  CHECK(error_of([&] { decoder->select({1}); }) == "[select] rows are 0 .. 0: 1");
}

TEST_CASE("without positions the encoder is order-blind, and the decoder cannot tell orders apart") {
  for (const char* positions : {"none", "sinusoidal"}) {
    CAPTURE(positions);
    nn::TransformerConfig config = tiny();
    config.positions = positions;
    nn::TransformerSeq2Seq model = make(config, DType::f64);
    NoGrad guard;
    const std::vector<int64_t> order = {2, 0, 3, 1};
    std::vector<int32_t> words = {5, 6, 7, 8}, moved;
    for (int64_t i : order) moved.push_back(words[i]);
    Tensor source = Tensor::from_ids({4, 1}, words), permuted = Tensor::from_ids({4, 1}, moved);
    Tensor a = model.encode(source, {}).value(), b = model.encode(permuted, {}).value();
    double encoder = 0;
    for (int64_t i = 0; i < 4; ++i)
      encoder = worse(encoder, max_abs_difference(b.row(i), a.row(order[i])));
    nn::Seq2SeqBatch one = batch(), other = batch();
    one.source.rows(0, 4).copy_from(Tensor::from_ids({4, 2}, {5, 8, 6, kEos, 7, kPad, 8, kPad}));
    other.source.rows(0, 4).copy_from(Tensor::from_ids({4, 2}, {7, kEos, 5, 8, 8, kPad, 6, kPad}));
    double decoder = std::abs(model.loss(one).nll - model.loss(other).nll);
    bool blind = std::string(positions) == "none";
    for (double apart : {encoder, decoder}) CHECK((blind ? apart < 1e-12 : apart > 1e-12));  // NaN is neither
  }
}

TEST_CASE("a Transformer learns to turn sequences around, and the beam finds it") {
  nn::TransformerConfig config{.source_vocabulary = 12,
                               .target_vocabulary = 12,
                               .d_model = 32,
                               .num_heads = 4,
                               .num_layers = 1,
                               .dim_feedforward = 64};
  nn::TransformerSeq2Seq model = make(config);
  Rng data(11);
  constexpr int64_t B = 32, N = 4;
  auto draw = [&] {
    nn::Seq2SeqBatch b{
        {{N + 1, B}, DType::i32}, {{B}, DType::i32}, {{N + 1, B}, DType::i32}, {{N + 1, B}, DType::i32}, 0};
    for (int64_t k = 0; k < B; ++k) {
      b.source_lengths.i32()[k] = N + 1;
      b.source.i32()[N * B + k] = b.target_out.i32()[N * B + k] = kEos;
      b.target_in.i32()[k] = kBos;
      for (int64_t t = 0; t < N; ++t) {
        int32_t word = static_cast<int32_t>(4 + data.below(8));
        b.source.i32()[t * B + k] = b.target_out.i32()[(N - 1 - t) * B + k] =
            b.target_in.i32()[(N - t) * B + k] = word;
      }
    }
    b.target_tokens = (N + 1) * B;
    return b;
  };
  nn::Adam adam({.lr = 3e-3});
  for (int step = 0; step < 300; ++step) {
    Gradients grads = backward(model.loss(draw()).loss);
    nn::clip_grad_norm(grads, 1);
    adam.step(model, grads);
  }
  nn::Seq2SeqBatch b = draw();
  for (int64_t beam : {1, 3}) {
    auto found = nn::translate(model, b.source, b.source_lengths, {.beam_size = beam, .weights = true});
    int right = 0;
    for (int64_t k = 0; k < B; ++k) {
      std::vector<int32_t> want;
      for (int64_t t = N - 1; t >= 0; --t) want.push_back(b.source.i32()[t * B + k]);
      right += found[k][0].tokens == want;
      CHECK(found[k][0].weights.size() == found[k][0].tokens.size() + 1);
    }
    CHECK(right >= 30);
  }
}

TEST_CASE("sinusoidal positions are the paper's, before the end of the table and behind it") {
  nn::SinusoidalPositions positions(6);
  for (int64_t t : {0, 1, 17, 255, 256, 1000})
    for (int64_t i = 0; i < 3; ++i) {
      double angle = static_cast<double>(t) / std::pow(10000, 2.0 * static_cast<double>(i) / 6);
      Tensor p = positions.rows(t, 1, DType::f32).value();
      CHECK(p.at(2 * i) == about(std::sin(angle), 1e-6));
      CHECK(p.at(2 * i + 1) == about(std::cos(angle), 1e-6));
    }
  Tensor x = Tensor::zeros({3, 2, 6}), y = positions(x, 254).value();
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t b = 0; b < 2; ++b)
      CHECK(max_abs_difference(y.row(t).row(b), positions.rows(254 + t, 1, DType::f32).value().row(0)) == 0);
}

TEST_CASE("positions: what is refused") {
  Rng rng(1);
  const nn::SinusoidalPositions positions(6);
  for (const Shape& shape : {Shape{3, 2, 8}, Shape{3, 2, 1}, Shape{3, 6}})
    CHECK(error_of([&] { positions(Tensor::zeros(shape)); }) ==
          "[Positions] x must be [T, B, 6]: " + shape.str());
  nn::LearnedPositions learned(10, 4, rng);
  CHECK(error_of([&] { learned(Tensor::zeros({5, 1, 4}), 6); }) ==
        "[LearnedPositions] only 10 positions were learned: 11");
  CHECK(error_of([&] { nn::make_positions("absolute", 10, 4, rng); }) ==
        "[make_positions] unknown positions \"absolute\": one of sinusoidal, learned, none");
  CHECK(nn::make_positions("none", 10, 4, rng) == nullptr);
}

}  // namespace transformer_test
