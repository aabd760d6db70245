#include <gradus/trace.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include <gradus/autograd.h>

namespace gradus {
namespace {

double norm(const Tensor& t) {
  double sum = 0;
  for (double v : t.to_vector()) sum += v * v;
  return std::sqrt(sum);
}

}  // namespace

const Trace::Node& Trace::find(const std::string& label) const {
  for (const Node& n : nodes)
    if (n.label == label) return n;
  for (const Node& n : nodes)
    if ((n.scope.empty() ? n.op : n.scope + "/" + n.op) == label) return n;
  fail("trace", fmt::format("no node is labelled \"{}\"", label));
}

std::string tape(const Var& loss) {
  std::vector<const gradus::Node*> nodes, stack;
  std::unordered_set<const gradus::Node*> seen;
  auto visit_node = [&](const gradus::Node* n) {
    if (n && seen.insert(n).second) stack.push_back(n);
  };
  visit_node(loss.node().get());
  while (!stack.empty()) {
    const gradus::Node* n = stack.back();
    stack.pop_back();
    nodes.push_back(n);
    for (const auto& input : n->inputs) visit_node(input.get());
  }
  std::sort(nodes.begin(), nodes.end(), [](auto* a, auto* b) { return a->order < b->order; });
  std::unordered_map<const gradus::Node*, size_t> number;
  std::string out;
  for (const gradus::Node* n : nodes) {
    size_t id = number.size();
    number[n] = id;
    std::string inputs;
    for (const auto& input : n->inputs) {
      if (!inputs.empty()) inputs += ", ";
      inputs += input ? fmt::format("%{}", number.at(input.get())) : std::string("constant");
    }
    std::string call = n->inputs.empty() ? std::string(n->op) : fmt::format("{}({})", n->op, inputs);
    if (!n->label.empty()) call += fmt::format(" \"{}\"", n->label);
    out += fmt::format("%{:<3} {:<32} {} {}", id, call, name_of(n->dtype), n->shape.str());
    if (n->scope) out += "  in " + *n->scope;
    out += "\n";
  }
  return out;
}

std::string to_string(const Trace& trace) {
  std::string out = fmt::format("{:<6} {:<18} {:<14} {:>12} {:>12}  scope\n", "node", "op", "shape",
                                "|value|", "|gradient|");
  for (const Trace::Node& n : trace.nodes) {
    out += fmt::format("{:<6} {:<18} {:<14} {:>12} {:>12}  {}{}\n", n.id, n.op, n.shape.str(),
                       n.value.defined() ? fmt::format("{:.6g}", norm(n.value)) : std::string("not kept"),
                       n.grad.defined() ? fmt::format("{:.6g}", norm(n.grad)) : std::string("not run"),
                       n.scope, n.label.empty() ? std::string() : " \"" + n.label + "\"");
  }
  return out;
}

}  // namespace gradus
