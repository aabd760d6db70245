int verify() {
  auto f = [](auto& in) { return attention(in[0], in[1]); };
  int wrong = lens::check("one word", f, {{"q", lens::random({3}, 5)}, {"h", lens::random({1, 3}, 6)}},
                          {.exercise = "dot-attention"});
  return wrong + lens::check("seven words", f, {{"q", lens::random({3}, 7)}, {"h", lens::random({7, 3}, 8)}},
                             {.exercise = "dot-attention"});
}
