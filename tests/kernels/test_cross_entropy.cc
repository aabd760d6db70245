#include <gradus/kernels/softmax.h>

#include "util.h"

using namespace gradus;
using namespace kernel_test;

namespace {

template <class T>
struct Plain {
  kernels::CrossEntropySums sums;
  Row<double> dlogits;

  Plain(const Row<T>& x, const std::vector<int32_t>& targets, int64_t V, int32_t ignore, double smoothing)
      : dlogits(x.size()) {
    for (int64_t r = 0; r < int64_t(targets.size()); ++r) {
      const int32_t target = targets[size_t(r)];
      if (target == ignore) continue;
      double top = -1e300, sum = 0;
      for (int64_t k = 0; k < V; ++k) top = std::max(top, double(x[r * V + k]));
      for (int64_t k = 0; k < V; ++k) sum += std::exp(x[r * V + k] - top);
      for (int64_t k = 0; k < V; ++k) {
        const double log_p = x[r * V + k] - top - std::log(sum);
        const double q = (k == target ? 1 - smoothing : 0) + smoothing / double(V);
        dlogits[r * V + k] = std::exp(log_p) - q;
        sums.loss -= q * log_p;
        if (k == target) sums.nll -= log_p;
      }
    }
  }
};

}  // namespace

TEST_CASE_TEMPLATE("cross entropy: loss, gradient and padding against a plain loop", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(31);
    for (const int64_t V : {1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 70, 1003}) {
      for (const double smoothing : {0.0, 0.1}) {
        CAPTURE(V);
        CAPTURE(smoothing);
        const int64_t rows = 6;
        const int32_t ignore = V > 1 ? 0 : -1;
        std::vector<int32_t> targets(size_t(rows), 0);
        for (int64_t r = 0; r < rows; ++r) {
          targets[size_t(r)] = r == 2 ? ignore : int32_t(rng() % uint32_t(V));
        }
        Row<T> x = Row<T>::random(rows * V, rng, 4);
        if (ignore == 0) {
          for (int64_t r = 0; r < rows; ++r) {
            if (targets[size_t(r)] == 0) x[r * V] = std::numeric_limits<T>::quiet_NaN();
          }
        }
        const Plain<T> want(x, targets, V, ignore, smoothing);
        Row<T> dx(rows * V, T(9));
        const auto sums = kernels::cross_entropy_rows(x.data(), targets.data(), rows, V, ignore, T(smoothing),
                                                      dx.data());
        CHECK(close(sums.loss, want.sums.loss, tolerance<T>() * 2));
        CHECK(close(sums.nll, want.sums.nll, tolerance<T>() * 2));
        CHECK(worst_error(dx, want.dlogits) < tolerance<T>());
        CHECK(dx.intact());

        const auto only = kernels::cross_entropy_rows(x.data(), targets.data(), rows, V, ignore, T(smoothing),
                                                      static_cast<T*>(nullptr));
        CHECK(only.loss == sums.loss);
        CHECK(only.nll == sums.nll);
        kernels::cross_entropy_rows(x.data(), targets.data(), rows, V, ignore, T(smoothing), x.data());
        CHECK(x.same_bits(dx));
      }
    }
  });
}

