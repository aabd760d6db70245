// What `lens explain` computes of a Transformer: every part, layer and head taken apart.

#include <cmath>
#include <set>

#include <gradus/nn/optimizer.h>
#include <gradus/ops.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "../show_json.h"
#include "../thrown.h"
#include <common/json_text.h>
#include "page/schema.h"
#include "subjects.h"
#include "transformer/output.h"

using gradus::Tensor;
using lens::test::SmallTransformer;
namespace tf = lens::transformer;

namespace {

struct TakenApart {
  lens::Subject subject;
  tf::Dissection d;
  tf::Trace trace;
  explicit TakenApart(const SmallTransformer& s, const std::string& target = "le chat mange",
                      bool causal = true)
      : TakenApart(lens::test::transformer_subject(s, target), causal) {}
  explicit TakenApart(lens::Subject of, bool causal = true)
      : subject(std::move(of)),
        d(*subject.model.transformer(), subject.source_ids, subject.target_ids, causal),
        trace(tf::differentiate(d)) {}
  TakenApart& checked() {
    tf::check(d, trace);
    return *this;
  }
};

std::string sentence(gradus::Rng& rng, const std::vector<std::string>& words, uint32_t most) {
  std::string out;
  for (uint32_t n = 1 + rng.next_u32() % most; n > 0; --n) out += words[rng.next_u32() % words.size()] + " ";
  return out;
}

double size_of(const Tensor& t) {
  double m = 0;
  for (double x : t.to_vector()) m = gradus::worse(m, std::abs(x));
  return m;
}

}  // namespace

TEST_CASE("every part, layer and head of two Transformers agrees with differences, on 25 sentences") {
  gradus::Rng rng(3);
  for (int i = 0; i < 25; ++i)
    for (bool first : {true, false}) {
      SmallTransformer s{.norm_first = first, .seed = static_cast<uint64_t>(i)};
      s.source = sentence(rng, {"the", "cat", "eats", "fish", "dog"}, 7);
      if (i == 1) s.activation = "gelu";
      if (i == 2) s.positions = "none";
      if (i == 3) s.positions = "learned";
      const std::string target = sentence(rng, {"le", "chat", "mange", "du", "poisson", "chien", "un"}, 6);
      CAPTURE(s.source);
      CAPTURE(target);
      CAPTURE(first);
      TakenApart x(s, target);
      x.checked();
      CHECK(std::abs(x.trace.loss - x.trace.network_loss) < 1e-12 * x.trace.loss);
      CHECK(x.trace.worst() < 1e-6);
      CHECK(x.trace.way_residual < 1e-12);
      CHECK(x.trace.score_sum < 1e-12);
      CHECK(x.trace.identity_residual < 1e-12);
      CHECK(x.trace.norm_residual < 1e-12);
      // Nothing is left out: of each step each station of each part, and each head of it.
      std::set<std::tuple<int64_t, size_t, std::string, int64_t>> seen;
      for (const tf::Compared& c : x.trace.checks) seen.insert({c.step, c.part, c.station, c.head});
      for (size_t t = 0; t < x.trace.steps.size(); ++t)
        for (size_t p = 0; p < x.trace.run.parts.size(); ++p)
          for (const tf::Station& station : x.d.stations(x.trace.run.parts[p])) {
            const bool by_head = station.fields[0] == tf::kScores || station.fields[0] == tf::kWeights;
            for (int64_t h = by_head ? 0 : -1; h < (by_head ? 2 : 0); ++h)
              CHECK(seen.contains({static_cast<int64_t>(t), p, station.name, h}));
          }
    }
}

TEST_CASE("in a Transformer a gradient that is off by a hundred-thousandth is found at every station") {
  for (bool first : {true, false}) {
    TakenApart x({.norm_first = first});
    x.trace.shown = 2;
    for (size_t p = 0; p < x.trace.run.parts.size(); ++p)
      for (const tf::Station& station : x.d.stations(x.trace.run.parts[p])) {
        CAPTURE(tf::name_of(x.trace.run.parts[p]));
        CAPTURE(std::string(station.name));
        tf::Trace wrong = x.trace;
        wrong.spot = {p, tf::attends(x.trace.run.parts[p].part) ? int64_t{0} : int64_t{-1}};
        for (tf::Field f : station.fields) {
          Tensor& g = wrong.steps[2].parts[p].at[f];
          g = g.clone();
          for (int64_t i = 0; i < g.numel(); ++i) g.f64()[i] *= 1 + 1e-5;
        }
        tf::check(x.d, wrong);
        int found = 0;
        for (const tf::Compared& c : wrong.checks)
          found += c.part == p && c.step == 2 && c.station == station.name && c.error > 1e-6;
        CHECK(found > 0);
        if (p % 4 != 0) break;  // all stations of some parts, the first of the others
      }
  }
}

