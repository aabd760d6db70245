// What a run is trained with: rates over time and optimisers by name, number by number.

#include <cmath>

#include <gradus/nn/adaptive.h>
#include <gradus/nn/linear.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>
#include <translator/training/train_options.h>
#include <translator/training/trainer.h>

#include "../about.h"
#include "../check.h"

using namespace gradus;
using namespace translator;

TEST_CASE("learning rates, after the warm-up, in the middle of a run and at its end") {
  auto rate = [](const char* schedule, double progress) {
    return learning_rate(schedule, 0.02, progress, 1000, 10);
  };
  const double pi = std::acos(-1.0);
  CHECK(rate("linear", 0) == about(0.02));
  CHECK(rate("linear", 0.25) == about(0.015));
  CHECK(rate("linear", 0.94) == about(0.0012));
  CHECK(rate("linear", 0.96) == about(0.001));
  CHECK(rate("linear", 1) == about(0.001));
  CHECK(rate("cosine", 0.25) == about(0.01 * (1 + std::cos(pi / 4))));
  CHECK(rate("cosine", 0.5) == about(0.01));
  CHECK(rate("exponential", 0.5) == about(0.002));
  CHECK(rate("exponential", 1) == about(0.0002));
  const double steps[] = {0.49, 0.02, 0.51, 0.01, 0.63, 0.005, 0.76, 0.0025, 0.88, 0.00125};
  for (size_t i = 0; i < 10; i += 2) CHECK(rate("step", steps[i]) == about(steps[i + 1]));
  CHECK(rate("constant", 0.7) == about(0.02));
  CHECK(rate("plateau", 0.7) == about(0.02));
  CHECK(testing::contains(testing::error_of([&] { rate("wave", 0); }), "unknown schedule \"wave\""));
}

TEST_CASE("the warm-up is a ramp to the base, which is noam's peak too; behind it noam falls as a root does") {
  for (const char* schedule : {"linear", "cosine", "exponential", "step", "constant", "plateau"}) {
    CAPTURE(schedule);
    CHECK(learning_rate(schedule, 0.02, 0, 0, 8) == about(0.02 / 8));
    CHECK(learning_rate(schedule, 0.02, 0, 3, 8) == about(0.01));
    CHECK(learning_rate(schedule, 0.02, 0, 7, 8) == about(0.02));
    CHECK(learning_rate(schedule, 0.02, 0, 8, 8) == about(0.02));
    CHECK(learning_rate(schedule, 0.02, 0, 0, 0) == about(0.02));  // none
  }
  auto noam = [](int64_t step) { return learning_rate("noam", 0.02, 0.3, step, 16); };
  CHECK(noam(3) == about(0.005));
  CHECK(noam(15) == about(0.02));
  CHECK(noam(63) == about(0.01));
}

TEST_CASE("rates that nobody gave") {
  CHECK(default_lr("sgd", "gru", 256, true) == 1);
  CHECK(default_lr("adadelta", "gru", 64, false) == 1);
  CHECK(default_lr("adagrad", "transformer", 128, true) == 0.05);
  CHECK(default_lr("rmsprop", "gru", 128, true) == 1e-3);
  for (const char* name : {"adam", "adamw", "muon"}) {
    CHECK(default_lr(name, "gru", 32, true) == 3e-3);
    CHECK(default_lr(name, "gru", 512, false) == 3e-3);
    CHECK(default_lr(name, "gru", 256, false) == 3e-3);
    CHECK(default_lr(name, "gru", 128, false) == 6e-3);
    CHECK(default_lr(name, "gru", 64, false) == 1e-2);
    CHECK(default_lr(name, "gru", 1, false) == 1e-2);
    const bool muon = name == std::string("muon");
    CHECK(default_lr(name, "transformer", 64, false) == (muon ? 5e-3 : 4e-3));
    CHECK(default_lr(name, "transformer", 128, false) == (muon ? 5e-3 : 4e-3));
    CHECK(default_lr(name, "transformer", 256, false) == (muon ? 5e-3 : 2e-3));
    CHECK(default_lr(name, "transformer", 1024, false) == (muon ? 5e-3 : 5e-4));
    CHECK(default_lr(name, "transformer", 128, true) == 2e-3);
  }
}

