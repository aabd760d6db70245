#include <gradus/nn/gradient_rows.h>

#include <cstring>
#include <vector>

#include <gradus/kernels/elementwise.h>
#include <gradus/numeric.h>

namespace gradus::nn {

void sum_repeated_rows(Gradients::Entry& entry) {
  if (entry.dense.defined() || entry.rows.empty()) return;
  int64_t width = entry.node->shape.stride(0);
  std::vector<int32_t> place(static_cast<size_t>(entry.node->shape[0]), -1);  // id -> row of the result
  std::vector<int32_t> ids;
  int64_t given = 0;
  for (const RowGradient& part : entry.rows) {
    given += part.ids.numel();
    for (int64_t i = 0; i < part.ids.numel(); ++i) {
      int32_t& at = place[static_cast<size_t>(part.ids.i32()[i])];
      if (at >= 0) continue;
      at = static_cast<int32_t>(ids.size());
      ids.push_back(part.ids.i32()[i]);
    }
  }
  int64_t count = static_cast<int64_t>(ids.size());
  if (count == given && entry.rows.size() == 1) return;
  Tensor sum = Tensor::zeros({count, width}, entry.node->dtype);
  visit_floating(sum, "sum_repeated_rows", [&](auto* to) {
    for (const RowGradient& part : entry.rows) {
      const auto* from = data<std::remove_pointer_t<decltype(to)>>(part.rows);
      const int32_t* id = part.ids.i32();
      for (int64_t i = 0; i < part.ids.numel(); ++i)
        kernels::add_into(from + i * width, to + place[static_cast<size_t>(id[i])] * width, width);
    }
  });
  entry.rows = {{Tensor::from_ids({count}, ids), sum}};
}

}  // namespace gradus::nn
