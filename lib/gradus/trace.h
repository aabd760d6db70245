#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gradus/error.h>
#include <gradus/tensor.h>

namespace gradus {

class Var;

/// What one backward did, for looking at: filled by backward(loss, {.trace = &trace}).
struct Trace {
  struct Node {
    /// The order number.
    uint64_t id;
    std::string op, scope, label;
    Shape shape;
    /// Undefined unless recorded under KeepValues.
    Tensor value;
    /// Undefined when no gradient arrived: not the same as zero.
    Tensor grad;
    bool leaf = false;
  };
  /// The gradient that `to` (consumer) sent to `from` (its input number `input`), before others were added.
  struct Edge {
    uint64_t from, to;
    int input;
    Tensor contribution;
  };
  /// Oldest first.
  std::vector<Node> nodes;
  /// In the order the backward visited them.
  std::vector<Edge> edges;

  /// The node with this label, or with this path "scope/op" when no label fits. @throws Error for none.
  const Node& find(const std::string& label) const;
};

/// The operations behind `loss`, oldest first, one a line for people: number, op, inputs, shape, scope.
std::string tape(const Var& loss);

}  // namespace gradus
