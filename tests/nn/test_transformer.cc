#include <gradus/nn/transformer.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/shape.h>

#include <set>

#include "helpers.h"

using namespace gradus;
using test::golden;
using test::random;

namespace {

constexpr int64_t E = 4, kHeads = 2;

nn::TransformerOptions options(bool norm_first, const char* activation = "relu") {
  return {.dim_feedforward = 6, .dropout = 0, .activation = activation, .norm_first = norm_first};
}

// The numbers of a golden file into a layer; every name must be there.
template <class Layer>
void load_golden(Layer& layer, const std::string& file) {
  nn::to(layer, DType::f64);
  nn::StateDict dict;
  for (auto& [name, tensor] : nn::state_dict(layer)) dict.emplace_back(name, golden(file, "inputs", name));
  nn::load_state_dict(layer, dict);
}

Var time_major(const Var& x) { return transpose(x, 0, 1); }

// Output and all gradients of sum(upstream * output), which is batch first.
template <class Layer>
void check_golden(Layer& layer, const std::string& file, const Var& output,
                  const std::vector<std::pair<std::string, Var>>& inputs) {
  CHECK(all_close(output.value(), golden(file, "outputs", "output"), 1e-10, 1e-11));
  Gradients grads = backward(output, {.seed = golden(file, "upstream", "output")});
  for (auto& [name, x] : inputs) {
    CAPTURE(name);
    CHECK(all_close(grads[x], golden(file, "grads", name), 1e-9, 1e-11));
  }
  for (auto& [name, p] : nn::named_parameters(layer)) {
    CAPTURE(name);
    CHECK(all_close(grads[p->var()], golden(file, "grads", name), 1e-9, 1e-11));
  }
}

Tensor memory_mask() { return length_mask(Tensor::from_ids({2}, {4, 3}), 4); }

}  // namespace

TEST_CASE("torch's encoder layer, post- and pre-LN: values and gradients") {
  for (bool norm_first : {false, true}) {
    std::string file =
        norm_first ? "data/transformer_encoder_layer_pre" : "data/transformer_encoder_layer_post";
    CAPTURE(file);
    Rng rng(1);
    nn::TransformerEncoderLayer layer(E, kHeads, rng, options(norm_first, norm_first ? "gelu" : "relu"));
    load_golden(layer, file);
    Var x = variable(golden(file, "inputs", "x"));
    check_golden(layer, file, time_major(layer(time_major(x), memory_mask())), {{"x", x}});
  }
}

TEST_CASE("torch's decoder layer, post- and pre-LN: values and gradients") {
  for (bool norm_first : {false, true}) {
    std::string file =
        norm_first ? "data/transformer_decoder_layer_pre" : "data/transformer_decoder_layer_post";
    CAPTURE(file);
    Rng rng(1);
    nn::TransformerDecoderLayer layer(E, kHeads, rng, options(norm_first));
    load_golden(layer, file);
    Var x = variable(golden(file, "inputs", "x")), memory = variable(golden(file, "inputs", "memory"));
    Var y = layer(time_major(x), time_major(memory), {.memory_mask = memory_mask()}).output;
    check_golden(layer, file, time_major(y), {{"x", x}, {"memory", memory}});
  }
}

TEST_CASE("stacks: names, and a norm at the end with norm_first") {
  Rng rng(1);
  auto names = [](auto&& module) {
    std::set<std::string> out;
    for (auto& [name, tensor] : nn::state_dict(module)) out.insert(name);
    return out;
  };
  std::set<std::string> post = names(nn::TransformerDecoder(2, E, kHeads, rng, options(false)));
  CHECK(post.size() == 36);
  for (const char* name : {"layers.0.self_attn.in_proj_weight", "layers.1.multihead_attn.out_proj.bias",
                           "layers.1.linear1.weight", "layers.0.norm3.bias"})
    CHECK_MESSAGE(post.count(name) == 1, name);
  std::set<std::string> pre = names(nn::TransformerEncoder(1, E, kHeads, rng, options(true)));
  CHECK(pre.size() == 14);
  CHECK(pre.count("norm.weight") == 1);
}

