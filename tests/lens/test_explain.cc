// What `lens explain` computes: the gradient of one word's loss, taken apart.

#include <cmath>

#include <gradus/differences.h>
#include <gradus/nn/attention/additive.h>
#include <gradus/ops.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "../show_json.h"
#include "../thrown.h"
#include "sentence/sentence.h"
#include "commands.h"
#include "norms.h"
#include "page/schema.h"
#include "subjects.h"

using namespace gradus;
using lens::largest;
using lens::test::Small;

namespace {

// Never looks at the source: what a broken wiring amounts to.
struct BlindAttention : nn::ScoredAttention {
  nn::Linear position;
  BlindAttention(const nn::AttentionSizes& s, Rng& rng)
      : ScoredAttention(s.options), position(s.query_size, 16, rng) {}
  Var scores(const Input& query, const nn::AttentionMemory& memory,
             const nn::AttentionState&) const override {
    return slice(position(query), 1, 0, memory.annotations.size(0));
  }
  void params(nn::ParamVisitor& visit) override { visit("position", position); }
};
GRADUS_ATTENTION(BlindAttention, "blind", "W query")

// One's own with the weights of additive attention: as a form, and as a score that says no more.
struct StatedAttention : nn::FormedAttention {
  nn::Linear asks, told;
  Parameter vector;
  StatedAttention(const nn::AttentionSizes& s, Rng& rng)
      : FormedAttention(s.options),
        asks(s.query_size, s.attention_size, rng, {.bias = false}),
        told(s.annotation_size, s.attention_size, rng, {.bias = false}),
        vector(nn::score_vector(s.attention_size, rng)) {}
  nn::ScoreForm form() const override {
    return {nn::ScoreForm::Kind::additive, asks.weight, told.weight, vector};
  }
  void params(nn::ParamVisitor& visit) override {
    visit("asks", asks);
    visit("told", told);
    visit("vector", vector);
  }
};
GRADUS_ATTENTION(StatedAttention, "stated", "v . tanh(W1 query + W2 annotation)")

struct UnstatedAttention : nn::ScoredAttention {
  StatedAttention inner;
  UnstatedAttention(const nn::AttentionSizes& s, Rng& rng) : ScoredAttention(s.options), inner(s, rng) {}
  nn::AttentionMemory prepare(const Input& annotations, const Tensor& mask) const override {
    return inner.prepare(annotations, mask);
  }
  Var scores(const Input& query, const nn::AttentionMemory& memory,
             const nn::AttentionState& state) const override {
    return inner.scores(query, memory, state);
  }
  void params(nn::ParamVisitor& visit) override { inner.params(visit); }
};
GRADUS_ATTENTION(UnstatedAttention, "unstated", "v . tanh(W1 query + W2 annotation)")

// More than a softmax of scores: cannot be taken apart without saying something wrong.
struct DoublingAttention : BlindAttention {
  using BlindAttention::BlindAttention;
  nn::Attended step(const Input& query, const nn::AttentionMemory& memory,
                    const nn::AttentionState& state) const override {
    nn::Attended a = BlindAttention::step(query, memory, state);
    a.context = a.context + a.context;
    return a;
  }
};
GRADUS_ATTENTION(DoublingAttention, "doubling", "twice the mixture")

std::vector<Small> variants() {
  std::vector<Small> out;
  Rng rng(1);
  for (const std::string& attention : nn::attention_names()) {
    auto made = nn::make_attention(attention, {8, 8, 5}, rng);
    if (!nn::as_formed(*made) && attention != "multihead") continue;
    for (const char* decoder : {"bahdanau", "luong"})
      out.push_back({.attention = attention, .decoder = decoder});
  }
  for (const std::string& cell : nn::cell_names()) {
    out.push_back({.cell = cell});
    out.push_back({.attention = "general", .cell = cell});
  }
  out.push_back({.bidirectional = false});
  out.push_back({.bidirectional = false, .layers = 2, .reverse = true});
  out.push_back({.readout = "maxout", .layers = 2});
  out.push_back({.attention = "general", .readout = "maxout", .input_feeding = false});
  out.push_back({.residual = true, .layers = 3});
  out.push_back({.layer_norm = true});
  out.push_back({.temperature = 0.7});
  out.push_back({.attention = "multihead", .temperature = 1.5});
  for (const char* attention : {"blind", "location", "location-aware", "coverage", "unstated"})
    out.push_back({.attention = attention});
  return out;
}

std::string name(const Small& s) {
  return s.attention + " " + s.decoder + " " + s.cell + " " + s.readout +
         (s.bidirectional ? ""
          : s.reverse     ? " in reverse"
                          : " one direction") +
         (s.layer_norm ? " layer norm" : "") + " layers " + std::to_string(s.layers);
}

}  // namespace

