#include <algorithm>
#include <cmath>
#include <numeric>

#include <gradus/nn/search.h>
#include <gradus/nn/seq2seq.h>
#include <gradus/ops.h>
#include <gradus/parallel.h>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"

using namespace gradus;
using testing::error_of;

namespace {

nn::Seq2Seq model_for(const std::string& attention, uint64_t seed, int64_t vocabulary = 7,
                      const std::string& cell = "gru") {
  nn::Seq2SeqConfig c;
  c.source_vocabulary = 9;
  c.target_vocabulary = vocabulary;
  c.embedding_dim = 4;
  c.hidden_size = 6;
  c.attention = attention;
  c.rnn.cell = nn::cell_type(cell);
  Rng rng(seed);
  nn::Seq2Seq model(c, rng);
  // Spread the logits, so that the most probable words are clear.
  model.output.weight.update([](const Tensor& w) {
    for (int64_t i = 0; i < w.numel(); ++i) w.set(i, 6 * w.at(i));
  });
  return model;
}

Tensor source() { return Tensor::from_ids({4, 3}, {5, 4, 8, 6, 3, 4, 5, 1, 3, 3, 1, 1}); }
Tensor lengths() { return Tensor::from_ids({3}, {4, 2, 3}); }

// log p of a whole target (with </s>) under teacher forcing, for sentence b.
double teacher_forced(const nn::Seq2Seq& model, int64_t b, std::vector<int32_t> tokens, bool finished) {
  Tensor one({source().size(0), 1}, DType::i32);
  for (int64_t s = 0; s < one.size(0); ++s) one.i32()[s] = source().i32()[s * 3 + b];
  std::vector<int32_t> in = {nn::kBos}, out = tokens;
  in.insert(in.end(), tokens.begin(), tokens.end());
  if (finished) out.push_back(nn::kEos);
  else in.pop_back();
  int64_t T = static_cast<int64_t>(out.size());
  nn::Seq2SeqBatch batch{one, Tensor::from_ids({1}, {lengths().i32()[b]}), Tensor::from_ids({T, 1}, in),
                         Tensor::from_ids({T, 1}, out), T};
  NoGrad guard;
  return -model.loss(batch).nll;
}

}  // namespace

TEST_CASE("a hypothesis' log probability is the teacher-forced one of its tokens") {
  for (const char* attention : {"bahdanau", "general", "dot", "concat", "none"})
    for (int64_t beam : {1, 3}) {
      CAPTURE(attention);
      nn::Seq2Seq model = model_for(attention, 3);
      auto found = nn::translate(model, source(), lengths(), {.beam_size = beam, .max_length = 6});
      REQUIRE(found.size() == 3);
      for (int64_t b = 0; b < 3; ++b) {
        REQUIRE(found[b].size() == static_cast<size_t>(beam));
        for (const nn::Hypothesis& h : found[b])
          CHECK(h.log_probability ==
                about(teacher_forced(model, b, h.tokens, h.finished), 1e-4));
      }
    }
}

TEST_CASE("the same with an LSTM, whose cells have to follow their hypotheses") {
  for (const char* attention : {"bahdanau", "general", "none"}) {
    CAPTURE(attention);
    nn::Seq2Seq model = model_for(attention, 3, 7, "lstm");
    auto found = nn::translate(model, source(), lengths(), {.beam_size = 3, .max_length = 6});
    for (int64_t b = 0; b < 3; ++b)
      for (const nn::Hypothesis& h : found[b])
        CHECK(h.log_probability ==
              about(teacher_forced(model, b, h.tokens, h.finished), 1e-4));
  }
}

TEST_CASE("greedy search takes the most probable word at each step") {
  nn::Seq2Seq model = model_for("bahdanau", 5);
  auto found = nn::translate(model, source(), lengths(), {.max_length = 8});
  for (int64_t b = 0; b < 3; ++b) {
    std::vector<int32_t> prefix;
    for (size_t t = 0; t <= found[b][0].tokens.size() && t < 8; ++t) {
      int32_t best = -1;
      double top = -INFINITY;
      for (int32_t v : {0, 3, 4, 5, 6}) {  // not <pad>, not <s>
        std::vector<int32_t> longer = prefix;
        longer.push_back(v);
        double p = teacher_forced(model, b, longer, false);
        if (p > top) {
          top = p;
          best = v;
        }
      }
      CHECK(best == (t < found[b][0].tokens.size() ? found[b][0].tokens[t] : nn::kEos));
      prefix.push_back(best);
    }
  }
}

