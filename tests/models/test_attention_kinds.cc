// What is particular to one attention.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <gradus/nn/attention/history.h>
#include <gradus/nn/attention/location.h>
#include <gradus/nn/attention/multihead.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/search.h>

#include "../about.h"
#include "../check.h"
#include "../read.h"
#include "attentions.h"
#include "small_models.h"

using namespace gradus;
using namespace attentions;
using testing::error_of;

namespace {

// As a user writes one: a score, and a name.
struct NegativeDistance : nn::ScoredAttention {
  nn::Linear key;
  NegativeDistance(const nn::AttentionSizes& s, Rng& rng)
      : ScoredAttention(s.options), key(s.annotation_size, s.query_size, rng, {.bias = false}) {}
  nn::AttentionMemory prepare(const Input& annotations, const Tensor& mask) const override {
    return {annotations, key(annotations), mask};
  }
  Var scores(const Input& query, const nn::AttentionMemory& memory,
             const nn::AttentionState&) const override {
    return transpose(sum(pow(memory.keys - query, 2), {.axes = {-1}}), 0, 1) * -1.0;
  }
  void params(nn::ParamVisitor& visit) override { visit("key", key); }
};

GRADUS_ATTENTION(NegativeDistance, "nearest", "-|W annotation - query|^2")

// S equal words, so that content alone cannot tell them apart.
Tensor equal_words(Rng& rng) {
  Tensor word = Tensor::uniform({D}, -1, 1, rng), h({S, B, D}, DType::f32);
  for (int64_t i = 0; i < S * B; ++i)
    for (int64_t d = 0; d < D; ++d) h.set(i * D + d, word.at(d));
  return h;
}

}  // namespace

TEST_CASE("of equal words, only attentions that know positions or their own past prefer one") {
  for (const std::string& name : soft_attentions()) {
    CAPTURE(name);
    Rng rng(21);
    auto attention = nn::make_attention(name, sizes(), rng);
    nn::AttentionMemory memory = attention->prepare(equal_words(rng), {});
    if (name == "coverage") {
      // The first steps treat them equally; a state in which one was looked at does not.
      nn::AttentionState state = attention->start(memory);
      CHECK(state.coverage.value().at(0) == 0);
      Tensor seen = Tensor::zeros({B, S});
      for (int64_t b = 0; b < B; ++b) seen.set(b * S + 1, 1);
      state.coverage = Var(seen);
      Tensor w = attention->step(queries(rng).row(0), memory, state).weights;
      CHECK(std::abs(w.at(0) - w.at(1)) > 1e-3);
      CHECK(w.at(0) == about(w.at(2)));
      continue;
    }
    Tensor w = roll(*attention, memory, queries(rng)).weights.row(0);
    bool differ = false;
    for (int64_t s = 1; s < S; ++s) differ = differ || std::abs(w.at(0) - w.at(s)) > 1e-6;
    CHECK(differ ==
          (name == "location" || name == "location-aware" || name == "local-m" || name == "local-p"));
  }
}

TEST_CASE("local and hard attention begin as the scores do that they borrow") {
  for (const char* name : {"local-m", "local-p", "hard"})
    for (const char* score : {"coverage", "location-aware"}) {
      CAPTURE(name);
      CAPTURE(score);
      Rng rng(23);
      nn::AttentionSizes s = sizes();
      s.options.score = score;
      auto attention = nn::make_attention(name, s, rng);
      nn::AttentionMemory memory = attention->prepare(equal_words(rng), {});
      nn::AttentionState state = attention->start(memory);
      CHECK(state.coverage.defined() == (score == std::string("coverage")));
      CHECK(state.weights.defined() == (score == std::string("location-aware")));
      Tensor all = roll(*attention, memory, queries(rng)).weights;
      for (int64_t i = 0; i < all.numel(); ++i) CHECK(std::isfinite(all.at(i)));
    }
}

