int verify() {
  auto f = [](auto& in) { return row_norm(in[0], in[1], in[2]); };
  int wrong = 0;
  for (int64_t D : {3, 6})
    wrong += lens::check(
        "rows of " + std::to_string(D), f,
        {{"x", lens::random({2, D}, 4)}, {"gamma", lens::random({D}, 5)}, {"beta", lens::random({D}, 6)}},
        {.exercise = "layer-norm"});
  return wrong;
}
