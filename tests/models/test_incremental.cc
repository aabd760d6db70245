#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include <gradus/memory.h>
#include <gradus/nn/search.h>
#include <gradus/nn/seq2seq.h>
#include <gradus/ops.h>
#include <gradus/parallel.h>

// Decoding with packed weights against the composed way, and the search over it.

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "small_models.h"

using namespace gradus;
using testing::error_of;

namespace {

constexpr int64_t kWords = 61;

struct Kind {
  std::string attention, decoder = "auto";
  bool feeding = true, bidirectional = true;
  int64_t layers = 1;
  std::string readout = "tanh";
  double temperature = 1;
  bool reverse = false;
  int64_t top_k = 0;
  bool own_steps = false;  // of the attention, by composed ops
  bool layer_norm = false;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"bahdanau"},
      {"bahdanau", "luong"},
      {"concat"},
      {"concat", "bahdanau"},
      {"concat-identity"},
      {"concat-identity", "bahdanau", true, true, 1, "tanh", 0.5},
      {"general"},
      {"general", "luong", false},
      {"general", "bahdanau"},
      {"dot"},
      {"dot", "luong", false},
      {"none"},
      {"bahdanau", "auto", true, false},
      {"none", "auto", true, false},
      {"general", "auto", true, false, 2, "tanh", 1, true},
      {"bahdanau", "auto", true, true, 2},
      {"general", "luong", false, false, 2},
      {"bahdanau", "auto", true, true, 1, "maxout"},
      {"general", "auto", true, true, 1, "maxout"},
      {"none", "auto", true, true, 1, "maxout"},
      {"bahdanau", "auto", true, true, 1, "tanh", 0.5},
      {"concat", "auto", true, true, 1, "tanh", 0.5},
      {"scaled_dot", "auto", true, true, 1, "tanh", 2},
      {"location", "auto", true, true, 1, "tanh", 1, false, 0, true},
      {"location", "luong", true, true, 1, "tanh", 1, false, 0, true},
      {"location-aware", "auto", true, true, 1, "tanh", 1, false, 0, true},
      {"coverage", "auto", true, true, 1, "tanh", 1, false, 0, true},
      {"coverage", "luong", true, true, 2, "tanh", 1, false, 0, true},
      {"local-m", "auto", true, true, 1, "tanh", 1, false, 0, true},
      {"local-p", "auto", true, true, 1, "tanh", 1, false, 0, true},
      {"multihead", "auto", true, true, 1, "tanh", 1, false, 0, true},
      {"multihead", "luong", false, true, 1, "maxout", 1, false, 0, true},
      {"general", "luong", true, true, 1, "tanh", 1, false, 2, true},
      {"bahdanau", "auto", true, true, 1, "tanh", 1, false, 0, false, true},
      {"bahdanau", "luong", true, true, 2, "tanh", 1, false, 0, false, true},
      {"general", "luong", false, false, 1, "maxout", 1, true, 0, false, true},
      {"none", "auto", true, true, 1, "tanh", 1, false, 0, false, true},
      {"local-p", "bahdanau", true, true, 1, "tanh", 1, false, 0, true, true},
  };
  return all;
}

nn::Seq2Seq model_of(const Kind& kind, uint64_t seed = 21) {
  nn::Seq2SeqConfig c;
  c.source_vocabulary = 40;
  c.target_vocabulary = kWords;
  c.embedding_dim = 10;
  c.hidden_size = 22;  // neither a whole vector
  c.attention_size = 19;
  c.attention = kind.attention;
  c.decoder = kind.decoder;
  c.input_feeding = kind.feeding;
  c.rnn.bidirectional = kind.bidirectional;
  c.rnn.reverse = kind.reverse;
  c.rnn.cell.layer_norm = kind.layer_norm;
  c.rnn.num_layers = kind.layers;
  c.readout = kind.readout;
  c.attention_options.temperature = kind.temperature;
  c.attention_options.heads = 2;
  c.attention_options.top_k = kind.top_k;
  Rng rng(seed);
  nn::Seq2Seq model(c, rng);
  model.output.weight.update([](const Tensor& w) {
    for (int64_t i = 0; i < w.numel(); ++i) w.set(i, 5 * w.at(i));
  });
  for (const NamedParameter& p : nn::ParameterList(model))
    if (p.name.find("_ln_") != std::string::npos)  // gains are 1 at the start, offsets 0
      p.parameter->update([](const Tensor& w) {
        for (int64_t i = 0; i < w.numel(); ++i) w.set(i, w.at(i) + 0.3 * std::sin(static_cast<double>(i)));
      });
  model.output.bias.update([](const Tensor& b) { b.set(nn::kEos, b.at(nn::kEos) + 1.0); });
  return model;
}

