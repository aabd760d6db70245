// Models of pieces of words: views come in words, by sums and means of the pieces' numbers, which are what is
// checked. And words that a model reads as <unk> are marked so.

#include <cmath>
#include <regex>

#include "../about.h"
#include "../pieces.h"
#include "../quick_doctest.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "page/schema.h"
#include "subjects.h"
#include "transformer/output.h"

using namespace lens;
using gradus::Tensor;
using gradus::testing::no_pieces;
using test::Traced;

namespace {

// Of all pieces of one target word with all of one source word: f(t, j) for each pair.
template <class F>
void each_pair(const Subject& s, size_t target, size_t source, F&& f) {
  for (size_t t = 0; t < s.target.word_of.size(); ++t)
    for (size_t j = 0; j < s.source.word_of.size(); ++j)
      if (static_cast<size_t>(s.target.word_of[t]) == target &&
          static_cast<size_t>(s.source.word_of[j]) == source)
        f(t, static_cast<int64_t>(j));
}

// |sum over the pairs of their rows of a tensor [S, D] of each step|.
template <class F>
double length_of_sum(const Subject& s, size_t target, size_t source, F&& of_step) {
  std::vector<double> sum(static_cast<size_t>(of_step(0).size(1)));
  each_pair(s, target, source, [&](size_t t, int64_t j) {
    const Tensor row = of_step(t).row(j);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += row.at(static_cast<int64_t>(i));
  });
  double squares = 0;
  for (double x : sum) squares += x * x;
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("a model of pieces is taken apart piece by piece, and every number agrees with differences") {
  if (no_pieces()) return;
  for (const char* attention : {"bahdanau", "general", "multihead"}) {
    CAPTURE(attention);
    Traced x({.attention = attention, .subwords = true});
    const translator::Segmented& source = x.subject.source;
    CHECK(x.subject.in_words());
    CHECK(source.words == std::vector<std::string>{"the", "cat", "eats", "fish", "</s>"});
    CHECK(source.pieces.size() > source.words.size());
    CHECK(source.pieces.size() == source.word_of.size());
    CHECK(source.pieces.size() == x.subject.source_ids.size());
    CHECK(x.trace.steps.size() == x.subject.target.pieces.size());
    CHECK(x.trace.worst() < 1e-6);
    CHECK(x.trace.path_residual < 1e-12);
    const std::vector<std::string> names = piece_names(source);
    CHECK(names.front() == "the");
    CHECK(names.back() == "</s>");
    CHECK(names[1].ends_with(" of cat"));
  }
}

TEST_CASE("gradients by word are sums of those by piece") {
  if (no_pieces()) return;
  Traced x({.subwords = true});
  json trace = to_json(x.subject, x.d, x.trace, {});
  CHECK(test::fault_of(trace) == "");
  CHECK(trace["pieces"] == "added");
  CHECK(trace["words"]["source"]["words"] == json(x.subject.source.words));
  CHECK(trace["words"]["target"]["word_of"] == json(x.subject.target.word_of));
  const json& paths = trace["words"]["paths"];
  REQUIRE(paths.size() == 4);
  for (size_t t = 0; t < 4; ++t)
    for (size_t j = 0; j < 5; ++j) {
      CAPTURE(t);
      CAPTURE(j);
      auto check = [&](const char* way, auto&& of_gradients) {
        double expected =
            length_of_sum(x.subject, t, j, [&](size_t i) { return of_gradients(x.trace.gradients[i]); });
        CHECK(paths[t][way][j].get<double>() == about(expected, 1e-12));
      };
      check("full", [](const StepGradients& g) { return g.full; });
      check("value", [](const StepGradients& g) { return g.value; });
      check("score", [](const StepGradients& g) { return g.score; });
      check("earlier", [](const StepGradients& g) { return g.earlier; });
      check("neighbours", [](const StepGradients& g) { return g.neighbours; });
      check("start", [](const StepGradients& g) { return g.start; });
    }
}

TEST_CASE(
    "in text, weights of columns are added and of rows averaged, pulls added; pieces are named by their word") {
  if (no_pieces()) return;
  Traced x({.subwords = true});
  std::string text = explain_text(x.subject, x.d, x.trace, {.width = 100});
  CHECK(text.find("columns of pieces are") != std::string::npos);
  size_t pulls = text.find("Score pull"), step = text.find("\nStep ");
  REQUIRE(step != std::string::npos);
  CHECK(text.substr(0, step).find(" of cat") == std::string::npos);  // both maps
  CHECK(text.find(" of cat", step) != std::string::npos);            // the step's table
  // "chat", the second line under the names of the columns, and its weights.
  double weight = 0, pull = 0, rows = 0;
  each_pair(x.subject, 1, 1, [&](size_t t, int64_t j) {
    weight += x.trace.steps[t].attending.weights.value().at(j);
    pull -= x.trace.gradients[t].at("e").at(j);
  });
  for (int32_t word : x.subject.target.word_of) rows += word == 1;
  REQUIRE(rows > 1);
  std::smatch found;
  std::string weights = text.substr(0, pulls), under = text.substr(pulls, step - pulls);
  REQUIRE(std::regex_search(weights, found, std::regex("\n *chat +\\.\\d\\d.? +(\\.\\d\\d)")));
  CHECK(std::abs(std::stod(found[1]) - weight / rows) < 0.0051);
  REQUIRE(std::regex_search(under, found, std::regex("\n *chat +\\S+ +(\\S+)")));
  if (found[1].str().find("+.") == std::string::npos && found[1].str().find("-.") == std::string::npos)
    CHECK(std::abs(std::stod(found[1]) - pull) < 0.00051);
  else
    CHECK(std::abs(pull) < 5e-4);
}

TEST_CASE("with --pieces the same numbers come piece by piece") {
  if (no_pieces()) return;
  Traced words({.subwords = true}), pieces({.subwords = true, .pieces = true});
  CHECK(!pieces.subject.in_words());
  json a = to_json(words.subject, words.d, words.trace, {}),
       b = to_json(pieces.subject, pieces.d, pieces.trace, {});
  CHECK(b["pieces"] == "shown");
  CHECK(!b.contains("words"));
  a.erase("words");
  a["pieces"] = "shown";
  CHECK(a == b);
  CHECK(problems(b, trace_schema()).empty());
  std::string text = explain_text(pieces.subject, pieces.d, pieces.trace, {.width = 100});
  CHECK(text.find(" of cat") == std::string::npos);
  CHECK(text.find("\xe2\x96\x81the") != std::string::npos);
  const char* legend = "; \xe2\x96\x81 is the space\nbefore a word.";
  CHECK(text.find(legend) != std::string::npos);
  CHECK(text.find("Maps show words") == std::string::npos);
  CHECK(text.find("source piece") != std::string::npos);
  CHECK(explain_text(words.subject, words.d, words.trace, {.width = 100}).find(legend) != std::string::npos);
  // A model of words has nothing of it.
  Traced plain(test::Small{});
  json c = to_json(plain.subject, plain.d, plain.trace, {});
  CHECK(!c.contains("pieces"));
  CHECK(!c.contains("words"));
  text = explain_text(plain.subject, plain.d, plain.trace, {.width = 100});
  CHECK(text.find("\xe2\x96\x81") == std::string::npos);
  CHECK(text.find("source word") != std::string::npos);
}

TEST_CASE("a piece that is nothing but the mark of a space can be seen") {
  const std::string space = "\xe2\x96\x81";
  const translator::Segmented side{.pieces = {space, space, "k"}, .word_of = {0, 1, 1}, .words = {space, "k"}};
  CHECK(piece_names(side) == std::vector<std::string>{space + " (space)", space + " of k", "k of k"});
}

TEST_CASE("the flow of a word is that of its pieces together") {
  if (no_pieces()) return;
  Subject s = test::subject({.subwords = true});
  std::vector<int32_t> target = s.target_ids;
  target.push_back(gradus::nn::kEos);
  FlowGradients g = flow_gradients(s.network(), FlowMode::with, s.source_ids, target);
  FlowGradients words = by_words(g, s.source.word_of, s.target.word_of);
  REQUIRE(words.steps.size() == 4);
  Flow lengths = lengths_of(words);
  REQUIRE(lengths.full.size() == 5);
  for (size_t j = 0; j < 5; ++j) {
    for (size_t t = 0; t < 4; ++t)
      CHECK(lengths.steps[t][j] ==
            about(length_of_sum(s, t, j, [&](size_t i) { return g.steps[i]; }), 1e-12));
    CHECK(lengths.value[j] == about(length_of_sum(s, 0, j, [&](size_t) { return g.value; }), 1e-12));
  }
  double losses = 0, by_word = 0;
  for (double x : g.losses) losses += x;
  for (double x : words.losses) by_word += x;
  CHECK(by_word == about(losses, 1e-12));

  FlowResult r = flow_sentence(s, nullptr);
  CHECK(r.source == s.source.words);
  CHECK(r.length == 5);
  CHECK(r.checks.worst < 1e-6);
  CHECK(r.with.median[0] == about(std::log10(lengths.full[0] / lengths.full[4]), 1e-9));
  FlowTitles titles{.title = "A title", .model = "small", .pieces = "added"};
  CHECK(std::string(unit_of(r, titles)) == "word");
  CHECK(flow_text(r, titles).find("the gradients of a word's pieces are\nadded") != std::string::npos);
  json trace = flow_json({r}, titles, 0);
  CHECK(trace["pieces"] == "added");
  CHECK(test::fault_of(trace) == "");
  titles.pieces = "shown";
  CHECK(flow_text(r, titles).find("piece 1 gets") != std::string::npos);
}

TEST_CASE("a Transformer's ways by word are those of its pieces together, and so are shares") {
  if (no_pieces()) return;
  namespace tf = lens::transformer;
  Subject s = test::transformer_subject({.subwords = true});
  CHECK(s.in_words());
  tf::Dissection d(*s.model.transformer(), s.source_ids, s.target_ids);
  tf::Trace trace = tf::differentiate(d);
  const json data = tf::to_json({s, d, trace}, {});
  CHECK(test::fault_of(data) == "");
  CHECK(data["pieces"] == "added");
  const translator::Segmented inputs = tf::inputs_of(s.target);
  CHECK(inputs.words == std::vector<std::string>{"<s>", "le", "chat", "mange"});
  CHECK(inputs.word_of.size() == s.target.word_of.size());
  const std::vector<std::pair<const char*, tf::Field>> ways = {{"residual", tf::kResidual},
                                                               {"query", tf::kToQuery},
                                                               {"key", tf::kToKey},
                                                               {"value", tf::kToValue},
                                                               {"full", tf::kX}};
  for (size_t p = 0; p + 1 < trace.run.parts.size(); ++p) {
    const tf::Sublayer& part = trace.run.parts[p];
    if (!tf::attends(part.part) || part.part == tf::Part::cross) continue;
    const std::vector<int32_t>& rows = tf::in_decoder(part.part) ? inputs.word_of : s.source.word_of;
    for (int32_t word = 0; word <= s.target.word_of.back(); ++word)
      for (const auto& [name, field] : ways) {
        const json& written = data["words"]["ways"][static_cast<size_t>(word)][p]["x"][name];
        REQUIRE(written.size() == static_cast<size_t>(rows.back()) + 1);
        for (int32_t row = 0; row <= rows.back(); ++row) {
          std::vector<double> sum(8);
          for (size_t t = 0; t < trace.steps.size(); ++t)
            for (size_t i = 0; i < rows.size(); ++i)
              for (size_t e = 0; e < 8 && s.target.word_of[t] == word && rows[i] == row; ++e)
                sum[e] += trace.steps[t].parts[p][field].f64()[i * 8 + e];
          double squares = 0;
          for (double x : sum) squares += x * x;
          CHECK(written[static_cast<size_t>(row)].get<double>() == about(std::sqrt(squares), 1e-12));
        }
      }
  }
  const tf::Shares pieces = tf::shares_of(trace, 1);
  const json& words = data["words"]["shares"][1];
  for (size_t word = 0; word < s.source.words.size(); ++word) {
    double rollout = 0;
    for (size_t j = 0; j < s.source.word_of.size(); ++j)
      if (s.source.word_of[j] == static_cast<int32_t>(word)) rollout += pieces.rollout[j];
    CHECK(words["rollout"][word].get<double>() == about(rollout, 1e-12));
  }
  CHECK(sum_of(words["gradient"]) == about(1, 1e-12));
  // In text maps are of words; alone, pieces are what a Transformer of pieces has.
  CHECK(tf::text_of({s, d, trace}, {.width = 100}).find("columns of pieces are") != std::string::npos);
  Subject alone = test::transformer_subject({.subwords = true, .pieces = true});
  CHECK(!alone.in_words());
  tf::Dissection apart(*alone.model.transformer(), alone.source_ids, alone.target_ids);
  const json plain = tf::to_json({alone, apart, tf::differentiate(apart)}, {});
  CHECK(plain["pieces"] == "shown");
  CHECK(!plain.contains("words"));
}

TEST_CASE("a graph has a column for each piece, and says of which word it is") {
  if (no_pieces()) return;
  Subject s = test::subject({.subwords = true});
  StepGraph g = trace_step(s.dissect(), 1);
  json trace = graph_json(s, g, 1, 0, 5);
  CHECK(test::fault_of(trace) == "");
  CHECK(trace["source"] == json(s.source.pieces));
  CHECK(trace["words"]["source"]["word_of"] == json(s.source.word_of));
  CHECK(graph_text(s, g).find(" of cat") != std::string::npos);
  CHECK(graph_dot(s, g, false).find(" of cat\"") != std::string::npos);
}

TEST_CASE("a sentence has so many pieces at most") {
  if (no_pieces()) return;
  test::Small s{.subwords = true};
  for (int i = 0; i < 9; ++i) s.source += " \xf0\x9f\x90\x88 fish";
  CHECK_THROWS_WITH(test::subject(s), doctest::Contains(" pieces; 60 at most can be looked at"));
}

TEST_CASE("what the model reads as <unk> is marked on the word itself") {
  Subject s = test::subject({.source = "the Zork eats fish"}, "le Zork mange");
  CHECK(s.source.pieces == std::vector<std::string>{"the", "Zork <unk>", "eats", "fish", "</s>"});
  CHECK(s.target.words == std::vector<std::string>{"le", "Zork <unk>", "mange", "</s>"});
  CHECK(s.source_ids[1] == gradus::nn::kUnk);
  CHECK(!s.in_words());
  Dissection d = s.dissect();
  SentenceTrace trace = trace_sentence(d);
  json explained = to_json(s, d, trace, {});
  CHECK(explained["source"][1] == "Zork <unk>");
  CHECK(explained["steps"][1]["target"] == "Zork <unk>");
  CHECK(explained["source_unknown"] == json({false, true, false, false, false}));
  CHECK(explain_text(s, d, trace, {.width = 100}).find("unknown: Zork <unk>\n") != std::string::npos);
  StepGraph g = trace_step(d, 1);
  CHECK(graph_text(s, g).starts_with("The loss of \"Zork <unk>\" (step 2)"));
  CHECK(graph_dot(s, g, false).find("\\nZork <unk>\"") != std::string::npos);
  FlowResult r = flow_sentence(s, nullptr);
  CHECK(r.source[1] == "Zork <unk>");
  FlowTitles titles{.title = "A title"};
  CHECK(flow_svg(r, titles).find(">Zork &lt;unk&gt;</text>") != std::string::npos);
  CHECK(flow_text(r, titles).find("2 Zork <unk>") != std::string::npos);
  // A page holds it as data, in which nothing can end the script element.
  CHECK(assemble_page("explain", explained).find("Zork \\u003cunk>") != std::string::npos);
}

TEST_CASE("where the model says <unk> that is what is looked at, whatever word is copied in its place") {
  // "le", the one source word, is one of the target's, too.
  Subject s = test::subject({.source = "le"}, "le");
  auto& network = const_cast<gradus::nn::Seq2Seq&>(s.network());
  network.output.bias.update([](const Tensor& bias) { bias.set(gradus::nn::kUnk, 50); });
  gradus::nn::to(network, gradus::DType::f32);
  const Sentence own = read_sentence(s.model, "le", "");
  REQUIRE(own.target_ids.size() > 1);
  CHECK(own.target_ids == std::vector<int32_t>(own.target_ids.size(), gradus::nn::kUnk));
  CHECK(own.target.pieces[0] == "le <unk>");
  CHECK(!own.has_reference);
  // As text it would be the word.
  CHECK(read_sentence(s.model, "le", "le").target_ids[0] > gradus::nn::kUnk);
  const Sentence two = read_said(s.model, "le", {0, 0});
  CHECK(two.target.pieces == std::vector<std::string>{"le <unk>", "le <unk>", "</s>"});
  CHECK(two.has_reference);
  CHECK(!read_said(s.model, "le", own.target_ids).has_reference);
}

TEST_CASE("a word that both sides do not know is listed once") {
  const Traced x({.source = "the Zork eats Zork"}, "le Zork mange");
  const std::string text = explain_text(x.subject, x.d, x.trace, {.width = 100});
  CHECK(test::count(text, "unknown: ") == 1);
  CHECK(text.find("unknown: Zork <unk>\n") != std::string::npos);
}