TEST_CASE("layer_norm_eps is that of every norm") {
  Rng rng(1);
  nn::TransformerOptions o = options(true);
  o.layer_norm_eps = 0.25;
  nn::TransformerEncoder encoder(2, E, kHeads, rng, o);
  nn::TransformerDecoder decoder(2, E, kHeads, rng, o);
  for (const auto& layer : encoder.layers)
    for (const nn::LayerNorm* norm : {&layer.norm1, &layer.norm2}) CHECK(norm->eps == 0.25);
  for (const auto& layer : decoder.layers)
    for (const nn::LayerNorm* norm : {&layer.norm1, &layer.norm2, &layer.norm3}) CHECK(norm->eps == 0.25);
  CHECK(encoder.norm.value().eps == 0.25);
  CHECK(decoder.norm.value().eps == 0.25);
}

TEST_CASE("gradients through stacks of two layers") {
  for (bool norm_first : {false, true}) {
    CAPTURE(norm_first);
    Rng rng(5);
    nn::TransformerEncoder encoder(2, E, kHeads, rng, options(norm_first, "gelu"));
    CHECK_GRADIENTS(nn::gradcheck(encoder, {random({4, 2, E}, 1), memory_mask()}));
    CHECK_GRADIENTS(nn::gradcheck(encoder, [&, x = random({4, 2, E}, 1)] {
      return encoder(x, {.mask = memory_mask(), .causal = true});
    }));
    nn::TransformerDecoder decoder(2, E, kHeads, rng, options(norm_first, "gelu"));
    CHECK_GRADIENTS(nn::gradcheck(decoder, {random({3, 2, E}, 1), random({4, 2, E}, 2)}));
  }
}

TEST_CASE("a decoder word by word is the decoder all at once, weights included") {
  NoGrad guard;
  for (bool norm_first : {false, true}) {
    CAPTURE(norm_first);
    Rng rng(6);
    nn::TransformerOptions sharp = options(norm_first);
    sharp.temperature = 0.6;
    nn::TransformerDecoder decoder(2, E, kHeads, rng, sharp);
    nn::to(decoder, DType::f64);
    Tensor x = random({9, 2, E}, 1), memory = random({4, 2, E}, 2);
    nn::TransformerDecoderOptions with{.memory_mask = memory_mask(), .weights = true};
    nn::TransformerDecoderOutput all = decoder(x, memory, with);
    auto caches = decoder.start(memory);
    for (int64_t t = 0; t < 9; ++t) {
      nn::TransformerDecoderOutput one = decoder.step(x.rows(t, t + 1), caches, with);
      CHECK(all_close(one.output.value(), all.output.value().rows(t, t + 1), 1e-11, 1e-12));
      CHECK(all_close(one.weights, all.weights.rows(t, t + 1), 1e-11, 1e-12));
    }
  }
}

TEST_CASE("a decoder looks back only: later words change nothing before them") {
  NoGrad guard;
  Rng rng(7);
  nn::TransformerDecoder decoder(2, E, kHeads, rng, options(true));
  Tensor x = random({5, 1, E}, 1, DType::f32), memory = random({4, 1, E}, 2, DType::f32), other = x.clone();
  for (int64_t i = 3 * E; i < 5 * E; ++i) other.set(i, 9);
  Tensor a = decoder(x, memory).output.value(), b = decoder(other, memory).output.value();
  CHECK(max_abs_difference(a.rows(0, 3), b.rows(0, 3)) == 0);
  CHECK(max_abs_difference(a.rows(3, 5), b.rows(3, 5)) > 0.1);
  // Unless it is told otherwise.
  Tensor open = decoder(x, memory, {.causal = false}).output.value(),
         changed = decoder(other, memory, {.causal = false}).output.value();
  CHECK(max_abs_difference(open.rows(0, 3), changed.rows(0, 3)) > 0.01);
}

