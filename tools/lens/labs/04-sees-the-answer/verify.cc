int verify() {
  auto f = [](auto& in) { return loss(in[0], in[1].value()); };
  int wrong = 0;
  for (const Tensor& targets :
       {Tensor::from_ids({4}, {3, 4, 5, 2}), Tensor::from_ids({6}, {5, 5, 3, 2, 0, 0})})
    wrong += lens::check("sequence loss", f, {{"table", lens::random({6, 6}, 9)}, {"targets", targets}},
                         {.exercise = "sequence-loss"});
  return wrong;
}