using small_models::Sources;

Sources sources(int64_t B, int64_t S = 9) { return small_models::sources_of(B, S, 36, 4); }

Sources chosen(const Sources& from, const std::vector<int64_t>& order) {
  int64_t S = from.ids.size(0), B = from.ids.size(1), n = static_cast<int64_t>(order.size());
  Sources out{Tensor({S, n}, DType::i32), Tensor({n}, DType::i32)};
  for (int64_t i = 0; i < n; ++i) {
    int64_t b = order[static_cast<size_t>(i)];
    out.lengths.i32()[i] = from.lengths.i32()[b];
    for (int64_t s = 0; s < S; ++s) out.ids.i32()[s * n + i] = from.ids.i32()[s * B + b];
  }
  return out;
}

using gradus::testing::same_bits;

void check_same(const std::vector<nn::Hypothesis>& a, const std::vector<nn::Hypothesis>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].tokens == b[i].tokens);
    CHECK(a[i].finished == b[i].finished);
    CHECK(a[i].log_probability == b[i].log_probability);  // to the last bit
    CHECK(a[i].score == b[i].score);
  }
}

}  // namespace

TEST_CASE("packed decoding equals the composed way, step by step") {
  for (const Kind& kind : kinds())
    for (int64_t planned : {1, 64}) {  // rows that the weights are laid out for
      CAPTURE(kind.attention);
      CAPTURE(planned);
      CAPTURE(kind.decoder);
      nn::Seq2Seq model = model_of(kind);
      auto packed = model.generator(),
           composed = nn::composed_generator(model.encoder, *model.decoder, model.output);
      Sources in = sources(5);
      auto a = packed->start(in.ids, in.lengths, {.rows_per_sentence = 3, .search_rows = planned});
      auto b = composed->start(in.ids, in.lengths, {.rows_per_sentence = 3});
      Rng rng(8);
      int64_t R = 5;
      auto go = [&](int steps) {
        for (int t = 0; t < steps; ++t) {
          Tensor words({R}, DType::i32);
          for (int64_t r = 0; r < R; ++r) words.i32()[r] = static_cast<int32_t>(rng.below(kWords));
          Tensor x = a->step(words), y = b->step(words);
          REQUIRE(x.shape() == Shape{R, kWords});
          CHECK(max_abs_difference(x, y) < 1e-5);
          REQUIRE(a->weights().defined() == b->weights().defined());
          if (a->weights().defined()) {
            REQUIRE(a->weights().shape() == b->weights().shape());
            CHECK(max_abs_difference(a->weights(), b->weights()) < 1e-5);
          }
        }
      };
      auto choose = [&](const std::vector<int64_t>& rows) {
        a->select(rows);
        b->select(rows);
        R = static_cast<int64_t>(rows.size());
      };
      go(3);
      choose({0, 0, 0, 1, 1, 2, 3, 3, 4, 4, 4});
      go(2);
      choose({2, 0, 5, 5, 9});
      go(2);
      choose({0, 1, 2});
      go(2);
      choose({2});
      go(3);
    }
}

