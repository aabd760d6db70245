#include <gradus/autograd.h>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>

#include <gradus/kernels/elementwise.h>
#include <gradus/numeric.h>
#include <gradus/print.h>

namespace gradus {
namespace {

// Of this thread.
thread_local std::pair<uint64_t, uint64_t> training_stream{0, 0};
thread_local double training_share = 0;
thread_local std::shared_ptr<const std::string> scope_path;

uint64_t next_order() {
  static std::atomic<uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Var::Var(const Var&) = default;
Var& Var::operator=(const Var&) = default;
Var& Var::operator=(Var&&) noexcept = default;
Var::~Var() = default;

Node::Node(const char* op_name, const Shape& s, DType type)
    : op(op_name), shape(s), dtype(type), order(next_order()), scope(scope_path), caller(At::current()) {}

// Without this, freeing a chain would recurse once per node. All references to inputs are moved to a list and
// dropped one by one; whoever drops the last one to a node empties it first: its destructor has no inputs.
// (Looking only at inputs that nobody else holds would miss x + x, where the node itself holds x twice.)
Node::~Node() {
  std::vector<std::shared_ptr<Node>> doomed;
  auto adopt = [&](std::vector<std::shared_ptr<Node>>& all) {
    for (auto& input : all)
      if (input) doomed.push_back(std::move(input));
    all.clear();
  };
  adopt(inputs);
  while (!doomed.empty()) {
    std::shared_ptr<Node> node = std::move(doomed.back());
    doomed.pop_back();
    if (node.use_count() == 1) adopt(node->inputs);
  }
}

Parameter::Parameter(Tensor value, std::string name, Caller caller)
    : var_(std::make_shared<Var>(variable(std::move(value), std::move(name), caller))) {}

const Var& Parameter::moved_from() { fail("parameter", "has no numbers any more", "moved from?"); }

Parameter Parameter::tied() const {
  Parameter out;
  out.var_ = var_;
  return out;
}

void Parameter::update(const std::function<void(const Tensor&)>& change) {
  if (!defined()) fail("update", "the parameter is undefined");
  if (!value().sole_owner()) *var_ = Var(value().clone(), var_->node());
  change(value());
}

void Parameter::assign(Tensor value) {
  if (!defined()) fail("assign", "the parameter is undefined");
  if (!value.defined() || !is_floating(value.dtype())) fail("assign", "the numbers must be f32 or f64");
  if (value.shape() != shape())
    fail("assign",
         fmt::format("the shape must stay: parameter {}, value {}", shape().str(), value.shape().str()));
  var_->node()->dtype = value.dtype();
  *var_ = Var(std::move(value), var_->node());
}

Var variable(Tensor value, std::string name, Caller caller) {
  if (!is_floating(value.dtype()))
    fail(caller, "variable", fmt::format("gradients exist for f32 and f64 only: {}", name_of(value.dtype())));
  auto node = std::make_shared<Node>("parameter", value.shape(), value.dtype());
  node->label = std::move(name);
  return Var(std::move(value), std::move(node));
}

Var record(const char* op, const std::vector<Var>& inputs, Tensor output, Backward backward, Caller caller) {
  At at(caller);
  if (!output.defined() || !is_floating(output.dtype())) fail(op, "the output must be f32 or f64 numbers");
  if (CheckFinite::active() && !all_finite(output)) {
    std::string text =
        fmt::format("the output is not finite: {}, scope \"{}\"", describe(output), Scope::path());
    for (size_t i = 0; i < inputs.size(); ++i)
      text += fmt::format("; input {}: {}", i, describe(inputs[i].value()));
    fail_not_finite(op, text);
  }
  if (NoGrad::active() || std::ranges::none_of(inputs, &Var::requires_grad)) return Var(std::move(output));
  if (!backward) fail(op, "the backward is empty");
  auto node = std::make_shared<Node>(op, output.shape(), output.dtype());
  node->inputs.reserve(inputs.size());
  for (const Var& input : inputs) {
    node->inputs.push_back(input.node());
    if (KeepValues::active() || CheckFinite::active()) node->input_values.push_back(input.value());
  }
  node->backward = std::move(backward);
  if (KeepValues::active()) node->value = output;
  return Var(std::move(output), std::move(node));
}

Var tap(const Input& x, std::string label) {
  At at(x.caller());
  Var y = record("tap", {x}, x.value(), [](const Tensor& dy, Grads& dx) { dx.add(0, dy); });
  if (y.node()) y.node()->label = std::move(label);
  return y;
}

Var stop_gradient(const Var& x) { return Var(x.value()); }

// ---- gradients ----

void add_rows_into(const RowGradient& part, const Tensor& dense) {
  const int64_t width = dense.shape().stride(0);
  with_type(dense.dtype(), "add_rows", [&]<class T>(T) {
    const int32_t* ids = part.ids.i32();
    const T* rows = data<T>(part.rows);
    T* out = data<T>(dense);
    for (int64_t i = 0; i < part.ids.numel(); ++i)
      kernels::add_into(rows + i * width, out + ids[i] * width, width);
  });
}

Tensor densify(const Gradients::Entry& entry) {
  if (entry.rows.empty()) return entry.dense;
  Tensor out =
      entry.dense.defined() ? entry.dense.clone() : Tensor::zeros(entry.node->shape, entry.node->dtype);
  for (const RowGradient& part : entry.rows) add_rows_into(part, out);
  return out;
}

void Gradients::Entry::make_dense() {
  dense = densify(*this);
  rows.clear();
}

const Gradients::Entry* Gradients::find(const Var& x) const {
  if (!x.node()) return nullptr;
  auto at = std::ranges::lower_bound(entries_, x.node()->order, {}, [](auto& e) { return e.node->order; });
  const bool there = at != entries_.end() && at->node == x.node();
  return there && at->arrived() ? &*at : nullptr;
}

Tensor Gradients::operator[](const Input& x) const {
  const Entry* entry = find(x);
  if (!entry) {
    At at(x.caller());
    if (!x.node()) fail("gradients", "a constant has no gradient");
    std::string name = x.node()->label.empty() ? std::string(x.node()->op) : x.node()->label;
    fail("gradients",
         fmt::format("no gradient of {} {}: the loss does not depend on it{}", name, x.shape().str(),
                     !x.node()->inputs.empty() ? ", or it was not named in BackwardOptions::keep" : ""));
  }
  return densify(*entry);
}

void Gradients::add(const Gradients& other) {
  if (&other == this) return scale(2);
  std::vector<Entry> sum;
  sum.reserve(std::max(entries_.size(), other.entries_.size()));
  auto mine = entries_.begin(), end = entries_.end();  // not moved: what follows may throw
  for (const Entry& theirs : other.entries_) {
    while (mine != end && mine->node->order < theirs.node->order) sum.push_back(*mine++);
    if (mine == end || mine->node != theirs.node) {
      sum.push_back(theirs);
      continue;
    }
    Entry& e = sum.emplace_back(*mine++);
    if (!e.dense.defined() && !theirs.dense.defined()) {
      e.rows.insert(e.rows.end(), theirs.rows.begin(), theirs.rows.end());
      continue;
    }
    e.make_dense();
    if (!e.dense.sole_owner()) e.dense = e.dense.clone();
    Tensor added = densify(theirs);
    visit_floating(e.dense, "add",
                   [&]<class T>(T* p) { kernels::add_into(data<T>(added), p, e.dense.numel()); });
  }
  sum.insert(sum.end(), mine, end);
  entries_ = std::move(sum);
}

void Gradients::scale(double factor) {
  auto scaled = [factor](const Tensor& t) {
    Tensor out = t.sole_owner() ? t : t.clone();
    visit_floating(out, "scale", [&]<class T>(T* p) {
      for (int64_t i = 0; i < out.numel(); ++i) p[i] *= static_cast<T>(factor);
    });
    return out;
  };
  for (Entry& e : entries_) {
    if (e.dense.defined()) e.dense = scaled(e.dense);
    for (RowGradient& part : e.rows) part.rows = scaled(part.rows);
  }
}

// ---- modes ----

Training::Training(uint64_t seed, double dropout_share)
    : before_(training_stream), share_before_(training_share) {
  if (!(dropout_share >= 0 && dropout_share <= 1))
    fail("Training", fmt::format("dropout_share must be in [0, 1]: {}", dropout_share));
  training_stream = {seed, 0};
  training_share = dropout_share;
}
Training::~Training() { training_stream = before_, training_share = share_before_; }
double Training::dropout_share() { return training_share; }
std::pair<uint64_t, uint64_t> Training::next_stream() {
  return {training_stream.first, training_stream.second++};
}

Scope::Scope(const std::string& name) : before_(scope_path) {
  scope_path = std::make_shared<const std::string>(before_ ? *before_ + "." + name : name);
}
Scope::~Scope() { scope_path = before_; }
std::string Scope::path() { return scope_path ? *scope_path : std::string(); }

}  // namespace gradus
