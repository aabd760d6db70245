#include <gradus/nn/init.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gradus/nn/check.h>

namespace gradus::nn::init {
namespace {

struct Fans {
  double both;     // their sum
  double of_mode;  // the one that the options name
};

Fans fans(const char* where, const Parameter& p, const InitOptions& options) {
  int blocks = options.blocks;
  const Shape& s = p.shape();
  if (s.dims() < 2) fail(where, "needs a weight [out, in, ...]: " + s.str());
  if (blocks < 1 || s[0] % blocks != 0)
    fail(where, fmt::format("the first axis must divide into the blocks: {}, {} blocks", s.str(), blocks));
  double kernel = static_cast<double>(s.stride(1));
  double in = static_cast<double>(s[1]) * kernel, out = static_cast<double>(s[0] / blocks) * kernel;
  return {in + out, options.mode == Fan::in ? in : out};
}

// count orthonormal rows of length n >= count. Gram-Schmidt on normal rows; each is orthogonalised twice,
// which is enough to reach the last bits (Kahan and Parlett's "twice is enough"). A row's part that is
// orthogonal to the earlier ones keeps its direction, which is R's diagonal being positive.
std::vector<double> orthonormal_rows(int64_t count, int64_t n, Rng& rng) {
  std::vector<double> q(static_cast<size_t>(count * n));
  for (int64_t i = 0; i < count; ++i) {
    double* row = q.data() + i * n;
    double length = 0;
    while (length < 1e-8) {  // not in the span of the earlier rows, which is as good as never
      for (int64_t k = 0; k < n; ++k) row[k] = rng.normal();
      for (int pass = 0; pass < 2; ++pass)
        for (int64_t j = 0; j < i; ++j) {
          const double* other = q.data() + j * n;
          double along = std::inner_product(row, row + n, other, 0.0);
          for (int64_t k = 0; k < n; ++k) row[k] -= along * other[k];
        }
      length = std::sqrt(std::inner_product(row, row + n, row, 0.0));
    }
    for (int64_t k = 0; k < n; ++k) row[k] /= length;
  }
  return q;
}

}  // namespace

void zeros_(Parameter& p) { constant_(p, 0); }

void constant_(Parameter& p, double value) {
  p.update([value](const Tensor& t) { t.fill(value); });
}

void uniform_(Parameter& p, double low, double high, const RngInput& rng) {
  At at(rng.caller());
  if (!(low <= high)) fail("uniform_", fmt::format("low must not be above high: {}, {}", low, high));
  p.assign(Tensor::uniform(p.shape(), low, high, rng, p.value().dtype()));
}

void normal_(Parameter& p, double mean, double deviation, const RngInput& rng) {
  At at(rng.caller());
  must_not_be_negative("normal_", "deviation", deviation);
  p.assign(Tensor::normal(p.shape(), mean, deviation, rng, p.value().dtype()));
}

double calculate_gain(const std::string& nonlinearity, double slope) {
  if (nonlinearity == "linear" || nonlinearity == "sigmoid") return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2 / (1 + slope * slope));
  if (nonlinearity == "selu") return 0.75;
  unknown_name("calculate_gain", "nonlinearity", nonlinearity,
               {"linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"});
}

void xavier_uniform_(Parameter& p, const RngInput& rng, const InitOptions& options) {
  At at(rng.caller());
  double a = options.gain * std::sqrt(6 / fans("xavier_uniform_", p, options).both);
  uniform_(p, -a, a, rng);
}

void xavier_normal_(Parameter& p, const RngInput& rng, const InitOptions& options) {
  At at(rng.caller());
  normal_(p, 0, options.gain * std::sqrt(2 / fans("xavier_normal_", p, options).both), rng);
}

void kaiming_uniform_(Parameter& p, const RngInput& rng, const InitOptions& options) {
  At at(rng.caller());
  double a = options.gain * std::sqrt(3 / fans("kaiming_uniform_", p, options).of_mode);
  uniform_(p, -a, a, rng);
}

void kaiming_normal_(Parameter& p, const RngInput& rng, const InitOptions& options) {
  At at(rng.caller());
  normal_(p, 0, options.gain / std::sqrt(fans("kaiming_normal_", p, options).of_mode), rng);
}

void orthogonal_(Parameter& p, const RngInput& rng, const InitOptions& options) {
  At at(rng.caller());
  fans("orthogonal_", p, options);
  int64_t rows = p.shape()[0] / options.blocks, columns = p.shape().stride(0);
  p.update([&](const Tensor& t) {
    for (int block = 0; block < options.blocks; ++block) {
      bool wide = rows <= columns;
      std::vector<double> q = orthonormal_rows(std::min(rows, columns), std::max(rows, columns), rng);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t k = 0; k < columns; ++k)
          t.set((block * rows + i) * columns + k,
                options.gain * q[static_cast<size_t>(wide ? i * columns + k : k * rows + i)]);
    }
  });
}

}  // namespace gradus::nn::init
