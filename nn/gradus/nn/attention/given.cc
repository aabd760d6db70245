#include <gradus/nn/attention/given.h>

#include <gradus/ops/operands.h>

namespace gradus::nn {

Tensor given_row(const char* who, const AttentionMemory& memory, int64_t t, DType dtype) {
  if (!memory.given.defined()) return {};
  int64_t S = memory.annotations.size(0), B = memory.annotations.size(1);
  const Tensor& given = memory.given;
  if (given.dims() != 3 || given.size(1) != B || given.size(2) != S)
    refuse(who, "weights must be [T, B, S] = [.., {}, {}]: {}", B, S, given.shape());
  return t < given.size(0) ? given.row(t).to(dtype) : Tensor();
}

Var UniformAttention::scores(const Input&, const AttentionMemory& memory, const AttentionState&) const {
  const Var& h = memory.annotations;
  return Tensor::zeros({h.size(1), h.size(0)}, h.dtype());
}

Attended OracleAttention::step(const Input& query, const AttentionMemory& memory,
                               const AttentionState& state) const {
  At at(query.caller());
  Tensor weights = given_row("OracleAttention", memory, state.step, query.dtype());
  return weights.defined() ? attend(weights, memory, state) : ScoredAttention::step(query, memory, state);
}

}  // namespace gradus::nn
