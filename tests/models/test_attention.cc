#include <algorithm>
#include <cmath>
#include <set>

#include <gradus/nn/attention/additive.h>
#include <gradus/nn/attention/location.h>
#include <gradus/nn/attention/multihead.h>
#include <gradus/ops.h>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "attentions.h"

using namespace gradus;
using namespace attentions;
using testing::op_error_of;

namespace {

// For gradcheck: annotations and three queries in, all contexts out, and the queries, for some attentions ask
// nothing.
struct Attender {
  std::unique_ptr<nn::Attention> attention;
  Tensor mask, given;
  Var operator()(const Var& annotations, const Var& queries) const {
    nn::AttentionMemory memory = attention->prepare(annotations, mask);
    memory.given = given;
    return concat({roll(*attention, memory, queries).context, queries}, -1);
  }
  void params(nn::ParamVisitor& visit) { visit("attention", *attention); }
};

}  // namespace

TEST_CASE("every attention passes the gradient check over three steps, masked and with an empty row") {
  for (const std::string& name : soft_attentions()) {
    CAPTURE(name);
    Rng rng(3);
    Attender layer{nn::make_attention(name, sizes(), rng), mask(), {}};
    auto report = nn::gradcheck(layer, {annotations(rng), queries(rng)}, {.max_elements = 200});
    CHECK_MESSAGE(report.ok, report.message);
  }
}

TEST_CASE("local attentions pass it with every score, and with temperature and top_k") {
  for (const char* name : {"local-m", "local-p"})
    for (const char* score : {"dot", "scaled-dot", "general", "concat", "bahdanau"}) {
      CAPTURE(name);
      CAPTURE(score);
      Rng rng(13);
      nn::AttentionSizes s = sizes();
      s.options = {.temperature = 0.7, .top_k = 2, .score = score, .window = 1};
      Attender layer{nn::make_attention(name, s, rng), mask(), {}};
      auto report = nn::gradcheck(layer, {annotations(rng), queries(rng)}, {.max_elements = 100});
      CHECK_MESSAGE(report.ok, report.message);
    }
}

TEST_CASE("every attention passes it with temperature and top_k") {
  for (const std::string& name : soft_attentions()) {
    CAPTURE(name);
    Rng rng(23);
    nn::AttentionSizes s = sizes();
    s.options = {.temperature = 0.6, .top_k = 2, .heads = 2};
    Attender layer{nn::make_attention(name, s, rng), mask(), {}};
    auto report = nn::gradcheck(layer, {annotations(rng), queries(rng)}, {.max_elements = 100});
    CHECK_MESSAGE(report.ok, report.message);
  }
}

TEST_CASE("weights sum to 1 over real positions and are 0 elsewhere, at each step") {
  for (const std::string& name : nn::attention_names()) {
    CAPTURE(name);
    Rng rng(4);
    auto attention = nn::make_attention(name, sizes(), rng);
    auto memory = attention->prepare(annotations(rng), mask());
    nn::AttendedSequence all = roll(*attention, memory, queries(rng));
    for (int64_t t = 0; t < T; ++t)
      for (int64_t b = 0; b < B; ++b) {
        double sum = 0;
        for (int64_t s = 0; s < S; ++s) {
          double w = all.weights.at((t * B + b) * S + s);
          CHECK(w >= 0);
          if (s >= kLengths[b]) CHECK(w == 0);
          sum += w;
        }
        if (name == "local-p" && kLengths[b]) {  // the Gaussian takes some away
          CHECK(sum > 0.01);
          CHECK(sum < 1);
        } else {
          CHECK(sum == about(kLengths[b] ? 1 : 0, 1e-5));
        }
        if (kLengths[b] == 0)
          for (int64_t d = 0; d < D; ++d) CHECK(all.context.value().at((t * B + b) * D + d) == 0);
      }
  }
}

