// The screen of the output layer: the words that are found are those of the whole product, to the bit.

#include <cmath>
#include <limits>
#include <random>

#include <gradus/nn/packed/matrix.h>

#include "../kernels/util.h"
#include "../quick_doctest.h"

namespace screened {

using namespace gradus;
using kernel_test::on_every_target;
using nn::packed::Layout;
using nn::packed::Matrix;

struct Best {
  std::vector<float> top;
  std::vector<int32_t> best;
  bool operator==(const Best&) const = default;
};

// Members one after the other, and of equal ones the first, as PackedSteps has it.
Best best_of(const Matrix& matrix, const Tensor& x, const float* bias, int members) {
  const int64_t m = x.size(0);
  Best out{std::vector<float>(static_cast<size_t>(m), -INFINITY),
           std::vector<int32_t>(static_cast<size_t>(m), -1)};
  std::vector<float> block(static_cast<size_t>(m * Matrix::kBlock));
  for (int member = 0; member < members; ++member) {
    Best own{std::vector<float>(out.top.size(), -INFINITY), std::vector<int32_t>(out.best.size(), -1)};
    matrix.best_of(m, x.f32(), x.size(1), bias, block.data(), own.top.data(), own.best.data(), member, members);
    for (size_t i = 0; i < out.top.size(); ++i)
      if (own.top[i] > out.top[i]) out.top[i] = own.top[i], out.best[i] = own.best[i];
  }
  return out;
}

Tensor random(Shape shape, std::mt19937& rng, float size) {
  Tensor out(shape, DType::f32);
  std::normal_distribution<float> normal(0, size);
  for (int64_t i = 0; i < out.numel(); ++i) out.f32()[i] = normal(rng);
  return out;
}

void check_same(const Tensor& w, const Tensor& x, const float* bias) {
  const Parameter weight(w.clone(), "weight");
  const Matrix plain({nn::WeightPart(weight)}, Layout{.rows = 8}),
      with({nn::WeightPart(weight)}, Layout{.rows = 8, .screen = true});
  const Best want = best_of(plain, x, bias, 1);
  for (const int members : {1, 2, 3}) CHECK(best_of(with, x, bias, members) == want);
}

TEST_CASE("a screen finds the same words: any shape, with a bias and without") {
  on_every_target([] {
    std::mt19937 rng(5);
    for (const auto& [n, k, m] : {std::tuple{1, 1, 1}, {17, 5, 3}, {64, 33, 4}, {100, 64, 9}, {500, 40, 2},
                                  {961, 16, 7}, {1000, 300, 5}}) {
      CAPTURE(n);
      CAPTURE(k);
      const Tensor bias = random({n}, rng, 0.5f);
      for (const float size : {0.05f, 1.0f}) {
        const Tensor w = random({n, k}, rng, size), x = random({m, k}, rng, 1);
        check_same(w, x, nullptr);
        check_same(w, x, bias.f32());
      }
    }
  });
}

TEST_CASE("a screen settles what 8 bits cannot tell apart, ties by the first") {
  on_every_target([] {
    std::mt19937 rng(6);
    const int64_t n = 1200, k = 48;
    Tensor w = random({n, k}, rng, 0.2f), x = random({6, k}, rng, 1);
    // Many rows of W are the same, or differ in the last bit of one number.
    for (int64_t j = 0; j < n; ++j)
      if (j % 3 != 0) {
        std::copy_n(w.f32() + 7 * k, k, w.f32() + j * k);
        if (j % 3 == 2) w.f32()[j * k + j % k] = std::nextafter(w.f32()[j * k + j % k], j % 2 ? 9.0f : -9.0f);
      }
    for (int64_t i = 0; i < 6; ++i)  // these are the largest
      for (int64_t p = 0; p < k; ++p) x.f32()[i * k + p] += 3 * w.f32()[7 * k + p];
    check_same(w, x, nullptr);
    const Tensor equal = Tensor::full({n, k}, 0.1f);
    check_same(equal, x, nullptr);
    check_same(Tensor::zeros({n, k}), x, nullptr);
    check_same(w, Tensor::zeros({2, k}), nullptr);
    // A bias that all but hides what is multiplied, and one column whose bias is as large as its product.
    Tensor bias = Tensor::full({n}, 1e6f);
    check_same(w, x, bias.f32());
    std::copy_n(x.f32(), k, w.f32() + 11 * k);
    for (int64_t p = 0; p < k; ++p) w.f32()[11 * k + p] *= 1e6f;
    bias.fill(0);
    float product = 0;
    for (int64_t p = 0; p < k; ++p) product += w.f32()[11 * k + p] * x.f32()[p];
    bias.f32()[11] = -product + 2;
    check_same(w, x, bias.f32());
  });
}

// All roundings of W go the way that hides the best word: with s the scale, the first column is rounded down by
// 0.49 s everywhere, the second one up by 0.49 s nearly everywhere.
TEST_CASE("a screen allows for what rounding W can do at worst") {
  on_every_target([] {
    const int64_t k = 101;
    Tensor w({2, k}, DType::f32), x({1, k}, DType::f32);
    for (int64_t p = 0; p < k; ++p) {
      const float sign = p % 2 ? 1.0f : -1.0f, whole = p == 0 ? 127.0f : static_cast<float>(p % 90);
      x.f32()[p] = sign * 100;
      w.f32()[p] = whole + (p == 0 ? 0 : 0.49f * sign);
      w.f32()[k + p] = whole + (p == 0 || p > 95 ? 0 : 0.51f * sign);
    }
    check_same(w, x, nullptr);
  });
}

// The same of x: what it loses counts for the first column alone, which looks where it does.
TEST_CASE("a screen allows for what rounding x can do at worst") {
  on_every_target([] {
    const int64_t whole = 21, k = whole + 100;
    Tensor w = Tensor::zeros({2, k}), x = Tensor::full({1, k}, 100.0f);
    x.f32()[0] = 127;
    float sum = 0;
    for (int64_t p = whole; p < k; ++p) {
      x.f32()[p] = static_cast<float>(p % 90) + 0.49f;
      w.f32()[p] = 1;
      sum += static_cast<float>(p % 90);
    }
    for (int64_t p = 1; p < whole; ++p) w.f32()[k + p] = (sum + 0.48f * 100) / 2000;
    check_same(w, x, nullptr);
  });
}

TEST_CASE("a screen leaves to the product what bounds cannot tell") {
  std::mt19937 rng(7);
  const int64_t n = 70, k = 20;
  const Tensor w = random({n, k}, rng, 1), bias = Tensor::full({n}, -INFINITY);
  for (const float bad : {NAN, INFINITY, -INFINITY, 1e30f, 1e-30f}) {
    CAPTURE(bad);
    Tensor x = random({3, k}, rng, bad == 1e-30f ? bad : 1.0f);
    x.f32()[k + 2] = bad;
    check_same(w, x, nullptr);
    Tensor odd = w.clone();
    odd.f32()[5 * k + 1] = bad;
    if (bad == 1e-30f) odd.rows(5, 6).fill(bad);
    check_same(odd, random({3, k}, rng, 1), nullptr);
  }
  // Words that are never to be taken, and nothing else.
  check_same(w, random({3, k}, rng, 1), bias.f32());
  bias.f32()[33] = -50;
  check_same(w, random({3, k}, rng, 1), bias.f32());
}

}  // namespace screened
