#pragma once

// Internal: one run of backward. Not installed. The run itself is in backward.cc, what a closure's `dx` does in
// grads.cc.

#include <unordered_map>

#include <gradus/autograd.h>
#include <gradus/backward_watch.h>

namespace gradus {

class BackwardPass {
 public:
  explicit BackwardPass(const BackwardOptions& options) : options_(options), watch_(options) {}
  Gradients run(const Input& loss);

  // Grads, of the closure of `node`.
  bool needed(const Node& node, int i) const;
  void add(const Node& node, int i, const Tensor& g);
  Tensor into(const Node& node, int i);
  void add_rows(const Node& node, int i, const Tensor& ids, const Tensor& rows);

 private:
  // The gradient of a node, as far as it has been added up.
  struct Slot {
    Gradients::Entry entry;
    bool kept = false;  // asked for by BackwardOptions::keep
    bool arrived() const { return entry.dense.defined() || !entry.rows.empty(); }
  };
  // A contribution that is wanted by itself and added when its closure has ended.
  struct Part {
    int input;
    Tensor g;
  };

  void collect(const Var& loss);
  void seed(const Input& loss);
  void run_closure(const Node& node, const Tensor& dy);
  Gradients kept_gradients();
  Slot& slot_of(const Node& node) { return slots_[index_.at(&node)]; }
  bool is_lent(const Slot& slot) const;

  const BackwardOptions& options_;
  BackwardWatch watch_;
  std::vector<std::shared_ptr<Node>> nodes_;  // all that the loss depends on, oldest first
  std::vector<Slot> slots_;                   // of each
  std::unordered_map<const Node*, size_t> index_;
  std::vector<Part> parts_;        // of the running closure
  std::vector<const Slot*> lent_;  // whose accumulators the running closure holds through into()
};

}  // namespace gradus