TEST_CASE("a beam as wide as all sequences finds the best one") {
  // Words that may be said: <unk>, 4, 5; two of them at most: 1 + 3 + 9 targets.
  nn::Seq2Seq model = model_for("bahdanau", 11, 6);
  auto found =
      nn::translate(model, source(), lengths(), {.beam_size = 13, .length_penalty = 0, .max_length = 3});
  for (int64_t b = 0; b < 3; ++b) {
    double best = teacher_forced(model, b, {}, true);
    for (int32_t v : {0, 4, 5}) {
      best = std::max(best, teacher_forced(model, b, {v}, true));
      for (int32_t w : {0, 4, 5}) best = std::max(best, teacher_forced(model, b, {v, w}, true));
    }
    double finished = -INFINITY;
    for (const nn::Hypothesis& h : found[b])
      if (h.finished && h.tokens.size() <= 2) finished = std::max(finished, h.log_probability);
    CHECK(finished == about(best, 1e-4));
  }
}

TEST_CASE("sentences of a batch do not touch each other") {
  nn::Seq2Seq model = model_for("bahdanau", 7);
  for (int64_t beam : {1, 4}) {
    auto together = nn::translate(model, source(), lengths(), {.beam_size = beam});
    for (int64_t b = 0; b < 3; ++b) {
      int32_t n = lengths().i32()[b];
      Tensor one({n, 1}, DType::i32);
      for (int32_t s = 0; s < n; ++s) one.i32()[s] = source().i32()[s * 3 + b];
      auto alone = nn::translate(model, one, Tensor::from_ids({1}, {n}), {.beam_size = beam});
      CHECK(alone[0][0].tokens == together[b][0].tokens);
      CHECK(alone[0][0].score == about(together[b][0].score, 1e-4));
    }
  }
}

TEST_CASE("weights: one row a token, one for </s>, each sums to 1") {
  nn::Seq2Seq model = model_for("general", 9);
  for (int64_t beam : {1, 3}) {
    auto found = nn::translate(model, source(), lengths(), {.beam_size = beam, .weights = true});
    for (const auto& list : found)
      for (const nn::Hypothesis& h : list) {
        CHECK(h.weights.size() == h.tokens.size() + (h.finished ? 1 : 0));
        for (const auto& row : h.weights) {
          CHECK(sum_of(row) == about(1, 1e-4));
        }
      }
  }
}

TEST_CASE("hypotheses are sorted by score, and length normalisation is Wu's") {
  nn::Seq2Seq model = model_for("bahdanau", 13);
  auto found = nn::translate(model, source(), lengths(), {.beam_size = 4, .length_penalty = 0.6});
  for (const auto& list : found)
    for (size_t i = 0; i < list.size(); ++i) {
      double n = static_cast<double>(list[i].tokens.size()) + (list[i].finished ? 1 : 0);
      CHECK(list[i].score == about(list[i].log_probability / std::pow((5 + n) / 6, 0.6)));
      if (i > 0) CHECK(list[i].score <= list[i - 1].score);
    }
}

TEST_CASE("rows of an incremental decoder: kept, dropped, doubled, and given back in another order") {
  for (const char* attention : {"bahdanau", "general", "concat", "none"}) {
    CAPTURE(attention);
    nn::Seq2Seq model = model_for(attention, 17);
    auto generator = model.generator();
    auto start = [&] { return generator->start(source(), lengths(), {.rows_per_sentence = 2}); };
    auto logits_of = [](nn::IncrementalDecoder& d, const std::vector<int32_t>& previous) {
      return d.step(Tensor::from_ids({static_cast<int64_t>(previous.size())}, previous)).clone();
    };
    auto plain = start(), changed = start();
    logits_of(*plain, {2, 2, 2});
    logits_of(*changed, {2, 2, 2});
    changed->select({2, 0, 2, 0});  // sentence 1 is over; two hypotheses of the others
    Tensor a = logits_of(*plain, {4, 5, 6}), b = logits_of(*changed, {6, 4, 3, 5});
    CHECK(max_abs_difference(a.row(2), b.row(0)) < 1e-5);
    CHECK(max_abs_difference(a.row(0), b.row(1)) < 1e-5);
    CHECK(max_abs_difference(a.row(2), b.row(2)) > 1e-3);  // another word before
    changed->select({1});
    Tensor c = logits_of(*plain, {3, 3, 5}), d = logits_of(*changed, {3});
    CHECK(d.size(0) == 1);
    CHECK(max_abs_difference(c.row(0), d.row(0)) < 1e-5);
    if (std::string(attention) != "none") {
      CHECK(plain->weights().shape() == Shape{3, 4});
      CHECK(max_abs_difference(plain->weights().row(0), changed->weights().row(0)) < 1e-5);
    } else {
      CHECK(!changed->weights().defined());
    }
    CHECK(error_of([&] { changed->select({1}); }) == "[select] rows are 0 .. 0: 1");
    CHECK(error_of([&] {
            changed->select({0, 0, 0, 0, 0, 0, 0});
          }) == "[select] at most 6 rows were planned for: 7");
  }
}

