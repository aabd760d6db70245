// Chapter 0: one step of attention, forward. Formulas and shapes: `lens lesson 0`.
#include <lens/lesson.h>

using namespace gradus;

// How well one annotation fits the decoder's state.   s [D], h_j [D] -> e_j, one number
Var score(const Var& s, const Var& h_j) {
  // ---- your turn: multiply s and h_j place by place, and add up ----
#ifdef ANSWER
  return sum(s * h_j);
#else
  (void)s;  // delete this line
  return sum(h_j);
#endif
  // ---- end ----
}

// The same of all annotations.   s [D], h [S, D] -> e [S]
Var scores(const Var& s, const Var& h) {
  std::vector<Var> e;
  for (int64_t j = 0; j < h.size(0); ++j) {
    // ---- your turn: number j is the score of annotation j ----
#ifdef ANSWER
    e.push_back(score(s, select(h, 0, j)));
#else
    e.push_back(score(s, select(h, 0, 0)));
#endif
    // ---- end ----
  }
  return stack(e, 0);
}

// Each annotation as much as its weight says, all added up.   alpha [S], h [S, D] -> c [D]
Var mix(const Var& alpha, const Var& h) {
  Var c = lens::zeros({h.size(1)});
  for (int64_t j = 0; j < h.size(0); ++j) {
    // ---- your turn: annotation j, times its weight ----
#ifdef ANSWER
    c = c + select(alpha, 0, j) * select(h, 0, j);
#else
    (void)alpha;  // delete this line
    c = c + select(h, 0, j);
#endif
    // ---- end ----
  }
  return c;
}

// One step: scores, weights, context.
Var attention(const Var& s, const Var& h) { return mix(softmax(scores(s, h)), h); }

int main() {
  Tensor s = Tensor::from({3}, {5, 1, 20}, DType::f64);
  Tensor h = Tensor::from({4, 3}, {3, 12, 45, 59, 2, 5, 1, 43, 5, 4, 3, 45.3}, DType::f64);
  Tensor first = Tensor::from({3}, {3, 12, 45}, DType::f64);
  std::vector<std::string> words = {"word 0", "word 1", "word 2", "word 3"};
  if (lens::check("One score", [](auto& in) { return score(in[0], in[1]); }, {{"s", s}, {"h_0", first}},
                  {.exercise = "one-score"}) != 0)
    return 1;
  if (lens::check("All scores", [](auto& in) { return scores(in[0], in[1]); }, {{"s", s}, {"h", h, words}},
                  {.exercise = "all-scores"}) != 0)
    return 1;
  return lens::check("The weighted sum", [](auto& in) { return attention(in[0], in[1]); },
                     {{"s", s}, {"h", h, words}}, {.exercise = "weighted-sum"});
}
