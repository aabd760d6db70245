#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gradus/error.h>
#include <gradus/tensor.h>

namespace gradus {

class Node;
class Grads;
struct Trace;

/// dy is the gradient that arrives at the op's output; the closure hands what follows from it to the inputs.
using Backward = std::function<void(const Tensor& dy, Grads& dx)>;

/// A Tensor and, where gradients flow, the node that made it. What ops take and return. A Tensor converts to a
/// constant. Copying a Var copies two references.
class Var {
 public:
  Var() = default;
  Var(const Var& other);  // not inline, as Tensor's
  Var(Var&& other) noexcept = default;
  Var& operator=(const Var& other);
  Var& operator=(Var&& other) noexcept;
  ~Var();
  Var(Tensor value) : value_(std::move(value)) {}
  Var(Tensor value, std::shared_ptr<Node> node) : value_(std::move(value)), node_(std::move(node)) {}

  /// The way back to a Tensor: (t * 2).value().
  const Tensor& value() const { return value_; }
  bool defined() const { return value_.defined(); }
  const Shape& shape() const { return value_.shape(); }
  int dims() const { return value_.dims(); }
  int64_t size(int axis) const { return value_.size(axis); }
  int64_t numel() const { return value_.numel(); }
  DType dtype() const { return value_.dtype(); }
  /// The number of a one-element Var.
  double item() const { return value_.item(); }
  bool requires_grad() const { return node_ != nullptr; }
  const std::shared_ptr<Node>& node() const { return node_; }

 private:
  Tensor value_;
  std::shared_ptr<Node> node_;
};

/// One recorded operation with exactly one differentiable output, or a leaf (no inputs, no backward). The graph
/// is owned by the values computed from it; destruction is iterative: chains may be as long as memory allows.
class Node {
 public:
  Node(const char* op, const Shape& shape, DType dtype);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// "matmul", "parameter", ...
  const char* op;
  /// Of the output.
  Shape shape;
  DType dtype;
  /// Larger than that of every input.
  uint64_t order;
  /// A leaf's name or a tap's label, may be empty.
  std::string label;
  /// Path of the Scopes around the op, null for none.
  std::shared_ptr<const std::string> scope;
  /// Null where an input was constant.
  std::vector<std::shared_ptr<Node>> inputs;
  Backward backward;
  /// The line of the user's code that called for it.
  Caller caller;
  /// Kept only under KeepValues.
  Tensor value;
  /// Kept only under KeepValues and CheckFinite, constants included.
  std::vector<Tensor> input_values;
};

/// A value that gradients are wanted for, and that optimisers change. Move-only: copying a model by accident
/// does not compile. Threads may share it while nobody updates it.
class Parameter {
 public:
  Parameter() = default;
  /// @throws Error unless the numbers are f32 or f64.
  explicit Parameter(Tensor value, std::string name = "", Caller caller = Caller::current());
  Parameter(Parameter&&) = default;
  Parameter& operator=(Parameter&&) = default;
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  operator const Var&() const { return var(); }
  /// @throws Error "[parameter] has no numbers any more; hint: moved from?".
  const Var& var() const { return var_ ? *var_ : moved_from(); }
  const Tensor& value() const { return var().value(); }
  const Shape& shape() const { return var().shape(); }
  bool defined() const { return var_ && var_->defined(); }

  /// The same parameter for a second place: numbers and gradient are one (weight tying).
  Parameter tied() const;

  /// Runs `change` on the numbers, in place. If a live graph saved them they are copied first, so that its
  /// backward still sees what its forward saw.
  /// @throws Error when there are none: a bias that a layer was made without.
  void update(const std::function<void(const Tensor& value)>& change);
  /// Replaces the numbers; the shape must stay, the element type may change.
  /// @throws Error "[assign] the shape must stay: parameter [3, 4], value [4, 3]".
  void assign(Tensor value);