TEST_CASE("both ways translate alike") {
  for (const Kind& kind : kinds())
    for (int64_t beam : {1, 4}) {
      CAPTURE(kind.attention);
      CAPTURE(kind.decoder);
      CAPTURE(beam);
      nn::Seq2Seq model = model_of(kind);
      auto packed = model.generator(),
           composed = nn::composed_generator(model.encoder, *model.decoder, model.output);
      Sources in = sources(13);
      nn::SearchOptions options{.beam_size = beam, .weights = true};
      auto a = nn::translate(*packed, in.ids, in.lengths, options);
      auto b = nn::translate(*composed, in.ids, in.lengths, options);
      REQUIRE(a.size() == 13);
      for (size_t i = 0; i < a.size(); ++i) {
        REQUIRE(a[i].size() == b[i].size());
        for (size_t k = 0; k < a[i].size(); ++k) {
          CHECK(a[i][k].tokens == b[i][k].tokens);
          CHECK(a[i][k].log_probability == about(b[i][k].log_probability, 1e-5));
          REQUIRE(a[i][k].weights.size() == b[i][k].weights.size());
          for (size_t t = 0; t < a[i][k].weights.size(); ++t)
            for (size_t s = 0; s < a[i][k].weights[t].size(); ++s)
              CHECK(std::abs(a[i][k].weights[t][s] - b[i][k].weights[t][s]) < 1e-5f);
        }
      }
    }
}

TEST_CASE("neighbours in the batch, their order and the threads change no bit") {
  ThreadPool pool(2), three(3);
  for (const Kind& kind : kinds())
    for (int64_t beam : {1, 3}) {  // few rows and, at 33, many
      CAPTURE(kind.attention);
      CAPTURE(kind.decoder);
      CAPTURE(beam);
      nn::Seq2Seq model = model_of(kind);
      auto generator = model.generator();
      Sources in = sources(11);
      nn::SearchOptions options{.beam_size = beam};
      auto all = nn::translate(*generator, in.ids, in.lengths, options);
      std::vector<int64_t> order = {7, 3, 10, 0, 9, 1, 8, 2, 6, 4, 5};
      Sources permuted = chosen(in, order);
      auto moved = nn::translate(*generator, permuted.ids, permuted.lengths, options);
      options.pool = &pool;
      auto two_threads = nn::translate(*generator, in.ids, in.lengths, options);
      options.pool = &three;
      auto three_threads = nn::translate(*generator, in.ids, in.lengths, options);
      for (size_t i = 0; i < order.size(); ++i) {
        check_same(moved[i], all[static_cast<size_t>(order[i])]);
        check_same(two_threads[i], all[i]);
        check_same(three_threads[i], all[i]);
        Sources one = chosen(in, {static_cast<int64_t>(i)});
        for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {  // which share each product
          auto decoder =
              generator->start(one.ids, one.lengths,
                               {.rows_per_sentence = beam, .search_rows = 11 * beam, .pool = threads});
          check_same(nn::search(*decoder, one.lengths, options)[0], all[i]);
        }
      }
    }
}

TEST_CASE("the logits of a step are the same however many threads share it") {
  ThreadPool pool(3);
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.attention);
    nn::Seq2Seq model = model_of(kind);
    auto generator = model.generator();
    Sources in = sources(4);
    auto alone = generator->start(in.ids, in.lengths),
         shared = generator->start(in.ids, in.lengths, {.pool = &pool});
    for (int32_t word : {2, 7, 30}) {
      Tensor words = Tensor::full({4}, word, DType::i32);
      Tensor a = alone->step(words);
      CHECK(same_bits(a, shared->step(words)));
    }
  }
}

TEST_CASE("a greedy search without scores takes the same words") {
  for (const Kind& kind : kinds()) {
    nn::Seq2Seq model = model_of(kind);
    Sources in = sources(9);
    auto with = nn::translate(model, in.ids, in.lengths),
         without = nn::translate(model, in.ids, in.lengths, {.scores = false});
    for (size_t b = 0; b < with.size(); ++b) {
      CHECK(without[b][0].tokens == with[b][0].tokens);
      CHECK(without[b][0].log_probability == 0);
      CHECK(with[b][0].log_probability < 0);
    }
  }
}

