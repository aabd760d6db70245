#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include <gradus/trace.h>

#include "explain/explain.h"
#include "transformer/trace.h"

namespace lens {

/// A box of the graph: the operations of one module at one time, of a Transformer for one word.
struct GraphModule {
  /// scope: "decoder.t3.attention", "encoder.j0.self_l1"
  std::string path;
  /// "attention", "self-attention 2"
  std::string title;
  bool decoder = false;
  int row = 0;
  /// source word or target step; -1: of all
  int64_t column = -1;
};

/// The graph of one step's loss, as recorded, with values, gradients and what every edge contributed.
struct StepGraph {
  size_t step = 0;
  gradus::Trace trace;
  std::vector<GraphModule> modules;
  /// node id -> module; leaves (parameters) have none
  std::unordered_map<uint64_t, size_t> module_of;
  /// how far a node's gradient is off the sum of what its edges brought
  double sum_residual = 0;
  /// path of the module that a page opens first
  std::string shown;
  /// the head of it, from 0
  int64_t shown_head = -1;
};

/// Differentiates a loss that was recorded with values kept; `module_of` tells the box of a scope.
StepGraph graph_of(const gradus::Var& loss, size_t step,
                   const std::function<GraphModule(const std::string& scope)>& module_of);
/// Runs everything anew, with values kept, and differentiates step t.
StepGraph trace_step(const Dissection& d, size_t t);
/// The same of a Transformer, computed word by word and head by head: a box for each word, part and layer. The
/// heads of an attention are scopes in its box: "encoder.j0.self_l1.head2". `known` is the same sentence,
/// computed at once; its head with the largest gradient is shown first.
/// @throws gradus::Error when loss or gradients are not those of `known`.
StepGraph trace_step(const transformer::Dissection& d, const transformer::Trace& known, size_t t);

/// The trace of kind "graph". `worst_error` is that of the step's finite differences.
json graph_json(const Subject& subject, const StepGraph& graph, size_t checks, double worst_error,
                int digits);

/// For Graphviz: time in columns, modules in rows, edges as wide as their contribution is large (log scale); of
/// modules, or of the operations in them. @throws gradus::Error when there are more than 400 operations.
std::string graph_dot(const Subject& subject, const StepGraph& graph, bool operations);

/// A table: modules with their operations, the norms of value and gradient, and where gradients come from.
std::string graph_text(const Subject& subject, const StepGraph& graph);

}  // namespace lens
