#pragma once

#include <gradus/nn/recurrent.h>

namespace gradus::nn {

/// One step of a GRU (Cho et al. 2014), gates r, z, n as in PyTorch; equations in gradus/ops/gru.h.
/// x [B, input_size], h [B, hidden_size] or undefined (zeros) -> [B, hidden_size].
struct GRUCell : RecurrentCell {
  GRUCell(int64_t input_size, int64_t hidden_size, Rng& rng, const CellType& type = {},
          Caller caller = Caller::current())
      : RecurrentCell(of_kind(CellKind::gru, type, "GRUCell", caller), input_size, hidden_size, rng,
                      "GRUCell", caller) {}
  Var operator()(const Input& x, const Var& h = {}) const {
    At at(x.caller());
    return step(x, {h, {}}).h;
  }
};

/// A GRU over time: x [T, B, input_size] (time-major), lengths i32 [B] or undefined (all T), h0
/// [num_layers * dirs, B, hidden_size] or undefined (zeros). Equal to torch.nn.GRU on a packed sequence.
struct GRU : RecurrentStack {
  GRU(int64_t input_size, int64_t hidden_size, Rng& rng, const RecurrentOptions& options = {},
      Caller caller = Caller::current())
      : RecurrentStack("GRU", input_size, hidden_size, rng, of_kind(CellKind::gru, options, "GRU", caller),
                       caller) {}
  /// @throws Error when a shape does not fit or a length is outside 0 .. T.
  RecurrentOutput operator()(const Input& x, const Tensor& lengths = {}, const Var& h0 = {}) const {
    return RecurrentStack::operator()(x, lengths, {h0, {}});
  }
};

}  // namespace gradus::nn
