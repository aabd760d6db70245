// A small network with dropout.   x [N, 4], A [6, 4], B [2, 6] -> [N, 2]
#include <lens/lesson.h>

using namespace gradus;

Var network(const Var& x, const Var& A, const Var& B) {
  Var hidden = tanh(linear(x, A));
#ifndef ANSWER
  static uint64_t seed = 0;
  Training always(++seed);
#endif
  return linear(dropout(hidden, 0.3), B);
}

int main() {
  return lens::check(
      "A network with dropout, at rest", [](auto& in) { return network(in[0], in[1], in[2]); },
      {{"x", lens::random({3, 4}, 1)}, {"A", lens::random({6, 4}, 2)}, {"B", lens::random({2, 6}, 3)}});
}