TEST_CASE("keys and queries too large for their exponentials are scored all the same, sentence by sentence") {
  for (double factor :
       {1.0, 60.0, 800.0}) {  // none, one sentence, all; without the other way there would be NaN
    nn::Seq2Seq model = model_of({"bahdanau"});
    for (auto& p : nn::named_parameters(model))
      if (p.name == "decoder.attention.key.weight" || p.name == "decoder.attention.query.weight")
        p.parameter->assign((p.parameter->var() * factor).value());
    Sources in = sources(7);
    auto packed = model.generator(),
         composed = nn::composed_generator(model.encoder, *model.decoder, model.output);
    auto together = packed->start(in.ids, in.lengths), other = composed->start(in.ids, in.lengths);
    Tensor words = Tensor::full({7}, 7, DType::i32);
    for (int t = 0; t < 4; ++t) {
      Tensor x = together->step(words);
      CHECK(max_abs_difference(x, other->step(words)) < 1e-5);
      CHECK(max_abs_difference(together->weights(), other->weights()) < 1e-5);
      words.fill(9 + t);
    }
    auto all = nn::translate(*packed, in.ids, in.lengths);
    for (int64_t b = 0; b < 7; ++b) {
      Sources one = chosen(in, {b});
      check_same(nn::translate(*packed, one.ids, one.lengths)[0], all[static_cast<size_t>(b)]);
    }
  }
}

TEST_CASE("an end that nothing is, and other ids for begin and padding") {
  nn::Seq2Seq model = model_of({"bahdanau"});
  Sources in = sources(3);
  auto found = nn::translate(model, in.ids, in.lengths, {.max_length = 12, .pad = 0, .bos = 5, .eos = -1});
  auto decoder = model.generator()->start(in.ids, in.lengths);
  Tensor words = Tensor::full({3}, 5, DType::i32);
  for (size_t t = 0; t < 12; ++t) {
    Tensor logits = decoder->step(words);
    for (int64_t b = 0; b < 3; ++b) {
      const float* x = logits.f32() + b * kWords;
      int32_t best = 1;
      for (int32_t v = 1; v < kWords; ++v)
        if (v != 5 && x[v] > x[best]) best = v;
      REQUIRE(found[b][0].tokens.size() == 12);
      CHECK(found[b][0].tokens[t] == best);
      words.i32()[b] = best;
    }
  }
}

TEST_CASE("a step of packed decoding allocates nothing") {
  ThreadPool pool(2);
  for (const Kind& kind : kinds())
    for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
      CAPTURE(kind.attention);
      if (kind.own_steps) continue;  // these do
      nn::Seq2Seq model = model_of(kind);
      auto generator = model.generator();
      Sources in = sources(6);
      auto decoder = generator->start(in.ids, in.lengths, {.rows_per_sentence = 2, .pool = threads});
      Tensor words = Tensor::full({12}, 7, DType::i32);
      const std::vector<int64_t> doubled = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}, fewer = {3, 1, 0, 5};
      Tensor best({12}, DType::i32);
      const std::vector<int32_t> never = {nn::kPad, nn::kBos};
      decoder->step(words.rows(0, 6));
      decoder->step_best(words.rows(0, 6), never, best);
      decoder->select(doubled);
      MemoryStats before = memory_stats();
      release_cached_memory();  // whatever is asked for now would have to come from the system
      for (int t = 0; t < 5; ++t) decoder->step(words);
      for (int t = 0; t < 5; ++t) decoder->step_best(words, never, best);
      decoder->select(fewer);
      for (int t = 0; t < 5; ++t) decoder->step(words.rows(0, 4));
      MemoryStats after = memory_stats();
      CHECK(after.in_use == before.in_use);
      CHECK(after.system_allocations == before.system_allocations);
    }
}

