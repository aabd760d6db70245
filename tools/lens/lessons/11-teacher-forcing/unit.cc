// Chapter 11: teacher forcing and the loss of a sequence. Formulas: `lens lesson 11`.
#include <lens/lesson.h>

using namespace gradus;
using lens::Ids;

constexpr int kPad = 0, kBos = 1;

// What the decoder reads at each step while it is trained.   targets i32 [T] -> i32 [T]
Tensor decoder_inputs(const Tensor& targets) {
  Tensor inputs = targets.clone();
  Ids in(inputs), target(targets);
  // ---- your turn: at step t the decoder has said t words, and shall say target t ----
#ifdef ANSWER
  in[0] = kBos;
  for (int64_t t = 1; t < targets.numel(); ++t) in[t] = target[t - 1];
#else
  (void)kBos, (void)in, (void)target;  // delete this line
#endif
  // ---- end ----
  return inputs;
}

// The smallest decoder there is: row v of the table holds the logits of the word after v.
// table [V, V], targets i32 [T] -> mean loss over real words
Var sequence_loss(const Var& table, const Tensor& targets) {
  Var logits = embedding(table, decoder_inputs(targets));  // [T, V]
  return cross_entropy(logits, targets, {.ignore_index = kPad}).loss;
}

int main() {
  Tensor targets = Tensor::from_ids({6}, {3, 4, 3, 5, 2, kPad});  // il aime il . <eos> <pad>
  return lens::check("Teacher forcing", [](auto& in) { return sequence_loss(in[0], in[1].value()); },
                     {{"table", lens::random({6, 6}, 1), {"<pad>", "<bos>", "<eos>", "il", "aime", "."}},
                      {"targets", targets}},
                     {.exercise = "sequence-loss"});
}
