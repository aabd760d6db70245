#pragma once

#include <vector>

#include <gradus/autograd.h>

// Numbers, f32 or f64, that move and do not change, so that gradients move back. A view y shares x's storage.

namespace gradus {

/// The same numbers under another shape; one axis may be -1 (worked out). A view.
/// dx = dy in x's shape. @throws Error "[reshape] the number of elements must stay: [2, 3] to [4]"
Var reshape(const Input& x, const std::vector<int64_t>& dims);
/// Axes in another order: y's axis i is x's axis order[i]. A copy. dx = dy with the inverse order.
/// @throws Error "[permute] the order must name every axis once: shape [2, 3], order [0, 0]"
Var permute(const Input& x, const std::vector<int>& order);
/// Two axes exchanged. A copy. dx = dy with the same two exchanged.
Var transpose(const Input& x, int axis0, int axis1);
/// Joined along an axis that exists; all other axes must agree. Each part's gradient is its piece of dy.
/// @throws Error "[concat] all other axes must agree: [2, 3] and [2, 4] along axis 0"
Var concat(const std::vector<Var>& parts, int axis, Caller caller = Caller::current());
/// Joined along a new axis: [..] -> [.., parts, ..]. @throws Error "[stack] shapes must agree: [2] and [3]"
Var stack(const std::vector<Var>& parts, int axis, Caller caller = Caller::current());
/// Entries begin .. end-1 of an axis. Of the leading axis: a view. dx = dy in its place, 0 around it (added
/// straight into x's gradient, so that a loop over the slices of x costs what x's size costs).
/// @throws Error "[slice] entries 2 to 5 are outside axis 0: shape [4, 3]"
Var slice(const Input& x, int axis, int64_t begin, int64_t end);
/// Entry i of an axis, without that axis. Otherwise as slice.
/// @throws Error "[select] entry 4 is outside axis 0: shape [4, 3]"
Var select(const Input& x, int axis, int64_t i);
/// Parts of the given sizes along an axis; sizes must add up to it. Otherwise as slice.
/// @throws Error "[split] sizes must add up to axis 1: shape [2, 5], sizes [2, 2]"
std::vector<Var> split(const Input& x, const std::vector<int64_t>& sizes, int axis);
/// Stretched to `dims` by broadcasting. dx = dy summed over the stretched axes.
/// @throws Error "[expand] shape does not stretch: [2] to [3]"
Var expand(const Input& x, const std::vector<int64_t>& dims);
/// Rows of the leading axis: x [N, ...], indices i32 [M] -> [M, ...]. A row may be taken several times: its
/// gradients add up. @throws Error "[gather_rows] indices must be in 0 .. 3: 4"
Var gather_rows(const Input& x, const Tensor& indices);

}  // namespace gradus