TEST_CASE("the best word of a step is the best of its logits, however it is found") {
  nn::Seq2SeqConfig c{
      .source_vocabulary = 9, .target_vocabulary = 1100, .embedding_dim = 10, .hidden_size = 22};
  Rng rng(51);
  nn::Seq2Seq model(c, rng);
  // Words 500 and 1003, which stand in different blocks of the logits, are always equal, and above the others.
  model.output.weight.update([](const Tensor& w) {
    for (int64_t i = 0; i < w.size(1); ++i) w.set(1003 * w.size(1) + i, w.at(500 * w.size(1) + i));
  });
  model.output.bias.update([](const Tensor& b) {
    for (int64_t v : {500, 1003}) b.set(v, 9.0);
  });
  ThreadPool pool(3);
  auto packed = model.generator(),
       composed = nn::composed_generator(model.encoder, *model.decoder, model.output);
  auto reference = packed->start(source(), lengths());
  std::vector<std::unique_ptr<nn::IncrementalDecoder>> ways;
  ways.push_back(packed->start(source(), lengths()));
  ways.push_back(packed->start(source(), lengths(), {.pool = &pool}));
  ways.push_back(composed->start(source(), lengths()));
  Tensor words = Tensor::full({3}, 2, DType::i32);
  std::vector<int32_t> never;
  for (int t = 0; t < 8; ++t) {
    CAPTURE(t);
    Tensor logits = reference->step(words), want({3}, DType::i32);
    for (int64_t r = 0; r < 3; ++r) {
      const float* x = logits.f32() + r * 1100;
      int32_t best = -1;
      for (int32_t v = 0; v < 1100; ++v)
        if (std::find(never.begin(), never.end(), v) == never.end() && (best < 0 || x[v] > x[best])) best = v;
      want.i32()[r] = best;
    }
    if (t < 2) CHECK(want.i32()[2] == (t == 0 ? 500 : 1003));
    for (auto& way : ways) {
      Tensor found = words.clone();
      way->step_best(found, never, found);
      for (int64_t r = 0; r < 3; ++r) CHECK(found.i32()[r] == want.i32()[r]);
    }
    words = want;
    never.push_back(want.i32()[0]);
  }
  never.resize(1100);
  std::iota(never.begin(), never.end(), 0);
  for (auto& way : ways) {
    Tensor found({3}, DType::i32);
    way->step_best(words, never, found);
    for (int64_t r = 0; r < 3; ++r) CHECK(found.i32()[r] == -1);
  }
}

namespace {

// A decoder of one's own, which no packed one stands for.
struct OwnDecoder : nn::Decoder {
  std::unique_ptr<nn::Decoder> inner;

  nn::DecoderState start(const nn::Encoded& source) const override {
    return inner->start(source);
  }
  nn::DecoderStep step(const Tensor& previous, nn::DecoderState& state) const override {
    return inner->step(previous, state);
  }
  void params(nn::ParamVisitor& visit) override { inner->params(visit); }
};

}  // namespace

TEST_CASE("a decoder of one's own translates as the one within it") {
  nn::Seq2Seq model = model_for("bahdanau", 5);
  auto expected = nn::translate(model, source(), lengths(), {.beam_size = 2});
  auto own = std::make_unique<OwnDecoder>();
  own->inner = std::move(model.decoder);
  model.decoder = std::move(own);
  auto found = nn::translate(model, source(), lengths(), {.beam_size = 2});
  REQUIRE(found.size() == expected.size());
  for (size_t b = 0; b < found.size(); ++b) {
    REQUIRE(found[b].size() == expected[b].size());
    for (size_t k = 0; k < found[b].size(); ++k) CHECK(found[b][k].tokens == expected[b][k].tokens);
  }
}

TEST_CASE("search refuses an empty beam") {
  nn::Seq2Seq model = model_for("none", 1);
  CHECK_THROWS_WITH(nn::translate(model, source(), lengths(), {.beam_size = 0}),
                    doctest::Contains("[translate] beam_size must be at least 1: 0 (test_search.cc:"));
}
