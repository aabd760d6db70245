#pragma once

#include <gradus/nn/recurrent.h>

namespace gradus::nn {

/// One step of a GRU (Cho et al. 2014), gates r, z, n as in PyTorch; equations in gradus/ops/gru.h.
/// x [B, input_size], h [B, hidden_size] or undefined (zeros) -> [B, hidden_size].
struct GRUCell : RecurrentCell {
  GRUCell(int64_t in, int64_t hidden, const RngInput& rng, const CellType& cell = {})
      : RecurrentCell(of_kind(CellKind::gru, cell, "GRUCell", rng.caller()), in, hidden, rng, "GRUCell") {}
  Var operator()(const Input& x, const Var& h = {}) const { return step(x, {h, {}}).h; }
};

/// A GRU over time, called as RecurrentStack. Equal to torch.nn.GRU on a packed sequence.
struct GRU : RecurrentStack {
  GRU(int64_t in, int64_t hidden, const RngInput& rng, const RecurrentOptions& o = {})
      : RecurrentStack("GRU", in, hidden, rng, of_kind(CellKind::gru, o, "GRU", rng.caller())) {}
  RecurrentOutput operator()(const Input& x, const Tensor& lengths = {}, const Var& h0 = {}) const {
    return RecurrentStack::operator()(x, lengths, {h0, {}});
  }
};

}  // namespace gradus::nn
