// The program of docs/training-parts.md.

#include <gradus/nn/ema.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/linear.h>
#include <gradus/ops/cross_entropy.h>
#include <gradus/nn/scheduler.h>
#include <gradus/random.h>

#include "../quick_doctest.h"

using namespace gradus;

namespace {

struct Model {
  nn::Embedding embedding;
  nn::Linear output;
  explicit Model(Rng& rng) : embedding(9, 6, rng), output(6, 9, rng) {}
  Var operator()(const Tensor& ids) const { return output(embedding(ids)); }
  void params(nn::ParamVisitor& visit) {
    visit("embedding", embedding);
    visit("output", output);
  }
};

struct Batch {
  Tensor words, next;
};

Var loss(const Model& model, const Batch& batch) {
  return cross_entropy(model(batch.words), batch.next).loss;
}

}  // namespace

TEST_CASE("the example of docs/training-parts.md") {
  Rng rng(1);
  Model model(rng);
  Batch cycle{Tensor::from_ids({9}, {0, 1, 2, 3, 4, 5, 6, 7, 8}),
              Tensor::from_ids({9}, {1, 2, 3, 4, 5, 6, 7, 8, 0})};
  std::vector<Batch> batches(2000, cycle);
  double before = loss(model, cycle).item();

  nn::AdamW adam({.lr = 1e-3, .weight_decay = 0.01});
  adam.add_group(model.embedding, {.lr = 1e-4, .weight_decay = 0});
  nn::Scheduler schedule(adam, nn::with_warmup(100, nn::cosine_annealing_lr(2000)));
  nn::ExponentialMovingAverage ema({.decay = 0.999});
  for (const Batch& batch : batches) {
    Gradients grads = backward(loss(model, batch));
    adam.step(model, grads, nn::clip_factor(nn::grad_norm(grads), 1.0));
    schedule.step();
    ema.update(model);
  }
  double last = loss(model, cycle).item();
  {
    nn::EMAWeights use(ema, model);
    CHECK(loss(model, cycle).item() != last);
    CHECK(loss(model, cycle).item() < 0.5 * before);
  }
  CHECK(loss(model, cycle).item() == last);
  CHECK(last < 0.5 * before);
  CHECK(adam.lr(0) < 1e-8);
}
