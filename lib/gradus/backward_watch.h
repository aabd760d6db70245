#pragma once

// Internal: what looks on while a backward runs, the trace and the search for NaN and infinity. Not installed.

#include <unordered_map>

#include <gradus/autograd.h>
#include <gradus/trace.h>

namespace gradus {

class BackwardWatch {
 public:
  explicit BackwardWatch(const BackwardOptions& options)
      : trace_(options.trace), check_finite_(options.check_finite) {}
  /// Somebody looks on: each contribution is wanted by itself, before it is added to others.
  bool on() const { return trace_ || check_finite_; }

  /// For the trace: a node's turn has come, with the gradient that arrived (undefined: none).
  void visit(const Node& node, const Tensor& gradient);
  /// Its closure is about to run.
  void enter(const Tensor& dy);
  /// It sends g to its input i. @throws NotFinite, under check_finite.
  void contribution(const Node& node, int i, const Tensor& g);
  /// Fills the trace, nodes in the order of `nodes`.
  void finish(const std::vector<std::shared_ptr<Node>>& nodes);

 private:
  struct Seen {
    Tensor value, gradient;
  };
  Trace* trace_;
  bool check_finite_;
  std::unordered_map<const Node*, Seen> seen_;
  Tensor dy_;  // of the running closure
};

}  // namespace gradus
