int verify() {
  auto f = [](auto& in) { return causal_attention(in[0], in[1], in[2]); };
  Tensor Q = lens::random({5, 2}, 4), K = lens::random({5, 2}, 5), V = lens::random({5, 2}, 6);
  int wrong = lens::check("five words", f, {{"Q", Q}, {"K", K}, {"V", V}}, {.exercise = "causal"});
  Tensor other = V.clone(), before = causal_attention(Q, K, V).value();
  other.set(9, 100);
  Tensor after = causal_attention(Q, K, other).value();
  return wrong + lens::expect(max_abs_difference(before.rows(0, 4), after.rows(0, 4)) == 0,
                              "the last word moves nothing before it", "It is seen by a word before it.");
}