TEST_CASE("contexts are the means that the weights say") {
  for (const std::string& name : nn::attention_names()) {
    if (name == "multihead") continue;  // of projected annotations, by head
    CAPTURE(name);
    Rng rng(14);
    auto attention = nn::make_attention(name, sizes(), rng);
    Tensor h = annotations(rng);
    nn::AttendedSequence all = roll(*attention, attention->prepare(h, mask()), queries(rng));
    for (int64_t t = 0; t < T; ++t)
      for (int64_t b = 0; b < B; ++b)
        for (int64_t d = 0; d < D; ++d) {
          double mean = 0;
          for (int64_t s = 0; s < S; ++s)
            mean += all.weights.at((t * B + b) * S + s) * h.at((s * B + b) * D + d);
          CHECK(all.context.value().at((t * B + b) * D + d) == about(mean, 1e-5, 1e-7));
        }
  }
}

TEST_CASE("masked annotations may be NaN, and padding changes nothing") {
  for (const std::string& name : nn::attention_names()) {
    CAPTURE(name);
    Rng rng(5);
    auto attention = nn::make_attention(name, sizes(), rng);
    Tensor h = annotations(rng), q = queries(rng), longer({S + 3, B, D}, DType::f32),
           longer_mask({B, S + 3}, DType::u8);
    longer.fill(NAN);
    longer_mask.fill(0);
    for (int64_t b = 0; b < B; ++b)
      for (int64_t s = 0; s < kLengths[b]; ++s) {
        longer_mask.set(b * (S + 3) + s, 1);
        for (int64_t d = 0; d < D; ++d) longer.set((s * B + b) * D + d, h.at((s * B + b) * D + d));
      }
    nn::AttendedSequence x = roll(*attention, attention->prepare(h, mask()), q);
    nn::AttendedSequence y = roll(*attention, attention->prepare(longer, longer_mask), q);
    CHECK(max_abs_difference(x.context.value(), y.context.value()) < 1e-6);
    for (int64_t t = 0; t < T; ++t)
      for (int64_t b = 0; b < B; ++b)
        for (int64_t s = 0; s < S; ++s)
          CHECK(y.weights.at((t * B + b) * (S + 3) + s) ==
                about(x.weights.at((t * B + b) * S + s)));
  }
}

TEST_CASE("a whole sequence of queries is its steps, one after the other, in values and gradients") {
  for (const std::string& name : soft_attentions()) {
    CAPTURE(name);
    Rng rng(15);
    auto attention = nn::make_attention(name, sizes(), rng);
    for (auto& p : nn::named_parameters(*attention)) p.parameter->assign(p.parameter->value().to(DType::f64));
    Var h = variable(annotations(rng).to(DType::f64)), q = variable(queries(rng).to(DType::f64));
    nn::AttendedSequence steps = roll(*attention, attention->prepare(h, mask()), q);
    nn::AttendedSequence whole = attention->sequence(q, attention->prepare(h, mask()));
    CHECK(max_abs_difference(steps.context.value(), whole.context.value()) < 1e-12);
    CHECK(max_abs_difference(steps.weights, whole.weights) < 1e-12);
    Tensor seed = Tensor::uniform(steps.context.shape(), -1, 1, rng, DType::f64);
    CHECK(max_abs_difference(backward(steps.context, {.seed = seed})[h],
                             backward(whole.context, {.seed = seed})[h]) < 1e-12);
  }
}

TEST_CASE("rows of memory and state: hypotheses may change places, double and go at any step") {
  for (const std::string& name : nn::attention_names()) {
    CAPTURE(name);
    Rng rng(16);
    auto attention = nn::make_attention(name, sizes(), rng);
    nn::AttentionMemory memory = attention->prepare(annotations(rng), mask());
    memory.given = name == "oracle" ? given(rng) : Tensor();
    Tensor q = queries(rng), rows = Tensor::from_ids({4}, {2, 0, 2, 1});
    nn::AttentionState state = attention->step(q.row(0), memory, attention->start(memory)).state;
    CHECK(state.step == 1);
    nn::Attended plain = attention->step(q.row(1), memory, state);
    nn::Attended moved = attention->step(gather_rows(q.row(1), rows), memory.rows(rows), state.rows(rows));
    CHECK(max_abs_difference(moved.context.value(), gather_rows(plain.context, rows).value()) < 1e-6);
    CHECK(max_abs_difference(moved.weights, gather_rows(plain.weights, rows).value()) < 1e-6);
  }
}

