#include <gradus/trace.h>

#include <fmt/ranges.h>

#include <map>
#include <unordered_map>

#include <gradus/autograd.h>

namespace gradus {

const Trace::Node& Trace::find(const std::string& label) const {
  for (const Node& n : nodes)
    if (n.label == label) return n;
  for (const Node& n : nodes)
    if ((n.scope.empty() ? n.op : n.scope + "/" + n.op) == label) return n;
  fail("trace", fmt::format("no node is labelled \"{}\"", label));
}

std::string tape(const Var& loss) {
  std::map<uint64_t, const Node*> nodes;  // by order
  std::vector<const Node*> stack{loss.node().get()};
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (!n || !nodes.emplace(n->order, n).second) continue;
    for (const auto& input : n->inputs) stack.push_back(input.get());
  }
  std::unordered_map<const Node*, size_t> number;
  std::string out;
  for (const auto& [order, n] : nodes) {
    const size_t id = number.emplace(n, number.size()).first->second;
    std::vector<std::string> inputs;
    for (const auto& input : n->inputs)
      inputs.push_back(input ? fmt::format("%{}", number.at(input.get())) : "constant");
    std::string call = n->inputs.empty() ? n->op : fmt::format("{}({})", n->op, fmt::join(inputs, ", "));
    if (!n->label.empty()) call += fmt::format(" \"{}\"", n->label);
    out += fmt::format("%{:<3} {:<32} {} {}", id, call, name_of(n->dtype), n->shape.str());
    if (n->scope) out += "  in " + *n->scope;
    out += "\n";
  }
  return out;
}

}  // namespace gradus