TEST_CASE("queries, keys and values of each head get what the formulas say") {
  TakenApart x(SmallTransformer{});
  for (size_t p = 0; p < x.trace.run.parts.size(); ++p) {
    const tf::Sublayer& s = x.trace.run.parts[p];
    if (!tf::attends(s.part)) continue;
    CAPTURE(tf::name_of(s));
    const tf::PartGradients& g = x.trace.steps[1].parts[p];
    const Tensor alpha = s[tf::kWeights].value();
    const int64_t H = alpha.size(1), R = alpha.size(2), C = alpha.size(3), n = 4, E = 8;
    double off = 0;
    for (int64_t h = 0; h < H; ++h)
      for (int64_t c = h * n; c < (h + 1) * n; ++c) {
        for (int64_t i = 0; i < R; ++i) {  // dL/dq_i = sum_j delta_ij k_j / sqrt(d)
          double sum = 0;
          for (int64_t j = 0; j < C; ++j)
            sum += g[tf::kScores].f64()[(h * R + i) * C + j] * s[tf::kK].value().f64()[j * E + c] / 2;
          off = gradus::worse(off, std::abs(sum - g[tf::kQ].f64()[i * E + c]));
        }
        for (int64_t j = 0; j < C;
             ++j) {  // dL/dk_j = sum_i delta_ij q_i / sqrt(d), dL/dv_j = sum_i alpha_ij g_i
          double key = 0, value = 0;
          for (int64_t i = 0; i < R; ++i) {
            const int64_t at = (h * R + i) * C + j;
            key += g[tf::kScores].f64()[at] * s[tf::kQ].value().f64()[i * E + c] / 2;
            value += alpha.f64()[at] * g[tf::kMixed].f64()[i * E + c];
          }
          off = gradus::worse(off, std::abs(key - g[tf::kK].f64()[j * E + c]));
          off = gradus::worse(off, std::abs(value - g[tf::kV].f64()[j * E + c]));
        }
      }
    CHECK(off < 1e-15);
    // Each way carries something: none is there by name only.
    for (tf::Field way : {tf::kResidual, tf::kToQuery, tf::kToKey, tf::kToValue}) CHECK(size_of(g[way]) > 0);
  }
}

TEST_CASE("no gradient comes from the future, unless the causal mask is left out") {
  TakenApart masked(SmallTransformer{});
  for (int64_t t = 0; t < 4; ++t) CHECK(tf::gradient_from_later(masked.trace, t) == 0);
  TakenApart open(SmallTransformer{}, "le chat mange", false);
  for (int64_t t = 0; t < 3; ++t) CHECK(tf::gradient_from_later(open.trace, t) > 1e-6);
  CHECK(open.checked().trace.worst() < 1e-6);
  CHECK(open.trace.loss != masked.trace.loss);
  auto text = [](const TakenApart& x) { return tf::text_of({x.subject, x.d, x.trace}, {.width = 100}); };
  open.trace.shown = 1;
  CHECK(text(open).find("Gradient from the future: the loss of \"chat\" sends ") != std::string::npos);
  CHECK(text(masked).find("future") == std::string::npos);
}

TEST_CASE("a network that was trained without the causal mask is taken apart without it, and says so") {
  TakenApart x({.causal = false});
  CHECK(x.d.as_trained());
  CHECK(!x.d.causal());
  CHECK(std::abs(x.trace.loss - x.trace.network_loss) < 1e-12 * x.trace.loss);
  CHECK(tf::gradient_from_later(x.trace, 1) > 1e-6);
  x.trace.shown = 1;
  const std::string text = tf::text_of({x.subject, x.d, x.trace}, {.width = 100});
  CHECK(text.find("norm first, trained without the causal mask)") != std::string::npos);
  CHECK(text.find("Gradient from the future: ") != std::string::npos);
  const lens::json model = tf::to_json({x.subject, x.d, x.trace}, {})["model"];
  CHECK((model["causal"] == false && model["trained_causal"] == false));
  // As if it had none is another thing.
  TakenApart open(SmallTransformer{}, "le chat mange", false);
  CHECK(!open.d.as_trained());
  CHECK(std::isnan(open.trace.network_loss));
}

