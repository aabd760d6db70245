#pragma once

// Internal: one run of backward (backward.cc), and what a closure's `dx` does (grads.cc). Not installed.

#include <unordered_map>

#include <gradus/autograd.h>

namespace gradus {

class BackwardPass {
 public:
  explicit BackwardPass(const BackwardOptions& options) : options_(options) {}
  Gradients run(const Input& loss);

 private:
  friend class Grads;

  // The gradient of a node, as far as it has been added up.
  struct Slot {
    Gradients::Entry entry;
    // Asked for by BackwardOptions::keep.
    bool kept = false;
  };

  void collect(const Var& loss);
  void seed(const Input& loss);
  void run_closure(const Node& node, const Tensor& dy);
  Gradients kept_gradients();
  Slot& slot_of(const Node& node) { return slots_[index_.at(&node)]; }
  bool is_lent(const Slot& slot) const;

  // Somebody looks on: each contribution is wanted by itself, before it is added to others.
  bool watched() const { return options_.trace || options_.check_finite; }
  void trace_node(const Node& node, const Tensor& gradient);
  void watch(const Node& node, int i, const Tensor& g);

  const BackwardOptions& options_;
  // All that the loss depends on, oldest first, with the slot and the place of each.
  std::vector<std::shared_ptr<Node>> nodes_;
  std::vector<Slot> slots_;
  std::unordered_map<const Node*, size_t> index_;
  // Of the running closure: of inputs, what is wanted by itself and added at its end.
  std::vector<std::pair<int, Tensor>> parts_;
  // Whose accumulators it holds through into().
  std::vector<const Slot*> lent_;
  // What it was given, under check_finite.
  Tensor dy_;
  // For the trace: a leaf's numbers, of those who used it.
  std::unordered_map<const Node*, Tensor> leaf_values_;
};

}  // namespace gradus
