// Training of a decoder: what it reads, and the loss.   table [V, V], targets i32 [T] (0 = padding)
#include <lens/lesson.h>

using namespace gradus;

Tensor moved_by_one(const Tensor& targets) {
  Tensor inputs = Tensor::full(targets.shape(), 1, DType::i32);  // 1 = <bos>
  for (int64_t t = 0; t < targets.numel(); ++t)
#ifdef ANSWER
    if (t + 1 < targets.numel()) inputs.set(t + 1, targets.at(t));
#else
    if (t + 1 < targets.numel()) inputs.set(t, targets.at(t));
#endif
  return inputs;
}

Var loss(const Var& table, const Tensor& targets) {
  return cross_entropy(embedding(table, moved_by_one(targets)), targets, {.ignore_index = 0}).loss;
}

int main() {
  // A table that says each word once more: of no use to a decoder that cannot see what it must say.
  Tensor parrot = lens::zeros({6, 6});
  for (int64_t v = 0; v < 6; ++v) parrot.set(v * 7, 9);
  Tensor targets = Tensor::from_ids({5}, {3, 4, 5, 2, 0});
  int wrong = lens::check("The loss of a sequence", [&](auto& in) { return loss(in[0], targets); },
                          {{"table", parrot}});
  return wrong + lens::expect(loss(parrot, targets).item() > 1, "a parrot has a large loss",
                              "A decoder that only repeats what it reads is nearly perfect here.");
}
