int verify() {
  auto f = [](auto& in) { return weights(in[0], in[1], in[2]); };
  return lens::check(
             "weights", f,
             {{"s", lens::random({4}, 5)}, {"h", lens::random({4, 4}, 6)}, {"W", lens::random({4, 4}, 7)}},
             {.exercise = "bilinear-weights"}) +
         lens::check(
             "more words than units", f,
             {{"s", lens::random({2}, 8)}, {"h", lens::random({5, 2}, 9)}, {"W", lens::random({2, 2}, 10)}},
             {.exercise = "bilinear-weights"});
}