TEST_CASE("coverage and previous weights add up over the steps") {
  Rng rng(22);
  nn::CoverageAttention coverage(sizes(), rng);
  nn::LocationAwareAttention aware(sizes(), rng);
  Tensor h = annotations(rng), q = queries(rng);
  for (nn::ScoredAttention* attention :
       {static_cast<nn::ScoredAttention*>(&coverage), static_cast<nn::ScoredAttention*>(&aware)}) {
    nn::AttentionMemory memory = attention->prepare(h, mask());
    nn::AttentionState state = attention->start(memory);
    Tensor sum = Tensor::zeros({B, S});
    for (int64_t t = 0; t < T; ++t) {
      nn::Attended a = attention->step(q.row(t), memory, state);
      state = a.state;
      sum = (Var(sum) + Var(a.weights)).value();
      CHECK(state.step == t + 1);
      if (state.weights.defined()) CHECK(max_abs_difference(state.weights.value(), a.weights) == 0);
    }
    if (attention == &coverage) CHECK(max_abs_difference(state.coverage.value(), sum) == 0);
    CHECK(state.coverage.defined() == (attention == &coverage));
    CHECK(state.weights.defined() == (attention == &aware));
  }
}

TEST_CASE("local-m looks at t - D .. t + D, and stays at the last word when the source is over") {
  nn::AttentionSizes narrow = sizes();
  narrow.options.window = 1;
  Rng rng(23);
  auto attention = nn::make_attention("local-m", narrow, rng);
  Tensor q = Tensor::uniform({7, B, Q}, -1, 1, rng);
  Tensor w = roll(*attention, attention->prepare(annotations(rng), mask()), q).weights;
  for (int64_t t = 0; t < 7; ++t)
    for (int64_t b = 0; b < B; ++b)
      for (int64_t s = 0; s < S; ++s) {
        int64_t centre = std::min<int64_t>(t, kLengths[b] - 1);
        bool inside = s < kLengths[b] && std::abs(s - centre) <= 1;
        const double weight = w.at((t * B + b) * S + s);
        CHECK((inside ? weight > 0 : weight == 0));
      }
}

TEST_CASE("local-p: the centre is inside the source, the weights those of general times a Gaussian") {
  nn::AttentionSizes wide = sizes();
  wide.options.window = 10;
  Rng rng(24);
  nn::LocalPredictiveAttention attention(wide, rng);
  Tensor h = annotations(rng), q = queries(rng).row(0);
  nn::AttentionMemory memory = attention.prepare(h, mask());
  Tensor p = attention.centre(q, memory).value(), w = attention.step(q, memory, {}).weights;
  Tensor general = attention.score->step(q, attention.score->prepare(h, mask()), {}).weights;
  for (int64_t b = 0; b < B; ++b) {
    CHECK(p.at(b) >= 0);
    CHECK(p.at(b) <= kLengths[b]);
    for (int64_t s = 0; s < S; ++s) {
      double gaussian =
          std::exp(-std::pow(static_cast<double>(s) - p.at(b), 2) / (2 * 5.0 * 5.0));  // sigma = D / 2
      CHECK(w.at(b * S + s) == about(general.at(b * S + s) * gaussian, 1e-4));
    }
  }
}

TEST_CASE(
    "location: positions from max_positions on are never looked at; what stands there does not matter") {
  nn::AttentionSizes few = sizes();
  few.options.max_positions = 3;
  Rng rng(25);
  nn::LocationAttention attention(few, rng);
  Tensor q = queries(rng).row(0);
  Tensor x = attention.step(q, attention.prepare(annotations(rng), {}), {}).weights;
  Tensor y = attention.step(q, attention.prepare(annotations(rng), {}), {}).weights;
  CHECK(max_abs_difference(x, y) == 0);
  for (int64_t b = 0; b < B; ++b) {
    CHECK(x.at(b * S + 3) == 0);
    CHECK(x.at(b * S) + x.at(b * S + 1) + x.at(b * S + 2) == about(1));
  }
}

