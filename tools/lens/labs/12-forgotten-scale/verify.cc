int verify() {
  auto f = [](auto& in) { return attention(in[0], in[1]); };
  return lens::check("nine units", f, {{"q", lens::random({9}, 5)}, {"h", lens::random({2, 9}, 6)}},
                     {.exercise = "dot-attention"});
}
