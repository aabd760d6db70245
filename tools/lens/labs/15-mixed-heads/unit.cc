// Words to heads and back.   x [T, D] -> [H, T, d] -> [T, D], d = D / H
#include <lens/lesson.h>

using namespace gradus;

Var split_heads(const Var& x, int64_t H) {
  const int64_t T = x.size(0), d = x.size(1) / H;
#ifdef ANSWER
  return transpose(reshape(x, {T, H, d}), 0, 1);
#else
  return reshape(x, {H, T, d});
#endif
}

Var merge_heads(const Var& o) {
  const int64_t H = o.size(0), T = o.size(1), d = o.size(2);
#ifdef ANSWER
  return reshape(transpose(o, 0, 1), {T, H * d});
#else
  return reshape(o, {T, H * d});
#endif
}

// Each head attends to all words by itself.   x [T, D] -> [T, D]
Var self_attention(const Var& x, int64_t H) {
  Var h = split_heads(x, H);
  Var scores = matmul(h, transpose(h, 1, 2)) / std::sqrt(static_cast<double>(h.size(2)));
  return merge_heads(matmul(softmax(scores), h));
}

int main() {
  Tensor x = lens::random({3, 4}, 1);
  int wrong = lens::check("Attention with two heads", [](auto& in) { return self_attention(in[0], 2); },
                          {{"x", x, {"he", "likes", "apples"}}});
  double apart = max_abs_difference(merge_heads(split_heads(x, 2)).value(), x);
  return wrong + lens::expect(apart == 0, "into heads and back gives x again", "It does not.");
}
