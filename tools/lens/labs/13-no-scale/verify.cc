int verify() {
  auto f = [](auto& in) { return attention(in[0], in[1], in[2]); };
  int wrong = 0;
  for (int64_t width : {9, 2})
    wrong += lens::check("width " + std::to_string(width), f,
                         {{"Q", lens::random({2, width}, 4)},
                          {"K", lens::random({5, width}, 5)},
                          {"V", lens::random({5, width}, 6)}},
                         {.exercise = "scaled-dot"});
  return wrong;
}
