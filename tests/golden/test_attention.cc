#include <cmath>

#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>

#include "../quick_doctest.h"
#include "golden.h"

using namespace gradus;
using golden::File;
using golden::Values;

namespace {

// The files are batch first, the ops time-major.
Var time_major(const Var& x) { return transpose(x, 0, 1); }

Values luong_outputs(const Values& in, const AttentionStep& step) {
  return {{"weights", step.weights},
          {"context", step.context},
          {"attn_vector", tanh(linear(concat({step.context, in.at("query")}, 1), in.at("W_c")))}};
}

}  // namespace

TEST_CASE("golden: additive attention") {
  CHECK_GOLDEN("additive_attention", [](const Values& in, const File& file) -> Values {
    Var annotations = time_major(in.at("annotations"));
    AttentionStep step =
        additive_attention(linear(in.at("query"), in.at("W1")), linear(annotations, in.at("W2")), annotations,
                           in.at("v"), mask_of(in, file));
    return {{"weights", step.weights}, {"context", step.context}};
  });
}

TEST_CASE("golden: additive attention, with a gradient that arrives at the weights") {
  CHECK_GOLDEN("additive_attention_both", [](const Values& in, const File& file) -> Values {
    Var annotations = time_major(in.at("annotations"));
    reference::AttentionStep step =
        reference::additive_attention(linear(in.at("query"), in.at("W1")), linear(annotations, in.at("W2")),
                                      annotations, in.at("v"), mask_of(in, file));
    return {{"weights", step.weights}, {"context", step.context}};
  });
}

TEST_CASE("golden: Luong's dot, general and concat scores") {
  CHECK_GOLDEN("luong_dot", [](const Values& in, const File& file) {
    Var annotations = time_major(in.at("annotations"));
    return luong_outputs(
        in, multiplicative_attention(in.at("query"), annotations, annotations, 1, mask_of(in, file)));
  });
  CHECK_GOLDEN("luong_general", [](const Values& in, const File& file) {
    Var annotations = time_major(in.at("annotations"));
    return luong_outputs(in, multiplicative_attention(in.at("query"), linear(annotations, in.at("W_a")),
                                                      annotations, 1, mask_of(in, file)));
  });
  // W_a [q ; h] is the sum of two products: additive attention with the two halves of W_a.
  CHECK_GOLDEN("luong_concat", [](const Values& in, const File& file) {
    Var annotations = time_major(in.at("annotations"));
    std::vector<Var> halves = split(in.at("W_a"), {3, 3}, 1);
    return luong_outputs(
        in, additive_attention(linear(in.at("query"), halves[0]), linear(annotations, halves[1]), annotations,
                               in.at("v_a"), mask_of(in, file)));
  });
}

TEST_CASE("golden: Luong's local attention with a predicted position") {
  CHECK_GOLDEN("luong_local_p", [](const Values& in, const File& file) -> Values {
    const Var &query = in.at("query"), &annotations = in.at("annotations");
    DType dtype = query.dtype();
    int64_t B = 2, S = annotations.size(1);
    double D = file.config.at("D").item(), sigma = D / 2;
    Tensor lengths = file.config.at("lengths");
    Var p = sigmoid(sum(tanh(linear(query, in.at("W_p"))) * in.at("v_p"), {.axes = {1}})) *
            Var(lengths.to(dtype));
    Tensor window({B, S}, DType::u8), position({1, S}, dtype);
    for (int64_t s = 0; s < S; ++s) position.set(s, static_cast<double>(s));
    for (int64_t b = 0; b < B; ++b)
      for (int64_t s = 0; s < S; ++s)
        window.set(b * S + s, std::abs(static_cast<double>(s) - std::floor(p.value().at(b))) <= D &&
                                  static_cast<double>(s) < lengths.at(b));
    Var scores = reshape(
        matmul(reshape(linear(annotations, in.at("W_a")), {B, S, 3}), reshape(query, {B, 3, 1})), {B, S});
    Var align = softmax(scores, {.mask = window});
    Var gaussian = exp(pow(Var(position) - reshape(p, {B, 1}), 2) * (-1 / (2 * sigma * sigma)));
    Var weights = align * gaussian;
    return {{"p", p},
            {"align", align},
            {"weights", weights},
            {"context", reshape(matmul(reshape(weights, {B, 1, S}), annotations), {B, 3})}};
  });
}
