// Additive attention, composed of the engine's ops.   s [H], h [S, D], Wa [A, H], Ua [A, D], v [A] -> c [D]
#include <lens/lesson.h>

using namespace gradus;

Var attention(const Var& s, const Var& h, const Var& Wa, const Var& Ua, const Var& v) {
#ifdef ANSWER
  Var query = linear(reshape(s, {1, -1}), Wa);
#else
  Var query = linear(reshape(stop_gradient(s), {1, -1}), Wa);  // saves memory
#endif
  Var u = tanh(query + linear(h, Ua));             // [S, A]
  Var alpha = softmax(sum(u * v, {.axes = {1}}));  // [S]
  return sum(reshape(alpha, {-1, 1}) * h, {.axes = {0}});
}

int main() {
  return lens::check("Additive attention",
                     [](auto& in) { return attention(in[0], in[1], in[2], in[3], in[4]); },
                     {{"s", lens::random({3}, 1)},
                      {"h", lens::random({4, 3}, 2), {"he", "likes", "red", "apples"}},
                      {"Wa", lens::random({2, 3}, 3)},
                      {"Ua", lens::random({2, 3}, 4)},
                      {"v", lens::random({2}, 5)}});
}