TEST_CASE("temperature divides the scores") {
  for (const std::string& name : soft_attentions()) {
    if (name == "multihead" || name == "local-p") continue;  // a mean over heads; a Gaussian on top
    CAPTURE(name);
    Rng rng(17), again(17);
    nn::AttentionSizes warm = sizes();
    warm.options.temperature = 2;
    auto plain = nn::make_attention(name, sizes(), rng), flat = nn::make_attention(name, warm, again);
    Tensor h = annotations(rng), q = queries(rng);
    auto first = [&](const nn::Attention& a) {
      auto memory = a.prepare(h, mask());
      return a.step(q.row(0), memory, a.start(memory)).weights;
    };
    Tensor x = first(*plain), y = first(*flat);
    for (int64_t s = 1; s < S; ++s)
      if (x.at(s) > 0)
        CHECK(std::log(y.at(s) / y.at(0)) == about(std::log(x.at(s) / x.at(0)) / 2, 1e-3));
  }
}

TEST_CASE("last_only looks at the last real position outside of training, and nowhere else") {
  for (const std::string& name : soft_attentions()) {
    if (name.starts_with("local")) continue;  // of what their window leaves
    CAPTURE(name);
    Rng rng(18), again(18);
    nn::AttentionSizes cut = sizes();
    cut.options.last_only = true;
    auto plain = nn::make_attention(name, sizes(), rng), last = nn::make_attention(name, cut, again);
    Tensor h = annotations(rng), q = queries(rng), real = mask();
    auto first = [&](const nn::Attention& a) {
      auto memory = a.prepare(h, real);
      return a.step(q.row(0), memory, a.start(memory)).weights;
    };
    const Tensor found = first(*last);
    for (int64_t b = 0; b < real.size(0); ++b) {
      bool behind = false;  // a real position further right
      for (int64_t s = S - 1; s >= 0; --s) {
        const bool is_real = real.u8()[b * S + s] != 0;
        CHECK(found.at(b * S + s) == about(is_real && !behind ? 1 : 0));
        behind = behind || is_real;
      }
    }
    Training training(1);
    CHECK(max_abs_difference(first(*last), first(*plain)) < 1e-6);
  }
}

TEST_CASE("top_k keeps the k largest weights outside of training, and their proportions") {
  for (const std::string& name : soft_attentions()) {
    if (name == "multihead" || name == "local-p") continue;
    CAPTURE(name);
    Rng rng(18), again(18);
    nn::AttentionSizes cut = sizes();
    cut.options.top_k = 2;
    auto plain = nn::make_attention(name, sizes(), rng), some = nn::make_attention(name, cut, again);
    Tensor h = annotations(rng), q = queries(rng);
    auto first = [&](const nn::Attention& a) {
      auto memory = a.prepare(h, mask());
      return a.step(q.row(0), memory, a.start(memory)).weights;
    };
    Tensor x = first(*plain), y = first(*some);
    std::vector<double> order = x.rows(0, 1).to_vector();
    std::sort(order.rbegin(), order.rend());
    double kept = order[0] + order[1];
    int64_t positive = 0;
    for (int64_t s = 0; s < S; ++s) {
      positive += y.at(s) > 0;
      if (y.at(s) > 0) CHECK(y.at(s) == about(x.at(s) / kept, 1e-5));
    }
    CHECK(positive == 2);
    Training training(1);
    CHECK(max_abs_difference(first(*some), x) < 1e-6);
  }
}

