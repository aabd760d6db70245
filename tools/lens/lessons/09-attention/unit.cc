// Chapter 9: backward through attention. Formulas and shapes: `lens lesson 9`.
#include <lens/lesson.h>

using namespace gradus;
using lens::dot, lens::Rows;

// s [H] decoder state, h [S, D] annotations, Wa [A, H], Ua [A, D], v [A]  ->  context c [D]
Var attention(const Var& s, const Var& h, const Var& Wa, const Var& Ua, const Var& v) {
  const int64_t S = h.size(0), D = h.size(1), H = s.size(0), A = v.size(0);
  Rows s_(s.value()), h_(h.value()), Wa_(Wa.value()), Ua_(Ua.value()), v_(v.value());
  Tensor c = lens::zeros({D});
  Rows u_(lens::zeros({S, A})), alpha_(lens::zeros({S})), c_(c);
  double total = 0;
  for (int64_t j = 0; j < S; ++j) {
    for (int64_t a = 0; a < A; ++a) u_[j][a] = std::tanh(dot(Wa_[a], s_[0], H) + dot(Ua_[a], h_[j], D));
    total += alpha_[0][j] = std::exp(dot(v_[0], u_[j], A));
  }
  for (int64_t j = 0; j < S; ++j) {
    alpha_[0][j] /= total;
    for (int64_t d = 0; d < D; ++d) c_[0][d] += alpha_[0][j] * h_[j][d];
  }
  return record("attention", {s, h, Wa, Ua, v}, c, [=](const Tensor& g, Grads& dx) {
    Rows g_(g), ds(dx.into(0)), dh(dx.into(1)), dWa(dx.into(2)), dUa(dx.into(3)), dv(dx.into(4));
    for (int64_t j = 0; j < S; ++j) {
      for (int64_t d = 0; d < D; ++d) dh[j][d] += alpha_[0][j] * g_[0][d];  // the value path
      // ---- your turn: delta, then the score path to v, Ua, h[j], Wa and s ----
#ifdef ANSWER
      double delta = alpha_[0][j] * (dot(g_[0], h_[j], D) - dot(g_[0], c_[0], D));
      for (int64_t a = 0; a < A; ++a) {
        dv[0][a] += u_[j][a] * delta;
        double dz = (1 - u_[j][a] * u_[j][a]) * v_[0][a] * delta;  // before tanh
        for (int64_t d = 0; d < D; ++d) dUa[a][d] += dz * h_[j][d], dh[j][d] += dz * Ua_[a][d];
        for (int64_t i = 0; i < H; ++i) dWa[a][i] += dz * s_[0][i], ds[0][i] += dz * Wa_[a][i];
      }
#else
      (void)ds, (void)dWa, (void)dUa, (void)dv;  // delete this line
#endif
      // ---- end ----
    }
  });
}

int main() {
  return lens::check("Backward through attention",
                     [](auto& in) { return attention(in[0], in[1], in[2], in[3], in[4]); },
                     {{"s", lens::random({3}, 1)},
                      {"h", lens::random({5, 4}, 2), {"he", "does", "not", "like", "apples"}},
                      {"Wa", lens::random({3, 3}, 3)},
                      {"Ua", lens::random({3, 4}, 4)},
                      {"v", lens::random({3}, 5)}},
                     {.exercise = "attention"});
}
