#include "gemm_step.h"

#include <gradus/kernels/products/gemm.h>

#include <algorithm>

namespace bench {

using gradus::Tensor;

// Rows of logits at a time, at most, in even parts, as lib/gradus/ops/output_loss.cc has them.
constexpr int64_t kChunk = 384;

GemmStep::GemmStep(const Size& s, const std::string& variant, int64_t B, uint64_t seed)
    : size_(s), B_(B), context_in_cell_(variant == "bahdanau"), rng_(seed, 3) {
  int64_t N = s.T * B, H = s.H;
  ahead_ = recurrence(s.E, s.E);
  back_ = recurrence(s.E, s.E);
  cell_ = recurrence(s.E, context_in_cell_ ? s.E + 2 * H : s.E);
  keys_ = linear(N, 2 * H, H);
  bridge_ = linear(B, H, H);
  readout_ = linear(N, context_in_cell_ ? 3 * H + s.E : 3 * H, H);
  output_ = {random(N, H), random(s.V, H), random(std::min(kChunk, N), s.V),
             random(N, H), random(s.V, H), random(std::min(kChunk, N), s.V)};
  u_ = random(N, H);
  du_ = random(N, H);
  contexts_ = random(N, 2 * H);
  dcontexts_ = random(N, 2 * H);
  weights_ = random(N, s.T);
  dannotations_ = random(N, 2 * H);
  if (context_in_cell_) {
    w1_ = random(H, H);
    dw1_ = random(H, H);
  } else {
    scores_ = random(s.T, s.T);
  }
}

Tensor GemmStep::random(int64_t rows, int64_t columns) {
  return Tensor::uniform({rows, columns}, -0.1, 0.1, rng_);
}

GemmStep::Linear GemmStep::linear(int64_t rows, int64_t in, int64_t out) {
  return {random(rows, in), random(out, in), random(rows, out),
          random(rows, in), random(out, in), random(rows, out)};
}

GemmStep::Recurrence GemmStep::recurrence(int64_t in, int64_t total) {
  int64_t N = size_.T * B_, H = size_.H, G = 3 * H;
  return {random(N, in), random(G, total), random(G, H), random(N, G), random(B_, G), random(N + B_, H),
          random(N, in), random(G, total), random(G, H), random(N, G), random(B_, H)};
}

void GemmStep::product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                       const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  if (counting_)
    flop_ += 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  else
    gradus::kernels::blas_gemm(ta, tb, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
}

// y = x W^T
void GemmStep::forward(const Linear& l) {
  int64_t rows = l.x.size(0), in = l.x.size(1), out = l.w.size(0);
  product(false, true, rows, out, in, l.x.f32(), in, l.w.f32(), in, 0, l.y.f32(), out);
}

// dx = dy W, dW += dy^T x
void GemmStep::backward(const Linear& l) {
  int64_t rows = l.x.size(0), in = l.x.size(1), out = l.w.size(0);
  product(false, false, rows, in, out, l.dy.f32(), out, l.w.f32(), in, 0, l.dx.f32(), in);
  product(true, false, out, in, rows, l.dy.f32(), out, l.x.f32(), in, 1, l.dw.f32(), in);
}

// An encoder's direction or the decoder; of the latter, where the context goes into the cell, the products of
// Bahdanau's attention as well.
void GemmStep::forward(const Recurrence& r) {
  const int64_t H = size_.H, E = size_.E, D = 2 * H, G = 3 * H, in = r.x.size(1), total = r.w_ih.size(1);
  product(false, true, size_.T * B_, G, in, r.x.f32(), in, r.w_ih.f32(), total, 0, r.gi.f32(), G);
  for (int64_t t = 0; t < size_.T; ++t) {
    const float* s = r.h.f32() + t * B_ * H;
    if (total > in) {
      product(false, true, B_, H, H, s, H, w1_.f32(), H, 0, u_.f32() + t * B_ * H, H);
      product(false, true, B_, G, D, contexts_.f32() + t * B_ * D, D, r.w_ih.f32() + E, total, 1,
              r.gi.f32() + t * B_ * G, G);
    }
    product(false, true, B_, G, H, s, H, r.w_hh.f32(), H, 0, r.gh.f32(), G);
  }
}

void GemmStep::backward(const Recurrence& r) {
  const int64_t H = size_.H, E = size_.E, D = 2 * H, G = 3 * H, T = size_.T, N = T * B_, in = r.x.size(1),
                total = r.w_ih.size(1);  // columns of W_ih: those of x, which one product takes, and all
  for (int64_t t = T; t-- > 0;) {
    const float* dgates = r.dgi.f32() + t * B_ * G;
    product(false, false, B_, H, G, dgates, G, r.w_hh.f32(), H, 1, r.dh.f32(), H);
    if (total == in) continue;
    product(false, false, B_, D, G, dgates, G, r.w_ih.f32() + E, total, 1, dcontexts_.f32() + t * B_ * D, D);
    product(false, false, B_, H, H, du_.f32() + t * B_ * H, H, w1_.f32(), H, 1, r.dh.f32(), H);
  }
  // Once for all steps: dx, dW_ih (of the inputs x), dW_hh.
  product(false, false, N, in, G, r.dgi.f32(), G, r.w_ih.f32(), total, 0, r.dx.f32(), in);
  product(true, false, G, in, N, r.dgi.f32(), G, r.x.f32(), in, 1, r.dw_ih.f32(), total);
  product(true, false, G, H, N, r.dgi.f32(), G, r.h.f32(), H, 1, r.dw_hh.f32(), H);
  if (total == in) return;
  product(true, false, G, D, N, r.dgi.f32(), G, contexts_.f32(), D, 1, r.dw_ih.f32() + E, total);
  product(true, false, H, H, N, du_.f32(), H, r.h.f32(), H, 1, dw1_.f32(), H);
  for (int64_t b = 0; b < B_; ++b)  // annotations by way of the contexts, a product for each sentence
    product(true, false, T, D, T, weights_.f32() + b * T, B_ * T, dcontexts_.f32() + b * D, B_ * D, 1,
            dannotations_.f32() + b * D, B_ * D);
}

// Luong's attention for all steps at once, with no more than products: for each sentence
// scores [T, S] = q keys^T and contexts [T, D] = weights annotations. Sentences count in full length.
void GemmStep::attention_forward() {
  int64_t H = size_.H, D = 2 * H, T = size_.T;
  const float *q = cell_.h.f32(), *keys = keys_.y.f32(), *annotations = keys_.x.f32();
  for (int64_t b = 0; b < B_; ++b) {
    product(false, true, T, T, H, q + b * H, B_ * H, keys + b * H, B_ * H, 0, scores_.f32(), T);
    product(false, false, T, D, T, weights_.f32() + b * T, B_ * T, annotations + b * D, B_ * D, 0,
            contexts_.f32() + b * D, B_ * D);
  }
}

// dweights = dcontexts annotations^T, dannotations += weights^T dcontexts, dq = dscores keys, dkeys +=
// dscores^T q.
void GemmStep::attention_backward() {
  int64_t H = size_.H, D = 2 * H, T = size_.T;
  const float *q = cell_.h.f32(), *keys = keys_.y.f32(), *annotations = keys_.x.f32(), *g = dcontexts_.f32();
  for (int64_t b = 0; b < B_; ++b) {
    const float* weights = weights_.f32() + b * T;
    product(false, true, T, T, D, g + b * D, B_ * D, annotations + b * D, B_ * D, 0, scores_.f32(), T);
    product(true, false, T, D, T, weights, B_ * T, g + b * D, B_ * D, 1, dannotations_.f32() + b * D, B_ * D);
    product(false, false, T, H, T, weights, B_ * T, keys + b * H, B_ * H, 0, u_.f32() + b * H, B_ * H);
    product(true, false, T, H, T, weights, B_ * T, q + b * H, B_ * H, 1, du_.f32() + b * H, B_ * H);
  }
}

void GemmStep::output(int64_t words) {
  int64_t H = size_.H, V = size_.V;
  const Linear& l = output_;
  const int64_t parts = std::max<int64_t>(1, (words + kChunk - 1) / kChunk), most = (words + parts - 1) / parts;
  for (int64_t first = 0; first < words; first += most) {
    int64_t n = std::min(most, words - first);
    float *x = l.x.f32() + first * H, *dx = l.dx.f32() + first * H, *dlogits = l.dy.f32();
    product(false, true, n, V, H, x, H, l.w.f32(), H, 0, l.y.f32(), V);
    product(true, false, V, H, n, dlogits, V, x, H, 1, l.dw.f32(), H);
    product(false, false, n, H, V, dlogits, V, l.w.f32(), H, 0, dx, H);
  }
}

void GemmStep::run(int64_t words) {
  forward(ahead_);
  forward(back_);
  forward(bridge_);
  forward(keys_);
  forward(cell_);
  if (!context_in_cell_) attention_forward();
  forward(readout_);
  output(words);
  backward(readout_);
  if (!context_in_cell_) attention_backward();
  backward(cell_);
  backward(keys_);
  backward(bridge_);
  backward(back_);
  backward(ahead_);
}

double GemmStep::gflop(int64_t words) {
  counting_ = true;
  flop_ = 0;
  run(words);
  counting_ = false;
  return flop_ / 1e9;
}

}  // namespace bench
