// A Transformer decoded with packed weights, against its layers' own steps.

#include <gradus/nn/module.h>
#include <gradus/nn/search.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/parallel.h>

#include <cstring>
#include <functional>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "small_models.h"

using namespace gradus;
using testing::error_of;

namespace packed_transformer_test {
namespace {

constexpr int64_t kWords = 37;

std::vector<nn::TransformerConfig> configs() {
  nn::TransformerConfig base{.source_vocabulary = 30,
                             .target_vocabulary = kWords,
                             .d_model = 20,  // not a whole vector
                             .num_heads = 4,
                             .num_layers = 2,
                             .dim_feedforward = 27};
  std::vector<nn::TransformerConfig> out(6, base);
  out[1].norm_first = false;
  out[2].activation = "gelu";
  out[2].tie_embeddings = false;
  out[3].positions = "learned";
  out[3].norm_first = false;
  out[3].num_layers = 1;
  out[4].positions = "none";
  out[4].num_heads = 1;
  out[5].num_layers = 3;
  out[5].num_heads = 20;
  out[5].temperature = 0.5;
  return out;
}

nn::TransformerSeq2Seq model_of(const nn::TransformerConfig& c) {
  Rng rng(5);
  nn::TransformerSeq2Seq model(c, rng);
  for (auto& p : nn::named_parameters(model))  // biases and norms that are not 0 and 1
    p.parameter->assign(
        (p.parameter->var() + Var(Tensor::uniform(p.parameter->shape(), -0.2, 0.2, rng))).value());
  return model;
}

using small_models::Sources;

Sources sources(int64_t B, int64_t S = 7) { return small_models::sources_of(B, S, 26, 6); }

}  // namespace

TEST_CASE("a Transformer with packed weights equals its layers step by step, through selections") {
  ThreadPool pool(3);
  for (const nn::TransformerConfig& c : configs()) {
    CAPTURE(c.norm_first);
    CAPTURE(c.positions);
    CAPTURE(c.num_heads);
    CAPTURE(c.temperature);
    nn::TransformerSeq2Seq model = model_of(c);
    Sources in = sources(5);
    auto packed = model.generator(), composed = model.composed_generator();
    auto a = packed->start(in.ids, in.lengths, {.rows_per_sentence = 3});
    auto b = composed->start(in.ids, in.lengths, {.rows_per_sentence = 3});
    auto shared = packed->start(in.ids, in.lengths, {.rows_per_sentence = 3, .pool = &pool});
    Rng rng(8);
    int64_t R = 5;
    auto go = [&](int steps) {
      for (int t = 0; t < steps; ++t) {
        Tensor words({R}, DType::i32);
        for (int64_t r = 0; r < R; ++r) words.i32()[r] = static_cast<int32_t>(rng.below(kWords));
        Tensor x = a->step(words), y = b->step(words), z = shared->step(words);
        REQUIRE(x.shape() == Shape{R, kWords});
        CHECK(all_close(x, y, 1e-4, 2e-5));
        CHECK(std::memcmp(x.raw(), z.raw(), static_cast<size_t>(x.bytes())) == 0);
        REQUIRE(a->weights().shape() == Shape{R, 7});
        CHECK(max_abs_difference(a->weights(), b->weights()) < 1e-5);
        CHECK(max_abs_difference(a->weights(), shared->weights()) == 0);
      }
    };
    auto choose = [&](const std::vector<int64_t>& rows) {
      for (auto* decoder : {a.get(), b.get(), shared.get()}) decoder->select(rows);
      R = static_cast<int64_t>(rows.size());
    };
    go(3);
    choose({0, 0, 0, 1, 1, 2, 3, 3, 4, 4, 4});
    go(4);
    choose({2, 0, 5, 5, 9});  // places change hands, some are free again
    go(10);                   // more words than there was room for at first
    choose({4, 4, 1, 0, 0, 3, 3});
    go(2);
    choose({6, 1, 2});
    go(18);  // and once more
    choose({2});
    go(3);
    CHECK(error_of([&] { a->select({1}); }) == "[select] rows are 0 .. 0: 1");
    choose({});  // nobody goes on
    go(2);
    auto none = packed->start(in.ids, in.lengths);
    none->select({});  // before its first word
    CHECK(none->step(Tensor({0}, DType::i32)).shape() == Shape{0, kWords});
  }
}

TEST_CASE("both ways of a Transformer translate alike, alone, in a batch and on several threads") {
  ThreadPool pool(2);
  for (const nn::TransformerConfig& c : configs())
    for (int64_t beam : {1, 4}) {
      CAPTURE(c.norm_first);
      CAPTURE(beam);
      nn::TransformerSeq2Seq model = model_of(c);
      auto packed = model.generator(), composed = model.composed_generator();
      Sources in = sources(9);
      nn::SearchOptions options{.beam_size = beam, .max_length = 20, .weights = true};
      auto x = nn::translate(*packed, in.ids, in.lengths, options),
           y = nn::translate(*composed, in.ids, in.lengths, options);
      options.pool = &pool;
      auto z = nn::translate(*packed, in.ids, in.lengths, options);
      for (size_t b = 0; b < 9; ++b) {
        REQUIRE(x[b].size() == y[b].size());
        for (size_t k = 0; k < x[b].size(); ++k) {
          CHECK(x[b][k].tokens == y[b][k].tokens);
          CHECK(x[b][k].log_probability == about(y[b][k].log_probability, 1e-4));
          CHECK(x[b][k].weights.size() == y[b][k].weights.size());
          CHECK(z[b][k].tokens == x[b][k].tokens);
        }
      }
    }
}

TEST_CASE("neither neighbours in the batch nor threads change a bit of a Transformer's translations") {
  ThreadPool pool(2), three(3);
  for (const nn::TransformerConfig& c : configs())
    for (bool int8 : {false, true}) {
      CAPTURE(c.norm_first);
      CAPTURE(int8);
      nn::TransformerSeq2Seq model = model_of(c);
      auto generator = model.generator({.int8 = int8});
      Sources in = sources(40);  // more than one group of words
      nn::SearchOptions options{.beam_size = 2, .max_length = 12};
      auto all = nn::translate(*generator, in.ids, in.lengths, options);
      for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool, &three})
        for (int64_t b = 0; b < 40; b += 13) {
          Sources one{Tensor({in.lengths.i32()[b], 1}, DType::i32), Tensor({1}, DType::i32)};
          one.lengths.i32()[0] = in.lengths.i32()[b];
          for (int64_t s = 0; s < one.ids.size(0); ++s) one.ids.i32()[s] = in.ids.i32()[s * 40 + b];
          auto decoder = generator->start(one.ids, one.lengths,
                                          {.rows_per_sentence = 2, .search_rows = 80, .pool = threads});
          auto alone = nn::search(*decoder, one.lengths, options)[0];
          REQUIRE(alone.size() == all[static_cast<size_t>(b)].size());
          for (size_t k = 0; k < alone.size(); ++k) {
            CHECK(alone[k].tokens == all[static_cast<size_t>(b)][k].tokens);
            CHECK(alone[k].log_probability == all[static_cast<size_t>(b)][k].log_probability);
          }
        }
    }
}

