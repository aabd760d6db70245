#include "graph.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include <common/split.h>
#include <common/utf8.h>

#include "norms.h"

namespace lens {
namespace {

using gradus::Tensor;
using gradus::Trace;
using translator::utf8::display_width;

constexpr size_t kMaxOperations = 400;
constexpr int64_t kStrip = 16;  // numbers of a node that are drawn

// "j12" with the letter 'j' -> 12; -1 for anything else.
int64_t numbered(const std::string& part, char letter) {
  if (part.size() < 2 || part[0] != letter ||
      !std::all_of(part.begin() + 1, part.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return -1;
  return std::stoll(part.substr(1));
}

// Of a scope in a head of a Transformer's attention: which, from 0; else -1.
int64_t head_of(const std::string& scope) {
  size_t at = scope.rfind(".head");
  return at == std::string::npos ? -1 : std::stoll(scope.substr(at + 5)) - 1;
}

// Rows of the decoder, top down. Row 0 is for weights that are cut up before any step, 1 for the first state.
int decoder_row(const std::string& part, bool luong) {
  if (part == "word") return 2;
  if (part == "attention") return luong ? 4 : 3;
  if (part == "cell") return luong ? 3 : 4;
  if (part == "readout") return 5;
  return 6;
}

GraphModule module_of(const std::string& scope, bool luong) {
  std::vector<std::string> parts = translator::split(scope, '.');
  parts.resize(std::max<size_t>(parts.size(), 3));
  if (parts[0] == "encoder") {
    int64_t j = numbered(parts[2], 'j');
    const std::string& what = parts[1];
    std::string path = "encoder." + what + (j >= 0 ? "." + parts[2] : "");
    size_t layer = what.find("_l");
    int number = layer == std::string::npos ? 0 : std::stoi(what.substr(layer + 2)), below = 4 * number;
    if (what.starts_with("forward")) return {path, "forward", false, 1 + below, j};
    if (what.starts_with("backward")) return {path, "backward", false, 2 + below, j};
    if (what.starts_with("joined"))  // what a lower layer hands to the next one
      return {path, j >= 0 ? "both ways" : fmt::format("layer {}", number + 1), false,
              (j >= 0 ? 3 : 4) + below, j};
    if (what == "words") return {path, "words", false, 0, -1};
    if (what == "final") return {path, "final state", false, 1002, -1};
    return {path, j >= 0 ? "annotation" : "annotations", false, j >= 0 ? 1000 : 1001, j};
  }
  if (parts[0] == "decoder") {
    int64_t t = numbered(parts[1], 't');
    if (t < 0) return {"decoder.start", "first state", true, 1, -1};
    std::string part = parts[2].empty() ? "word" : parts[2];
    return {"decoder." + parts[1] + "." + part, part, true, decoder_row(part, luong), t};
  }
  return {"weights", "cut weights", true, 0, -1};
}

// Between whichever things `of` says, squares of the norms added up.
std::map<std::pair<size_t, size_t>, double> gathered(const StepGraph& g,
                                                     const std::unordered_map<uint64_t, size_t>& of) {
  std::map<std::pair<size_t, size_t>, double> out;
  for (const Trace::Edge& e : g.trace.edges) {
    auto from = of.find(e.from), to = of.find(e.to);
    if (from == of.end() || to == of.end() || from->second == to->second) continue;
    double n = norm(e.contribution);
    out[{from->second, to->second}] += n * n;
  }
  for (auto& [key, value] : out) value = std::sqrt(value);
  return out;
}

// What a module is about: a word, or a piece of one.
struct Names {
  std::vector<std::string> source, target;
  explicit Names(const Subject& s) : source(piece_names(s.source)), target(piece_names(s.target)) {}
  std::string operator()(const GraphModule& m) const {
    return m.column < 0 ? "" : (m.decoder ? target : source)[static_cast<size_t>(m.column)];
  }
};

// By operation without a label, the parameter that it reads: "query" for the product with query.weight. Empty
// where it reads none, or several that do not belong together, as a cell does.
std::unordered_map<uint64_t, std::string> parameters_read(const Trace& trace) {
  std::unordered_map<uint64_t, std::string> leaves, out;
  for (const Trace::Node& n : trace.nodes)
    if (n.leaf) leaves[n.id] = n.label;
  for (const Trace::Edge& e : trace.edges) {
    auto leaf = leaves.find(e.from);
    if (leaf == leaves.end() || leaf->second.empty()) continue;
    std::vector<std::string> parts = translator::split(leaf->second, '.');
    if (parts.size() > 1 && (parts.back() == "weight" || parts.back() == "bias")) parts.pop_back();
    for (const char* end : {"_weight", "_bias"})  // "in_proj_weight"
      if (parts.back().ends_with(end)) parts.back().resize(parts.back().size() - std::strlen(end));
    auto [at, is_new] = out.try_emplace(e.to, parts.back());
    if (!is_new && at->second != parts.back()) at->second.clear();
  }
  return out;
}

// A string of the DOT language; a line end becomes its escape.
std::string dot_string(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\' || c == '\n') out += '\\';
    out += c == '\n' ? 'n' : c;
  }
  return out + "\"";
}

// Pen width for a contribution: a decade is a step.
double width(double contribution) {
  return contribution > 0 ? std::clamp(6 + 1.5 * std::log10(contribution), 0.4, 8.0) : 0.3;
}

}  // namespace

StepGraph trace_step(const Dissection& d, size_t t) {
  gradus::KeepValues keep;
  Reading reading;
  std::vector<Step> steps;
  d.run(reading, steps);
  StepGraph out = graph_of(steps.at(t).loss, t,
                           [&](const std::string& scope) { return module_of(scope, d.luong_order()); });
  out.shown = fmt::format("decoder.t{}.attention", t);
  return out;
}

StepGraph graph_of(const gradus::Var& loss, size_t step,
                   const std::function<GraphModule(const std::string& scope)>& module_of) {
  StepGraph out;
  out.step = step;
  gradus::backward(loss, {.retain_graph = true, .trace = &out.trace});
  std::unordered_map<std::string, size_t> known;
  for (const Trace::Node& n : out.trace.nodes) {
    if (n.leaf) continue;
    GraphModule m = module_of(n.scope);
    auto [at, is_new] = known.try_emplace(m.path, out.modules.size());
    if (is_new) out.modules.push_back(m);
    out.module_of[n.id] = at->second;
  }
  // Rows without gaps, and the last ones known.
  for (bool decoder : {false, true}) {
    std::map<int, int> rows;
    for (const GraphModule& m : out.modules)
      if (m.decoder == decoder) rows[m.row] = 0;
    int next = 0;
    for (auto& [row, number] : rows) number = next++;
    for (GraphModule& m : out.modules)
      if (m.decoder == decoder) m.row = rows[m.row];
  }

  std::unordered_map<uint64_t, Tensor> sums;
  for (const Trace::Edge& e : out.trace.edges) add_to(sums[e.from], e.contribution);
  for (const Trace::Node& n : out.trace.nodes)
    if (auto at = sums.find(n.id); at != sums.end())
      out.sum_residual = gradus::worse(out.sum_residual, gradus::max_abs_difference(at->second, n.grad));
  return out;
}

json graph_json(const Subject& subject, const StepGraph& g, size_t checks, double worst_error, int digits) {
  Numbers number{digits};
  auto strip = [&](const Tensor& x) {
    if (!x.defined()) return json(nullptr);
    json out = json::array();
    for (int64_t i = 0; i < std::min(x.numel(), kStrip); ++i) out.push_back(number(x.at(i)));
    return out;
  };
  auto length = [&](const Tensor& x) { return x.defined() ? number(norm(x)) : json(nullptr); };
  json modules = json::array(), nodes = json::array(), edges = json::array();
  for (const GraphModule& m : g.modules)
    modules.push_back({{"path", m.path},
                       {"title", m.title},
                       {"decoder", m.decoder},
                       {"row", m.row},
                       {"column", m.column < 0 ? json(nullptr) : json(m.column)}});
  auto reads = parameters_read(g.trace);
  for (const Trace::Node& n : g.trace.nodes) {
    auto at = g.module_of.find(n.id);
    nodes.push_back({{"id", n.id},
                     {"op", n.op},
                     {"label", n.label.empty() ? reads[n.id] : n.label},
                     {"shape", n.shape.str()},
                     {"module", at == g.module_of.end() ? json(nullptr) : json(at->second)},
                     {"value", strip(n.value)},
                     {"gradient", strip(n.grad)},
                     {"value_norm", length(n.value)},
                     {"gradient_norm", length(n.grad)}});
    if (const int64_t head = head_of(n.scope); head >= 0) nodes.back()["head"] = head;
  }
  size_t shown = 0;
  while (shown < g.modules.size() && g.modules[shown].path != g.shown) ++shown;
  for (const Trace::Edge& e : g.trace.edges)
    edges.push_back({e.from, e.to, e.input, number(norm(e.contribution))});
  json out = {
      {"format", "gradus-lens-trace"},
      {"version", 1},
      {"kind", "graph"},
      {"model", {{"name", subject.name}}},
      {"source", subject.source.pieces},
      {"target", subject.target.pieces},
      {"step", g.step},
      {"show",
       {{"module", shown < g.modules.size() ? json(shown) : json(nullptr)},
        {"head", g.shown_head < 0 ? json(nullptr) : json(g.shown_head)}}},
      {"modules", modules},
      {"nodes", nodes},
      {"edges", edges},
      {"checks",
       {{"count", checks}, {"worst", number(worst_error)}, {"sum_residual", number(g.sum_residual)}}}};
  add_pieces(out, subject);
  return out;
}

std::string graph_dot(const Subject& subject, const StepGraph& g, bool operations) {
  std::string out =
      "digraph step {\n  rankdir=TB; node [shape=box, style=rounded, fontname=\"sans-serif\"]; edge "
      "[arrowsize=0.5];\n";
  if (size_t n = g.module_of.size(); operations && n > kMaxOperations)
    gradus::fail("lens", fmt::format("{} operations make no picture ({} at most): take an earlier --step, a "
                                     "shorter sentence, or --level module",
                                     n, kMaxOperations));
  std::unordered_map<uint64_t, size_t> of;
  const Names name(subject);
  auto box = [&](const GraphModule& m) { return dot_string(m.title + (m.column < 0 ? "" : "\n" + name(m))); };
  if (operations) {
    std::vector<std::string> clusters(g.modules.size());
    auto reads = parameters_read(g.trace);
    for (size_t i = 0; i < g.trace.nodes.size(); ++i) {
      const Trace::Node& n = g.trace.nodes[i];
      auto at = g.module_of.find(n.id);
      if (at == g.module_of.end()) continue;
      of[n.id] = i;
      const std::string& read = reads[n.id];
      const int64_t head = head_of(n.scope);
      std::string label =
          fmt::format("{}{} {}\n{}|g| {:.2e}", n.op, read.empty() ? "" : " " + read, n.shape.str(),
                      head < 0 ? "" : fmt::format("head {} ", head + 1), norm(n.grad));
      clusters[at->second] += fmt::format("    n{} [label={}];\n", i, dot_string(label));
    }
    for (size_t k = 0; k < clusters.size(); ++k)
      out += fmt::format("  subgraph cluster_{} {{ label={};\n{}  }}\n", k, box(g.modules[k]), clusters[k]);
  } else {
    of = g.module_of;
    std::map<std::pair<bool, int>, std::string> ranks;
    for (size_t k = 0; k < g.modules.size(); ++k) {
      const GraphModule& m = g.modules[k];
      out += fmt::format("  n{} [label={}];\n", k, box(m));
      ranks[{m.decoder, m.row}] += fmt::format(" n{};", k);
    }
    for (const auto& [row, members] : ranks) out += fmt::format("  {{ rank=same;{} }}\n", members);
  }
  for (const auto& [ends, contribution] : gathered(g, of))
    out += fmt::format("  n{} -> n{} [penwidth={:.2f}, tooltip=\"{:.3e}\"];\n", ends.first, ends.second,
                       width(contribution), contribution);
  return out + "}\n";
}

std::string graph_text(const Subject& subject, const StepGraph& g) {
  const Names name(subject);
  int wide = 4;
  size_t titles = 14;
  for (const GraphModule& m : g.modules) {
    wide = std::max(wide, display_width(name(m)));
    titles = std::max(titles, m.title.size());
  }
  std::string out = fmt::format(
      "The loss of \"{}\" (step {}): {} operations in {} modules\n\n{:<{}} {:<{}} {:>3} {:>8} {:>10}  {}\n",
      name.target[g.step], g.step + 1, g.module_of.size(), g.modules.size(), "module", titles, "word", wide,
      "ops", "|value|", "|gradient|", "gradient comes from");
  std::vector<size_t> count(g.modules.size());
  std::vector<const Trace::Node*> last(g.modules.size());
  for (const Trace::Node& n : g.trace.nodes)
    if (auto at = g.module_of.find(n.id); at != g.module_of.end()) {
      ++count[at->second];
      // A module's result; taps are labels for one of its readers.
      const Trace::Node*& shown = last[at->second];
      if (!shown || n.op != "tap" || shown->op == "tap") shown = &n;
    }
  auto between = gathered(g, g.module_of);
  for (size_t k = 0; k < g.modules.size(); ++k) {
    std::vector<std::pair<double, size_t>> from;
    for (const auto& [ends, size] : between)
      if (ends.first == k) from.emplace_back(size, ends.second);
    std::sort(from.rbegin(), from.rend());
    const std::string row = fmt::format(
        "{:<{}} {:<{}} {:>3} {:>8.2e} {:>10}", g.modules[k].title, titles, name(g.modules[k]), wide, count[k],
        norm(last[k]->value), last[k]->grad.defined() ? fmt::format("{:.2e}", norm(last[k]->grad)) : "not run");
    std::vector<std::string> names;
    for (size_t i = 0; i < from.size() && i < 3; ++i) {
      const GraphModule& m = g.modules[from[i].second];
      names.push_back(
          fmt::format("{}{}{} ({:.1e})", m.title, m.column < 0 ? "" : " ", name(m), from[i].first));
    }
    if (from.size() > 3) names.push_back("...");
    if (names.empty()) names.push_back("the loss");
    const std::string line = fmt::format("{}  {}\n", row, fmt::join(names, ", "));
    int column = display_width(row) + 2;
    if (display_width(line) <= 80) {
      out += line;
      continue;
    }
    // One below another where a terminal would break the line, and below the row where that is still too wide.
    for (const std::string& from_one : names) column = std::min(column, 80 - display_width(from_one));
    const std::string below = "\n" + std::string(static_cast<size_t>(std::max(column, 4)), ' ');
    const bool beside = column == display_width(row) + 2;
    out += row + (beside ? "  " : below) + fmt::format("{}\n", fmt::join(names, below));
  }
  return out;
}

}  // namespace lens
