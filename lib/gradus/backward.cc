#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include <gradus/autograd.h>
#include <gradus/kernels/elementwise.h>
#include <gradus/numeric.h>
#include <gradus/print.h>
#include <gradus/trace.h>

namespace gradus {

// One run of backward: the reachable nodes sorted by order, and a gradient slot for each.
class BackwardPass {
 public:
  BackwardPass(const Var& loss, const BackwardOptions& options) : options_(options) {
    collect(loss);
    for (const Var& v : options.keep)
      if (v.node() && index_.count(v.node().get())) slots_[index_[v.node().get()]].kept = true;
  }

  Gradients run(const Var& loss, const Caller& caller) {
    {
      At at(caller);
      seed(loss);
    }
    for (size_t k = nodes_.size(); k-- > 0;) {
      // Not a reference: while this node's closure runs, its own gradient must stay alive.
      std::shared_ptr<Node> node = nodes_[k];
      Slot& slot = slots_[k];
      bool arrived = slot.entry.dense.defined() || !slot.entry.rows.empty();
      if (options_.trace) {  // now: the value goes with the graph
        if (arrived) traced_grads_[k] = densify(slot.entry);
        note_values(k);
      }
      if (node->inputs.empty() || !arrived) continue;
      At at(node->backward ? node->caller : caller);  // what goes wrong in a closure belongs to the op's call
      if (!node->backward)
        fail("backward", fmt::format("the graph behind {} was freed by an earlier backward; give that one "
                                     "retain_graph = true", node->op));
      Tensor dy = densify(slot.entry);
      if (!slot.kept) slot.entry = {};
      Grads grads(*this, *node);
      lent_.clear();
      arrived_ = dy;
      node->backward(dy, grads);
      flush_pending();
      if (!options_.retain_graph) {
        node->backward = nullptr;
        node->value = Tensor();
        node->input_values.clear();
      }
    }
    if (options_.trace) fill_trace();
    return collect_gradients();
  }

  // Null where input i was constant.
  static const std::shared_ptr<Node>& input_of(const Node& node, int i) {
    if (i < 0 || static_cast<size_t>(i) >= node.inputs.size())
      fail(node.op, fmt::format("there is no input {}: recorded with {}", i, node.inputs.size()));
    return node.inputs[static_cast<size_t>(i)];
  }

  bool needed(const Node& node, int i) const { return input_of(node, i) != nullptr; }

  void add(const Node& node, int i, const Tensor& g) {
    const auto& input = input_of(node, i);
    if (!input) return;
    if (!g.defined()) fail(node.op, fmt::format("the gradient of input {} is undefined", i));
    if (g.dtype() != input->dtype)
      fail(node.op, fmt::format("the gradient must have its input's element type: input {} {}, gradient {}",
                                i, name_of(input->dtype), name_of(g.dtype())));
    Tensor fitted = g;
    if (g.shape() != input->shape) {
      if (!broadcasts_to(input->shape, g.shape()))
        fail(node.op, fmt::format("the gradient must have its input's shape: input {} {}, gradient {}", i,
                                  input->shape.str(), g.shape().str()));
      fitted = sum_to(g, input->shape);
    }
    check(node, i, fitted);
    size_t k = index_.at(input.get());
    note_edge(*input, node, i, fitted);
    accumulate(slots_[k].entry, fitted, is_lent(k));
  }

  Tensor into(const Node& node, int i) {
    const auto& input = input_of(node, i);
    if (!input) fail(node.op, fmt::format("input {} is a constant: ask needed({}) first", i, i));
    if (options_.trace || options_.check_finite) {  // the contribution alone is wanted: collect it apart
      Tensor part = Tensor::zeros(input->shape, input->dtype);
      pending_.push_back({&node, i, part});
      return part;
    }
    size_t k = index_.at(input.get());
    Gradients::Entry& entry = slots_[k].entry;
    // Two inputs may be one node (dot attention: keys and annotations); both then share one accumulator, which must
    // not be copied because the closure holds its first handle.
    if (is_lent(k)) return entry.dense;
    lent_.push_back(k);
    if (!entry.rows.empty()) {
      entry.dense = densify(entry);
      entry.rows.clear();
    }
    if (!entry.dense.defined()) entry.dense = Tensor::zeros(input->shape, input->dtype);
    else if (!entry.dense.sole_owner()) entry.dense = entry.dense.clone();
    return entry.dense;
  }

  void add_rows(const Node& node, int i, const Tensor& ids, const Tensor& rows) {
    const auto& input = input_of(node, i);
    if (!input) return;
    check_rows(node, i, ids, rows);
    if (!input->inputs.empty() || options_.trace || options_.check_finite) {
      add_rows_into({ids, rows}, into(node, i));
    } else {
      slots_[index_.at(input.get())].entry.rows.push_back({ids, rows});
    }
  }

 private:
  struct Slot {
    Gradients::Entry entry;
    bool kept = false;
  };
  struct Pending {
    const Node* node;
    int input;
    Tensor part;
  };

  void collect(const Var& loss) {
    std::vector<std::shared_ptr<Node>> stack{loss.node()};
    index_.emplace(loss.node().get(), 0);
    while (!stack.empty()) {
      std::shared_ptr<Node> node = std::move(stack.back());
      stack.pop_back();
      for (const auto& input : node->inputs)
        if (input && index_.emplace(input.get(), 0).second) stack.push_back(input);
      nodes_.push_back(std::move(node));
    }
    std::sort(nodes_.begin(), nodes_.end(), [](const auto& a, const auto& b) { return a->order < b->order; });
    for (size_t k = 0; k < nodes_.size(); ++k) index_[nodes_[k].get()] = k;
    slots_.resize(nodes_.size());
    for (size_t k = 0; k < nodes_.size(); ++k) slots_[k].entry.node = nodes_[k];
    if (options_.trace) {
      traced_grads_.resize(nodes_.size());
      traced_values_.resize(nodes_.size());
    }
  }