TEST_CASE("scores divided by a temperature are taken apart as they are computed") {
  TakenApart x({.temperature = 0.4});
  CHECK(std::abs(x.trace.loss - x.trace.network_loss) < 1e-12 * x.trace.loss);
  CHECK(x.checked().trace.worst() < 1e-6);
  CHECK(tf::to_json({x.subject, x.d, x.trace}, {})["model"]["temperature"] == 0.4);
}

TEST_CASE("trained without the causal mask a Transformer reads the answer: its gradient comes from there") {
  // Of one source word every order of two target words, so that nothing but the words themselves tells which.
  lens::Subject subject = lens::test::transformer_subject({.source = "cat"}, "le");
  std::vector<std::vector<int32_t>> targets;
  for (int32_t a : {4, 5, 6, 7})
    for (int32_t b : {4, 5, 6, 7}) targets.push_back({a, b});
  gradus::nn::Adam adam({.lr = 0.02});
  double loss = 0;
  for (int i = 0; i < 60; ++i) {
    std::vector<gradus::Var> losses;
    for (const auto& target : targets) {
      tf::Run run = tf::Dissection(*subject.model.transformer(), subject.source_ids, target, false).run();
      for (const gradus::Var& one : run.losses) losses.push_back(one);
    }
    gradus::Var all = gradus::mean(gradus::stack(losses, 0));
    loss = all.item();
    adam.step(*subject.model.network, gradus::backward(all));
  }
  // With the mask no less than two words in three are guessed among four: 2/3 ln 4 = 0.92.
  CHECK(loss < 0.5);
  tf::Dissection open(*subject.model.transformer(), subject.source_ids, {5, 6}, false);
  const tf::Trace trace = tf::differentiate(open);
  const Tensor words = trace.steps[0].target;
  CHECK(tf::gradient_from_later(trace, 0) > 2 * size_of(trace.steps[0].source));
  CHECK(size_of(words.row(1)) > size_of(words.row(2)));  // from the answer itself most
}

TEST_CASE("the head that is shown is the one with the largest gradient, among those that are asked for") {
  TakenApart x(SmallTransformer{});
  const tf::Spot most = tf::strongest(x.trace, 1);
  double largest = 0;
  for (size_t p = 0; p < x.trace.run.parts.size(); ++p)
    for (int64_t h = 0; tf::attends(x.trace.run.parts[p].part) && h < 2; ++h)
      largest = gradus::worse(largest, tf::score_gradient(x.trace, 1, {p, h}));
  CHECK(tf::score_gradient(x.trace, 1, most) == largest);
  lens::ExplainOptions o;
  for (const char* name : {"encoder", "decoder", "cross", "encoder-ff", "decoder-ff"})
    for (int layer : {0, 1, 2}) {
      o.sublayer = name;
      o.layer = layer;
      const tf::Spot spot = tf::spot_of(o, x.trace, 1);
      const tf::Sublayer& s = x.trace.run.parts[spot.part];
      CAPTURE(tf::name_of(s));
      const lens::json written = tf::to_json({x.subject, x.d, x.trace}, {})["parts"][spot.part];
      CHECK(written["sublayer"] == name);
      CHECK((layer == 0 || s.layer == layer - 1));
      CHECK((spot.head < 0) == !tf::attends(s.part));
    }
  auto refused = [&](const lens::ExplainOptions& options) {
    return thrown<lens::UsageError>([&] { tf::spot_of(options, x.trace, 1); });
  };
  lens::ExplainOptions layer, head, none;
  layer.layer = 3;
  head.head = 3;
  none.head = 1;
  none.sublayer = "decoder-ff";
  CHECK(refused(layer) == "--layer 3: encoder and decoder of this model have 2 each");
  CHECK(refused(head) == "--head 3: each attention of this model has 2");
  CHECK(refused(none) == "--head 1: decoder-ff has no heads; leave --head out");
}