TEST_CASE("uniform is the mean; oracle takes what it is given, and is uniform behind its end") {
  Rng rng(26);
  Tensor h = annotations(rng), q = Tensor::uniform({T + 1, B, Q}, -1, 1, rng), rows = given(rng);
  auto uniform = nn::make_attention("uniform", sizes(), rng),
       oracle = nn::make_attention("oracle", sizes(), rng);
  Tensor equal = roll(*uniform, uniform->prepare(h, mask()), q).weights.row(0);
  CHECK(max_abs_difference(equal, Tensor::from({B, S}, {.25, .25, .25, .25, 0, 0, 0, 0, .5, .5, 0, 0})) <
        1e-7);
  nn::AttentionMemory memory = oracle->prepare(h, mask());
  memory.given = rows;
  Tensor w = roll(*oracle, memory, q).weights;
  CHECK(max_abs_difference(w.rows(0, T), rows) == 0);
  CHECK(max_abs_difference(w.row(T), equal) < 1e-7);
}

TEST_CASE("multihead: every head has weights of its own, their mean is what is shown") {
  Rng rng(27);
  nn::AttentionSizes two = sizes();
  two.options.heads = 2;
  nn::MultiheadSourceAttention attention(two, rng);
  nn::Attended a = attention.step(queries(rng).row(0), attention.prepare(annotations(rng), mask()), {});
  REQUIRE(a.head_weights.shape() == Shape{B, 2, S});
  double apart = 0;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t s = 0; s < S; ++s) {
      double x = a.head_weights.at((b * 2) * S + s), y = a.head_weights.at((b * 2 + 1) * S + s);
      CHECK(a.weights.at(b * S + s) == about((x + y) / 2));
      apart = worse(apart, std::abs(x - y));
    }
  CHECK(apart > 0.01);
}

TEST_CASE("multihead with top_k: each head keeps its own largest weights, and takes its mean of them") {
  Rng rng(29), again(29);
  nn::AttentionSizes all = sizes(), some = sizes();
  all.options.heads = some.options.heads = 2;
  some.options.top_k = 2;
  nn::MultiheadSourceAttention plain(all, rng), cut(some, again);
  Tensor h = annotations(rng), q = queries(rng).row(0);
  nn::Attended x = plain.step(q, plain.prepare(h, mask()), {}), y = cut.step(q, cut.prepare(h, mask()), {});
  REQUIRE(y.head_weights.shape() == Shape{B, 2, S});
  for (int64_t i = 0; i < B * 2; ++i) {
    std::vector<double> order;
    for (int64_t s = 0; s < S; ++s) order.push_back(x.head_weights.at(i * S + s));
    std::sort(order.rbegin(), order.rend());
    for (int64_t s = 0; s < S; ++s) {
      double w = x.head_weights.at(i * S + s), kept = w >= order[1] && w > 0 ? w / (order[0] + order[1]) : 0;
      CHECK(y.head_weights.at(i * S + s) == about(kept, 1e-5));
    }
  }
  CHECK(max_abs_difference(x.context.value(), y.context.value()) > 1e-3);
  some.options.top_k = S;  // nothing is cut
  cut.options = some.options;
  CHECK(max_abs_difference(x.context.value(), cut.step(q, cut.prepare(h, mask()), {}).context.value()) < 1e-6);
  cut.options.top_k = 1;
  Training training(1);
  CHECK(max_abs_difference(x.context.value(), cut.step(q, cut.prepare(h, mask()), {}).context.value()) == 0);
}

// ---- by name ----

