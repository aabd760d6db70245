int verify() {
  auto f = [](auto& in) { return network(in[0], in[1], in[2]); };
  std::vector<lens::CheckInput> in{
      {"x", lens::random({3, 4}, 4)}, {"A", lens::random({6, 4}, 5)}, {"B", lens::random({2, 6}, 6)}};
  int wrong = lens::check("deterministic", f, in) + lens::check("at rest", f, in, {.exercise = "mlp"});
  auto trained = [&](uint64_t seed) {
    Training mode(seed);
    return network(in[0].value, in[1].value, in[2].value).value();
  };
  return wrong + lens::expect(max_abs_difference(trained(1), trained(2)) > 1e-3, "in training, dropout drops",
                              "Two seeds of training give the same numbers: dropout is gone altogether.");
}
