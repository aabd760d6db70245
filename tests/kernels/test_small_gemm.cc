#include <gradus/kernels/products/small_gemm.h>

#include "util.h"

using namespace gradus;
using namespace kernel_test;

TEST_CASE_TEMPLATE("small_gemm: every shape, transposed, strided, added", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(31);
    for (int64_t m : {1, 2, 3, 4, 7, 8, 13, 20}) {
      for (int64_t n : {1, 3, 4, 8, 15, 16, 31, 33, 70}) {
        for (int64_t k : {0, 1, 5, 32}) {
          for (bool transposed : {false, true}) {
            CAPTURE(m);
            CAPTURE(n);
            CAPTURE(k);
            CAPTURE(transposed);
            const bool add = (m + n + k) % 2 == 0;
            const int64_t lda = (transposed ? m : k) + 3, ldb = n + 2, ldc = n + 1;
            Row<T> a = Row<T>::random((transposed ? k : m) * lda, rng, 1);
            Row<T> b = Row<T>::random(k * ldb, rng, 1), c = Row<T>::random(m * ldc, rng, 1);
            Row<double> want(m * ldc);
            for (int64_t i = 0; i < m * ldc; ++i) want[i] = c[i];  // what lies between the rows stays
            for (int64_t i = 0; i < m; ++i) {
              for (int64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (int64_t p = 0; p < k; ++p) {
                  sum += double(a[transposed ? p * lda + i : i * lda + p]) * double(b[p * ldb + j]);
                }
                want[i * ldc + j] = (add ? want[i * ldc + j] : 0) + 0.5 * sum;
              }
            }
            kernels::small_gemm(m, n, k, T(0.5), a.data(), transposed ? 1 : lda, transposed ? lda : 1,
                                b.data(), ldb, add, c.data(), ldc);
            CHECK(worst_error(c, want, 1) < 10 * tolerance<T>());
            CHECK(c.intact());
          }
        }
      }
    }
  });
}