TEST_CASE("the paths add up, scores compete, and every number agrees with finite differences") {
  for (const Small& s : variants()) {
    CAPTURE(name(s));
    auto [subject, d, trace] = lens::test::Traced(s);
    REQUIRE(trace.steps.size() == 4);
    CHECK(std::abs(trace.loss - trace.network_loss) < 1e-12 * trace.loss);
    CHECK(trace.path_residual < 1e-12);
    CHECK(trace.score_sum < 1e-12);
    CHECK(trace.identity_residual < 1e-12);
    CHECK(trace.worst() < 1e-6);
    CHECK(trace.checks.size() > 150);
  }
}

TEST_CASE("the value path is alpha g, word by word; the gradient of the weights is g . h") {
  auto [subject, d, trace] = lens::test::Traced();
  int64_t S = 5, D = 16;
  for (size_t t = 0; t < trace.steps.size(); ++t) {
    const lens::StepGradients& g = trace.gradients[t];
    Tensor of_context = g.at("c"), of_weights = g.at("alpha"),
           alpha = trace.steps[t].attending.weights.value();
    REQUIRE(of_context.shape() == Shape{1, D});
    for (int64_t j = 0; j < S; ++j) {
      double dot = 0;
      for (int64_t i = 0; i < D; ++i) {
        double value = alpha.at(j) * of_context.at(i);
        CHECK(std::abs(g.value.at(j * D + i) - value) < 1e-15);
        dot += of_context.at(i) * trace.reading.annotations.value().at(j * D + i);
      }
      CHECK(std::abs(of_weights.at(j) - dot) < 1e-14);
      CHECK(std::abs(g.gain.at(j) - dot) < 1e-14);
    }
    CHECK(largest(g.score) > 0);
    CHECK(largest(g.neighbours) > 0);
    CHECK((t == 0 ? largest(g.earlier) == 0 : largest(g.earlier) > 0));
  }
}

TEST_CASE("score and query paths of additive attention follow their formulas") {
  auto [subject, d, trace] = lens::test::Traced();
  auto& decoder = static_cast<const nn::RecurrentDecoder&>(*subject.network().decoder);
  auto& attention = static_cast<const nn::AdditiveAttention&>(*decoder.attention);
  const lens::StepGradients& g = trace.gradients[2];
  Tensor u = trace.steps[2].attending.hidden.value(), delta = g.at("e"), v = attention.v.value();
  // m_j = (1 - u_j^2) v delta_j; score path Ua^T m_j, query sum_j m_j.
  Tensor m(u.shape(), DType::f64);
  for (int64_t i = 0; i < u.numel(); ++i)
    m.set(i, (1 - u.at(i) * u.at(i)) * v.at(i % v.numel()) * delta.at(i / v.numel()));
  NoGrad guard;
  Tensor score = matmul(m.reshape({5, 5}), attention.key.weight).value();
  CHECK(max_abs_difference(score, g.score) < 1e-15);
  Tensor query = sum(m.reshape({5, 5}), {.axes = {0}, .keep_dims = true}).value();
  CHECK(max_abs_difference(query, g.at("q")) < 1e-15);
}

