int verify() {
  auto f = [](auto& in) { return backward_states(in[0], in[1].value()); };
  return lens::check("states", f,
                     {{"x", lens::random({5, 3, 2}, 3)}, {"lengths", Tensor::from_ids({3}, {5, 1, 3})}},
                     {.exercise = "reverse-states"});
}
