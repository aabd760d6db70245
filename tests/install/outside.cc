// A program that knows only the installed Gradus: fits a line, with the modules or with the engine alone.
#include <cmath>
#include <cstdio>

#include <gradus/autograd.h>
#include <gradus/ops.h>
#include <gradus/random.h>
#ifndef ENGINE_ONLY
#include <gradus/nn/linear.h>
#include <gradus/nn/optimizer.h>
#endif

using namespace gradus;

int main() {
  Rng rng(1);
  Tensor x = Tensor::uniform({32, 1}, -1, 1, rng);
  Var target = 3 * Var(x) - 0.5;
  auto miss = [&](const Var& y) { return mean((y - target) * (y - target)); };
#ifdef ENGINE_ONLY
  Parameter slope(Tensor::zeros({1})), offset(Tensor::zeros({1}));
  for (int step = 0; step < 200; ++step) {
    Gradients grads = backward(miss(slope * Var(x) + offset));
    for (Parameter* p : {&slope, &offset})
      p->update([&](const Tensor& value) { value.set(0, value.at(0) - 0.5 * grads[*p].at(0)); });
  }
  double a = slope.value().item(), b = offset.value().item();
#else
  nn::Linear line(1, 1, rng);
  nn::SGD sgd({.lr = 0.5});
  for (int step = 0; step < 200; ++step) sgd.step(line, backward(miss(line(x))));
  double a = line.weight.value().item(), b = line.bias.value().item();
#endif
  std::printf("y = %.4f x + %.4f\n", a, b);
  return std::abs(a - 3) < 1e-3 && std::abs(b + 0.5) < 1e-3 ? 0 : 1;
}
