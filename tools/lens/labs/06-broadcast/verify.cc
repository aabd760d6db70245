int verify() {
  auto f = [](auto& in) { return gain(in[0], in[1]); };
  return lens::check("gain", f, {{"x", lens::random({2, 3, 4}, 3)}, {"g", lens::random({4}, 4)}},
                     {.exercise = "scale"});
}
