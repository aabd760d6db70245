#pragma once

#include <vector>

#include <gradus/autograd.h>

namespace gradus {

/// The same numbers under another shape; one axis may be -1. No copy.
Var reshape(const Var& x, const std::vector<int64_t>& dims);
/// Axes in another order: y's axis i is x's axis order[i]. A copy.
Var permute(const Var& x, const std::vector<int>& order);
/// Two axes exchanged.
Var transpose(const Var& x, int axis0, int axis1);
/// Joined along an axis that exists; all other axes must agree.
Var concat(const std::vector<Var>& parts, int axis);
/// Joined along a new axis.
Var stack(const std::vector<Var>& parts, int axis);
/// Entries begin .. end-1 of an axis. Of the leading axis: a view, no copy.
Var slice(const Var& x, int axis, int64_t begin, int64_t end);
/// Entry i of an axis, without that axis.
Var select(const Var& x, int axis, int64_t i);
/// Parts of the given sizes along an axis; sizes must add up to it.
std::vector<Var> split(const Var& x, const std::vector<int64_t>& sizes, int axis);
/// Stretched to `dims` by broadcasting.
Var expand(const Var& x, const std::vector<int64_t>& dims);
/// Rows of the leading axis: x [N, ...], indices i32 [M] -> [M, ...]. A row may be taken several times.
Var gather_rows(const Var& x, const Tensor& indices);

}  // namespace gradus