  void seed(const Var& loss) {
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
    slots_[index_.at(loss.node().get())].entry.dense = s;
  }

  // Rows that do not fit would be added to somebody else's memory.
  static void check_rows(const Node& node, int i, const Tensor& ids, const Tensor& rows) {
    const Node& input = *input_of(node, i);
    if (input.shape.dims() == 0) fail(node.op, fmt::format("input {} is a scalar and has no rows", i));
    if (!ids.defined() || ids.dtype() != DType::i32 || rows.dtype() != input.dtype ||
        rows.numel() != ids.numel() * input.shape.stride(0))
      fail(node.op, fmt::format("rows must be those of ids i32 [N], each as a row of input {} {} {}: ids {} {}, "
                                "rows {} {}",
                                i, name_of(input.dtype), input.shape.str(), name_of(ids.dtype()),
                                ids.shape().str(), name_of(rows.dtype()), rows.shape().str()));
    for (int64_t k = 0; k < ids.numel(); ++k)
      if (int32_t id = ids.i32()[k]; id < 0 || id >= input.shape[0])
        fail(node.op, fmt::format("ids of input {} must be in 0 .. {}: {}", i, input.shape[0] - 1, id));
  }

  bool is_lent(size_t k) const { return std::find(lent_.begin(), lent_.end(), k) != lent_.end(); }

  static void accumulate(Gradients::Entry& entry, const Tensor& g, bool lent) {
    if (!entry.dense.defined()) {
      entry.dense = g;
      return;
    }
    // The stored tensor may be somebody's dy or a value saved in a closure: only add in place to what is ours alone.
    if (!lent && !entry.dense.sole_owner()) entry.dense = entry.dense.clone();
    visit_floating(entry.dense, "backward", [&](auto* p) {
      kernels::add_into(data<std::remove_pointer_t<decltype(p)>>(g), p, entry.dense.numel());
    });
  }

  void flush_pending() {
    auto parts = std::move(pending_);
    pending_.clear();
    for (const Pending& p : parts) add(*p.node, p.input, p.part);
  }

  // The node's own value, and those of leaves among its inputs (a leaf keeps none itself: its numbers may be updated).
  void note_values(size_t k) {
    const Node& node = *nodes_[k];
    if (node.value.defined()) traced_values_[k] = node.value;
    for (size_t i = 0; i < node.input_values.size(); ++i)
      if (node.inputs[i] && node.inputs[i]->inputs.empty())
        traced_values_[index_.at(node.inputs[i].get())] = node.input_values[i];
  }

  void note_edge(const Node& from, const Node& to, int i, const Tensor& g) {
    // A later accumulation must not change what the trace holds, hence the copy.
    if (options_.trace) options_.trace->edges.push_back({from.order, to.order, i, g.clone()});
  }

  void check(const Node& node, int i, const Tensor& g) const {
    if (!options_.check_finite || all_finite(g)) return;
    std::string text = fmt::format("the gradient of input {} is not finite: {}, scope \"{}\"", i, describe(g),
                                   node.scope ? *node.scope : std::string());
    for (size_t k = 0; k < node.input_values.size(); ++k)
      text += fmt::format("; input {}: {}", k, describe(node.input_values[k]));
    text += fmt::format("; the gradient that arrived: {}", gradus::describe(arrived_));
    if (node.input_values.empty()) text += "; record under KeepValues to see the inputs' ranges";
    fail_not_finite(std::string(node.op) + " backward", text);
  }

  void fill_trace() {
    for (size_t k = 0; k < nodes_.size(); ++k) {
      const Node& n = *nodes_[k];
      options_.trace->nodes.push_back({n.order, n.op, n.scope ? *n.scope : std::string(), n.label, n.shape,
                                       traced_values_[k], traced_grads_[k], n.inputs.empty()});
    }
  }

  Gradients collect_gradients() {
    Gradients out;
    for (size_t k = 0; k < nodes_.size(); ++k) {
      Gradients::Entry& entry = slots_[k].entry;
      bool wanted = nodes_[k]->inputs.empty() || slots_[k].kept;
      if (!wanted || (!entry.dense.defined() && entry.rows.empty())) continue;
      if (entry.dense.defined() && !entry.rows.empty()) {
        entry.dense = densify(entry);
        entry.rows.clear();
      }
      entry.node = nodes_[k];
      out.entries_.push_back(std::move(entry));
    }
    return out;
  }

  const BackwardOptions& options_;
  std::vector<std::shared_ptr<Node>> nodes_;
  std::unordered_map<const Node*, size_t> index_;
  std::vector<Slot> slots_;
  std::vector<Tensor> traced_grads_, traced_values_;
  std::vector<Pending> pending_;
  Tensor arrived_;            // dy of the running closure
  std::vector<size_t> lent_;  // slots whose accumulator the running closure holds through into()
};

bool Grads::needed(int i) const { return pass_.needed(node_, i); }
void Grads::add(int i, const Tensor& g) { pass_.add(node_, i, g); }
Tensor Grads::into(int i) { return pass_.into(node_, i); }
void Grads::add_rows(int i, const Tensor& ids, const Tensor& rows) { pass_.add_rows(node_, i, ids, rows); }

Gradients backward(const Input& loss, const BackwardOptions& options) {
  if (!loss.node()) {
    At at(loss.caller());
    fail("backward", "the loss depends on nothing that needs a gradient");
  }
  BackwardPass pass(loss, options);
  return pass.run(loss.var(), loss.caller());
}

}  // namespace gradus
