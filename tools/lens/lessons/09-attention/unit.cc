// Chapter 9: backward through attention. Formulas and shapes: `lens lesson 9`.
#include <lens/lesson.h>

using namespace gradus;
using lens::dot, lens::Rows, lens::Vector;

// s [H] decoder state, h [S, D] annotations, Wa [A, H], Ua [A, D], v [A]  ->  context c [D]
Var attention(const Var& s, const Var& h, const Var& Wa, const Var& Ua, const Var& v) {
  const int64_t S = h.size(0), D = h.size(1), H = s.size(0), A = v.size(0);
  Rows h_(h.value()), Wa_(Wa.value()), Ua_(Ua.value());
  Vector s_(s.value()), v_(v.value());
  Tensor c = lens::zeros({D});
  Rows u_(lens::zeros({S, A}));
  Vector alpha_(lens::zeros({S})), c_(c);
  double total = 0;
  for (int64_t j = 0; j < S; ++j) {
    for (int64_t a = 0; a < A; ++a) u_[j][a] = std::tanh(dot(Wa_[a], s_, H) + dot(Ua_[a], h_[j], D));
    total += alpha_[j] = std::exp(dot(v_, u_[j], A));
  }
  for (int64_t j = 0; j < S; ++j) {
    alpha_[j] /= total;
    for (int64_t d = 0; d < D; ++d) c_[d] += alpha_[j] * h_[j][d];
  }
  return record("attention", {s, h, Wa, Ua, v}, c, [=](const Tensor& g, Grads& grads) {
    Rows dh(grads.into(1)), dWa(grads.into(2)), dUa(grads.into(3));
    Vector g_(g), ds(grads.into(0)), dv(grads.into(4));
    for (int64_t j = 0; j < S; ++j) {
      for (int64_t d = 0; d < D; ++d) dh[j][d] += alpha_[j] * g_[d];  // the value path
        // ---- your turn: delta, then the score path to v, Ua, h[j], Wa and s ----
#ifdef ANSWER
      double delta = alpha_[j] * (dot(g_, h_[j], D) - dot(g_, c_, D));
      for (int64_t a = 0; a < A; ++a) {
        dv[a] += u_[j][a] * delta;
        double dz = (1 - u_[j][a] * u_[j][a]) * v_[a] * delta;  // before tanh
        for (int64_t d = 0; d < D; ++d) dUa[a][d] += dz * h_[j][d], dh[j][d] += dz * Ua_[a][d];
        for (int64_t i = 0; i < H; ++i) dWa[a][i] += dz * s_[i], ds[i] += dz * Wa_[a][i];
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
