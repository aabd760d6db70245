// What `lens graph` shows: the graph of one step's loss, with what every edge brought.

#include <cmath>
#include <cstdio>
#include <set>

#include "../quick_doctest.h"
#include "graph/graph.h"
#include "page/schema.h"
#include "subjects.h"

using namespace lens;
using test::count;

namespace {

struct Made {
  Subject subject;
  StepGraph graph;
  explicit Made(const test::Small& s = {}, size_t step = 1)
      : subject(test::subject(s)), graph(trace_step(subject.dissect(), step)) {}
};

}  // namespace

TEST_CASE("every operation has its module, values and gradients; edges add up to the gradients") {
  for (const test::Small& s : {test::Small{},
                               {.attention = "general", .layers = 2},
                               {.attention = "multihead", .cell = "lstm"},
                               {.attention = "concat", .bidirectional = false},
                               {.bidirectional = false, .reverse = true}}) {
    CAPTURE(s.attention);
    Made m(s);
    CHECK(m.graph.sum_residual < 1e-12);
    for (const gradus::Trace::Node& n : m.graph.trace.nodes) {
      CHECK((n.leaf || m.graph.module_of.count(n.id) == 1));
      CHECK(n.value.defined());
      CHECK(n.grad.defined());
    }
    std::set<std::tuple<bool, int, int64_t>> places;
    for (const GraphModule& g : m.graph.modules) CHECK(places.insert({g.decoder, g.row, g.column}).second);
  }
}

TEST_CASE("the modules of a step are those of the paper's figure") {
  Made m;
  std::set<std::string> paths;
  for (const GraphModule& g : m.graph.modules) paths.insert(g.path);
  CHECK(paths ==
        std::set<std::string>{"encoder.words",          "encoder.forward_l0.j0",  "encoder.forward_l0.j1",
                              "encoder.forward_l0.j2",  "encoder.forward_l0.j3",  "encoder.forward_l0.j4",
                              "encoder.backward_l0.j0", "encoder.backward_l0.j1", "encoder.backward_l0.j2",
                              "encoder.backward_l0.j3", "encoder.backward_l0.j4", "encoder.annotations.j0",
                              "encoder.annotations.j1", "encoder.annotations.j2", "encoder.annotations.j3",
                              "encoder.annotations.j4", "encoder.annotations",    "encoder.final",
                              "decoder.start",          "decoder.t0.word",        "decoder.t0.attention",
                              "decoder.t0.cell",        "decoder.t1.word",        "decoder.t1.attention",
                              "decoder.t1.cell",        "decoder.t1.readout",     "decoder.t1.output"});
}

TEST_CASE("no layer of an encoder runs against the computation") {
  Made m({.cell = "lstm", .layers = 3});
  for (const gradus::Trace::Edge& e : m.graph.trace.edges) {
    auto from = m.graph.module_of.find(e.from), to = m.graph.module_of.find(e.to);
    if (from == m.graph.module_of.end() || to == m.graph.module_of.end()) continue;
    const GraphModule &a = m.graph.modules[from->second], &b = m.graph.modules[to->second];
    CAPTURE(a.path + " to " + b.path);
    CHECK((a.decoder || b.decoder || a.row <= b.row));
  }
}

TEST_CASE("a module shows its result, not a label for one of its readers") {
  Made m;
  // What arrives at the state of a word in the middle: from its annotation and from the next state.
  std::string text = graph_text(m.subject, m.graph);
  for (const gradus::Trace::Node& n : m.graph.trace.nodes) {
    auto at = m.graph.module_of.find(n.id);
    if (at == m.graph.module_of.end() || m.graph.modules[at->second].path != "encoder.forward_l0.j1") continue;
    double sum = 0;
    for (double g : n.grad.to_vector()) sum += g * g;
    char norm[32];
    std::snprintf(norm, sizeof norm, "%.3e", std::sqrt(sum));
    size_t line = text.find("forward        cat");
    REQUIRE(line != std::string::npos);
    bool shown = text.substr(line, text.find('\n', line) - line).find(norm) != std::string::npos;
    if (n.op == "tap") CHECK(!shown);
    if (n.op == "select") CHECK(shown);
  }
}

TEST_CASE("a product is named by its parameter") {
  Subject subject = test::subject();
  gradus::nn::label_parameters(*subject.model.network);
  StepGraph g = trace_step(subject.dissect(), 1);
  std::multiset<std::string> named;
  const json trace = graph_json(subject, g, 1, 0, 5);
  for (const json& n : trace["nodes"])
    if (!n["module"].is_null() && g.modules[n["module"].get<size_t>()].path == "decoder.t1.attention")
      named.insert(n["op"].get<std::string>() + " " + n["label"].get<std::string>());
  CHECK(named.count("linear query") == 1);
  CHECK(named.count("linear key") == 1);
  CHECK(named.count("mul v") == 1);
  CHECK(named.count("softmax ") == 1);
  CHECK(named.count("tap annotations to mix") == 1);  // labels of their own stay
  CHECK(graph_dot(subject, g, true).find("linear query [1, 5]") != std::string::npos);
}

TEST_CASE("the DOT file has every module or operation once, and refuses what nobody could read") {
  Made m;
  std::string modules = graph_dot(m.subject, m.graph, false),
              operations = graph_dot(m.subject, m.graph, true);
  CHECK(modules.starts_with("digraph step {\n"));
  CHECK(count(modules, "[label=") == m.graph.modules.size());
  CHECK(count(operations, "[label=") == m.graph.module_of.size());
  CHECK(count(operations, "subgraph cluster_") == m.graph.modules.size());
  CHECK(count(modules, "{") == count(modules, "}"));
  CHECK(modules.find("n0 [label=\"words\"];") != std::string::npos);
  CHECK(modules.find("[label=\"forward\\nthe\"];") != std::string::npos);
  // Words cannot leave their strings.
  Subject odd = test::subject();
  odd.source.words[0] = "a\"b\\c";
  CHECK(graph_dot(odd, m.graph, false).find("a\\\"b\\\\c\"") != std::string::npos);
  std::string long_target;
  for (int i = 0; i < 40; ++i) long_target += "le chat ";
  Subject lengthy = test::subject({}, long_target.substr(0, 40 * 5));
  StepGraph large = trace_step(lengthy.dissect(), lengthy.target.pieces.size() - 1);
  CHECK(large.module_of.size() > 400);
  CHECK_THROWS_AS(graph_dot(lengthy, large, true), gradus::Error);
  CHECK(graph_dot(lengthy, large, false).size() > 1000);
}

TEST_CASE("trace, text and page of a graph") {
  Made m;
  json trace = graph_json(m.subject, m.graph, 10, 1e-9, 17);
  auto found = problems(trace, trace_schema());
  CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found[0]));
  CHECK(trace["nodes"].size() == m.graph.trace.nodes.size());
  CHECK(trace["edges"].size() == m.graph.trace.edges.size());
  trace["edges"][0].erase(3);
  CHECK(!problems(trace, trace_schema()).empty());
  std::string text = graph_text(m.subject, m.graph);
  CHECK(text.starts_with("The loss of \"chat\" (step 2): "));
  CHECK(count(text, "\n") == m.graph.modules.size() + 3);
  CHECK(text.find("the loss\n") != std::string::npos);
}
