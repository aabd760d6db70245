#include <gradus/nn/init.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <gradus/error.h>
#include <gradus/kernels/random.h>
#include <gradus/nn/check.h>
#include <gradus/numeric.h>

namespace gradus::nn::init {
namespace {

// Every entry from f(), in row-major order.
template <class F>
void fill(Parameter& p, F&& f) {
  p.update([&](const Tensor& t) {
    for (int64_t i = 0; i < t.numel(); ++i) t.set(i, f());
  });
}

struct Fans {
  double in, out;
};

Fans fans(const char* where, const Parameter& p, int blocks) {
  const Shape& s = p.shape();
  if (s.dims() < 2) fail(where, "needs a weight [out, in, ...]: " + s.str());
  if (blocks < 1 || s[0] % blocks != 0)
    fail(where, fmt::format("the first axis must divide into the blocks: {}, {} blocks", s.str(), blocks));
  double kernel = static_cast<double>(s.stride(1));
  return {static_cast<double>(s[1]) * kernel, static_cast<double>(s[0] / blocks) * kernel};
}

void needs_matrix(const char* where, const Parameter& p) {
  if (p.shape().dims() != 2) fail(where, "needs a matrix: " + p.shape().str());
}

double kaiming_fan(const char* where, const Parameter& p, const InitOptions& options) {
  Fans fan = fans(where, p, options.blocks);
  return options.mode == Fan::in ? fan.in : fan.out;
}

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
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
          double along = dot(row, other, n);
          for (int64_t k = 0; k < n; ++k) row[k] -= along * other[k];
        }
      length = std::sqrt(dot(row, row, n));
    }
    for (int64_t k = 0; k < n; ++k) row[k] /= length;
  }
  return q;
}

}  // namespace

void zeros_(Parameter& p, Caller caller) { constant_(p, 0, caller); }

void ones_(Parameter& p, Caller caller) { constant_(p, 1, caller); }

void constant_(Parameter& p, double value, Caller caller) {
  p.update([value](const Tensor& t) { t.fill(value); }, caller);
}

void uniform_(Parameter& p, double low, double high, Rng& rng, Caller caller) {
  At at(caller);
  p.update([&](const Tensor& t) {
    visit_floating(t, "uniform_", [&](auto* to) { kernels::fill_uniform(rng, low, high, to, t.numel()); });
  });
}

void normal_(Parameter& p, double mean, double deviation, Rng& rng, Caller caller) {
  At at(caller);
  p.update([&](const Tensor& t) {
    visit_floating(t, "normal_",
                   [&](auto* to) { kernels::fill_normal(rng, mean, deviation, to, t.numel()); });
  });
}

void trunc_normal_(Parameter& p, Rng& rng, double mean, double deviation, double low, double high,
                   Caller caller) {
  At at(caller);
  double a = (low - mean) / deviation, b = (high - mean) / deviation;
  if (!(low < high) || !(deviation > 0))
    fail("trunc_normal_",
         fmt::format("needs low < high and a deviation above 0: [{}, {}], {}", low, high, deviation));
  if (a > 2 || b < -2)
    fail("trunc_normal_",
         fmt::format("the mean must be within 2 deviations of [{}, {}]: mean {}, deviation {}", low, high,
                     mean, deviation));
  // By rejection (Robert 1995): from the normal where the interval is wide, from the uniform where it is
  // narrow; at least one draw in ten is kept, one in 44 for an open interval that begins at 2 deviations.
  double nearest = a > 0 ? a : b < 0 ? b : 0;  // where the density is highest
  bool narrow = b - a <= 4;
  fill(p, [&] {
    for (;;) {
      double x = narrow ? rng.uniform(a, b) : rng.normal();
      bool keep = narrow ? rng.uniform() <= std::exp((nearest * nearest - x * x) / 2) : x >= a && x <= b;
      if (keep) return mean + deviation * x;
    }
  });
}

