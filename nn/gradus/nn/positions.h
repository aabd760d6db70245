#pragma once

#include <gradus/nn/module.h>
#include <gradus/random.h>

#include <memory>
#include <string_view>

namespace gradus::nn {

/// Where a word stands, as a vector that is added to its own. Attention by itself does not see order.
class Positions {
 public:
  virtual ~Positions() = default;
  /// The vectors of positions first .. first + count - 1: [count, E].
  virtual Var rows(int64_t first, int64_t count, DType dtype) const = 0;
  virtual void params(ParamVisitor&) {}
  /// x [T, B, E] plus the vectors of positions first .. first + T - 1. @throws Error for x of other shape.
  Var operator()(const Input& x, int64_t first = 0) const;
};

/// [count, E] (Vaswani et al. 2017, section 3.5), nothing to learn and no last position:
///   p[t, 2i] = sin(t / 10000^(2i / E))      p[t, 2i + 1] = cos(t / 10000^(2i / E))
struct SinusoidalPositions : Positions {
  int64_t embedding_dim;
  /// f32, the first 256; what lies beyond is worked out at each call
  Tensor table;

  explicit SinusoidalPositions(int64_t embedding_dim);
  Var rows(int64_t first, int64_t count, DType dtype) const override;
};

/// A learned vector for each position: weight [max_positions, E], from N(0, 1 / E).
struct LearnedPositions : Positions {
  Parameter weight;

  LearnedPositions(int64_t max_positions, int64_t embedding_dim, const RngInput& rng);
  /// @throws Error "[LearnedPositions] only 100 positions were learned: 101".
  Var rows(int64_t first, int64_t count, DType dtype) const override;
  void params(ParamVisitor& visit) override { visit("weight", weight); }
};

/// "sinusoidal", "learned", or "none" (null).
/// @throws Error "[make_positions] unknown positions \"foo\": one of sinusoidal, learned, none".
std::unique_ptr<Positions> make_positions(std::string_view name, int64_t max_positions, int64_t embedding_dim,
                                          const RngInput& rng);

}  // namespace gradus::nn
