int verify() {
  auto f = [](auto& in) { return loss(in[0], in[1].value()); };
  return lens::check("padded loss", f,
                     {{"logits", lens::random({4, 3}, 3)}, {"targets", Tensor::from_ids({4}, {2, 0, 1, 0})}},
                     {.exercise = "padded-loss"});
}
