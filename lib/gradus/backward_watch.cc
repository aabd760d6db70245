#include <gradus/backward_watch.h>

#include <fmt/core.h>

#include <gradus/numeric.h>
#include <gradus/print.h>

namespace gradus {

void BackwardWatch::visit(const Node& node, const Tensor& gradient) {
  Seen& seen = seen_[&node];  // now: the values go with the graph
  seen.gradient = gradient;
  if (node.value.defined()) seen.value = node.value;
  // A leaf keeps no value itself, its numbers may be updated; who used it does.
  for (size_t i = 0; i < node.input_values.size(); ++i)
    if (node.inputs[i] && node.inputs[i]->inputs.empty())
      seen_[node.inputs[i].get()].value = node.input_values[i];
}

void BackwardWatch::enter(const Tensor& dy) {
  if (check_finite_) dy_ = dy;
}

void BackwardWatch::contribution(const Node& node, int i, const Tensor& g) {
  if (check_finite_ && !all_finite(g)) {
    std::string text = fmt::format("the gradient of input {} is not finite: {}, scope \"{}\"", i, describe(g),
                                   node.scope ? *node.scope : std::string());
    for (size_t k = 0; k < node.input_values.size(); ++k)
      text += fmt::format("; input {}: {}", k, describe(node.input_values[k]));
    text += fmt::format("; the gradient that arrived: {}", describe(dy_));
    if (node.input_values.empty()) text += "; record under KeepValues to see the inputs' ranges";
    fail_not_finite(std::string(node.op) + " backward", text);
  }
  // Later additions must not change what the trace holds, hence the copy.
  if (trace_) trace_->edges.push_back({node.inputs[static_cast<size_t>(i)]->order, node.order, i, g.clone()});
}

void BackwardWatch::finish(const std::vector<std::shared_ptr<Node>>& nodes) {
  for (const std::shared_ptr<Node>& n : nodes) {
    const Seen& seen = seen_[n.get()];
    trace_->nodes.push_back({n->order, n->op, n->scope ? *n->scope : std::string(), n->label, n->shape,
                             seen.value, seen.gradient, n->inputs.empty()});
  }
}

}  // namespace gradus
