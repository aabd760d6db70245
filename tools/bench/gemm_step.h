#pragma once

#include <gradus/tensor.h>

#include <cstdint>
#include <string>

#include "workload.h"

namespace bench {

/// The matrix products of a training step of B sentences, and nothing else: the shapes, strides and order of
/// the layers on `kernels::blas_gemm`, on random numbers. All are calls of BLAS, the recurrent ones at
/// every step, whatever the library has in their place, and nothing leaves padding out. With Luong's
/// order the attention of all steps is six products for each sentence.
class GemmStep {
 public:
  GemmStep(const Size& size, const std::string& variant, int64_t B, uint64_t seed);
  /// `words`: targets that are not padding.
  void run(int64_t words);
  /// Of one run, in billions: two for each multiplication and addition.
  double gflop(int64_t words);

 private:
  // What is written is never read again, but for gi and gh: numbers neither fade out nor grow from run to
  // run.
  struct Linear {
    gradus::Tensor x, w, y, dx, dw, dy;
  };
  struct Recurrence {
    gradus::Tensor x, w_ih, w_hh, gi, gh, h, dx, dw_ih, dw_hh, dgi, dh;
  };
  Linear linear(int64_t rows, int64_t in, int64_t out);
  Recurrence recurrence(int64_t in, int64_t total);
  gradus::Tensor random(int64_t rows, int64_t columns);
  void product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
               int64_t ldb, float beta, float* c, int64_t ldc);
  void forward(const Linear& l);
  void backward(const Linear& l);
  void forward(const Recurrence& r);
  void backward(const Recurrence& r);
  void attention_forward();
  void attention_backward();
  void output(int64_t words);

  Size size_;
  int64_t B_;
  bool context_in_cell_, counting_ = false;
  double flop_ = 0;
  gradus::Rng rng_;
  Recurrence ahead_, back_, cell_;
  Linear keys_, bridge_, readout_, output_;
  gradus::Tensor w1_, u_, du_, dw1_, contexts_, dcontexts_, weights_, dannotations_, scores_;
};

}  // namespace bench
