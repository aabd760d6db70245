#include <gradus/nn/gradient_rows.h>

#include <cstring>

#include <gradus/kernels/elementwise.h>
#include <gradus/numeric.h>

namespace gradus::nn {

void sum_repeated_rows(Gradients::Entry& entry) {
  if (entry.dense.defined() || entry.rows.empty()) return;
  int64_t width = entry.node->shape.stride(0);
  // Tensors, for a vector of this size would be asked of the system and given back in every step.
  Tensor place = Tensor::full({entry.node->shape[0]}, -1, DType::i32);  // id -> row of the result
  int64_t given = 0, count = 0;
  for (const RowGradient& part : entry.rows) given += part.ids.numel();
  Tensor ids({given}, DType::i32);
  int32_t *places = place.i32(), *once = ids.i32();
  for (const RowGradient& part : entry.rows) {
    const int32_t* id = part.ids.i32();
    for (int64_t i = 0, n = part.ids.numel(); i < n; ++i) {
      int32_t& at = places[id[i]];
      if (at >= 0) continue;
      at = static_cast<int32_t>(count);
      once[count++] = id[i];
    }
  }
  if (count == given && entry.rows.size() == 1) return;
  Tensor sum = Tensor::zeros({count, width}, entry.node->dtype);
  visit_floating(sum, "sum_repeated_rows", [&](auto* to) {
    for (const RowGradient& part : entry.rows) {
      const auto* from = data<std::remove_pointer_t<decltype(to)>>(part.rows);
      const int32_t* id = part.ids.i32();
      for (int64_t i = 0, n = part.ids.numel(); i < n; ++i)
        kernels::add_into(from + i * width, to + places[id[i]] * width, width);
    }
  });
  entry.rows = {{ids.rows(0, count), sum}};
}

}  // namespace gradus::nn
