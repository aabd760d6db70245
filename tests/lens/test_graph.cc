// What `lens graph` shows: the graph of one step's loss, with what every edge brought.

#include <cmath>
#include <cstdio>
#include <set>
#include <sstream>

#include "../about.h"
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

namespace tf = lens::transformer;

struct OfTransformer {
  Subject subject;
  tf::Dissection d;
  tf::Trace known;
  StepGraph graph;
  explicit OfTransformer(const test::SmallTransformer& s, size_t step = 1)
      : subject(labelled(s)),
        d(*subject.model.transformer(), subject.source_ids, subject.target_ids),
        known(tf::differentiate(d)),
        graph(trace_step(d, known, step)) {}
  static Subject labelled(const test::SmallTransformer& s) {
    Subject subject = test::transformer_subject(s);
    gradus::nn::label_parameters(*subject.model.network);
    return subject;
  }
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
  std::set<std::string> seen;
  for (const gradus::Trace::Node& n : m.graph.trace.nodes) {
    auto at = m.graph.module_of.find(n.id);
    if (at == m.graph.module_of.end() || m.graph.modules[at->second].path != "encoder.forward_l0.j1")
      continue;
    double sum = 0;
    for (double g : n.grad.to_vector()) sum += g * g;
    char norm[32];
    std::snprintf(norm, sizeof norm, "%.2e", std::sqrt(sum));
    size_t line = text.find("forward        cat");
    REQUIRE(line != std::string::npos);
    bool shown = text.substr(line, text.find('\n', line) - line).find(norm) != std::string::npos;
    if (n.op == "tap") CHECK(!shown);
    if (n.op == "select") CHECK(shown);
    seen.insert(n.op);
  }
  CHECK((seen.contains("tap") && seen.contains("select")));
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
  CHECK(test::fault_of(trace) == "");
  CHECK(trace["nodes"].size() == m.graph.trace.nodes.size());
  CHECK(trace["edges"].size() == m.graph.trace.edges.size());
  trace["edges"][0].erase(3);
  CHECK(!problems(trace, trace_schema()).empty());
  std::string text = graph_text(m.subject, m.graph);
  CHECK(text.starts_with("The loss of \"chat\" (step 2): "));
  size_t rows = 0, wide = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    rows += line.find_first_not_of(' ') == 0;  // others go on with where a gradient comes from
    wide += line.size() > 80;
  }
  CHECK(rows == m.graph.modules.size() + 2);
  CHECK(wide == 0);
  CHECK(text.find("the loss\n") != std::string::npos);
  CHECK(text.find("annotations (") != std::string::npos);  // of no word
}

TEST_CASE("a Transformer's graph: a box for each word, part and layer, and a scope for each head") {
  for (bool norm_first : {true, false})
    for (bool causal : {true, false}) {
      CAPTURE(norm_first);
      CAPTURE(causal);
      OfTransformer m({.norm_first = norm_first, .causal = causal});
      const StepGraph& g = m.graph;
      CHECK(g.sum_residual < 1e-12);
      std::set<std::string> paths, heads;
      std::set<std::tuple<bool, int, int64_t>> places;
      for (const GraphModule& module : g.modules) {
        paths.insert(module.path);
        CHECK(places.insert({module.decoder, module.row, module.column}).second);
      }
      for (const gradus::Trace::Node& n : g.trace.nodes) {
        CHECK((n.leaf || g.module_of.count(n.id) == 1));
        CHECK((n.value.defined() && n.grad.defined()));
        if (n.scope.starts_with("decoder.t1.cross_l1.")) heads.insert(n.scope);
      }
      CHECK(heads == std::set<std::string>{"decoder.t1.cross_l1.head1", "decoder.t1.cross_l1.head2"});
      for (int j = 0; j < 5; ++j)
        for (const char* part :
             {"word", "qkv_l0", "self_l0", "ff_l0", "qkv_l1", "self_l1", "ff_l1", "kv_l0", "kv_l1"})
          CHECK(paths.contains("encoder.j" + std::to_string(j) + "." + part));
      CHECK(paths.contains("encoder.j0.norm") == norm_first);
      // What the loss of the second word cannot depend on is not there.
      CHECK(paths.contains("decoder.t1.output"));
      CHECK(paths.contains("decoder.t3.word") == !causal);
      CHECK(!paths.contains("decoder.t0.self_l1"));
      CHECK(paths.contains("decoder.t0.qkv_l1"));
      for (const gradus::Trace::Edge& e : g.trace.edges) {
        auto from = g.module_of.find(e.from), to = g.module_of.find(e.to);
        if (from == g.module_of.end() || to == g.module_of.end()) continue;
        const GraphModule &a = g.modules[from->second], &b = g.modules[to->second];
        CAPTURE(a.path + " to " + b.path);
        CHECK((a.decoder != b.decoder || a.row <= b.row));
        CHECK((causal == false || !a.decoder || a.column <= b.column));
      }
    }
}

