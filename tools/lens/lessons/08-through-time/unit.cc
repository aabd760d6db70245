// Chapter 8: backward through time. Formulas: `lens lesson 8`.
#include <lens/lesson.h>

using namespace gradus;
using lens::Rows, lens::Vector;

// What a GRU does with its state: h_t = (1 - z_t) n_t + z_t h_(t-1).   z, n [T, H], h0 [H] -> h [T, H]
Var carry(const Var& z, const Var& n, const Var& h0) {
  const int64_t T = z.size(0), H = z.size(1);
  Tensor h = lens::zeros({T, H});
  Rows z_(z.value()), n_(n.value()), h_(h);
  Vector h0_(h0.value());
  for (int64_t t = 0; t < T; ++t)
    for (int64_t k = 0; k < H; ++k)
      h_[t][k] = (1 - z_[t][k]) * n_[t][k] + z_[t][k] * (t > 0 ? h_[t - 1][k] : h0_[k]);
  return record("carry", {z, n, h0}, h, [=](const Tensor& dy, Grads& grads) {
    Rows dy_(dy), dz(grads.into(0)), dn(grads.into(1));
    Vector dh0(grads.into(2)), dh(lens::zeros({H}));
    for (int64_t t = T - 1; t >= 0; --t)
      for (int64_t k = 0; k < H; ++k) {
        double before = t > 0 ? h_[t - 1][k] : h0_[k];
        // ---- your turn: what arrives at h_t, and what goes on to h_(t-1)? ----
#ifdef ANSWER
        dh[k] += dy_[t][k];
#else
        dh[k] = dy_[t][k];
#endif
        dz[t][k] += dh[k] * (before - n_[t][k]);
        dn[t][k] += dh[k] * (1 - z_[t][k]);
#ifdef ANSWER
        dh[k] *= z_[t][k];
        if (t == 0) dh0[k] += dh[k];
#else
        if (t == 0) dh0[k] += dh[k] * z_[0][k];
#endif
        // ---- end ----
      }
  });
}

int main() {
  Tensor z = map(lens::random({5, 3}, 1), [](auto v) { return 0.6 + 0.3 * v; });
  return lens::check("Backward through time", [](auto& in) { return carry(in[0], in[1], in[2]); },
                     {{"z", z, {"I", "do", "not", "like", "apples"}},
                      {"n", lens::random({5, 3}, 2), {"I", "do", "not", "like", "apples"}},
                      {"h0", lens::random({3}, 3)}},
                     {.exercise = "carry"});
}
