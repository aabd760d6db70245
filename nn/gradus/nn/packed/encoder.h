#pragma once

#include <vector>

#include <gradus/nn/encoder.h>
#include <gradus/nn/packed/matrix.h>
#include <gradus/ops/packed_sequence.h>

namespace gradus::nn::packed {

/// Sources that were read, in f32 and without their padding: annotations [sum of lengths, D] and no mask.
struct Annotations : Encoded {
  /// sentence b has rows begin[b] .. begin[b+1]-1
  std::vector<int64_t> begin;
};

/// A GRU's normalisation of its products with inputs, or with states (gru.h): [r, z] as a row of 2H, n as one
/// of H. It does nothing where the cell has none.
class GateNorm {
 public:
  enum Of { inputs, states };
  GateNorm() = default;
  GateNorm(const RecurrentParameters& cell, Of of);
  explicit operator bool() const { return gain_.defined(); }
  /// x [rows, 3H] in place, its rows `stride` apart.
  void operator()(int64_t rows, float* x, int64_t stride) const;

 private:
  // [3H]
  Tensor gain_, offset_;
};

/// A bidirectional (or not) GRU encoder that keeps nothing for a backward: real steps only, gates that stay in
/// the cache until they are used, states written where the annotations stand.
class PackedEncoder {
 public:
  /// True for what it can read like the encoder itself: GRU, reset after, normalised or not, not residual, f32.
  static bool fits(const Encoder& encoder);
  PackedEncoder(const Encoder& encoder, const Layout& layout);

  /// ids i32 [S, B], lengths i32 [B]. Two members of the team take a direction each.
  /// @throws Error for ids and lengths that the encoder would not take.
  Annotations operator()(const Tensor& ids, const Tensor& lengths, Team& team) const;

 private:
  struct Direction {
    // [3H, I], [3H, H]
    Matrix ih, hh;
    const float *b_ih, *b_hh;
    GateNorm norm_ih, norm_hh;
  };
  // Of one direction; final: the last states [B, H].
  struct Buffers {
    Tensor gi, gh, state, final;
  };

  void read(const Direction& w, bool backward, const PackedSequence& steps, const Tensor& x,
            const std::vector<int64_t>& place, float* to, int64_t stride, const Buffers& buffers) const;

  const Encoder& encoder_;
  std::vector<std::vector<Direction>> layers_;
  int64_t H_;
};

/// Rows ids[i] of an embedding, `stride` apart at `out`. @throws Error "[embedding] ids are 0 .. 6: 9".
void look_up(const Embedding& embedding, const int32_t* ids, int64_t n, float* out, int64_t stride);

}  // namespace gradus::nn::packed
