// The backward direction of an encoder.   x [T, B, H], lengths i32 [B] -> states [T, B, H]
//   h_t = tanh(x_t) + h_(t+1) / 2; where a sentence has ended, the state is carried over
#include <lens/lesson.h>

using namespace gradus;

Var backward_states(const Var& x, const Tensor& lengths) {
  const int64_t T = x.size(0), B = x.size(1);
  std::vector<Var> states(static_cast<size_t>(T));
  Var h = Tensor::zeros({B, x.size(2)}, x.dtype());
  for (int64_t t = T - 1; t >= 0; --t) {
    Tensor real = Tensor::ones({B, 1}, DType::u8);
#ifdef ANSWER
    for (int64_t b = 0; b < B; ++b) real.set(b, static_cast<double>(t) < lengths.at(b));
#else
    for (int64_t b = 0; b < B; ++b) real.set(b, t < T && lengths.at(b) > 0);
#endif
    h = where(real, tanh(select(x, 0, t)) + h * 0.5, h);
    states[static_cast<size_t>(t)] = h;
  }
  return stack(states, 0);
}

int main() {
  Tensor x = lens::random({4, 2, 3}, 1), lengths = Tensor::from_ids({2}, {4, 2}), other = x.clone();
  for (int64_t k = 0; k < 3; ++k) other.set((3 * 2 + 1) * 3 + k, 5);  // padding of the second sentence
  int wrong = lens::check("The backward direction", [&](auto& in) { return backward_states(in[0], lengths); },
                          {{"x", x, {"t0", "t1", "t2", "t3"}}});
  double moved = max_abs_difference(backward_states(x, lengths).value().row(0),
                                    backward_states(other, lengths).value().row(0));
  return wrong + lens::expect(
                     moved == 0, "what stands in the padding does not matter",
                     "Other numbers in the padding give the first word of the short sentence another state.");
}
