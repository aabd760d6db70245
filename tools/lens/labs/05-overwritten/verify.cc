int verify() {
  auto f = [](auto& in) { return over_time(in[0], in[1]); };
  return lens::check("over time", f, {{"x", lens::random({5, 2}, 3)}, {"w", lens::random({2}, 4)}},
                     {.exercise = "shared-over-time"});
}
