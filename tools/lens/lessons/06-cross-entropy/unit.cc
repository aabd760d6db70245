// Chapter 6: the loss of a prediction. Formulas: `lens lesson 6`.
#include <lens/lesson.h>

using namespace gradus;
using lens::Ids, lens::Rows;

// The mean over rows of -log softmax(z_n)[target_n].   z [N, V], targets i32 [N] -> one number
Var mean_loss(const Var& z, const Tensor& targets) {
  const int64_t N = z.size(0), V = z.size(1);
  Rows z_(z.value()), p_(lens::zeros({N, V}));
  Ids target(targets);
  double loss = 0;
  for (int64_t n = 0; n < N; ++n) {
    double total = 0;
    for (int64_t v = 0; v < V; ++v) total += p_[n][v] = std::exp(z_[n][v]);
    for (int64_t v = 0; v < V; ++v) p_[n][v] /= total;
    loss -= std::log(p_[n][target[n]]) / static_cast<double>(N);
  }
  return record("loss", {z}, Tensor::scalar(loss, DType::f64), [=](const Tensor& dy, Grads& grads) {
    Rows dz(grads.into(0));
    for (int64_t n = 0; n < N; ++n)
      for (int64_t v = 0; v < V; ++v) {
        double wanted = target[n] == v ? 1 : 0;
        // ---- your turn: something is forgotten ----
#ifdef ANSWER
        dz[n][v] += dy.item() * (p_[n][v] - wanted) / static_cast<double>(N);
#else
        dz[n][v] += dy.item() * (p_[n][v] - wanted);
#endif
        // ---- end ----
      }
  });
}

int main() {
  return lens::check(
      "Cross entropy", [](auto& in) { return mean_loss(in[0], in[1].value()); },
      {{"z", lens::random({3, 5}, 1), {"il", "aime", "."}}, {"targets", Tensor::from_ids({3}, {4, 0, 2})}},
      {.exercise = "cross-entropy"});
}
