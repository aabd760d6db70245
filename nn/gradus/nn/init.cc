#include <gradus/nn/init.h>

#include <fmt/core.h>

#include <cmath>
#include <utility>
#include <vector>

#include <gradus/error.h>

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
  if (s.dims() != 2) fail(where, "needs a weight [out, in]: " + s.str());
  if (blocks < 1 || s[0] % blocks != 0)
    fail(where, fmt::format("the first axis must divide into the blocks: {}, {} blocks", s.str(), blocks));
  return {static_cast<double>(s[1]), static_cast<double>(s[0] / blocks)};
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

void zeros_(Parameter& p) { constant_(p, 0); }

void constant_(Parameter& p, double value) {
  p.update([value](const Tensor& t) { t.fill(value); });
}

void uniform_(Parameter& p, double low, double high, Rng& rng) {
  fill(p, [&] { return rng.uniform(low, high); });
}

void normal_(Parameter& p, double mean, double deviation, Rng& rng) {
  fill(p, [&] { return mean + deviation * rng.normal(); });
}

void xavier_uniform_(Parameter& p, Rng& rng, const InitOptions& options) {
  Fans fan = fans("xavier_uniform_", p, options.blocks);
  double a = options.gain * std::sqrt(6 / (fan.in + fan.out));
  uniform_(p, -a, a, rng);
}

void xavier_normal_(Parameter& p, Rng& rng, const InitOptions& options) {
  Fans fan = fans("xavier_normal_", p, options.blocks);
  normal_(p, 0, options.gain * std::sqrt(2 / (fan.in + fan.out)), rng);
}

void kaiming_uniform_(Parameter& p, Rng& rng, const InitOptions& options) {
  Fans fan = fans("kaiming_uniform_", p, options.blocks);
  double a = options.gain * std::sqrt(3 / fan.in);
  uniform_(p, -a, a, rng);
}

void orthogonal_(Parameter& p, Rng& rng, const InitOptions& options) {
  Fans fan = fans("orthogonal_", p, options.blocks);
  int64_t rows = static_cast<int64_t>(fan.out), columns = static_cast<int64_t>(fan.in);
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

void orthogonal_blocks(Parameter& p, int blocks, Rng& rng, double gain) {
  orthogonal_(p, rng, {.gain = gain, .blocks = blocks});
}

}  // namespace gradus::nn::init
