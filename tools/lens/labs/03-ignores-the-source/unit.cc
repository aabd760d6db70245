// Attention weights of one step.   state s [D], annotations h [S, D], W [D, D] -> [S]
#include <lens/lesson.h>

using namespace gradus;

Var weights(const Var& s, const Var& h, const Var& W) {
  Var q = linear(reshape(s, {1, -1}), W);  // [1, D]
#ifdef ANSWER
  return softmax(reshape(matmul(h, reshape(q, {-1, 1})), {-1}));
#else
  return softmax(reshape(slice(q, 1, 0, h.size(0)), {-1}));
#endif
}

int main() {
  Tensor s = lens::random({4}, 1), h = lens::random({3, 4}, 2), W = lens::random({4, 4}, 3),
         other = lens::random({3, 4}, 4);
  int wrong = lens::check("Attention weights", [&](auto& in) { return weights(in[0], h, in[1]); },
                          {{"s", s}, {"W", W}});
  double moved = max_abs_difference(weights(s, h, W).value(), weights(s, other, W).value());
  return wrong + lens::expect(moved > 1e-3, "another source gets other weights",
                              "The weights are the same, to the last digit, for any source.");
}
