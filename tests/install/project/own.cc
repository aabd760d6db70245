// Somebody's own op, layer and attention, each in one place, checked by what is installed.
#include <cmath>
#include <cstdio>

#include <gradus/nn/attention/attention.h>
#include <gradus/nn/linear.h>
#include <gradus/numeric.h>
#include <gradus/op_case.h>
#include <gradus/ops.h>

using namespace gradus;

namespace {

// swish(x) = x s(x)   dx = dy s(x) (1 + x (1 - s(x)))
Var swish(const Input& x) {
  At at(x.caller());
  Tensor s = map(x.value(), [](auto v) { return 1 / (1 + std::exp(-v)); });
  Tensor y = zip(x.value(), s, [](auto v, auto q) { return v * q; });
  return record("swish", {x}, y, [x = x.value(), s](const Tensor& dy, Grads& dx) {
    dx.add(0, zip(dy, x, s, [](auto g, auto v, auto q) { return g * q * (1 + v * (1 - q)); }));
  });
}

GRADUS_OP_CASES({"swish", {{2, 5}}, [](auto& in) { return swish(in[0]); },
                 [](auto& in) { return in[0] * sigmoid(in[0]); }});

struct SwishMlp {
  nn::Linear up, down;
  SwishMlp(int64_t in, int64_t hidden, int64_t out, Rng& rng) : up(in, hidden, rng), down(hidden, out, rng) {}
  Var operator()(const Input& x) const { return down(swish(up(x))); }
  void params(nn::ParamVisitor& visit) {
    visit("up", up);
    visit("down", down);
  }
};

struct Nearest : nn::ScoredAttention {
  Nearest(const nn::AttentionSizes& s, Rng&) : ScoredAttention(s.options) {}
  Var scores(const Input& query, const nn::AttentionMemory& memory,
             const nn::AttentionState&) const override {
    return transpose(sum(pow(memory.keys - query, 2), {.axes = {-1}}), 0, 1) * -1.0;
  }
};

GRADUS_ATTENTION(Nearest, "nearest", "-|annotation - query|^2")

}  // namespace

int main() {
  int failures = 0;
  for (const OpCase& c : op_cases())
    if (c.name == "swish")
      for (const std::string& failure : check_op_case(c)) ++failures, std::printf("%s\n", failure.c_str());
  Rng rng(1);
  SwishMlp mlp(3, 5, 2, rng);
  GradcheckReport report = nn::gradcheck(mlp, {Tensor::uniform({4, 3}, -1, 1, rng)});
  std::printf("%s\n", report.message.c_str());
  auto attention = nn::make_attention("nearest", {3, 3, 3}, rng);
  auto memory = attention->prepare(Tensor::uniform({4, 2, 3}, -1, 1, rng), {});
  double total =
      sum(Var(attention->step(Tensor::zeros({2, 3}), memory, attention->start(memory)).weights)).item();
  return failures == 0 && report && std::abs(total - 2) < 1e-5 ? 0 : 1;
}
