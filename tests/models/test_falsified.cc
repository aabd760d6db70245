// The gradient check has to see one hundredth in every single parameter of a translator, those of attention
// first: their gradients are small beside the output layer's.

#include <gradus/nn/module.h>
#include <gradus/nn/seq2seq.h>
#include <gradus/ops.h>

#include "../quick_doctest.h"
#include "small_models.h"

using namespace gradus;
using small_models::batch, small_models::small;

namespace {

// f's value, and its gradients with that of parameters[which] times 1.01.
Var falsified(const Var& y, const std::vector<NamedParameter>& parameters, size_t which) {
  if (!y.requires_grad()) return y;
  std::vector<Var> leaves;
  for (const NamedParameter& p : parameters) leaves.push_back(*p.parameter);
  return record("falsified", leaves, y.value(), [y, leaves, which](const Tensor& dy, Grads& dx) {
    Gradients g = backward(y, {.seed = dy, .retain_graph = true});
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (!g.contains(leaves[i])) continue;
      Tensor own = g[leaves[i]];
      dx.add(static_cast<int>(i), i == which ? (Var(own) * 1.01).value() : own);
    }
  });
}

void check_each_parameter(const nn::Seq2SeqConfig& config) {
  Rng rng(2);
  nn::Seq2Seq model(config, rng);
  nn::to(model, DType::f64);
  auto parameters = nn::named_parameters(model);
  std::function<Var()> loss = [&] { return model.loss(batch()).loss; };
  GradcheckReport right = gradcheck(loss, parameters);
  CHECK_MESSAGE(right.ok, right.message);
  bool query = false;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name;
    CAPTURE(name);
    // A parameter that the loss does not depend on has no gradient to be off.
    Gradients g = backward(loss());
    if (!g.contains(*parameters[i].parameter)) continue;
    double largest = 0;
    for (double v : g[*parameters[i].parameter].to_vector()) largest = worse(largest, std::abs(v));
    CAPTURE(largest);
    query = query || name.find("attention.query.weight") != std::string::npos;
    std::function<Var()> off = [&] { return falsified(loss(), parameters, i); };
    // Beside one that is right: all were looked at above.
    GradcheckReport r = gradcheck(off, {parameters[i], parameters[(i + 1) % parameters.size()]});
    if (largest < 1e-14) continue;  // the scores' bias: softmax takes no notice
    CHECK_FALSE(r.ok);
    CHECK(r.worst_name.starts_with(name));
  }
  CHECK(query);
}

}  // namespace

TEST_CASE("one hundredth is seen in the gradient of every parameter of a translator with additive attention") {
  check_each_parameter(small("bahdanau"));
}

TEST_CASE("and in those of one that looks before it has computed its state, with two layers of LSTM") {
  nn::Seq2SeqConfig c = small("bahdanau", "luong");
  c.rnn.cell = nn::cell_type("lstm");
  c.rnn.num_layers = 2;
  check_each_parameter(c);
}