TEST_CASE("shares of the source words add up to 1; rollout does not depend on the loss, the others do") {
  TakenApart x(SmallTransformer{});
  const tf::Shares a = tf::shares_of(x.trace, 1), b = tf::shares_of(x.trace, 2);
  for (const std::vector<double>* all : {&a.rollout, &a.weighted, &a.gradient}) {
    CHECK(sum_of(*all) == about(1, 1e-12));
    CHECK(all->size() == 5);
  }
  CHECK(a.gradient != b.gradient);
  // By hand: one layer's rollout is (A + 1) / 2; here two of encoder and decoder, for one word.
  TakenApart one({.source = "cat"}, "chat");
  CHECK(tf::shares_of(one.trace, 0).rollout.size() == 2);
  tf::Trace other = x.trace;
  for (tf::PartGradients& g : other.steps[1].parts)
    for (Tensor& t : g.at)
      if (t.defined()) t = Tensor::zeros(t.shape(), gradus::DType::f64);
  CHECK(tf::shares_of(other, 1).rollout == a.rollout);
  CHECK(tf::shares_of(other, 1).weighted != a.weighted);
}

TEST_CASE(
    "a Transformer's trace follows the schema, whole and packed; its page stays small and has its text") {
  for (bool first : {true, false}) {
    TakenApart x({.norm_first = first, .source = "the Zork eats fish"});
    x.checked();
    for (bool packed : {true, false}) {
      const lens::json trace = tf::to_json({x.subject, x.d, x.trace},
                                           {.digits = packed ? 6 : 17, .packed = packed, .what_if = packed});
      CHECK(lens::test::fault_of(trace) == "");
      CHECK(trace["kind"] == "explain-transformer");
      CHECK(trace["source"][1] == "Zork <unk>");
      CHECK(json_text::parse(json_text::dump(trace)) == trace);
      CHECK(lens::assemble_page("transformer", trace).find("Zork \\u003cunk>") != std::string::npos);
    }
    const std::string text = tf::text_of({x.subject, x.d, x.trace}, {.width = 100});
    CHECK(text.find("unknown: Zork <unk>\n") != std::string::npos);
    CHECK(text.find("LayerNorm opened") != std::string::npos);
    CHECK(text.find('\x1b') == std::string::npos);
    // What is no number is the worst, though others come after it.
    CHECK(text.find(" nan\n") == std::string::npos);
    auto& checks = x.trace.checks;
    const auto one = std::find_if(checks.begin(), checks.end(), [&](const tf::Compared& c) {
      return c.part == x.trace.spot.part && c.step == x.trace.shown && c.station == "x";
    });
    REQUIRE(one != checks.end());
    one->error = NAN;
    CHECK(tf::text_of({x.subject, x.d, x.trace}, {.width = 100}).find(" nan\n") != std::string::npos);
  }
}

TEST_CASE(
    "the Transformer that comes with the program knows its sentence, and its page has room for 12 words") {
  const std::string words = "they slept and marc sang with me at home this morning now";
  for (const std::string& source : {std::string("he doesn't like apples"), words}) {
    TakenApart x(lens::make_subject(lens::own_model("model-transformer"), source, ""));
    if (source != words)
      CHECK(x.subject.target.pieces ==
            std::vector<std::string>{"il", "n'", "aime", "pas", "les", "pommes", "</s>"});
    x.checked();
    CHECK(x.trace.worst() < 1e-6);
    CHECK(x.trace.way_residual < 1e-12);
    const lens::json trace = tf::to_json({x.subject, x.d, x.trace}, {.digits = 6, .packed = true});
    CHECK(!trace["what_if"].contains("unavailable"));
    CHECK(lens::assemble_page("transformer", trace).size() < 2'000'000);
  }
}

TEST_CASE(
    "of a long sentence a page has the steps near the one that is shown whole, of all others the ways") {
  std::string source, target;
  for (int i = 0; i < 36; ++i) source += i % 2 ? "cat " : "the ", target += i % 3 ? "chat " : "le ";
  TakenApart x({.source = source}, target);
  x.trace.shown = 20;
  const lens::json page = tf::to_json({x.subject, x.d, x.trace}, {.digits = 6, .packed = true}),
                   whole = tf::to_json({x.subject, x.d, x.trace}, {});
  for (const lens::json* trace : {&page, &whole}) {
    CHECK(lens::test::fault_of(*trace) == "");
  }
  size_t taken = 0;
  for (size_t t = 0; t < page["steps"].size(); ++t) {
    const lens::json& part = page["steps"][t]["parts"][0];
    taken += part.contains("gradients");
    CHECK(part.contains("ways"));
    CHECK(whole["steps"][t]["parts"][0].contains("gradients"));
  }
  CHECK(taken > 3);
  CHECK(taken < 30);
  for (size_t t : {19u, 20u, 21u}) CHECK(page["steps"][t]["parts"][0].contains("gradients"));
}
