#include <gradus/nn/packed/screen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gradus/kernels/inference.h>

namespace gradus::nn::packed {
namespace {

double length_of(const float* x, int64_t k) { return std::sqrt(std::inner_product(x, x + k, x, 0.0)); }

// So far from the ends of what floats can hold that bounds need not think of them; false for NaN.
bool fits_floats(double length) { return length == 0 || (length > 1e-15 && length < 1e15); }

// A row of x, and the columns that may be its largest.
struct Contest {
  float length, lost;  // |x|, and |x - x'| at most
  float least;         // the largest lower bound so far
  std::vector<int32_t> columns;
  std::vector<float> upper;
};

}  // namespace

bool Screen::fits(int64_t n, int64_t k, const float* w, int64_t ldw) {
  for (int64_t j = 0; j < n; ++j)
    if (!fits_floats(length_of(w + j * ldw, k))) return false;
  return true;
}

Screen::Screen(int64_t n, int64_t k, const float* w, int64_t ldw) : rounded_(n, k, w, ldw) {
  std::vector<float> row(static_cast<size_t>(k)), lost(row);
  for (int64_t j = 0; j < n; ++j, w += ldw) {
    std::copy_n(w, k, row.data());
    kernels::round_to_int8(k, row.data());
    std::transform(w, w + k, row.data(), lost.data(), std::minus<>());
    // A float's sum of k products is off by less than this share of |x| |w|, and twice that of |w'|.
    const double share = static_cast<double>(k + 16) * 1.2e-7, length = length_of(row.data(), k);
    lost_.push_back(static_cast<float>(length_of(lost.data(), k) * (1 + share) + length * share));
    length_.push_back(static_cast<float>(length));
  }
}

bool Screen::best_of(const kernels::PackedMatrix<float>& product, int64_t m, const float* x, int64_t x_stride,
                     const float* bias, float* block, float* top, int32_t* best, const Share& share) const {
  static thread_local std::vector<Contest> contests;
  static thread_local kernels::Int8Rows rows;
  static thread_local std::vector<int32_t> at(kBlock);
  static thread_local std::vector<float> exact;
  const int64_t k = rounded_.k(), end = rounded_.column_at(share.end);
  contests.resize(std::max(contests.size(), static_cast<size_t>(m)));
  rounded_.round(m, x, x_stride, rows);
  for (int64_t i = 0; i < m; ++i) {
    const double length = length_of(x + i * x_stride, k);
    if (!fits_floats(length)) return false;
    Contest& row = contests[static_cast<size_t>(i)];
    row.length = static_cast<float>(length);
    row.lost = 0.501f * rows.scale[static_cast<size_t>(i)] * std::sqrt(static_cast<float>(k));
    row.least = top[i];
    row.columns.clear();
    row.upper.clear();
  }
  for (int64_t begin = rounded_.column_at(share.begin), next; begin < end; begin = next) {
    next = std::min(end, begin + kBlock);
    const int64_t n = next - begin;
    rounded_.product_columns(begin, next, rows, false, block - begin, n);
    for (int64_t i = 0; i < m; ++i) {
      Contest& row = contests[static_cast<size_t>(i)];
      float* bounds = block + i * n;
      const int64_t found =
          kernels::contenders(n, bounds, bias ? bias + begin : nullptr, lost_.data() + begin,
                              length_.data() + begin, row.length, row.lost, &row.least, at.data());
      for (int64_t f = 0; f < found; ++f) {
        row.columns.push_back(static_cast<int32_t>(begin) + at[static_cast<size_t>(f)]);
        row.upper.push_back(bounds[at[static_cast<size_t>(f)]]);
      }
    }
  }
  for (int64_t i = 0; i < m; ++i) {
    Contest& row = contests[static_cast<size_t>(i)];
    size_t left = 0;  // the lower bound has risen since
    for (size_t f = 0; f < row.columns.size(); ++f)
      if (row.upper[f] >= row.least) row.columns[left++] = row.columns[f];
    exact.resize(std::max(exact.size(), left));
    product.elements(x + i * x_stride, static_cast<int64_t>(left), row.columns.data(), exact.data());
    for (size_t f = 0; f < left; ++f)
      kernels::raise_best(1, 1, &exact[f], 1, bias ? bias + row.columns[f] : nullptr, row.columns[f], top + i,
                          best + i);
  }
  return true;
}

}  // namespace gradus::nn::packed
