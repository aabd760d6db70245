// What `lens flow --depth` computes: gradients at the layers of fresh Transformer stacks.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <common/json_text.h>
#include <fmt/core.h>
#include <gradus/io/safetensors.h>
#include <gradus/numeric.h>

#include "../quick_doctest.h"
#include "../io/scratch.h"
#include "../show_json.h"
#include "../skip.h"
#include "depth/depth.h"
#include "norms.h"
#include "page/schema.h"
#include "subjects.h"

using namespace lens;

namespace {

const DepthSizes kSmallStack{.layers = 3, .width = 8, .heads = 2, .hidden = 12, .words = 4, .vocabulary = 5};

struct MadeStack {
  gradus::Rng rng{7};
  DepthStack stack;
  DepthInput input;
  DepthGradients gradients;
  explicit MadeStack(const DepthKind& kind, const DepthSizes& sizes = kSmallStack)
      : stack(kind, sizes, rng), input(sizes, rng), gradients(depth_gradients(stack, input)) {}
  FlowChecks checks() const { return check_depth(stack, input, gradients, {0, 1, 2}); }
};

// Relative to the larger one.
double relative_off(const gradus::Tensor& a, const gradus::Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  return gradus::max_abs_difference(a, b) / norm(b);
}

}  // namespace

TEST_CASE("with residuals and norms a stack is the library's own encoder") {
  for (const char* where : {"last", "first"}) {
    MadeStack m({true, where});
    gradus::NoGrad guard;
    gradus::Var x = m.input.x;
    for (size_t l = 0; l < 3; ++l) x = m.stack.layer(l, x);
    CHECK(relative_off(m.stack.logits(x).value(), m.stack.output(m.stack.encoder(m.input.x)).value()) <
          1e-14);
  }
}

TEST_CASE("gradients of every kind of stack agree with differences, and wrong ones do not") {
  for (const DepthKind& kind : depth_kinds()) {
    CAPTURE(kind.name());
    MadeStack m(kind);
    FlowChecks good = m.checks();
    CHECK(good.count == 6);
    CHECK(good.small == 0);
    CHECK(good.worst < 1e-7);
    for (auto* gradients : {&m.gradients.states, &m.gradients.weights}) {
      const gradus::Tensor kept = (*gradients)[1].clone();
      (*gradients)[1] = gradus::map(kept, [](auto v) { return v * 1.001; });
      CHECK(m.checks().worst > 5e-4);
      // Of the right length, in another direction.
      (*gradients)[1] = kept.clone();
      (*gradients)[1].f64()[0] = -kept.at(0);
      CHECK(m.checks().worst > 1e-6);
      (*gradients)[1] = kept;
    }
  }
}

TEST_CASE("where the loss is too far away the layer's output is followed") {
  DepthSizes deep = kSmallStack;
  deep.layers = 20;
  MadeStack m({false, "none"}, deep);
  CHECK(norm(m.gradients.states[0]) < 1e-9 * m.gradients.loss);
  FlowChecks good = m.checks();
  CHECK(good.small == good.count);
  CHECK(good.worst < 1e-7);
  m.gradients.weights[1] = gradus::map(m.gradients.weights[1], [](auto v) { return v * 1.001; });
  CHECK(m.checks().worst > 5e-4);
}

TEST_CASE("the figures of the documentation, with gelu and with relu") {
  for (const char* activation : {"gelu", "relu"}) {
    CAPTURE(activation);
    auto measured = [&](const DepthKind& kind, int64_t layers) {
      return measure_depth(kind, {.layers = layers, .activation = activation}, 8, false);
    };
    // Norm last: the last layer's gradient does not know the depth. Norm first: it falls like 1/sqrt(N), and
    // layer 1 gets more than the last.
    DepthResult last6 = measured({true, "last"}, 6), last24 = measured({true, "last"}, 24);
    DepthResult first6 = measured({true, "first"}, 6), first24 = measured({true, "first"}, 24);
    CHECK(std::abs(last24.weights.last - last6.weights.last) < 0.15);
    CHECK(std::abs(first24.weights.last - first6.weights.last + std::log10(2)) < 0.12);
    CHECK(first24.states.low[0] > 0.2);
    CHECK(std::abs(last24.states.median[0]) < 0.5);
    CHECK(last24.states.median[23] == 0);
    // Without either it vanishes, without norms alone it explodes.
    CHECK(measured({false, "none"}, 24).states.high[0] < -8);
    CHECK(measured({true, "none"}, 24).states.low[0] > 3);
    // Without residuals norms keep its length, but the words are all alike.
    DepthResult cut = measured({false, "last"}, 24);
    CHECK(std::abs(cut.states.median[0]) < 1.5);
    CHECK(cut.apart[23] < 1e-12);
    CHECK(last24.apart[23] > 0.01);
    CHECK(first24.apart[23] > 0.3);
    CHECK(cut.apart[0] == last24.apart[0]);
  }
}