TEST_CASE("a search asks the system for memory once, however many batches follow") {
  nn::Seq2Seq model = model_of({"bahdanau"});
  auto generator = model.generator();
  Sources in = sources(8);
  for (int64_t beam : {1, 4}) {
    nn::SearchOptions options{.beam_size = beam};
    nn::translate(*generator, in.ids, in.lengths, options);
    int64_t before = memory_stats().system_allocations;
    for (int i = 0; i < 3; ++i) nn::translate(*generator, in.ids, in.lengths, options);
    CHECK(memory_stats().system_allocations == before);
  }
}

TEST_CASE("models that have no packed form are decoded all the same") {
  ThreadPool pool(2);
  auto check = [&](const std::function<void(nn::Seq2SeqConfig&)>& change) {
    nn::Seq2SeqConfig c{
        .source_vocabulary = 40, .target_vocabulary = kWords, .embedding_dim = 8, .hidden_size = 12};
    change(c);
    Rng rng(31);
    nn::Seq2Seq model(c, rng);
    Sources in = sources(5);
    for (int64_t beam : {1, 3}) {
      auto all = nn::translate(model, in.ids, in.lengths, {.beam_size = beam});
      auto shared = nn::translate(model, in.ids, in.lengths, {.beam_size = beam, .pool = &pool});
      for (int64_t b = 0; b < 5; ++b) {
        Sources one = chosen(in, {b});
        auto alone = nn::translate(model, one.ids, one.lengths, {.beam_size = beam});
        for (size_t k = 0; k < all[static_cast<size_t>(b)].size(); ++k) {
          CHECK(alone[0][k].tokens == all[static_cast<size_t>(b)][k].tokens);
          CHECK(shared[static_cast<size_t>(b)][k].tokens == all[static_cast<size_t>(b)][k].tokens);
        }
      }
    }
  };
  for (const char* cell : {"lstm", "gru-reset-before", "gru-bahdanau", "rnn"})
    check([&](nn::Seq2SeqConfig& c) { c.rnn.cell = nn::cell_type(cell); });
  check([](nn::Seq2SeqConfig& c) { c.rnn.cell.layer_norm = true; });
  check([](nn::Seq2SeqConfig& c) { c.rnn.cell.bias = false; });
  check([](nn::Seq2SeqConfig& c) { c.attention_options.top_k = 2; });
  check([](nn::Seq2SeqConfig& c) { c.attention_options.last_only = true; });
  check([](nn::Seq2SeqConfig& c) { c.decoder_layers = 3; });
  for (const char* attention : {"local-p", "multihead", "location"})
    check([&](nn::Seq2SeqConfig& c) { c.attention = attention; });
}

TEST_CASE("a model in double is decoded the composed way") {
  nn::Seq2Seq model = model_of({"general"});
  Sources in = sources(4);
  auto single = nn::translate(model, in.ids, in.lengths);
  nn::to(model, DType::f64);
  auto twice = nn::translate(model, in.ids, in.lengths);
  for (size_t b = 0; b < 4; ++b) CHECK(single[b][0].tokens == twice[b][0].tokens);
}

TEST_CASE("what decoding refuses") {
  nn::Seq2Seq model = model_of({"bahdanau"});
  Sources in = sources(3);
  auto decoder = model.generator()->start(in.ids, in.lengths);
  CHECK(error_of([&] { decoder->step(Tensor::full({2}, 4, DType::i32)); }) ==
        "[step] previous words must be i32 [3]: [2]");
  CHECK(error_of([&] { decoder->step(Tensor::full({3}, 61, DType::i32)); }) ==
        "[embedding] ids are 0 .. 60: 61");
  CHECK(error_of([&] { decoder->select({0, 3}); }) ==
        "[select] rows are 0 .. 2: 3");
  CHECK(error_of([&] { decoder->select({0, 0, 1, 2}); }) ==
        "[select] at most 3 rows were planned for: 4");
  CHECK_THROWS_WITH(
      nn::translate(model, in.ids, Tensor::full({2}, 1, DType::i32)),
      doctest::Contains(
          "[translate] sources must be i32 [S, B] and lengths i32 [B]: [9, 3] and [2] (test_incremental.cc:"));
}
