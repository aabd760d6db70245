// Schedules and the moving average against PyTorch's numbers, and their states.

#include <gradus/nn/ema.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/scheduler.h>
#include <gradus/random.h>

#include <cmath>
#include <limits>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "golden.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

const std::vector<std::pair<std::string, nn::Schedule>>& schedules() {
  static const std::vector<std::pair<std::string, nn::Schedule>> all = {
      {"step", nn::step_lr(3, 0.5)},
      {"exponential", nn::exponential_lr(0.9)},
      {"cosine", nn::cosine_annealing_lr(8, 0.01)},
      {"linear", nn::linear_lr(1, 0.1, 10)},
      {"linear warm-up", nn::linear_lr(0.25, 1, 4)},
      {"multi step", nn::multi_step_lr({2, 5, 6}, 0.3)}};
  return all;
}

nn::PlateauOptions plateau(const std::string& name) {
  if (name == "default") return {.factor = 0.5, .patience = 2};
  if (name == "cooldown") return {.factor = 0.5, .patience = 1, .cooldown = 2, .min_lr = 0.02};
  if (name == "absolute") return {.factor = 0.1, .patience = 1, .threshold = 0.05, .relative = false};
  REQUIRE(name == "max");
  return {.maximize = true, .factor = 0.5, .patience = 3};
}

}  // namespace

TEST_CASE("schedules give PyTorch's learning rates") {
  const auto& j = golden("schedules");
  REQUIRE(j.at("rates").size() == schedules().size());
  for (const auto& [name, schedule] : schedules()) {
    CAPTURE(name);
    nn::SGD sgd({.lr = j.at("lr")});
    nn::Scheduler scheduler(sgd, schedule);
    for (double expected : j.at("rates").at(name)) {
      CHECK(sgd.lr() == about(expected, 1e-13));
      scheduler.step();
    }
  }
}

TEST_CASE("noam_lr is the Transformer's, with its peak at the end of the warm-up") {
  nn::Schedule noam = nn::noam_lr(512, 4000);
  // tests/golden/scalar_formulas.json; s counts from 1 there
  const Numbers steps = {1, 100, 3999, 4000, 4001, 8000, 100000};
  const Numbers rates = {1.74692810742171e-07, 1.74692810742171e-05, 0.000698596550157942,
                         0.000698771242968684, 0.000698683912937353, 0.000494105884401309,
                         0.000139754248593737};
  for (size_t i = 0; i < steps.size(); ++i)
    CHECK(noam(1, steps[i] - 1) == about(rates[i], 1e-13));
  CHECK(nn::noam_lr(512, 4000, 2)(1, 0) == about(2 * rates[0], 1e-13));
}

TEST_CASE("with_warmup rises to the schedule behind it") {
  nn::Schedule s = nn::with_warmup(4, nn::exponential_lr(0.5));
  CHECK(s(8, 0) == 2);
  CHECK(s(8, 1) == 2);  // 8 / 2 * 2 / 4
  CHECK(s(8, 3) == 1);
  CHECK(s(8, 5) == 0.25);
}

TEST_CASE("plateau reduces when PyTorch does") {
  const auto& j = golden("schedules");
  for (const auto& [name, rates] : j.at("plateau").items()) {
    CAPTURE(name);
    nn::SGD sgd({.lr = j.at("lr")});
    auto scheduler = std::make_unique<nn::ReduceLROnPlateau>(sgd, plateau(name));
    for (size_t i = 0; i < rates.size(); ++i) {
      CAPTURE(i);
      if (i % 4 == 3) {  // a new one that takes the state over goes on as the old one
        nn::StateDict state = scheduler->state_dict();
        scheduler = std::make_unique<nn::ReduceLROnPlateau>(sgd, plateau(name));
        scheduler->load_state_dict(state);
      }
      double before = sgd.lr();
      bool reduced = scheduler->step(j.at("metrics").at(i));
      CHECK(sgd.lr() == about(rates.at(i).get<double>(), 1e-12));
      if (sgd.lr() != before) CHECK(reduced);
    }
  }
  nn::SGD sgd;
  nn::ReduceLROnPlateau impatient(sgd, {.patience = 0});
  CHECK(impatient.step(std::numeric_limits<double>::quiet_NaN()));  // NaN is bad
  CHECK(error_of([&] { nn::ReduceLROnPlateau(sgd, {.factor = 1}); }) ==
        "[ReduceLROnPlateau] factor must be in (0, 1): 1");
}

TEST_CASE("a scheduler's state goes on where it was") {
  nn::SGD a({.lr = 0.2}), b({.lr = 7});
  nn::Scheduler first(a, nn::cosine_annealing_lr(10)), second(b, nn::cosine_annealing_lr(10));
  for (int i = 0; i < 3; ++i) first.step();
  second.load_state_dict(first.state_dict());
  CHECK(b.lr() == a.lr());
  first.step();
  second.step();
  CHECK(b.lr() == a.lr());
  CHECK(error_of([&] { second.load_state_dict({{"t", Tensor::scalar(1)}, {"u", Tensor::scalar(1)}}); }) ==
        "[Scheduler] the saved state is not a scheduler's: unexpected u");
  const double before = b.lr();
  CHECK(error_of([&] {
          second.load_state_dict({{"t", Tensor::zeros({2})}, {"base_lrs", Tensor::full({1}, 9)}});
        }) != "");
  CHECK(error_of([&] {
          second.load_state_dict({{"t", Tensor::full({}, std::nan(""))}, {"base_lrs", Tensor::full({1}, 9)}});
        }) == "[Scheduler] lr must be finite: nan");
  CHECK(error_of([&] {
          second.load_state_dict({{"t", Tensor::scalar(1)}, {"base_lrs", Tensor::full({1}, -1)}});
        }).find("[Scheduler] lr must not be negative: -") == 0);
  second.step();
  first.step();
  CHECK(b.lr() == a.lr());  // what was refused changed nothing
  CHECK(b.lr() != before);
  CHECK(error_of([&] { second.load_state_dict({{"t", Tensor::scalar(1)}}); }) ==
        "[Scheduler] the saved state is not a scheduler's: missing base_lrs");
  CHECK(error_of([&] {
          second.load_state_dict({{"t", Tensor::scalar(1)}, {"base_lrs", Tensor::ones({2})}});
        }) == "[Scheduler] the saved state has 2 groups, the optimizer 1");
}

