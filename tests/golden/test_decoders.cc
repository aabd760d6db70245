#include <gradus/ops/activation.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/attention_decoder.h>
#include <gradus/ops/gru.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/shape.h>

#include "../quick_doctest.h"
#include "golden.h"

using namespace gradus;
using golden::File;
using golden::Values;

namespace {

Var swapped(const Var& x) { return transpose(x, 0, 1); }

using Decoder = AttentionDecoderStates (*)(const AttentionDecoderInputs&, const Tensor&, const Tensor&,
                                           Caller);

auto whole_decoder(Decoder decoder) {
  return [=](const Values& in, const File& file) -> Values {
    Var annotations = swapped(in.at("annotations"));
    AttentionDecoderStates out = decoder({.y = swapped(in.at("y")),
                                          .s0 = in.at("s0"),
                                          .keys = linear(annotations, in.at("W2")),
                                          .annotations = annotations,
                                          .query_weight = in.at("W1"),
                                          .v = in.at("v"),
                                          .weight_ih = in.at("W_ih"),
                                          .weight_hh = in.at("W_hh"),
                                          .bias_ih = in.at("b_ih"),
                                          .bias_hh = in.at("b_hh")},
                                         mask_of(in, file), Tensor(), Caller::current());
    return {{"states", swapped(slice(out.states_contexts, 2, 0, 3))},
            {"weights", swapped(Var(out.weights)).value()}};
  };
}

// The same, step by step of the fused steps.
Values stepwise_decoder(const Values& in, const File& file) {
  Var annotations = swapped(in.at("annotations")), keys = linear(annotations, in.at("W2")), s = in.at("s0");
  Tensor mask = mask_of(in, file);
  std::vector<Var> states, weights;
  for (int64_t t = 0; t < 3; ++t) {
    AttentionStep step = additive_attention(linear(s, in.at("W1")), keys, annotations, in.at("v"), mask);
    s = gru_cell(concat({select(in.at("y"), 1, t), step.context}, 1), s,
                 {in.at("W_ih"), in.at("W_hh"), in.at("b_ih"), in.at("b_hh")});
    states.push_back(s);
    weights.push_back(step.weights);
  }
  return {{"states", stack(states, 1)}, {"weights", stack(weights, 1)}};
}

}  // namespace

TEST_CASE("golden: three steps of a decoder with additive attention") {
  CHECK_GOLDEN("decoder_additive_three_steps", whole_decoder(attention_decoder));
  CHECK_GOLDEN("decoder_additive_three_steps", whole_decoder(reference::attention_decoder));
  CHECK_GOLDEN("decoder_additive_three_steps", &stepwise_decoder);
}

TEST_CASE("golden: three steps of a decoder with Luong's general attention and input feeding") {
  CHECK_GOLDEN("decoder_luong_general_three_steps", [](const Values& in, const File& file) -> Values {
    Var annotations = swapped(in.at("annotations")), keys = linear(annotations, in.at("W_a")),
        h = in.at("h0");
    Var fed = Tensor::zeros(h.shape(), h.dtype());
    Tensor mask = mask_of(in, file);
    std::vector<Var> vectors, weights;
    for (int64_t t = 0; t < 3; ++t) {
      h = gru_cell(concat({select(in.at("y"), 1, t), fed}, 1), h,
                   {in.at("W_ih"), in.at("W_hh"), in.at("b_ih"), in.at("b_hh")});
      AttentionStep step = multiplicative_attention(h, keys, annotations, 1, mask);
      fed = tanh(linear(concat({step.context, h}, 1), in.at("W_c")));
      vectors.push_back(fed);
      weights.push_back(step.weights);
    }
    return {{"attn_vectors", stack(vectors, 1)}, {"weights", stack(weights, 1)}};
  });
}
