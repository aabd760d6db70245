#include <fmt/core.h>

#include <algorithm>

#include <gradus/backward_pass.h>
#include <gradus/print.h>
#include <gradus/trace.h>

namespace gradus {

// All of backpropagation. By the chain rule the gradient of the loss with respect to a node's output is a sum
// with one term for each op that used the output: the gradient at that op's own output times its derivative. An
// op is newer than its inputs. So on a walk from the newest node to the oldest, all terms of a node's gradient
// have been added when the walk reaches the node.
Gradients BackwardPass::run(const Input& loss) {
  collect(loss);  // nodes_: all that the loss depends on, oldest first
  seed(loss);     // dloss/dloss = 1
  for (size_t k = nodes_.size(); k-- > 0;) {
    Node& node = *nodes_[k];
    Slot& slot = slots_[k];
    if (options_.trace) trace_node(node, slot.entry.arrived() ? densify(slot.entry) : Tensor());
    // A leaf (a parameter) keeps what has arrived: that is the result. Where nothing has, nothing is sent on.
    if (node.inputs.empty() || !slot.entry.arrived()) continue;

    // What goes wrong in a closure belongs to the op's call.
    At at(node.backward ? node.caller : loss.caller());
    if (!node.backward)
      fail("backward", fmt::format("the graph behind {} was freed by an earlier backward; give that one "
                                   "retain_graph = true",
                                   node.op));
    Tensor dy = densify(slot.entry);
    if (!slot.kept) slot.entry = {};  // used once: its memory is free for the gradients to come
    run_closure(node, dy);            // node.backward(dy, dx): what the op's author wrote beside its forward
    if (!options_.retain_graph) {     // nor is what the closure has saved needed again
      node.backward = nullptr;
      node.value = Tensor();
      node.input_values.clear();
    }
  }
  if (Trace* t = options_.trace) std::reverse(t->nodes.end() - std::ssize(nodes_), t->nodes.end());
  return kept_gradients();
}

Gradients backward(const Input& loss, const BackwardOptions& options) {
  if (!loss.node())
    fail(loss.caller(), "backward", "the loss depends on nothing that needs a gradient",
         loss.defined() ? "made under NoGrad, or of constants alone?" : "moved from, or never computed?");
  return BackwardPass(options).run(loss);
}

// ---- before the walk and after it ----

void BackwardPass::collect(const Var& loss) {
  std::vector<std::shared_ptr<Node>> stack{loss.node()};  // not recursion: a graph may be a million nodes deep
  index_.emplace(loss.node().get(), 0);
  while (!stack.empty()) {
    std::shared_ptr<Node> node = std::move(stack.back());
    stack.pop_back();
    for (const auto& input : node->inputs)
      if (input && index_.emplace(input.get(), 0).second) stack.push_back(input);
    nodes_.push_back(std::move(node));
  }
  std::sort(nodes_.begin(), nodes_.end(), [](const auto& a, const auto& b) { return a->order < b->order; });
  slots_.resize(nodes_.size());
  for (size_t k = 0; k < nodes_.size(); ++k) {
    index_[nodes_[k].get()] = k;
    slots_[k].entry.node = nodes_[k];
  }
  for (const Var& v : options_.keep)
    if (v.node() && index_.count(v.node().get())) slot_of(*v.node()).kept = true;
}

void BackwardPass::seed(const Input& loss) {
  At at(loss.caller());
  Tensor s = options_.seed;
  if (!s.defined()) {
    if (loss.numel() != 1)
      fail("backward", fmt::format("the loss must be a scalar, or BackwardOptions::seed given: shape {}",
                                   loss.shape().str()));
    s = Tensor::ones(loss.shape(), loss.dtype());
  }
  if (s.shape() != loss.shape() || s.dtype() != loss.dtype())
    fail("backward",
         fmt::format("the seed must have the loss's shape and type: {} {} and {} {}", s.shape().str(),
                     name_of(s.dtype()), loss.shape().str(), name_of(loss.dtype())));
  slot_of(*loss.node()).entry.dense = s;
}

Gradients BackwardPass::kept_gradients() {
  Gradients out;
  for (size_t k = 0; k < nodes_.size(); ++k) {
    Gradients::Entry& entry = slots_[k].entry;
    if (!entry.arrived() || !(nodes_[k]->inputs.empty() || slots_[k].kept)) continue;
    if (entry.dense.defined()) entry.make_dense();
    out.entries_.push_back(std::move(entry));
  }
  return out;
}

// ---- looking on ----

// A node's turn has come, with the gradient that arrived (undefined: none).
void BackwardPass::trace_node(const Node& node, const Tensor& gradient) {
  // A leaf keeps no value itself, its numbers may be updated; who used it does.
  for (size_t i = 0; i < node.input_values.size(); ++i)
    if (node.inputs[i] && node.inputs[i]->inputs.empty())
      leaf_values_[node.inputs[i].get()] = node.input_values[i];
  const bool leaf = node.inputs.empty();
  options_.trace->nodes.push_back({node.order, node.op, node.scope ? *node.scope : std::string(), node.label,
                                   node.shape, leaf ? leaf_values_[&node] : node.value, gradient, leaf});
}

// Its closure sends g to its input i. @throws NotFinite, under check_finite.
void BackwardPass::watch(const Node& node, int i, const Tensor& g) {
  if (options_.check_finite && !all_finite(g)) {
    std::string text = fmt::format("the gradient of input {} is not finite: {}, scope \"{}\"", i, describe(g),
                                   node.scope ? *node.scope : std::string());
    for (size_t k = 0; k < node.input_values.size(); ++k)
      text += fmt::format("; input {}: {}", k, describe(node.input_values[k]));
    text += fmt::format("; the gradient that arrived: {}", describe(dy_));
    if (node.input_values.empty()) text += "; record under KeepValues to see the inputs' ranges";
    fail_not_finite(std::string(node.op) + " backward", text);
  }
  // Later additions must not change what the trace holds, hence the copy.
  if (options_.trace)
    options_.trace->edges.push_back({node.inputs[static_cast<size_t>(i)]->order, node.order, i, g.clone()});
}

}  // namespace gradus