TEST_CASE("an attention of one's own becomes known by one line; names are taken once") {
  size_t before = nn::attention_kinds().size();
  CHECK(error_of([&] { nn::register_attention({"luong", {}, "", false, false, {}}); }) ==
        "[register_attention] the name \"luong\" is taken");
  CHECK(error_of([&] { nn::register_attention({"mine", {"dot"}, "", false, false, {}}); }) ==
        "[register_attention] the name \"dot\" is taken");
  CHECK(nn::attention_kinds().size() == before);
  CHECK(nn::attention_kinds().back().name == "nearest");
  CHECK(nn::attention_kind("mlp").name == "bahdanau");
  CHECK(nn::attention_kind("general").luong_order);
  CHECK_FALSE(nn::attention_kind("bahdanau").luong_order);
  Rng rng(28);
  auto nearest = nn::make_attention("nearest", sizes(), rng);
  Parameter& w = dynamic_cast<NegativeDistance&>(*nearest).key.weight;
  Tensor identity = Tensor::zeros({Q, D});
  for (int64_t i = 0; i < Q; ++i) identity.set(i * D + i, 1);
  w.assign(identity);
  Tensor h = annotations(rng);
  Tensor query({B, Q}, DType::f32);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t i = 0; i < Q; ++i)
      query.set(b * Q + i, h.at((1 * B + b) * D + i));  // word 1 of each sentence
  nn::Attended a = nearest->step(query, nearest->prepare(h, mask()), {});
  CHECK(argmax(a.weights).i32()[0] == 1);
  CHECK(argmax(a.weights).i32()[2] == 1);
}

namespace {

// Whatever it is told.
struct ScoresGiven : nn::ScoredAttention {
  Var given;
  Var scores(const Input&, const nn::AttentionMemory&, const nn::AttentionState&) const override {
    return given;
  }
};

}  // namespace

TEST_CASE("scores that are not [B, S] are called so, masked or not") {
  Rng rng(29);
  Tensor h = annotations(rng), query = Tensor::zeros({B, Q});
  ScoresGiven attention;
  for (const Tensor& real : {Tensor(), mask()}) {
    auto error = [&](const Var& scores) {
      attention.given = scores;
      return error_of([&] { attention.step(query, attention.prepare(h, real), {}); });
    };
    CHECK(error(Tensor::zeros({B, S})) == "(no error)");
    const std::string rule = fmt::format("[ScoredAttention] scores must be f32 [B, S] = [{}, {}]: ", B, S);
    CHECK(error(Tensor::zeros({S, B})) == rule + fmt::format("f32 [{}, {}]", S, B));
    CHECK(error(Tensor::zeros({B, S}, DType::f64)) == rule + fmt::format("f64 [{}, {}]", B, S));
    CHECK(error(Tensor::zeros({S})) == rule + fmt::format("f32 [{}]", S));
    CHECK(error(Var()) == rule + "undefined");
  }
}

// ---- the pages ----

namespace {

std::string read(const std::string& name) {
  return read_whole(std::string(GRADUS_DOCS_DIR) + "/attention/" + name);
}

}  // namespace

TEST_CASE(
    "every attention has a page of a screen at most, with its parameters by name, and a place in the index") {
  std::string index = read("README.md");
  for (const nn::AttentionKind& kind : nn::attention_kinds()) {
    if (kind.name == "nearest") continue;  // this test's own
    CAPTURE(kind.name);
    std::string page = read(kind.name + ".md");
    CHECK(page.starts_with("# " + kind.name + "\n"));
    CHECK(std::count(page.begin(), page.end(), '\n') <= 40);
    CHECK(page.find("--attention " + kind.name) != std::string::npos);
    CHECK(index.find("[" + kind.name + "](" + kind.name + ".md)") != std::string::npos);
    Rng rng(1);
    auto attention = kind.make(sizes(), rng);
    for (auto& p : nn::named_parameters(*attention)) {
      CAPTURE(p.name);
      CHECK(page.find("`" + p.name + "`") != std::string::npos);
    }
    for (const std::string& alias : kind.aliases) {
      CAPTURE(alias);
      if (alias != "scaled_dot") CHECK(page.find(alias) != std::string::npos);
    }
  }
}

TEST_CASE("what an attention throws in a step of packed decoding arrives at the caller") {
  Rng rng(30);
  const nn::Seq2Seq model(small_models::small("coverage"), rng);
  dynamic_cast<nn::RecurrentDecoder&>(*model.decoder).attention = std::make_unique<ScoresGiven>();
  const auto batch = small_models::batch();
  CHECK(error_of([&] {
          nn::translate(model, batch.source, batch.source_lengths, {});
        }).find("[ScoredAttention] scores must be") == 0);
}
