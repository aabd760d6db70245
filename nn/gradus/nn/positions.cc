#include <gradus/nn/check.h>
#include <gradus/nn/positions.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/shape.h>

#include <cmath>

namespace gradus::nn {

Var Positions::operator()(const Input& x, int64_t first) const {
  At at(x.caller());
  Var p = rows(first, x.size(0), x.dtype());
  if (x.dims() != 3 || p.size(1) != x.size(2))
    refuse("Positions", "x must be [T, B, {}]: {}", p.size(1), x.shape());
  return x + reshape(p, {p.size(0), 1, p.size(1)});
}

SinusoidalPositions::SinusoidalPositions(int64_t E) : embedding_dim(E) {
  must_be_positive("SinusoidalPositions", "embedding_dim", E);
  table = SinusoidalPositions::rows(0, 256, DType::f32).value();
}

Var SinusoidalPositions::rows(int64_t first, int64_t count, DType dtype) const {
  if (table.defined() && dtype == table.dtype() && first + count <= table.size(0))
    return table.rows(first, first + count);
  Tensor out({count, embedding_dim}, dtype);
  for (int64_t e = 0; e < embedding_dim; ++e) {
    double frequency = std::pow(10000.0, -static_cast<double>(e / 2 * 2) / static_cast<double>(embedding_dim));
    for (int64_t t = 0; t < count; ++t) {
      double angle = static_cast<double>(first + t) * frequency;
      out.set(t * embedding_dim + e, e % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return out;
}

LearnedPositions::LearnedPositions(int64_t max_positions, int64_t E, const RngInput& rng) {
  At at(rng.caller());
  must_be_positive("LearnedPositions", "max_positions", max_positions);
  must_be_positive("LearnedPositions", "embedding_dim", E);
  double deviation = 1 / std::sqrt(static_cast<double>(E));
  weight = Parameter(Tensor::normal({max_positions, E}, 0, deviation, rng), "weight");
}

Var LearnedPositions::rows(int64_t first, int64_t count, DType) const {
  if (first + count > weight.shape()[0])
    refuse("LearnedPositions", "only {} positions were learned: {}", weight.shape()[0], first + count);
  return slice(weight, 0, first, first + count);
}

std::unique_ptr<Positions> make_positions(std::string_view name, int64_t max_positions, int64_t E,
                                          const RngInput& rng) {
  At at(rng.caller());
  if (name == "sinusoidal") return std::make_unique<SinusoidalPositions>(E);
  if (name == "learned") return std::make_unique<LearnedPositions>(max_positions, E, rng);
  if (name == "none") return nullptr;
  unknown_name("make_positions", "positions", name, {"sinusoidal", "learned", "none"});
}

}  // namespace gradus::nn