TEST_CASE("the moving average is PyTorch's, swaps in and out, and comes back from its state") {
  const auto& j = golden("ema");
  Rng rng(1);
  nn::Linear model(2, 1, rng);
  nn::to(model, DType::f64);
  auto ema = std::make_unique<nn::ExponentialMovingAverage>(nn::EMAOptions{.decay = j.at("decay")});
  for (size_t k = 0; k < j.at("values").size(); ++k) {
    model.weight.assign(tensor(j.at("values").at(k).at(0)));
    model.bias.assign(tensor(j.at("values").at(k).at(1)));
    Tensor weights = model.weight.value();
    ema->update(model);
    {
      nn::EMAWeights use(*ema, model);
      CHECK(all_close(model.weight.value(), tensor(j.at("averages").at(k).at(0)), 1e-14, 1e-14));
      CHECK(all_close(model.bias.value(), tensor(j.at("averages").at(k).at(1)), 1e-14, 1e-14));
    }
    CHECK(model.weight.value().to_vector() == weights.to_vector());
    if (k == 2) {
      nn::StateDict state = ema->state_dict();
      Tensor before = state[0].second.clone();
      ema->update(model);
      CHECK(state[0].second.to_vector() == before.to_vector());  // a snapshot
      ema = std::make_unique<nn::ExponentialMovingAverage>(nn::EMAOptions{.decay = j.at("decay")});
      ema->load_state_dict(state);
    }
  }
  nn::Linear other(3, 1, rng);
  CHECK(error_of([&] { ema->update(other); }) ==
        "[ExponentialMovingAverage] the module must be the same: average of weight [1, 2], parameter weight "
        "[1, 3]");
  CHECK(error_of([] { nn::ExponentialMovingAverage({.decay = 1}); }) ==
        "[ExponentialMovingAverage] decay must be in [0, 1): 1");
}

TEST_CASE("no update of the average while it is in the weights' place") {
  Parameter p(f64({1}, {1}));
  nn::ExponentialMovingAverage ema({.decay = 0.5});
  std::vector<NamedParameter> named{{"p", &p}};
  const char* refused =
      "[ExponentialMovingAverage] no update while the averages are in the weights' place; hint: end the scope "
      "of EMAWeights, or swap back, first";
  for (int round = 0; round < 2; ++round) {  // before the first update, and after it
    {
      nn::EMAWeights use(ema, named);
      CHECK(error_of([&] { ema.update(named); }) == refused);
    }
    CHECK(p.value().item() == 1 + round);
    p.assign(f64({1}, {1}));
    ema.update(named);
    p.assign(f64({1}, {2}));
  }
  ema.swap(named);
  CHECK(error_of([&] { ema.update(named); }) == refused);
  CHECK(p.value().item() == 1);
}

TEST_CASE("warm-up of the average: early weights are forgotten sooner") {
  Parameter p(f64({1}, {0}));
  nn::ExponentialMovingAverage ema({.decay = 0.999, .warmup = true});
  std::vector<NamedParameter> named{{"p", &p}};
  ema.update(named);
  p.assign(f64({1}, {1}));
  ema.update(named);  // decay 3/12
  CHECK(ema.state_dict()[0].second.item() == about(0.75, 1e-14));
  ema.update(named);  // decay 4/13
  CHECK(ema.state_dict()[0].second.item() == about(1 - 0.25 * 4 / 13, 1e-14));
}

TEST_CASE("a plateau's state whose best is no number is refused") {
  nn::SGD sgd;
  nn::ReduceLROnPlateau scheduler(sgd);
  nn::StateDict state = scheduler.state_dict();
  REQUIRE(state[0].first == "best");
  state[0].second = f64({}, {std::nan("")});
  CHECK(error_of([&] { scheduler.load_state_dict(state); }) ==
        "[ReduceLROnPlateau] best must be a number: nan");
}

TEST_CASE("a plateau leaves alone what would change by next to nothing") {
  nn::SGD sgd({.lr = 1e-8});
  nn::ReduceLROnPlateau scheduler(sgd, {.patience = 0});
  CHECK(scheduler.step(std::nan("")));
  CHECK(sgd.lr() == 1e-8);
}

TEST_CASE("averages of which nobody says how many updates they had are refused") {
  nn::ExponentialMovingAverage ema;
  CHECK(error_of([&] { ema.load_state_dict({{"p", f64({1}, {1})}}); }) ==
        "[ExponentialMovingAverage] the saved state has no \"updates\"");
}

TEST_CASE("averages are of parameters by name, though others have their shape") {
  Parameter p(f64({1}, {1}));
  nn::ExponentialMovingAverage ema;
  ema.update({{"p", &p}});
  CHECK(error_of([&] { ema.update({{"q", &p}}); }).ends_with("average of p [1], parameter q [1]"));
}
