#include <gradus/ops/embedding.h>

#include <algorithm>

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/operands.h>

namespace gradus {
namespace {

// All but those whose id is `left_out`.
RowGradient without(int32_t left_out, const RowGradient& all) {
  std::vector<int32_t> kept;
  const int64_t E = all.rows.size(1);
  Tensor out(all.rows.shape(), all.rows.dtype());
  visit_floating(out, "embedding", [&]<class T>(T* to) {
    for (int64_t i = 0; i < all.ids.numel(); ++i) {
      if (all.ids.i32()[i] == left_out) continue;
      to = std::copy_n(data<T>(all.rows) + i * E, E, to);
      kept.push_back(all.ids.i32()[i]);
    }
  });
  int64_t count = static_cast<int64_t>(kept.size());
  return {Tensor::from_ids({count}, kept), out.rows(0, count)};
}

}  // namespace

namespace reference {
namespace {

Var embedding(const Var& weight, const Tensor& ids, const EmbeddingOptions& options = {}) {
  Shape shape = ids.shape();
  shape.append(weight.size(0));
  DType type = weight.dtype();
  Tensor one_hot = Tensor::zeros(shape, type), learns = Tensor::ones({weight.size(0), 1}, type);
  for (int64_t i = 0; i < ids.numel(); ++i) one_hot.set(i * weight.size(0) + ids.i32()[i], 1);
  if (options.padding_idx >= 0) learns.set(options.padding_idx, 0);
  Var table = weight * learns + stop_gradient(weight) * (1.0 - Var(learns));
  return gradus::matmul(one_hot, table);
}

}  // namespace
}  // namespace reference

Var embedding(const Input& weight, const Tensor& ids, const EmbeddingOptions& options) {
  At at(weight.caller());
  if (weight.dims() != 2) refuse("embedding", "weight must be [V, E]: {}", weight.shape());
  if (ids.dtype() != DType::i32) refuse("embedding", "ids must be i32: {}", ids.dtype());
  const int32_t padding = options.padding_idx;
  if (padding < -1 || padding >= weight.size(0))
    refuse("embedding", "padding_idx must be in 0 .. {}, or -1 for none: {}", weight.size(0) - 1, padding);
  int64_t E = weight.size(1), N = ids.numel();
  Shape shape = ids.shape();
  shape.append(E);
  Tensor y = take_rows("embedding", "ids", weight.value(), ids, shape);
  return record("embedding", {weight}, y, [=](const Tensor& dy, Grads& dx) {
    RowGradient real{ids.reshape(Shape{N}), dy.reshape(Shape{N, E})};
    const int32_t* id = ids.i32();
    if (padding >= 0 && std::find(id, id + N, padding) != id + N) real = without(padding, real);
    dx.add_rows(0, real.ids, real.rows);
  });
}

GRADUS_OP_CASES(
    {"embedding", {{5, 3}}, [](auto& in) { return embedding(in[0], Tensor::from_ids({4}, {1, 4, 0, 4})); },
     [](auto& in) { return reference::embedding(in[0], Tensor::from_ids({4}, {1, 4, 0, 4})); }},
    // (A padding row has no gradient although the output depends on it: no case for the gradient check.)
    {"embedding: two axes, padding not met", {{4, 2}},
     calls(embedding, Tensor::from_ids({2, 2}, {1, 2, 2, 3}), EmbeddingOptions{.padding_idx = 0}),
     calls(reference::embedding, Tensor::from_ids({2, 2}, {1, 2, 2, 3}), EmbeddingOptions{.padding_idx = 0})},
    {"embedding: of a computed table", {{4, 2}},
     [](auto& in) { return embedding(in[0] * 2.0, Tensor::from_ids({3}, {3, 3, 1})); },
     [](auto& in) { return reference::embedding(in[0] * 2.0, Tensor::from_ids({3}, {3, 3, 1})); }});

}  // namespace gradus