TEST_CASE("text, picture and trace of a study, and what does not go with it") {
  DepthStudy study{.sizes = kSmallStack, .seeds = 2, .results = {}};
  for (const DepthKind& kind : depth_kinds())
    for (int64_t layers : {2, 3}) {
      DepthSizes sizes = kSmallStack;
      sizes.layers = layers;
      study.results.push_back(measure_depth(kind, sizes, 2, layers == 3));
    }
  CHECK(study.checks().count == 6 * (2 * 2 + 2 * 2 * 3));
  json trace = depth_json(study);
  CHECK(test::fault_of(trace) == "");
  CHECK(trace["results"].size() == 12);
  trace["results"][0]["norm"] = "middle";
  CHECK(!problems(trace, trace_schema()).empty());
  std::string text = depth_text(study), svg = depth_svg(study);
  CHECK(text.find("no residuals, norm first ") != std::string::npos);
  CHECK(text.find(std::to_string(study.checks().count) + " lengths compared with") != std::string::npos);
  const DepthLine& states = study.results[1].states;
  CHECK(states.low[0] < states.high[0]);
  CHECK(text.find(" " + tenths(states.median[0]) + " (" + tenths(states.low[0]) + " to ") != std::string::npos);
  CHECK(test::count(svg, "<polyline") == 3 * 6);
  CHECK(svg.find("nan") == std::string::npos);
  FlowOptions o;
  o.depth = true;
  o.model = own_model();
  CHECK_THROWS_AS(flow(o), UsageError);
}

TEST_CASE("lens flow --depth measures eight depths of six kinds") {
  scratch::Directory folder;
  FlowOptions o;
  o.depth = o.json = true;
  o.seeds = 1;
  o.out = folder.file("depth.json");
  CHECK(flow(o) == 0);
  json trace = json_text::parse(scratch::read(o.out));
  CHECK(problems(trace, trace_schema()).empty());
  REQUIRE(trace["results"].size() == 48);
  for (size_t i = 0; i < 48; ++i) {
    const json& r = trace["results"][i];
    CHECK(r["norm"] == depth_kinds()[i / 8].norm);
    CHECK(r["states"]["median"].size() == r["layers"].get<size_t>());
  }
  CHECK(trace["results"][7]["layers"] == 24);
  CHECK(trace["checks"]["worst"].get<double>() < 1e-6);
}

TEST_CASE("PyTorch finds the same gradients at every layer") {
  if (std::system("python3 -c 'import torch' >/dev/null 2>&1") != 0)
    return gradus::testing::skipped(
        "python3 has no PyTorch here: stacks were compared with differences only");
  scratch::Directory folder;
  std::string command = "python3 '" LENS_SOURCE_ROOT "/tests/lens/torch_depth.py'";
  std::vector<std::pair<std::string, MadeStack>> all;
  for (const char* activation : {"gelu", "relu"})
    for (const DepthKind& kind : depth_kinds()) {
      DepthSizes sizes;
      sizes.layers = 6;
      sizes.activation = activation;
      auto& [place, made] = all.emplace_back(folder.file(std::to_string(all.size())), MadeStack(kind, sizes));
      std::filesystem::create_directory(place);
      scratch::write(place + "/kind.json", json_text::dump({{"residual", kind.residual},
                                                            {"norm", kind.norm},
                                                            {"layers", sizes.layers},
                                                            {"heads", sizes.heads},
                                                            {"hidden", sizes.hidden},
                                                            {"activation", activation}}));
      gradus::SafetensorsFile file;
      for (const auto& [name, tensor] : gradus::nn::state_dict(made.stack))
        file.tensors.emplace_back(name, tensor);
      file.tensors.emplace_back("x", made.input.x);
      file.tensors.emplace_back(
          "target",
          gradus::Tensor::from_ids({static_cast<int64_t>(made.input.target.size())}, made.input.target));
      gradus::save_safetensors(place + "/stack.safetensors", file);
      command += " '" + place + "'";
    }
  REQUIRE(std::system(command.c_str()) == 0);
  for (const auto& [place, made] : all) {
    CAPTURE(made.stack.kind.name());
    auto read = gradus::load_safetensors(place + "/gradients.safetensors").tensors;
    std::map<std::string, gradus::Tensor> theirs(read.begin(), read.end());
    const DepthGradients& g = made.gradients;
    CHECK(std::abs(theirs.at("loss").at(0) / g.loss - 1) < 1e-12);
    for (size_t l = 0; l < g.states.size(); ++l)
      CHECK(relative_off(g.states[l], theirs.at(fmt::format("states.{}", l))) < 1e-9);
    for (size_t l = 0; l < g.weights.size(); ++l)
      CHECK(relative_off(g.weights[l], theirs.at(fmt::format("weights.{}", l))) < 1e-9);
  }
}
