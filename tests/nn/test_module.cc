#include <gradus/nn/attention/attention.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/gru.h>
#include <gradus/nn/layer_norm.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/module.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>

#include "../scratch.h"
#include "helpers.h"

using namespace gradus;
using namespace gradus::test;

namespace {

struct Mlp {
  nn::Linear up, down;
  explicit Mlp(Rng& rng) : up(2, 8, rng), down(8, 1, rng, {.bias = false}) {}
  Var operator()(const Var& x) const { return down(relu(up(x))); }
  void params(nn::ParamVisitor& visit) {
    visit("up", up);
    visit("down", down);
  }
};

// Every way of holding parts, and a Parameter that is reached twice.
struct Holder {
  std::vector<nn::Linear> layers;
  std::unique_ptr<nn::LayerNorm> norm, nothing;
  std::optional<nn::Embedding> table;
  Parameter scale{Tensor::ones({1})};
  explicit Holder(Rng& rng) {
    layers.emplace_back(2, 3, rng);
    layers.emplace_back(3, 2, rng);
    norm = std::make_unique<nn::LayerNorm>(2);
    table.emplace(4, 2, rng);
  }
  void params(nn::ParamVisitor& visit) {
    visit("layers", layers);
    visit("norm", norm);
    visit("nothing", nothing);
    visit("table", table);
    visit("tied", table);
    visit("scale", scale);
  }
};

}  // namespace

TEST_CASE("parameters have dotted names, in the order of the module") {
  Rng rng(1);
  Holder holder(rng);
  CHECK(names(nn::state_dict(holder)) ==
        std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias",
                                 "norm.weight", "norm.bias", "table.weight", "scale"});
  CHECK(nn::num_parameters(holder) == 6 + 3 + 6 + 2 + 2 + 2 + 8 + 1);
  nn::GRU gru(2, 3, rng, {.num_layers = 2, .bidirectional = true});
  CHECK(names(nn::state_dict(gru)) ==
        std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                 "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse",
                                 "bias_hh_l0_reverse", "weight_ih_l1", "weight_hh_l1", "bias_ih_l1",
                                 "bias_hh_l1", "weight_ih_l1_reverse", "weight_hh_l1_reverse",
                                 "bias_ih_l1_reverse", "bias_hh_l1_reverse"});
  CHECK(nn::state_dict(gru)[8].second.shape() == Shape{9, 6});
}

TEST_CASE("state_dict is a snapshot, and comes back bit for bit") {
  Rng rng(2);
  Mlp model(rng), other(rng);
  nn::StateDict saved = nn::state_dict(model);
  Tensor before = saved[0].second.clone();
  model.up.weight.update([](const Tensor& t) { t.fill(7); });
  CHECK(same_bits(saved[0].second, before));
  nn::load_state_dict(other, saved);
  nn::load_state_dict(model, saved);
  for (size_t i = 0; i < saved.size(); ++i) {
    CHECK(same_bits(nn::state_dict(other)[i].second, saved[i].second));
    CHECK(same_bits(nn::state_dict(model)[i].second, saved[i].second));
  }
  other.up.weight.update([](const Tensor& t) { t.fill(9); });
  CHECK(same_bits(model.up.weight.value(), before));
}

TEST_CASE("a snapshot stays when its model changes; a module that was moved has no parameters") {
  Rng rng(2);
  Mlp model(rng), other(rng);
  nn::StateDict saved = nn::state_dict(model);
  const Tensor before = saved[0].second.clone();
  nn::load_state_dict(other, saved);
  other.up.weight.update([](const Tensor& t) { t.fill(9); });
  CHECK(same_bits(saved[0].second, before));
  CHECK(same_bits(model.up.weight.value(), before));
  CHECK(!same_bits(other.up.weight.value(), before));
  nn::Linear moved(std::move(model.up));
  CHECK(!model.up.weight.defined());
  CHECK(error_of([&] { model.up(Tensor::zeros({1, 3})); }) ==
        "[parameter] has no numbers any more; hint: moved from?");
  CHECK(error_of([&] { moved.weight.assign(Tensor::zeros(moved.weight.shape(), DType::i32)); }) ==
        "[assign] the numbers must be f32 or f64");
}