TEST_CASE("one's own attention that states its form is taken apart as the library's, bit for bit") {
  lens::Subject ours = lens::test::subject({.attention = "stated", .temperature = 0.7}),
                theirs = lens::test::subject({.attention = "bahdanau", .temperature = 0.7});
  lens::Dissection a = ours.dissect(), b = theirs.dissect();
  lens::SentenceTrace x = lens::trace_sentence(a), y = lens::trace_sentence(b);
  CHECK(a.anatomy().kind == lens::Anatomy::Kind::additive);
  CHECK(x.loss == y.loss);
  REQUIRE(x.steps.size() == y.steps.size());
  for (size_t t = 0; t < x.steps.size(); ++t)
    for (const std::string& name : lens::station_names(b)) {
      CAPTURE(t);
      CAPTURE(name);
      if (name != "h")
        CHECK(max_abs_difference(lens::station(x.steps[t], name).value(),
                                 lens::station(y.steps[t], name).value()) == 0);
      Tensor mine = x.gradients[t].at(name), library = y.gradients[t].at(name);
      REQUIRE(mine.defined() == library.defined());
      if (mine.defined()) CHECK(max_abs_difference(mine, library) == 0);
    }
  for (size_t t = 0; t < x.gradients.size(); ++t)
    CHECK(max_abs_difference(x.gradients[t].full, y.gradients[t].full) == 0);
}

TEST_CASE("one's own attention without a form is explained as far as its scores") {
  lens::Subject ours = lens::test::subject({.attention = "unstated"}), theirs = lens::test::subject();
  lens::Dissection a = ours.dissect(), b = theirs.dissect();
  lens::SentenceTrace x = lens::trace_sentence(a), y = lens::trace_sentence(b);
  CHECK(a.anatomy().kind == lens::Anatomy::Kind::other);
  for (size_t t = 0; t < x.steps.size(); ++t) {
    CHECK_FALSE(x.steps[t].attending.hidden.defined());
    for (const char* name : {"e", "alpha", "c", "s"})
      CHECK(max_abs_difference(x.gradients[t].at(name), y.gradients[t].at(name)) < 1e-14);
    CHECK(max_abs_difference(x.gradients[t].full, y.gradients[t].full) < 1e-14);
  }
}

TEST_CASE("an attention that ignores the encoder has no score path: exactly zero") {
  auto [subject, d, trace] = lens::test::Traced({.attention = "blind"});
  for (const lens::StepGradients& g : trace.gradients) {
    CHECK(!g.score_path);
    CHECK(largest(g.score) == 0);
    CHECK(largest(g.value) > 0);
  }
  lens::json j = lens::to_json(subject, d, trace, {});
  CHECK(j["steps"][1]["stations"]["h"]["score_path"].is_null());
  CHECK(j["steps"][1]["paths"]["score_path_exists"] == false);
  CHECK(lens::problems(j, lens::trace_schema()).empty());
  CHECK(lens::explain_text(subject, d, trace, {.width = 100}).find("none") != std::string::npos);
}

TEST_CASE("what cannot be taken apart is refused, not shown wrongly") {
  auto error_of = [](const Small& s) { return thrown<Error>([&] { lens::test::Traced x(s); }); };
  CHECK(error_of({.attention = "none"}) ==
        "[lens] this model has no attention to look at (it was trained with attention \"none\")");
  for (const std::string name : {"hard", "local-m", "local-p"})
    CHECK(error_of({.attention = name}) ==
          "[lens] attention " + name +
              " cannot be taken apart: its weights are more than a softmax of scores; hint: `lens serve` and "
              "`translator translate --attention-map` show where it looks, `lens report` how it learned to; "
              "`translator train --attention general` makes a model that can be");
  CHECK(
      error_of({.attention = "doubling"}).find("its attention is more than a softmax of scores and a mean") !=
      std::string::npos);
  CHECK(error_of({.top_k = 1}).find("its attention keeps only the 1 largest weights (--top-k)") !=
        std::string::npos);
}