 private:
  static const Var& moved_from();
  // Of all places that it is tied to.
  std::shared_ptr<Var> var_ = std::make_shared<Var>();
};

/// What a public op or module takes as its first operand: a Var, and the line that the call stands on, for
/// errors and traces. Made implicitly from a Var, a Parameter or a Tensor, operators included (`a + b`). Only
/// for parameters: it refers to the Var it was made of.
class Input {
 public:
  Input(const Var& x, Caller caller = Caller::current()) : var_(&x), caller_(caller) {}
  Input(const Parameter& x, Caller caller = Caller::current()) : var_(&x.var()), caller_(caller) {}
  Input(const Tensor& x, Caller caller = Caller::current())
      : constant_(x), var_(&constant_), caller_(caller) {}
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  const Caller& caller() const { return caller_; }
  const Var& var() const { return *var_; }
  operator const Var&() const { return *var_; }

  const Tensor& value() const { return var_->value(); }
  bool defined() const { return var_->defined(); }
  const Shape& shape() const { return var_->shape(); }
  int dims() const { return var_->dims(); }
  int64_t size(int axis) const { return var_->size(axis); }
  int64_t numel() const { return var_->numel(); }
  DType dtype() const { return var_->dtype(); }
  bool requires_grad() const { return var_->requires_grad(); }
  const std::shared_ptr<Node>& node() const { return var_->node(); }

 private:
  Var constant_;
  const Var* var_;
  Caller caller_;
};

/// A leaf that gradients are wanted for, for inputs and tests. @throws Error unless the numbers are f32 or f64.
Var variable(Tensor value, std::string name = "", Caller caller = Caller::current());

/// The whole interface for writing a differentiable op. `backward` captures Tensors, never Vars: its capture
/// list is what the op saves. Under NoGrad, or when no input needs a gradient, nothing is recorded. The node
/// remembers the place that At names, or `caller` where no At is in force. `op` is not copied: pass a literal.
/// @throws Error for an empty backward or an output without numbers, under CheckFinite for NaN or infinity.
Var record(const char* op, const std::vector<Var>& inputs, Tensor output, Backward backward,
           Caller caller = Caller::current());

/// A gradient with few non-zero rows, as an embedding's: row ids[i] receives rows[i]. Ids may repeat.
struct RowGradient {
  /// i32 [N]
  Tensor ids;
  /// [N, E]
  Tensor rows;
};

/// What a backward closure writes the gradients of its inputs to.
class Grads {
 public:
  /// False when nobody wants the gradient of input i: skip the work.
  bool needed(int i) const;
  /// Adds g to the gradient of input i. Where the input was broadcast, g has the output's shape and is summed
  /// over the stretched axes here. g may share storage with anything; it is copied before it is added to.
  void add(int i, const Tensor& g);
  /// The accumulator of input i itself (zeros at first use), to ADD into: for ops that touch a small part of
  /// it, such as a slice; a full-size temporary each time would make a loop over slices quadratic.
  Tensor into(int i);
  /// Adds rows of a [N, E] input; kept sparse when the input is a leaf.
  void add_rows(int i, const Tensor& ids, const Tensor& rows);

 private:
  friend class BackwardPass;
  Grads(class BackwardPass& pass, const Node& node) : pass_(pass), node_(node) {}
  class BackwardPass& pass_;
  const Node& node_;
};

/// Gradients by parameter. Not stored in the model, so that threads can differentiate one model at a time.
class Gradients {
 public:
  struct Entry {
    std::shared_ptr<Node> node;
    /// Undefined while the gradient has only `rows`, which are used no longer than that.
    Tensor dense;
    std::vector<RowGradient> rows;
    bool arrived() const { return dense.defined() || !rows.empty(); }
    /// All of it into `dense`.
    void make_dense();
  };

  /// The gradient, in the parameter's shape.
  /// @throws Error when the loss does not depend on it: a disconnected graph, or `keep` was not asked for.
  Tensor operator[](const Input& x) const;
  bool contains(const Var& x) const { return find(x) != nullptr; }
  /// The stored entry, or null; optimisers use it to see row gradients as they are.
  const Entry* find(const Var& x) const;

  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<Entry>& entries() { return entries_; }