TEST_CASE("load_state_dict copies: who writes into his dictionary afterwards changes no model") {
  Rng rng(2);
  Mlp model(rng), source(rng);
  nn::StateDict given = nn::state_dict(source);
  given[0].second = given[0].second.clone();
  nn::load_state_dict(model, given);
  given[0].second.fill(9);
  CHECK(same_bits(model.up.weight.value(), source.up.weight.value()));
}

TEST_CASE("load_state_dict converts to the parameter's element type") {
  Rng rng(3);
  Mlp model(rng), wide(rng);
  nn::to(wide, DType::f64);
  CHECK(wide.up.weight.value().dtype() == DType::f64);
  nn::load_state_dict(model, nn::state_dict(wide));
  CHECK(model.up.weight.value().dtype() == DType::f32);
  CHECK(max_abs_difference(model.up.weight.value().to(DType::f64), wide.up.weight.value()) < 1e-7);
  CHECK(error_of([&] { nn::to(model, DType::i32); }) == "[to] parameters are f32 or f64: i32");
}

TEST_CASE("only a weight whose two sizes are exchanged is called transposed") {
  Rng rng(1);
  nn::Linear layer(2, 3, rng);
  auto with = [&](const Shape& weight) {
    return error_of([&] {
      nn::load_state_dict(layer, {{"weight", Tensor::zeros(weight)}, {"bias", Tensor::zeros({3})}});
    });
  };
  CHECK(testing::contains(with({2, 3}), "transposed?"));
  for (const Shape& other : {Shape{3, 3}, Shape{2, 2}, Shape{6}, Shape{3, 2, 1}}) {
    CHECK(testing::contains(with(other), "wrong shape weight"));
    CHECK_FALSE(testing::contains(with(other), "transposed"));
  }
}

TEST_CASE("load_state_dict lists everything that is wrong and then changes nothing") {
  Rng rng(4);
  Mlp model(rng);
  Tensor before = model.up.weight.value().clone();
  nn::StateDict dict{{"up.weight", Tensor::zeros({2, 8})},
                     {"down.weight", Tensor::zeros({1, 8})},
                     {"down.bias", Tensor::zeros({1})},
                     {"extra", Tensor::zeros({1})},
                     {"down.weight", Tensor::zeros({1, 8})}};
  CHECK(error_of([&] { nn::load_state_dict(model, dict); }) ==
        "[load_state_dict] the names and shapes must be the module's: missing up.bias; unexpected down.bias, "
        "extra; "
        "wrong shape up.weight (module [8, 2], given [2, 8]); given twice down.weight; hint: a weight is [out, "
        "in]: transposed?");
  CHECK(same_bits(model.up.weight.value(), before));
}

TEST_CASE("a module goes to a file and back") {
  Rng rng(5);
  Mlp model(rng), other(rng);
  scratch::Directory directory;
  std::string path = directory.file("mlp.safetensors");
  nn::save(model, path, {{"epoch", "3"}});
  CHECK(nn::load(other, path).at("epoch") == "3");
  CHECK(same_bits(other.up.bias.value(), model.up.bias.value()));
  nn::Linear narrow(2, 8, rng);
  CHECK(error_of([&] { nn::load(narrow, path); }) ==
        "[load] " + path +
            ": the names and shapes must be the module's: missing weight, bias; unexpected up.weight, "
            "up.bias, down.weight; hint: they are given under \"up.\"");
}

TEST_CASE("what has no parameters is not saved over a file that has some") {
  Rng rng(5);
  nn::Linear model(3, 2, rng);
  scratch::Directory directory;
  const std::string path = directory.file("model.safetensors");
  nn::save(model, path);
  nn::Linear elsewhere = std::move(model);
  CHECK(error_of([&] { nn::save(model, path); }) ==
        "[save] there are no parameters; hint: moved from? does params() visit them?");
  nn::load(elsewhere, path);
}

TEST_CASE("two parameters of one name are refused before they are trained") {
  struct Twice {
    nn::Linear up, down;
    void params(nn::ParamVisitor& visit) {
      visit("up", up);
      visit("up", down);
    }
  };
  Rng rng(5);
  Twice model{{3, 2, rng}, {2, 1, rng}};
  CHECK(error_of([&] { nn::named_parameters(model); }) == "[params] up.weight is the name of two parameters");
}