TEST_CASE("where a recurrent network is needed a Transformer is refused with what to do instead") {
  lens::Subject subject = lens::test::transformer_subject({});
  CHECK_THROWS_WITH(subject.network(),
                    doctest::Contains("hint: `lens explain` and `lens graph` take a Transformer apart"));
}

TEST_CASE("without a target the model's own words are looked at; sentences are checked") {
  lens::Subject own = lens::test::subject({}, "");
  CHECK(!own.has_reference);
  CHECK(own.target.pieces.back() == "</s>");
  CHECK(own.target.pieces.size() == own.target_ids.size() + 1);
  CHECK(own.source.pieces == std::vector<std::string>{"the", "cat", "eats", "fish", "</s>"});
  CHECK(!own.in_words());
  lens::SentenceTrace trace = lens::trace_sentence(own.dissect());
  for (size_t t = 0; t + 1 < trace.steps.size(); ++t)
    CHECK(lens::choice(trace.steps[t].logits.value()) == own.target_ids[t]);
  auto make = [](const std::string& source) { lens::make_subject(lens::own_model(), source, ""); };
  CHECK_THROWS_WITH_AS(make("   "), "the source sentence: has no words", std::exception);
  CHECK_THROWS_WITH_AS(make("\xff"), "the source sentence: byte 1 (0xff) is not valid UTF-8", std::exception);
}

TEST_CASE("the model that comes with the program knows its sentence") {
  lens::Subject subject = lens::make_subject(lens::own_model(), "he doesn't like apples", "");
  CHECK(subject.target.pieces ==
        std::vector<std::string>{"il", "n'", "aime", "pas", "les", "pommes", "</s>"});
  lens::Dissection d = subject.dissect();
  lens::SentenceTrace trace = lens::trace_sentence(d);
  CHECK(trace.worst() < 1e-6);
  CHECK(trace.path_residual < 1e-12);
  CHECK(trace.score_sum < 1e-12);
  std::string text = lens::explain_text(subject, d, trace, {.width = 100});
  CHECK(text.find("gains most: its annotation is better than the mix by") != std::string::npos);
  CHECK(text.find("\x1b") == std::string::npos);
}

TEST_CASE("differences are of eighth order, and say how far they can be trusted") {
  auto sine = difference(pointwise([](double x) { return std::sin(1 + x); }), 1e-2);
  CHECK(std::abs(sine.value - std::cos(1.0)) < 1e-13);
  CHECK(sine.doubt < 1e-12);
  auto power = pointwise([](double x) { return std::pow(1 + x, 8); });
  CHECK(std::abs(difference(power, 0.1).value - 8) < 1e-12);
  // A kink within the first steps' reach is stepped around.
  auto kinked = pointwise([](double x) { return std::abs(x - 1e-3) + 3 * x; });
  CHECK(difference(kinked, 1e-2).doubt > 1e-3);
  CHECK(std::abs(careful_difference(kinked, 1).value - 2) < 1e-10);
  CHECK(std::isnan(careful_difference(pointwise([](double x) { return x > 0 ? NAN : x; }), 1).value));
}

TEST_CASE("a gradient that is off by a hundred-thousandth is found at every station") {
  for (const char* attention : {"bahdanau", "general", "multihead"}) {
    lens::Subject subject = lens::test::subject({.attention = attention});
    lens::Dissection d = subject.dissect();
    const lens::SentenceTrace good = lens::trace_sentence(d, 2);
    auto off = [](const Tensor& g) {
      Tensor wrong = g.clone();
      for (int64_t i = 0; i < wrong.numel(); ++i) wrong.f64()[i] *= 1 + 1e-5;
      return wrong;
    };
    auto found = [&](const lens::SentenceTrace& wrong, const std::string& station) {
      int64_t count = 0;
      for (const lens::Compared& c : lens::check_trace(d, wrong))
        count += c.step == 2 && c.station == station && c.error > 1e-6;
      return count;
    };
    for (size_t k = 0; k < good.gradients[2].stations.size(); ++k) {
      lens::SentenceTrace wrong = good;
      auto& [name, g] = wrong.gradients[2].stations[k];
      CAPTURE(attention);
      CAPTURE(name);
      g = off(g);
      // All elements of any size: none hides behind the others.
      int64_t sizable = 0;
      for (int64_t i = 0; i < g.numel(); ++i) sizable += std::abs(g.f64()[i]) > 1e-3 * largest(g);
      CHECK(found(wrong, name) >= sizable);
    }
    lens::SentenceTrace wrong = good;
    lens::StepGradients& g = wrong.gradients[2];
    g.value = off(g.value);
    g.score = off(g.score);
    g.full = off(g.full);
    for (const char* path : {"h, value path", "h, score path", "h"}) CHECK(found(wrong, path) >= 5);
  }
}

