int verify() {
  auto into = [](auto& in) { return split_heads(in[0], in[1].value().i32()[0]); };
  auto back = [](auto& in) { return linear(merge_heads(in[0]), in[1]); };
  int wrong =
      lens::check("into heads", into, {{"x", lens::random({2, 6}, 2)}, {"H", Tensor::from_ids({1}, {3})}},
                  {.exercise = "split-heads"});
  return wrong + lens::check("and back", back,
                             {{"o", lens::random({3, 2, 2}, 3)}, {"W_O", lens::random({6, 6}, 4)}},
                             {.exercise = "join-heads"});
}