TEST_CASE("in a Transformer's graph every head has the weights and gradients that explain has") {
  OfTransformer m({});
  size_t seen = 0;
  for (const gradus::Trace::Node& n : m.graph.trace.nodes) {
    if (n.op != "softmax" || n.scope.find(".head") == std::string::npos) continue;
    const GraphModule& box = m.graph.modules[m.graph.module_of.at(n.id)];
    for (size_t p = 0; p < m.known.run.parts.size(); ++p) {
      const tf::Sublayer& s = m.known.run.parts[p];
      if (!tf::attends(s.part) || tf::in_decoder(s.part) != box.decoder) continue;
      const std::string name = s.part == tf::Part::cross ? ".cross_l" : ".self_l";
      if (!box.path.ends_with(name + std::to_string(s.layer))) continue;
      const int64_t head = n.scope.back() - '1';
      const gradus::Tensor weights = tf::head_of(s[tf::kWeights].value(), head).row(box.column),
                           gradient =
                               tf::head_of(m.known.steps[1].parts[p][tf::kWeights], head).row(box.column);
      for (int64_t j = 0; j < n.value.numel(); ++j) {
        CHECK(n.value.at(j) == about(weights.at(j), 1e-12));
        CHECK(n.grad.at(j) == about(gradient.at(j), 1e-12));
      }
      ++seen;
    }
  }
  CHECK(seen > 20);
  // And where they are not the same it says so.
  tf::Trace other = m.known;
  other.steps[1].source = other.steps[1].source.clone();
  other.steps[1].source.f64()[3] += 1e-6;
  CHECK_THROWS_WITH_AS(trace_step(m.d, other, 1),
                       "[lens] word by word, the Transformer's loss or its gradients are off by 1.0e-06",
                       gradus::Error);
}

TEST_CASE("trace, text and picture of a Transformer's graph") {
  OfTransformer m({});
  const json trace = graph_json(m.subject, m.graph, 10, 1e-9, 17);
  CHECK(test::fault_of(trace) == "");
  const tf::Spot spot = tf::strongest(m.known, 1);
  CHECK(trace["show"]["head"] == spot.head);
  CHECK(trace["modules"][trace["show"]["module"].get<size_t>()]["path"] == m.graph.shown);
  size_t heads = 0;
  for (const json& n : trace["nodes"]) heads += n.contains("head");
  CHECK(heads > 100);
  const std::string text = graph_text(m.subject, m.graph), dot = graph_dot(m.subject, m.graph, false);
  CHECK(text.find("\nself-attention 2  cat ") != std::string::npos);
  CHECK(text.find("\ncross-attention 1 chat ") != std::string::npos);
  CHECK(count(dot, "[label=") == m.graph.modules.size());
  CHECK(dot.find("[label=\"keys, values 2\\nfish\"];") != std::string::npos);
}