void eye_(Parameter& p, Caller caller) {
  At at(caller);
  needs_matrix("eye_", p);
  p.update([](const Tensor& t) {
    t.fill(0);
    for (int64_t i = 0; i < std::min(t.size(0), t.size(1)); ++i) t.set(i * t.size(1) + i, 1);
  });
}

void dirac_(Parameter& p, int groups, Caller caller) {
  At at(caller);
  const Shape& s = p.shape();
  if (s.dims() < 3 || s.dims() > 5)
    fail("dirac_", "needs a weight [out, in, k...] of 3 to 5 axes: " + s.str());
  if (groups < 1 || s[0] % groups != 0)
    fail("dirac_", fmt::format("the first axis must divide into the groups: {}, {} groups", s.str(), groups));
  int64_t middle = 0;
  for (int axis = 2; axis < s.dims(); ++axis) middle += s[axis] / 2 * s.stride(axis);
  int64_t out = s[0] / groups;
  p.update([&](const Tensor& t) {
    t.fill(0);
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t i = 0; i < std::min(out, s[1]); ++i)
        t.set((g * out + i) * s.stride(0) + i * s.stride(1) + middle, 1);
  });
}

void sparse_(Parameter& p, double sparsity, Rng& rng, double deviation, Caller caller) {
  At at(caller);
  needs_matrix("sparse_", p);
  if (!(sparsity >= 0 && sparsity <= 1))
    fail("sparse_", fmt::format("sparsity must be in [0, 1]: {}", sparsity));
  normal_(p, 0, deviation, rng);
  int64_t n = p.shape()[0], columns = p.shape()[1];
  int64_t zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(n)));
  std::vector<int64_t> rows(static_cast<size_t>(n));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  p.update([&](const Tensor& t) {
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t k = 0; k < zeros; ++k) {  // the first `zeros` places of a shuffle
        std::swap(rows[static_cast<size_t>(k)], rows[static_cast<size_t>(k + rng.below(n - k))]);
        t.set(rows[static_cast<size_t>(k)] * columns + c, 0);
      }
  });
}

double calculate_gain(const std::string& nonlinearity, double slope, Caller caller) {
  At at(caller);
  for (const char* same : {"linear", "conv", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                           "conv_transpose3d", "sigmoid"})
    if (nonlinearity == same) return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2 / (1 + slope * slope));
  if (nonlinearity == "selu") return 0.75;
  unknown_name("calculate_gain", "nonlinearity", nonlinearity,
               {"linear", "conv", "sigmoid", "tanh", "relu", "leaky_relu", "selu"});
}

void xavier_uniform_(Parameter& p, Rng& rng, const InitOptions& options, Caller caller) {
  At at(caller);
  Fans fan = fans("xavier_uniform_", p, options.blocks);
  double a = options.gain * std::sqrt(6 / (fan.in + fan.out));
  uniform_(p, -a, a, rng);
}

void xavier_normal_(Parameter& p, Rng& rng, const InitOptions& options, Caller caller) {
  At at(caller);
  Fans fan = fans("xavier_normal_", p, options.blocks);
  normal_(p, 0, options.gain * std::sqrt(2 / (fan.in + fan.out)), rng);
}

void kaiming_uniform_(Parameter& p, Rng& rng, const InitOptions& options, Caller caller) {
  At at(caller);
  double a = options.gain * std::sqrt(3 / kaiming_fan("kaiming_uniform_", p, options));
  uniform_(p, -a, a, rng);
}

void kaiming_normal_(Parameter& p, Rng& rng, const InitOptions& options, Caller caller) {
  At at(caller);
  normal_(p, 0, options.gain / std::sqrt(kaiming_fan("kaiming_normal_", p, options)), rng);
}

void orthogonal_(Parameter& p, Rng& rng, const InitOptions& options, Caller caller) {
  At at(caller);
  fans("orthogonal_", p, options.blocks);
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

void orthogonal_blocks(Parameter& p, int blocks, Rng& rng, double gain, Caller caller) {
  At at(caller);
  orthogonal_(p, rng, {.gain = gain, .blocks = blocks});
}

}  // namespace gradus::nn::init
