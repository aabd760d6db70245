#include <gradus/ops/join_directions.h>

#include <cstring>

#include <gradus/op_case.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/recurrence.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/where.h>

namespace gradus {

namespace reference {
namespace {

Var join_directions(const std::vector<Var>& directions, const Tensor& lengths) {
  Var y = concat(directions, 2);
  Tensor real = active_steps(lengths, y.size(0), y.size(1)).reshape({y.size(0), y.size(1), 1});
  return where(real, y, Tensor::scalar(0, y.dtype()));
}

}  // namespace
}  // namespace reference

namespace {

// Rows of one direction [T, B, H] to columns `offset` .. of the joined tensor or back, zeros at padding.
void move_rows(const Tensor& one, const Tensor& joined, int64_t offset, const Tensor& lengths, bool back) {
  int64_t T = one.size(0), B = one.size(1);
  size_t step = static_cast<size_t>(size_of(one.dtype())), bytes = static_cast<size_t>(one.size(2)) * step;
  size_t width = static_cast<size_t>(joined.size(2)) * step, first = static_cast<size_t>(offset) * step;
  char *part = static_cast<char*>(one.raw()), *all = static_cast<char*>(joined.raw());
  for (int64_t t = 0; t < T; ++t)
    for (int64_t b = 0; b < B; ++b) {
      size_t row = static_cast<size_t>(t * B + b);
      char *mine = part + row * bytes, *there = all + row * width + first, *to = back ? mine : there;
      const bool real = !lengths.defined() || t < lengths.i32()[b];
      if (real) std::memcpy(to, back ? there : mine, bytes);
      else std::memset(to, 0, bytes);
    }
}

}  // namespace

Var join_directions(const Input& forward, const Var& backward, const Tensor& lengths) {
  At at(forward.caller());
  if (backward.defined()) check_operands(forward, backward, "join_directions");
  else check_operand(forward, "join_directions");
  if (!backward.defined() && !lengths.defined()) return forward;
  if (forward.dims() != 3 || (backward.defined() && backward.shape() != forward.shape()))
    refuse("join_directions", "both directions must be [T, B, H]: {} and {}", forward.shape(),
           backward.defined() ? backward.shape().str() : "none");
  int64_t H = forward.size(2);
  check_lengths("join_directions", lengths, forward.size(0), forward.size(1));
  std::vector<Var> directions{forward};
  if (backward.defined()) directions.push_back(backward);
  const int count = static_cast<int>(directions.size());
  Tensor joined({forward.size(0), forward.size(1), count * H}, forward.dtype());
  for (int k = 0; k < count; ++k)
    move_rows(directions[static_cast<size_t>(k)].value(), joined, k * H, lengths, false);
  return record("join_directions", directions, joined,
                [count, one = forward.shape(), lengths](const Tensor& dy, Grads& dx) {
                  for (int k = 0; k < count; ++k) {
                    if (!dx.needed(k)) continue;
                    Tensor d(one, dy.dtype());
                    move_rows(d, dy, k * one[2], lengths, true);
                    dx.add(k, d);
                  }
                });
}

GRADUS_OP_CASES(
    {"join_directions", {{3, 2, 2}, {3, 2, 2}},
     [](auto& in) { return join_directions(in[0], in[1], Tensor::from_ids({2}, {1, 3})); },
     [](auto& in) { return reference::join_directions(in, Tensor::from_ids({2}, {1, 3})); }},
    {"join_directions: no padding", {{2, 2, 3}, {2, 2, 3}},
     [](auto& in) { return join_directions(in[0], in[1], {}); }, [](auto& in) { return concat(in, 2); }},
    {"join_directions: one alone", {{3, 2, 2}},
     [](auto& in) { return join_directions(in[0], {}, Tensor::from_ids({2}, {2, 0})); },
     [](auto& in) { return reference::join_directions(in, Tensor::from_ids({2}, {2, 0})); }});

}  // namespace gradus