TEST_CASE("parameters are named by what they do") {
  auto names = [](const std::string& name) {
    Rng rng(1);
    auto attention = nn::make_attention(name, sizes(), rng);
    std::string all;
    for (auto& p : nn::named_parameters(*attention))
      all += (all.empty() ? "" : " ") + p.name + p.parameter->shape().str();
    return all;
  };
  CHECK(names("bahdanau") == "query.weight[5, 8] key.weight[5, 8] v[5]");
  CHECK(names("dot") == "");
  CHECK(names("scaled-dot") == "");
  CHECK(names("general") == "key.weight[8, 8]");
  CHECK(names("concat") == "weight[5, 16] v[5]");
  CHECK(names("concat-identity") == "query.weight[8, 8] v[8]");
  CHECK(names("location") == "position.weight[100, 8]");
  CHECK(names("location-aware") ==
        "query.weight[5, 8] query.bias[5] key.weight[5, 8] filters[8, 5] location.weight[5, 8] v[5]");
  CHECK(names("local-m") == "score.key.weight[8, 8]");
  CHECK(names("local-p") == "score.key.weight[8, 8] position.weight[5, 8] v[5]");
  CHECK(names("coverage") == "query.weight[5, 8] key.weight[5, 8] coverage.weight[5, 1] v[5]");
  CHECK(names("multihead") ==
        "in_proj_weight[24, 8] in_proj_bias[24] out_proj.weight[8, 8] out_proj.bias[8]");
  CHECK(names("hard") == "score.query.weight[5, 8] score.key.weight[5, 8] score.v[5]");
  CHECK(names("uniform") == "");
  CHECK(names("oracle") == "");
}

TEST_CASE("concat with W = [W1 W2] is additive attention exactly") {
  Rng rng(6);
  nn::AdditiveAttention additive(sizes(), rng);
  nn::ConcatAttention concat(sizes(), rng);
  Tensor w({A, Q + D}, DType::f32);
  for (int64_t a = 0; a < A; ++a) {
    for (int64_t q = 0; q < Q; ++q) w.set(a * (Q + D) + q, additive.query.weight.value().at(a * Q + q));
    for (int64_t d = 0; d < D; ++d) w.set(a * (Q + D) + Q + d, additive.key.weight.value().at(a * D + d));
  }
  concat.weight.assign(w);
  concat.v.assign(additive.v.value().clone());
  Tensor h = annotations(rng), query = Tensor::uniform({B, Q}, -1, 1, rng);
  nn::Attended x = additive.step(query, additive.prepare(h, mask()), {});
  nn::Attended y = concat.step(query, concat.prepare(h, mask()), {});
  CHECK(max_abs_difference(x.context.value(), y.context.value()) == 0);
  CHECK(max_abs_difference(x.weights, y.weights) == 0);
}

TEST_CASE("concat-identity is concat whose block for the annotations is the identity") {
  Rng rng(7);
  nn::AttentionSizes s{Q, D, D};
  nn::ConcatIdentityAttention released(s, rng);
  nn::ConcatAttention concat(s, rng);
  Tensor w = Tensor::zeros({D, Q + D}, DType::f32);
  for (int64_t a = 0; a < D; ++a) {
    for (int64_t q = 0; q < Q; ++q) w.set(a * (Q + D) + q, released.query.weight.value().at(a * Q + q));
    w.set(a * (Q + D) + Q + a, 1);
  }
  concat.weight.assign(w);
  concat.v.assign(released.v.value().clone());
  Tensor h = annotations(rng), query = Tensor::uniform({B, Q}, -1, 1, rng);
  nn::Attended x = released.step(query, released.prepare(h, mask()), {});
  nn::Attended y = concat.step(query, concat.prepare(h, mask()), {});
  CHECK(max_abs_difference(x.context.value(), y.context.value()) < 1e-6);
  CHECK(max_abs_difference(x.weights, y.weights) < 1e-6);
}