TEST_CASE("an optimiser by name is the one of that name, with the run's rate, decay and momentum") {
  TrainOptions o;
  o.lr = 0.03;
  o.weight_decay = 0.2;
  o.momentum = 0.6;
  auto weights_after = [](auto&& make) {
    Rng rng(5);
    nn::Linear layer(3, 2, rng);
    const std::vector<NamedParameter> matrices{{"weight", &layer.weight}};
    const std::unique_ptr<nn::Optimizer> optimizer = make(matrices);
    Tensor x = Tensor::normal({4, 3}, 0, 1, rng);
    for (int step = 0; step < 3; ++step) {
      Var y = layer(x);
      optimizer->step(layer, backward(sum(y * y)));
    }
    return layer.weight.value().to_vector();
  };
  auto by_name = [&](const char* name) {
    o.optimizer = name;
    return weights_after([&](const auto& matrices) { return make_optimizer(o, matrices); });
  };
  auto by = [&](auto optimizer) {
    return weights_after([&](const auto&) { return std::make_unique<decltype(optimizer)>(optimizer); });
  };
  CHECK(by_name("adam") == by(nn::Adam({.lr = 0.03, .weight_decay = 0.2})));
  CHECK(by_name("adamw") == by(nn::AdamW({.lr = 0.03, .weight_decay = 0.2})));
  CHECK(by_name("muon") == weights_after([](const auto& matrices) {
          return std::make_unique<nn::Muon>(matrices, nn::MuonOptions{.lr = 0.03, .weight_decay = 0.2});
        }));
  CHECK(by_name("muon") != by_name("adamw"));
  CHECK(by_name("sgd") == by(nn::SGD({.lr = 0.03, .momentum = 0.6, .weight_decay = 0.2})));
  CHECK(by_name("adagrad") == by(nn::Adagrad({.lr = 0.03, .weight_decay = 0.2})));
  CHECK(by_name("rmsprop") == by(nn::RMSprop({.lr = 0.03, .weight_decay = 0.2, .momentum = 0.6})));
  CHECK(by_name("adadelta") == by(nn::Adadelta({.lr = 0.03, .rho = 0.95, .eps = 1e-6, .weight_decay = 0.2})));
  CHECK(testing::contains(testing::error_of([&] { by_name("lion"); }), "unknown optimizer \"lion\""));
}

TEST_CASE("what a run cannot change when it goes on, each option under its own name") {
  TrainOptions o;
  o.optimizer = "sgd";
  o.momentum = 0.5;
  o.lr = 0.25;
  o.weight_decay = 0.125;
  o.schedule = "step";
  o.warmup = 7;
  o.clip = 2;
  o.clip_value = 3;
  o.label_smoothing = 0.0625;
  o.ema = 0.75;
  o.dropout_warmup = 1.5;
  o.scheduled_sampling = 0.375;
  o.subword_dropout = 0.1875;
  o.word_dropout = 0.25;
  o.guided_alignment = 0.75;
  o.links = "learnt";
  o.metric = "chrf";
  o.freeze = "encoder,output.bias";
  o.batch_tokens = 4096;
  o.accumulate = 3;
  CHECK(recipe(o) == std::map<std::string, std::string>{{"--optimizer", "sgd"},
                                                        {"--momentum", "0.5"},
                                                        {"--lr", "0.25"},
                                                        {"--weight-decay", "0.125"},
                                                        {"--schedule", "step"},
                                                        {"--warmup", "7"},
                                                        {"--clip-norm", "2"},
                                                        {"--clip-value", "3"},
                                                        {"--label-smoothing", "0.0625"},
                                                        {"--ema", "0.75"},
                                                        {"--dropout-warmup", "1.5"},
                                                        {"--scheduled-sampling", "0.375"},
                                                        {"--subword-dropout", "0.1875"},
                                                        {"--word-dropout", "0.25"},
                                                        {"--guided-alignment", "0.75"},
                                                        {"--links", "learnt"},
                                                        {"--metric", "chrf"},
                                                        {"--batch-tokens", "4096"},
                                                        {"--accumulate", "3"},
                                                        {"--freeze", "encoder,output.bias"}});
}