TEST_CASE("a greedy search of a Transformer without scores takes the same words") {
  ThreadPool pool(2);
  for (const nn::TransformerConfig& c : configs()) {
    nn::TransformerSeq2Seq model = model_of(c);
    Sources in = sources(9);
    auto with = nn::translate(model, in.ids, in.lengths, {.max_length = 15});
    for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
      auto without =
          nn::translate(model, in.ids, in.lengths, {.max_length = 15, .scores = false, .pool = threads});
      for (size_t b = 0; b < 9; ++b) CHECK(without[b][0].tokens == with[b][0].tokens);
    }
  }
}

TEST_CASE("a Transformer in double is decoded by its layers; weights need not be kept") {
  nn::TransformerSeq2Seq model = model_of(configs()[0]);
  Sources in = sources(4);
  auto single = nn::translate(model, in.ids, in.lengths, {.max_length = 12});
  auto decoder = model.generator()->start(in.ids, in.lengths, {.weights = false});
  decoder->step(Tensor::full({4}, nn::kBos, DType::i32));
  CHECK_FALSE(decoder->weights().defined());
  CHECK(error_of([&] { decoder->step(Tensor::full({2}, 4, DType::i32)); }) ==
        "[step] previous words must be i32 [4]: [2]");
  nn::to(model, DType::f64);
  auto twice = nn::translate(model, in.ids, in.lengths, {.max_length = 12});
  for (size_t b = 0; b < 4; ++b) CHECK(single[b][0].tokens == twice[b][0].tokens);
}

}  // namespace packed_transformer_test