TEST_CASE("every score that is fused gives the weights of the same score in pieces") {
  for (const char* name : {"bahdanau", "dot", "scaled-dot", "general", "concat", "concat-identity"}) {
    CAPTURE(name);
    Rng rng(19);
    auto made = nn::make_attention(name, sizes(), rng);
    auto& scored = dynamic_cast<nn::ScoredAttention&>(*made);
    auto memory = scored.prepare(annotations(rng), mask());
    Tensor query = Tensor::uniform({B, Q}, -1, 1, rng);
    nn::Attended fused = scored.step(query, memory, {}),
                 pieces = scored.nn::ScoredAttention::step(query, memory, {});
    CHECK(max_abs_difference(fused.context.value(), pieces.context.value()) < 1e-6);
    CHECK(max_abs_difference(fused.weights, pieces.weights) < 1e-6);
  }
}

TEST_CASE("errors of the attentions") {
  Rng rng(1);
  CHECK(op_error_of([&] { nn::make_attention("foo", sizes(), rng); }) ==
        "[make_attention] unknown attention \"foo\": one of bahdanau, dot, scaled-dot, general, concat, "
        "concat-identity, location, location-aware, local-m, local-p, coverage, multihead, hard, uniform, "
        "oracle, nearest");  // see test_attention_kinds.cc
  CHECK(op_error_of([&] {
          nn::make_attention("dot", {4, 8, A}, rng);
        }) ==
        "[DotAttention] query and annotations must have one size: 4 and 8 (general attention has a matrix "
        "between them)");
  auto attention = nn::make_attention("general", sizes(), rng);
  auto memory = attention->prepare(Tensor::zeros({S, B, D}), {});
  CHECK_THROWS_WITH(
      attention->step(Tensor::zeros({B, Q + 1}), memory, {}),
      doctest::Contains("[multiplicative_attention] the query must be [B, A] = [3, 8]: query [3, 9], "
                        "keys [4, 3, 8] ("));
  for (const std::string& name : nn::attention_names()) {
    if (name == "nearest") continue;  // prepares by itself
    CAPTURE(name);
    CHECK(op_error_of([&] {
            nn::make_attention(name, sizes(), rng)->prepare(Tensor::zeros({S, D}), {});
          }) == "[Attention] annotations must be [S, B, D]: [4, 8]");
  }
  for (auto [name, module] : {std::pair{"coverage", "CoverageAttention"},
                              {"location-aware", "LocationAwareAttention"}})
    CHECK(op_error_of([&, n = name] {
            auto made = nn::make_attention(n, sizes(), rng);
            made->step(Tensor::zeros({B, Q}), made->prepare(Tensor::zeros({S, B, D}), {}), {});
          }) == "[" + std::string(module) +
                    "] the state is not of this attention; hint: the first is start(memory)");
  auto with = [](nn::AttentionOptions options) {
    nn::AttentionSizes s = sizes();
    s.options = std::move(options);
    return s;
  };
  CHECK(op_error_of([&] { nn::make_attention("dot", with({.temperature = 0}), rng); }) ==
        "[Attention] temperature must be positive: 0");
  CHECK(op_error_of([&] { nn::make_attention("dot", with({.top_k = -1}), rng); }) ==
        "[Attention] top_k must not be negative: -1");
  CHECK(op_error_of([&] { nn::make_attention("local-m", with({.window = 0}), rng); }) ==
        "[LocalAttention] window must be positive: 0");
  CHECK(op_error_of([&] { nn::make_attention("local-m", with({.score = "multihead"}), rng); }) ==
        "[make_score] multihead has no scores of its own to build on");
  CHECK(op_error_of([&] { nn::make_attention("location-aware", with({.filter_width = 4}), rng); }) ==
        "[LocationAwareAttention] filter_width must be odd and positive: 4");
  CHECK(op_error_of([&] { nn::make_attention("multihead", with({.heads = 3}), rng); }) ==
        "[MultiheadAttention] embed_dim must be a multiple of num_heads: 8, 3; hint: 2 or 4 heads?");
  auto oracle = nn::make_attention("oracle", sizes(), rng);
  memory.given = Tensor::zeros({2, B, S + 1});
  CHECK_THROWS_WITH(
      oracle->step(Tensor::zeros({B, Q}), memory, {}),
      doctest::Contains(
          "[OracleAttention] weights must be [T, B, S] = [.., 3, 4]: [2, 3, 5] (test_attention.cc:"));
}
