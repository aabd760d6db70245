#include <fmt/core.h>

#include <algorithm>

#include <gradus/backward_pass.h>
#include <gradus/kernels/elementwise.h>
#include <gradus/numeric.h>

// What a closure's `dx` does: checks what it is given and adds it to the gradient of an input.

namespace gradus {
namespace {

// Null where input i was constant.
const std::shared_ptr<Node>& input_of(const Node& node, int i) {
  if (i < 0 || static_cast<size_t>(i) >= node.inputs.size())
    fail(node.op, fmt::format("there is no input {}: recorded with {}", i, node.inputs.size()));
  return node.inputs[static_cast<size_t>(i)];
}

// g in the shape of input i: where that was broadcast, summed over the stretched axes.
Tensor fitted(const Node& node, int i, const Tensor& g) {
  const Node& input = *input_of(node, i);
  if (!g.defined()) fail(node.op, fmt::format("the gradient of input {} is undefined", i));
  if (g.dtype() != input.dtype)
    fail(node.op, fmt::format("the gradient must have its input's element type: input {} {}, gradient {}", i,
                              name_of(input.dtype), name_of(g.dtype())));
  if (g.shape() == input.shape) return g;
  if (!broadcasts_to(input.shape, g.shape()))
    fail(node.op, fmt::format("the gradient must have its input's shape: input {} {}, gradient {}", i,
                              input.shape.str(), g.shape().str()));
  return sum_to(g, input.shape);
}

// Rows that do not fit would be added to somebody else's memory.
void check_rows(const Node& node, int i, const Tensor& ids, const Tensor& rows) {
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

}  // namespace

bool Grads::needed(int i) const { return input_of(node_, i) != nullptr; }

void Grads::add(int i, const Tensor& given) {
  if (!needed(i)) return;
  Tensor g = fitted(node_, i, given);
  pass_.watch(node_, i, g);
  BackwardPass::Slot& slot = pass_.slot_of(*input_of(node_, i));
  Tensor& sum = slot.entry.dense;
  if (!sum.defined()) return void(sum = g);
  // The stored tensor may be somebody's dy or a value saved in a closure: only what is ours alone is added to.
  if (!pass_.is_lent(slot) && !sum.sole_owner()) sum = sum.clone();
  visit_floating(sum, "backward", [&]<class T>(T* p) { kernels::add_into(data<T>(g), p, sum.numel()); });
}

Tensor Grads::into(int i) {
  const std::shared_ptr<Node>& input = input_of(node_, i);
  if (!input) fail(node_.op, fmt::format("input {} is a constant: ask needed({}) first", i, i));
  if (pass_.watched()) return pass_.parts_.emplace_back(i, Tensor::zeros(input->shape, input->dtype)).second;
  BackwardPass::Slot& slot = pass_.slot_of(*input);
  Gradients::Entry& entry = slot.entry;
  // Two inputs may be one node (dot attention: keys and annotations); both then share one accumulator, which
  // must not be copied because the closure holds its first handle.
  if (pass_.is_lent(slot)) return entry.dense;
  pass_.lent_.push_back(&slot);
  entry.make_dense();
  if (!entry.dense.defined()) entry.dense = Tensor::zeros(input->shape, input->dtype);
  else if (!entry.dense.sole_owner()) entry.dense = entry.dense.clone();
  return entry.dense;
}

void Grads::add_rows(int i, const Tensor& ids, const Tensor& rows) {
  if (!needed(i)) return;
  check_rows(node_, i, ids, rows);
  const Node& input = *input_of(node_, i);
  if (input.inputs.empty() && !pass_.watched()) pass_.slot_of(input).entry.rows.push_back({ids, rows});
  else add_rows_into({ids, rows}, into(i));
}

void BackwardPass::run_closure(const Node& node, const Tensor& dy) {
  lent_.clear();
  if (options_.check_finite) dy_ = dy;
  Grads dx(*this, node);
  node.backward(dy, dx);
  for (const auto& [input, g] : std::exchange(parts_, {})) dx.add(input, g);
}

bool BackwardPass::is_lent(const Slot& slot) const {
  return std::find(lent_.begin(), lent_.end(), &slot) != lent_.end();
}

}  // namespace gradus
