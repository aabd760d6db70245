int verify() {
  auto f = [](auto& in) { return attention(in[0], in[1], in[2], in[3], in[4]); };
  return lens::check("attention", f,
                     {{"s", lens::random({2}, 6)},
                      {"h", lens::random({3, 4}, 7)},
                      {"Wa", lens::random({5, 2}, 8)},
                      {"Ua", lens::random({5, 4}, 9)},
                      {"v", lens::random({5}, 10)}},
                     {.exercise = "attention"});
}
