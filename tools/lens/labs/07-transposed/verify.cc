int verify() {
  auto f = [](auto& in) { return layer(in[0], in[1]); };
  return lens::check("square", f, {{"x", lens::random({3, 3}, 3)}, {"W", lens::random({3, 3}, 4)}},
                     {.exercise = "linear"}) +
         lens::check("wide", f, {{"x", lens::random({3, 4}, 5)}, {"W", lens::random({2, 4}, 6)}},
                     {.exercise = "linear"});
}