TEST_CASE("weights too small for the loss to show are compared all the same") {
  // Scores some dozens apart: all but one weight are far below the rounding of the loss.
  auto [subject, d, trace] = lens::test::Traced({.attention = "general", .temperature = 0.0015});
  double least = 1;
  for (const lens::Compared& c : trace.checks)
    if (c.station == "e") least = std::min(least, std::abs(c.engine));
  CHECK(least < 1e-16);
  CHECK(least > 0);
  CHECK(trace.worst() < 1e-6);
}

TEST_CASE("the shown step is compared in full") {
  lens::Subject subject = lens::test::subject();
  lens::Dissection d = subject.dissect();
  lens::SentenceTrace trace = lens::trace_sentence(d, 1);
  CHECK(trace.shown == 1);
  for (const auto& [name, g] : trace.gradients[1].stations) {
    int64_t count = 0;
    for (const lens::Compared& c : trace.checks)
      count += c.step == 1 && c.station == name && c.row >= 0 && c.column >= 0;
    CAPTURE(name);
    CHECK(count == g.numel());
  }
  CHECK(lens::trace_sentence(d).shown == lens::worst_step(trace.steps));
}

TEST_CASE("one word alone is a model where there is one, or where it is written as a path") {
  const std::string places[] = {"./absent", "../absent", "/absent", "absent/", lens::own_model()};
  for (const std::string& place : places) {
    lens::SentenceOptions o;
    lens::take_words(o, {place});
    CHECK(o.model == place);
  }
  for (const char* sentence : {"absent", "yes/no", "/ he sings"}) {
    lens::SentenceOptions o;
    lens::take_words(o, {sentence});
    CHECK(o.source == sentence);
    CHECK(o.model.empty());
  }
}

TEST_CASE("errors are relative") {
  CHECK(relative_error(2, 1, 0) == 0.5);
  CHECK(relative_error(0, 0, 0) == 0);
  CHECK(relative_error(1e-8, 2e-8, 1e-4) == about(1e-4));
  CHECK(std::isnan(relative_error(NAN, 1, 1)));
  CHECK(std::isnan(relative_error(INFINITY, INFINITY, 1)));
  // A loss far below the rounding of 1 - p keeps its digits.
  Tensor z = Tensor::from({1, 2}, {60, 0}, DType::f64);
  CHECK(std::abs(lens::exact_loss(z, 0) / std::exp(-60.0) - 1) < 1e-12);
  CHECK(lens::exact_loss(z, 1) == about(60));
}

TEST_CASE("a loss that is not finite, or that of other parts than the whole's, is refused with its reason") {
  lens::require_same_loss(2, 2 + 1e-12, "why");
  CHECK_THROWS_WITH_AS(lens::require_same_loss(2, 2.5, "why"),
                       "[lens] taken apart, the model's loss is 2, in one piece 2.5: why", Error);
  for (const auto& [apart, whole] : {std::pair(NAN, 2.0F), std::pair(2.0F, INFINITY)})
    CHECK_THROWS_WITH_AS(lens::require_same_loss(apart, whole, "why"),
                         (std::string("[lens] the loss is ") + (std::isnan(apart) ? "nan" : "inf") +
                          ": a weight is no finite number, or the target's probability is 0 in double "
                          "precision; there is no gradient to look at")
                             .c_str(),
                         Error);
}