  /// this += other, parameter by parameter in a fixed order.
  void add(const Gradients& other);
  /// Multiplies every gradient.
  void scale(double factor);

 private:
  friend class BackwardPass;
  // Sorted by node order.
  std::vector<Entry> entries_;
};

/// dense[ids[i], ...] += rows[i, ...], row by row in order.
void add_rows_into(const RowGradient& part, const Tensor& dense);
/// The row gradients as one dense tensor.
Tensor densify(const Gradients::Entry& entry);

struct BackwardOptions {
  /// Gradient that arrives at `loss`, in its shape; default 1 for one-element losses.
  Tensor seed = {};
  /// Intermediate values whose gradients are wanted too.
  std::vector<Var> keep = {};
  /// Keep the closures, so that backward can run again.
  bool retain_graph = false;
  /// Receives nodes, gradients and the contribution of every edge.
  Trace* trace = nullptr;
  /// Throw NotFinite at the first NaN or infinity, naming op, scope, line, ranges.
  bool check_finite = false;
};

/// Reverse-mode differentiation of `loss`: reachable nodes, newest first. Iterative; O(nodes log nodes).
/// @throws Error when loss is not a scalar and no seed is given, needs no gradient, or its graph was freed.
Gradients backward(const Input& loss, const BackwardOptions& options = {});

/// y = x, under a label: gives one consumer of x a gradient of its own (see `keep`, or the trace).
Var tap(const Input& x, std::string label);
/// The value of x as a constant.
Var stop_gradient(const Var& x);

/// A mode of this thread that is on within the lifetime of an object of its class, one of those below.
template <class Mode>
class ThreadMode {
 public:
  ThreadMode() = default;
  ThreadMode(const ThreadMode&) = delete;
  ~ThreadMode() { on_ = before_; }
  static bool active() { return on_; }

 private:
  inline static thread_local constinit bool on_ = false;
  bool before_ = std::exchange(on_, true);
};

/// Within its lifetime, on this thread, nothing is recorded.
struct NoGrad : ThreadMode<NoGrad> {};

/// Within its lifetime, on this thread, modules behave as in training: dropout drops. The same seed drops the
/// same entries, provided the ops run in the same order. Not the seed of an Rng in use: that draws the same
/// words, and the first mask would be the signs of the first weights. Dropout drops with dropout_share p, which
/// may rise (Morerio et al. 2017, 1703.06229). @throws Error "[Training] dropout_share must be in [0, 1]: 2".
class Training : public ThreadMode<Training> {
 public:
  explicit Training(uint64_t seed, double dropout_share = 1);
  ~Training();
  /// 0 outside.
  static double dropout_share();
  /// A number for the next random op: (seed, how many were drawn before).
  static std::pair<uint64_t, uint64_t> next_stream();

 private:
  std::pair<uint64_t, uint64_t> before_;
  double share_before_;
};

/// Names what is recorded within its lifetime on this thread; scopes nest: "decoder.t3.attention".
class Scope {
 public:
  explicit Scope(const std::string& name);
  ~Scope();
  Scope(const Scope&) = delete;
  /// The current path, "" outside of any scope.
  static std::string path();

 private:
  std::shared_ptr<const std::string> before_;
};

/// Within its lifetime, on this thread, nodes keep their values (for traces and error reports).
struct KeepValues : ThreadMode<KeepValues> {};

/// Within its lifetime, on this thread, every recorded op's output is checked; the first NaN or infinity throws
/// NotFinite "[op] ...", naming scope, the line of the call, shape, and ranges and counts of bad values of the
/// inputs. Nodes keep their inputs, so that backward(loss, {.check_finite = true}) can tell as much.
struct CheckFinite : ThreadMode<CheckFinite> {};

}  // namespace gradus
