// Chapter 14: heads. Formulas and shapes: `lens lesson 14`.
#include <lens/lesson.h>

using namespace gradus;
using lens::Rows;

// Head h gets the columns h d .. h d + d - 1 of every word.   x [T, D] -> y [H, T, d], d = D / H
Var split_heads(const Var& x, int64_t H) {
  const int64_t T = x.size(0), D = x.size(1), d = D / H;
  Tensor y = lens::zeros({H, T, d});
  Rows x_(x.value()), y_(y);  // row h * T + t of y is word t of head h
  for (int64_t h = 0; h < H; ++h)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t k = 0; k < d; ++k) y_[h * T + t][k] = x_[t][h * d + k];
  return record("split_heads", {x}, y, [=](const Tensor& dy, Grads& grads) {
    Rows dy_(dy), dx(grads.into(0));
    for (int64_t h = 0; h < H; ++h)
      for (int64_t t = 0; t < T; ++t)
        for (int64_t k = 0; k < d; ++k) {
          // ---- your turn: which element of x was number k of word t of head h? ----
#ifdef ANSWER
          dx[t][h * d + k] += dy_[h * T + t][k];
#else
          int64_t place = (h * T + t) * d + k;  // the same numbers under another shape?
          dx[place / D][place % D] += dy_[h * T + t][k];
#endif
          // ---- end ----
        }
  });
}

// What all heads found for a word, side by side, through one matrix.   o [H, T, d], W [D, D] -> y [T, D]
Var join_heads(const Var& o, const Var& W) {
  const int64_t H = o.size(0), T = o.size(1), d = o.size(2), D = H * d;
  Tensor y = lens::zeros({T, D});
  Rows o_(o.value()), W_(W.value()), y_(y);
  for (int64_t t = 0; t < T; ++t)
    for (int64_t i = 0; i < D; ++i)
      for (int64_t c = 0; c < D; ++c) y_[t][i] += W_[i][c] * o_[c / d * T + t][c % d];
  return record("join_heads", {o, W}, y, [=](const Tensor& dy, Grads& grads) {
    Rows dy_(dy), d_o(grads.into(0)), dW(grads.into(1));
    for (int64_t t = 0; t < T; ++t)
      for (int64_t i = 0; i < D; ++i)
        for (int64_t c = 0; c < D; ++c) {
          // ---- your turn: y[t][i] is a sum of products over c; each has two factors ----
#ifdef ANSWER
          d_o[c / d * T + t][c % d] += dy_[t][i] * W_[i][c];
          dW[i][c] += dy_[t][i] * o_[c / d * T + t][c % d];
#else
          if (i == c) d_o[c / d * T + t][c % d] += dy_[t][i];  // side by side, and no matrix
          (void)dW;                                            // delete this line
#endif
          // ---- end ----
        }
  });
}

int main() {
  std::vector<std::string> words = {"he", "likes", "apples"}, heads = {"head 0", "head 1"};
  if (lens::check("Into heads", [](auto& in) { return split_heads(in[0], in[1].value().i32()[0]); },
                  {{"x", lens::random({3, 4}, 1), words}, {"H", Tensor::from_ids({1}, {2})}},
                  {.exercise = "split-heads"}) != 0)
    return 1;
  return lens::check("And back, through W_O", [](auto& in) { return join_heads(in[0], in[1]); },
                     {{"o", lens::random({2, 3, 2}, 2), heads}, {"W_O", lens::random({4, 4}, 3)}},
                     {.exercise = "join-heads"});
}
