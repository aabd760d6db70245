// The attentions of nn with the golden files' numbers as their parameters.

#include <gradus/nn/attention/additive.h>
#include <gradus/nn/attention/location.h>
#include <gradus/nn/attention/multihead.h>
#include <gradus/nn/attention/multiplicative.h>
#include <gradus/ops.h>

#include "../quick_doctest.h"
#include "golden.h"

using namespace gradus;
using golden::File;

namespace {

constexpr double kTolerance = 1e-11;

// Loads parameters, takes one step from `query` and `annotations`, and compares what the file has: weights,
// context, attn_vector (where there is a W_c), and the gradients of all inputs.
void check_step(const std::string& name, nn::Attention& attention,
                const std::map<std::string, Parameter*>& parameters) {
  CAPTURE(name);
  File file = golden::load(name);
  for (auto& [input, parameter] : parameters) parameter->assign(file.inputs.at(input));
  std::map<std::string, Var> given;
  for (auto& [input, value] : file.inputs)
    if (!parameters.count(input)) given[input] = variable(value, input);
  Var query = given.at("query");
  Tensor mask = length_mask(golden::ids(file, "lengths"), file.inputs.at("annotations").size(1));
  nn::AttentionMemory memory = attention.prepare(transpose(given.at("annotations"), 0, 1), mask);
  nn::Attended step = attention.step(query, memory, attention.start(memory));
  CHECK(golden::compare(step.weights, file.outputs.at("weights"), kTolerance) == "");
  CHECK(golden::compare(step.context.value(), file.outputs.at("context"), kTolerance) == "");
  Var out = step.context;
  std::string last = "context";
  if (given.count("W_c")) {
    out = tanh(linear(concat({step.context, query}, 1), given.at("W_c")));
    last = "attn_vector";
    CHECK(golden::compare(out.value(), file.outputs.at(last), kTolerance) == "");
  }
  Gradients g = backward(out, {.seed = file.upstream.at(last)});
  for (auto& [input, expected] : file.grads) {
    CAPTURE(input);
    const Var& x = parameters.count(input) ? parameters.at(input)->var() : given.at(input);
    CHECK(golden::compare(g[x], expected, kTolerance) == "");
  }
}

}  // namespace

TEST_CASE("golden: additive, dot, general, concat as modules") {
  Rng rng(1);
  nn::AdditiveAttention additive({3, 4, 5}, rng);
  check_step("additive_attention", additive,
             {{"W1", &additive.query.weight}, {"W2", &additive.key.weight}, {"v", &additive.v}});
  nn::DotAttention dot({3, 3, 5}, rng);
  check_step("luong_dot", dot, {});
  nn::GeneralAttention general({3, 3, 5}, rng);
  check_step("luong_general", general, {{"W_a", &general.key.weight}});
  nn::ConcatAttention concat({3, 3, 5}, rng);
  check_step("luong_concat", concat, {{"W_a", &concat.weight}, {"v_a", &concat.v}});
}

TEST_CASE("golden: local-p as a module") {
  Rng rng(1);
  nn::LocalPredictiveAttention local({3, 3, 4, {.window = 2}}, rng);
  auto& general = dynamic_cast<nn::GeneralAttention&>(*local.score);
  check_step("luong_local_p", local,
             {{"W_a", &general.key.weight}, {"W_p", &local.position.weight}, {"v_p", &local.v}});
}

TEST_CASE("golden: multi-head attention as a module, query by query") {
  File file = golden::load("multi_head_cross_attention");
  Rng rng(1);
  nn::MultiheadSourceAttention attention({4, 4, 4, {.heads = 2}}, rng);
  auto joined = [&](const std::string& kind) {
    std::vector<Var> parts;
    for (const char* which : {"q", "k", "v"}) parts.push_back(file.inputs.at(kind + "_" + which));
    return gradus::concat(parts, 0).value();
  };
  attention.heads.in_proj_weight.assign(joined("W"));
  attention.heads.in_proj_bias.assign(joined("b"));
  attention.heads.out_proj.weight.assign(file.inputs.at("W_o"));
  attention.heads.out_proj.bias.assign(file.inputs.at("b_o"));
  Tensor mask = length_mask(golden::ids(file, "memory_lengths"), 4);
  Var queries = variable(transpose(file.inputs.at("x_query"), 0, 1).value());
  Var source = variable(transpose(file.inputs.at("x_memory"), 0, 1).value());
  nn::AttentionMemory memory = attention.prepare(source, mask);
  nn::AttentionState state = attention.start(memory);
  std::vector<Var> outputs;
  for (int64_t t = 0; t < 3; ++t) {
    nn::Attended a = attention.step(select(queries, 0, t), memory, state);
    state = a.state;
    outputs.push_back(a.context);
    Tensor expected = select(file.outputs.at("weights"), 2, t).value();  // [B, heads, S]
    CHECK(golden::compare(a.head_weights, expected, kTolerance) == "");
  }
  Var out = stack(outputs, 1);
  CHECK(golden::compare(out.value(), file.outputs.at("output"), kTolerance) == "");
  Gradients g = backward(out, {.seed = file.upstream.at("output")});
  CHECK(golden::compare(transpose(g[queries], 0, 1).value(), file.grads.at("x_query"), kTolerance) == "");
  CHECK(golden::compare(transpose(g[source], 0, 1).value(), file.grads.at("x_memory"), kTolerance) == "");
  CHECK(golden::compare(g[attention.heads.out_proj.weight], file.grads.at("W_o"), kTolerance) == "");
  Tensor in_proj = g[attention.heads.in_proj_weight];
  const char* which[] = {"W_q", "W_k", "W_v"};
  for (int i = 0; i < 3; ++i)
    CHECK(golden::compare(in_proj.rows(4 * i, 4 * i + 4), file.grads.at(which[i]), kTolerance) == "");
}