TEST_CASE("summary is a table of parameters") {
  Rng rng(6);
  Mlp model(rng);
  CHECK(nn::summary(model) ==
        "name         layer   shape   parameters\n"
        "up.weight    Linear  [8, 2]          16\n"
        "up.bias              [8]              8\n"
        "down.weight  Linear  [1, 8]           8\n"
        "total                                32  (128 bytes, f32)\n");
  nn::Embedding table(5000, 100, rng);
  CHECK(nn::summary(table) ==
        "name    layer      shape        parameters\n"
        "weight  Embedding  [5000, 100]     500,000\n"
        "total                              500,000  (2.0 MB, f32)\n");
}

namespace {

template <class T>
struct Wrapper {
  T held;
  Parameter own = Parameter(Tensor::ones({1}));
  void params(nn::ParamVisitor& visit) {
    visit("own", own);
    visit("held", held);
  }
};

}  // namespace

TEST_CASE("a parameter's layer is the type of its holder, as it is visited") {
  Rng rng(8);
  struct Local {
    Wrapper<nn::Linear> wrapped;
    std::unique_ptr<nn::Attention> attention;
    void params(nn::ParamVisitor& visit) {
      visit("wrapped", wrapped);
      visit("attention", attention);
    }
  };
  Local model{{nn::Linear(1, 1, rng)}, nn::make_attention("bahdanau", {2, 2, 2}, rng)};
  std::vector<std::string> layers;
  for (const auto& entry : nn::visited(model)) layers.push_back(entry.name + ": " + entry.layer);
  CHECK(layers == std::vector<std::string>{
                      "wrapped.own: Wrapper<gradus::nn::Linear>", "wrapped.held.weight: Linear",
                      "wrapped.held.bias: Linear", "attention.query.weight: Linear",
                      "attention.key.weight: Linear", "attention.v: Attention"});
}

TEST_CASE("label_parameters names the leaves of graphs") {
  Rng rng(7);
  Mlp model(rng);
  nn::label_parameters(model);
  CHECK(model.down.weight.var().node()->label == "down.weight");
  CHECK(error_of([&] { Gradients()[model.down.weight]; }).find("down.weight [1, 8]") != std::string::npos);
}

TEST_CASE("gradcheck of a layer is one line, and leaves the layer as it was") {
  Rng rng(8);
  nn::Linear layer(3, 2, rng);
  Tensor before = layer.weight.value().clone();
  CHECK_GRADIENTS(nn::gradcheck(layer, {random({4, 3}, 1, DType::f32)}));
  CHECK(same_bits(layer.weight.value(), before));
  GradcheckReport report = nn::gradcheck(layer, {random({4, 3}, 1)});
  CHECK(report.checked == 6 + 2 + 12);
  CHECK(error_of([&] { nn::gradcheck(layer, {random({4, 3}, 1), random({4, 3}, 1)}); }) ==
        "[gradcheck] the layer cannot be called with 2 inputs");
}

TEST_CASE("gradcheck asks whether params() visits the part that stays f32") {
  struct Forgetful : Mlp {
    using Mlp::Mlp;
    void params(nn::ParamVisitor& visit) { visit("up", up); }
  };
  Rng rng(1);
  Forgetful model(rng);
  const std::string said = error_of([&] { nn::gradcheck(model, {random({4, 2}, 1)}); });
  CHECK(said.starts_with("[linear] element types must agree: f64 and f32"));
  CHECK(said.ends_with(" A part of a module: does params() visit it?"));
}

TEST_CASE("gradcheck of a module's loss finds a wrong gradient and names it") {
  Rng rng(9);
  Mlp model(rng);
  Tensor x = random({5, 2}, 3);
  CHECK_GRADIENTS(nn::gradcheck(model, [&] { return tanh(model(x)); }));
  auto wrong = [&] {
    Var y = model.up(x);
    return record("wrong", {y}, y.value().clone(), [](const Tensor& dy, Grads& dx) {
      Tensor twice = dy.clone();
      for (int64_t i = 0; i < twice.numel(); ++i) twice.set(i, 2 * dy.at(i));
      dx.add(0, twice);
    });
  };
  GradcheckReport report = nn::gradcheck(model.up, wrong);
  CHECK(!report.ok);
  CHECK((report.worst_name.find("weight[") == 0 || report.worst_name.find("bias[") == 0));
}