TEST_CASE("a causal encoder: a later position changes no earlier output, wherever it stands") {
  NoGrad guard;
  Rng rng(9);
  for (bool norm_first : {false, true}) {
    CAPTURE(norm_first);
    nn::TransformerEncoder encoder(2, E, kHeads, rng, options(norm_first));
    Tensor x = random({70, 2, E}, 1, DType::f32), all = encoder(x, {.causal = true}).value();
    for (int64_t t : {0, 1, 33, 63, 64, 69}) {
      CAPTURE(t);
      Tensor other = x.clone();
      for (int64_t i = 0; i < 2 * E; ++i) other.set(t * 2 * E + i, rng.uniform(-3, 3));
      Tensor changed = encoder(other, {.causal = true}).value();
      CHECK(test::same_bits(all.rows(0, t), changed.rows(0, t)));
      CHECK(max_abs_difference(all.row(t), changed.row(t)) > 0.01);
      CHECK(max_abs_difference(all.rows(t, 70), changed.rows(t, 70)) > 0.01);
    }
    // With the first t positions alone it says the same of them; without `causal` it does not.
    CHECK(all_close(encoder(x.rows(0, 5), {.causal = true}).value(), all.rows(0, 5), 1e-4, 1e-5));
    CHECK(max_abs_difference(encoder(x.rows(0, 5)).value(), encoder(x).value().rows(0, 5)) > 0.01);
  }
}

TEST_CASE("dropout of a layer: under Training only, and the same again with the same seed") {
  Rng rng(8);
  nn::TransformerEncoderLayer layer(E, kHeads, rng, {.dim_feedforward = 6, .dropout = 0.5});
  Tensor x = random({5, 3, E}, 1, DType::f32), plain = layer(x).value();
  auto trained = [&](uint64_t seed) {
    Training mode(seed);
    return layer(x).value();
  };
  CHECK(max_abs_difference(plain, layer(x).value()) == 0);
  CHECK(max_abs_difference(trained(1), plain) > 0.01);
  CHECK(max_abs_difference(trained(1), trained(1)) == 0);
  CHECK(max_abs_difference(trained(1), trained(2)) > 0.01);
}

TEST_CASE("the lines that docs/transformer.md begins with") {
  Rng rng(1);
  NoGrad guard;
  Tensor x = random({4, 2, 8}, 1, DType::f32), target = random({3, 2, 8}, 2, DType::f32),
         mask = memory_mask();
  nn::TransformerEncoder encoder(6, 8, 2, rng, {.dim_feedforward = 16, .dropout = 0.1, .norm_first = true});
  Var memory = encoder(x, mask);
  nn::TransformerDecoder decoder(6, 8, 2, rng, {.dim_feedforward = 16, .norm_first = true});
  auto [y, weights] = decoder(target, memory, {.memory_mask = mask, .weights = true});
  CHECK(weights.shape() == Shape{3, 2, 4});
  Var past = encoder(x, {.causal = true});
  CHECK(past.shape() == Shape{4, 2, 8});
  auto caches = decoder.start(memory);
  for (int64_t t = 0; t < 3; ++t) {
    auto [next, looked_at] = decoder.step(target.rows(t, t + 1), caches, {.memory_mask = mask});
    CHECK(all_close(next.value(), y.value().rows(t, t + 1), 1e-4, 1e-5));
    CHECK_FALSE(looked_at.defined());
  }
}

TEST_CASE("Transformer: what is refused") {
  Rng rng(1);
  CHECK(test::error_of([&] { nn::TransformerEncoder(0, E, kHeads, rng); }) ==
        "[Transformer] num_layers must be positive: 0");
  CHECK(test::error_of([&] { nn::TransformerEncoderLayer(E, kHeads, rng, {.activation = "tanh"}); }) ==
        "[Transformer] unknown activation \"tanh\": one of relu, gelu");
}
