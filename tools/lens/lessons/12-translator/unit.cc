// Chapter 12: a whole encoder-decoder learns to reverse. Text: `lens lesson 12`.
#include <gradus/nn/attention/additive.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/gru.h>
#include <gradus/nn/optimizer.h>
#include <lens/lesson.h>

#include <cstdio>

using namespace gradus;

struct Reverser {
  nn::Embedding embed;
  nn::GRU encoder;
  nn::AdditiveAttention attention;
  nn::GRUCell cell;
  nn::Linear out;
  Reverser(int64_t H, Rng& r)
      : embed(7, H, r), encoder(H, H, r), attention({H, H, H}, r), cell(2 * H, H, r), out(H, 7, r) {}
  void params(nn::ParamVisitor& visit) {
    visit("embed", embed), visit("encoder", encoder), visit("attention", attention);
    visit("cell", cell), visit("out", out);
  }
  // ids i32 [T, B]; `inputs` are the targets moved by one, as in chapter 11 -> mean loss
  Var loss(const Tensor& source, const Tensor& inputs, const Tensor& targets) const {
    nn::AttentionMemory memory = attention.prepare(encoder(embed(source)).output, {});
    nn::AttentionState state = attention.start(memory);
    std::vector<Var> logits;
    Var h = Tensor::zeros({source.size(1), out.weight.shape()[1]}, out.weight.value().dtype());
    for (int64_t t = 0; t < targets.size(0); ++t) {
      // ---- your turn: the context of this step, made by attention with the query h ----
#ifdef ANSWER
      nn::Attended found = attention.step(h, memory, state);
      Var context = found.context;
      state = found.state;
#else
      Var context = Tensor::zeros(h.shape(), h.dtype());
#endif
      // ---- end ----
      h = cell(concat({embed(inputs.row(t)), context}, 1), h);
      logits.push_back(out(h));
    }
    return cross_entropy(stack(logits, 0), targets).loss;
  }
};

int main() {
  Rng rng(1);
  Reverser small(3, rng), model(32, rng);
  nn::to(small, DType::f64);
  std::vector<Tensor> b = lens::reversals(4, 2, rng);
  auto f = [&] { return small.loss(b[0], b[1], b[2]); };
  int wrong = lens::check_model("A whole encoder-decoder", f, nn::named_parameters(small));
  double loss = 0;
  nn::Adam adam({.lr = 0.01});
  for (int step = 0; step <= 240; ++step) {
    b = lens::reversals(6, 32, rng);
    Var y = model.loss(b[0], b[1], b[2]);
    loss = step ? 0.9 * loss + 0.1 * y.item() : y.item();
    if (step % 60 == 0) std::printf("  step %3d   loss %.3f\n", step, loss);
    adam.step(model, backward(y));
  }
  return wrong + lens::expect(loss < 0.5, "it reverses: the loss is below 0.5",
                              "It does not learn to reverse: ln 6 = 1.79 is what guessing gives.");
}
