// Chapter 7: an embedding, and the same word twice. Formulas: `lens lesson 7`.
#include <lens/lesson.h>

using namespace gradus;
using lens::Ids, lens::Rows;

// y_t = table[id_t].   table [V, E], ids i32 [T] -> y [T, E]
Var look_up(const Var& table, const Tensor& ids) {
  const int64_t T = ids.numel(), E = table.size(1);
  Tensor y = lens::zeros({T, E});
  Rows table_(table.value()), y_(y);
  Ids id(ids);
  for (int64_t t = 0; t < T; ++t)
    for (int64_t e = 0; e < E; ++e) y_[t][e] = table_[id[t]][e];
  return record("look_up", {table}, y, [=](const Tensor& dy, Grads& grads) {
    Rows dy_(dy), dtable(grads.into(0));
    for (int64_t t = 0; t < T; ++t)
      for (int64_t e = 0; e < E; ++e) {
        // ---- your turn: the same word may come twice ----
#ifdef ANSWER
        dtable[id[t]][e] += dy_[t][e];
#else
        dtable[id[t]][e] = dy_[t][e];
#endif
        // ---- end ----
      }
  });
}

int main() {
  Tensor ids = Tensor::from_ids({6}, {1, 2, 4, 1, 3, 2});  // the big dog the red big
  return lens::check(
      "Embedding", [](auto& in) { return look_up(in[0], in[1].value()); },
      {{"table", lens::random({5, 4}, 1), {"<pad>", "the", "big", "red", "dog"}}, {"ids", ids}},
      {.exercise = "embedding"});
}
