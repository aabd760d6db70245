int verify() {
  Tensor mask = Tensor::from({3, 4}, {1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 1}, DType::u8);
  auto f = [](auto& in) { return weights(in[0], in[1].value()); };
  int wrong = lens::check("masked weights", f, {{"scores", lens::random({3, 4}, 3)}, {"mask", mask}},
                          {.exercise = "masked-softmax"});
  Tensor none = Tensor::from({1, 2}, {0, 0}, DType::u8), scores = lens::random({1, 2}, 4);
  return wrong + lens::expect(all_finite(weights(scores, none).value()), "a row without words stays finite",
                              "0 / 0 is NaN.");
}