TEST_CASE_TEMPLATE("cross entropy of a layer: the bias before, its gradient behind", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(32);
    const int64_t rows = 5;
    for (const int64_t V : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1003}) {
      for (const bool biased : {false, true}) {
        CAPTURE(V);
        CAPTURE(biased);
        std::vector<int32_t> targets;
        for (int64_t r = 0; r < rows; ++r) targets.push_back(int32_t(rng() % uint32_t(V)));
        const Row<T> x = Row<T>::random(rows * V, rng, 4), bias = Row<T>::random(V, rng, 4);
        const Row<T> before = Row<T>::random(V, rng);
        Row<T> sum(rows * V), z(rows * V), dbias(V);
        for (int64_t i = 0; i < rows * V; ++i) sum[i] = biased ? x[i] + bias[i % V] : x[i];
        const Plain<T> want(sum, targets, V, -1, 0.1);
        Row<double> want_dbias(V);
        for (int64_t i = 0; i < V; ++i) want_dbias[i] = before[i];
        for (int64_t i = 0; i < rows * V; ++i) want_dbias[i % V] += want.dlogits[i];
        auto run = [&](bool gradient, T* db) {
          std::copy_n(x.data(), x.size(), z.data());
          std::copy_n(before.data(), V, dbias.data());
          return kernels::cross_entropy_of_layer(z.data(), biased ? bias.data() : nullptr, targets.data(),
                                                 rows, V, T(0.1), gradient, db);
        };
        const auto sums = run(true, dbias.data());
        CHECK(close(sums.loss, want.sums.loss, tolerance<T>() * 2));
        CHECK(close(sums.nll, want.sums.nll, tolerance<T>() * 2));
        CHECK(worst_error(z, want.dlogits) < tolerance<T>());
        CHECK(worst_error(dbias, want_dbias) < tolerance<T>());
        CHECK(z.intact());
        CHECK(dbias.intact());
        const Row<T> gradient = z;
        CHECK(run(true, nullptr).loss == sums.loss);
        CHECK(z.same_bits(gradient));
        CHECK(dbias.same_bits(before));
        CHECK(run(false, dbias.data()).loss == sums.loss);
        CHECK(z.same_bits(sum));
        CHECK(dbias.same_bits(before));
      }
    }
  });
}

TEST_CASE_TEMPLATE("cross entropy: golden numbers for label smoothing 0.1", T, float, double) {
  const std::vector<double> logits{-0.21, -0.49, -1.16, 0.57,  -0.7,  1.98,  1.72,  0.26,  -1.58, 0.53,
                                   0.71,  -1.37, 0.1,   0.68,  -0.25, -1.47, 1.06,  1.83,  1.97,  1.88,
                                   -1.68, -1.08, 0.02,  -0.93, 0.29,  -1.33, 1.13,  -1.46, 1.76,  1.8};
  // Gradient of the mean over the four real tokens.
  const std::vector<double> gradient{
      0.0456419020649968,  0.0332743262171177, 0.0145853010342995,   -0.119526095173133,   0.0260245658567193,
      0.107962345738458,   -0.142900204182271, 0.015227732110432,    -0.00178748365024088, 0.0214976099836214,
      0.0777370884832068,  0.00533636202089992, 0.0399552689320442,  0.0752918379773358,   -0.198320557413487,
      -0.00250886437900632, 0.0262724863054169, -0.16245873940561,    0.0726909424035154,
      0.0660041750756836};
  const std::vector<int32_t> targets{3, 1, 4, 2, 0, 0};
  on_every_target([&] {
    std::vector<T> x(logits.begin(), logits.end()), dx(30);
    const auto sums = kernels::cross_entropy_rows(x.data(), targets.data(), 6, 5, 0, T(0.1), dx.data());
    CHECK(close(sums.loss, 5.51140314330162, tolerance<T>()));
    CHECK(close(sums.nll / 4, 1.3114007858254, tolerance<T>()));
    for (size_t i = 0; i < 20; ++i) CHECK(close(dx[i] / 4, gradient[i], tolerance<T>()));
    for (size_t i = 20; i < 30; ++i) CHECK(dx[i] == 0);
  });
}

TEST_CASE("cross entropy: large logits do not overflow") {
  const std::vector<float> x{1000, 0, -1000};
  const std::vector<int32_t> targets{2};
  std::vector<float> dx(3);
  const auto sums = kernels::cross_entropy_rows<float>(x.data(), targets.data(), 1, 3, -1, 0, dx.data());
  CHECK(sums.nll == 2000);
  CHECK(dx[0] == 1);
  CHECK(dx[2] == -1);
}
