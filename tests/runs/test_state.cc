// What a run left behind and goes on from: last.safetensors. It may come from anywhere, so that every fact and
// every tensor in it is spoilt here in every way that we could think of.

#include "../same_tensors.h"
#include "small.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include <gradus/error.h>
#include <gradus/io/safetensors.h>
#include <common/error.h>

using namespace translator;
namespace fs = std::filesystem;

namespace {

const std::vector<SentencePair>& training() {
  static const std::vector<SentencePair> all = runs::pairs("train", 160);
  return all;
}
const std::vector<SentencePair>& validation() {
  static const std::vector<SentencePair> all = runs::pairs("valid", 40);
  return all;
}

// All kinds of state: moments, averages of the weights, a schedule that looks at the loss.
TrainOptions rich(const std::string& out) {
  TrainOptions o = runs::options(out, 3);
  o.optimizer = "adam";
  o.schedule = "plateau";
  o.ema = 0.9;
  o.validate_every = 2;
  return o;
}

bool run(const TrainOptions& options, bool resume, const std::atomic<bool>& stop) {
  Model model = runs::small_model(training(), "bahdanau");
  if (!resume) model.save_description(options.out);
  Trainer trainer(model, training(), validation(), options);
  if (resume) trainer.resume();
  else trainer.save_start(options.out);
  return trainer.run(stop);
}

bool run(const TrainOptions& options, bool resume = false) {
  std::atomic<bool> stop{false};
  return run(options, resume, stop);
}

// A run that is over, made once; nobody writes into it.
const std::string& whole_run() {
  static const std::string out = [] {
    std::string path = runs::directory("state-whole");
    REQUIRE(run(rich(path)));
    return path;
  }();
  return out;
}

// What resume() says of a state; "" when it takes it.
std::string complaint_about(const gradus::SafetensorsFile& state) {
  static const std::string out = runs::directory("state-spoilt");
  static Model model = runs::small_model(training(), "bahdanau");
  gradus::save_safetensors(out + "/last.safetensors", state);
  Trainer trainer(model, training(), validation(), rich(out));
  try {
    trainer.resume();
    return "";
  } catch (const InputError& e) {
    CHECK(std::string(e.what()).starts_with(out + "/last.safetensors: "));
    return e.what();
  }
}

gradus::SafetensorsFile good_state() { return gradus::load_safetensors(whole_run() + "/last.safetensors"); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The validations that are logged, without what a clock measured.
std::vector<nlohmann::ordered_json> resumable(const std::string& directory) {
  auto log = runs::log(directory, "validation");
  for (auto& event : log)
    for (const char* lost : {"seconds", "tokens_per_s"}) event.erase(lost);
  return log;
}

// What the validation that is due will log of the step before it.
void check_norms(const gradus::SafetensorsFile& good) {
  using gradus::Tensor;
  for (size_t i = 0; i < good.tensors.size(); ++i) {
    const auto& [name, tensor] = good.tensors[i];
    if (!name.starts_with("norms.")) continue;
    auto said = [&](const Tensor& spoilt) {
      gradus::SafetensorsFile state = good;
      state.tensors[i].second = spoilt;
      return complaint_about(state);
    };
    const std::string must = "tensor \"" + name + "\": must be f64 " + tensor.shape().str();
    CHECK(has(said(Tensor::zeros({7, 3}, gradus::DType::f64)), must));
    CHECK(has(said(Tensor::zeros(tensor.shape(), gradus::DType::f32)), must));
    CHECK(said(tensor) == "");
    gradus::SafetensorsFile without = good;
    without.tensors.erase(without.tensors.begin() + static_cast<long>(i));
    CHECK(has(complaint_about(without), must));
  }
}

}  // namespace

TEST_CASE("every fact of a state x every hostile text: refused with the file and the name of the fact") {
  const std::vector<std::string> hostile = {"",
                                            "-5",
                                            "-1",
                                            "0x10",
                                            "100000000",
                                            "9223372036854775807",
                                            "9223372036854775808",
                                            "-9223372036854775809",
                                            "1e300",
                                            "-1e300",
                                            "1e999",
                                            "nan",
                                            "-nan",
                                            "inf",
                                            "-inf",
                                            "infinity",
                                            "1,5",
                                            " 1",
                                            "1 ",
                                            "1\n",
                                            "+1",
                                            "1.5",
                                            "true",
                                            "null",
                                            "\x1b[31m",
                                            "1e",
                                            "--",
                                            "\xD9\xA1",
                                            std::string(100000, '9'),
                                            std::string("1\0", 2)};
  // What these may be. An infinite best loss is that of a run without a validation yet.
  const std::map<std::string, std::vector<std::string>> plausible = {
      {"best_loss",
       {"100000000", "9223372036854775807", "9223372036854775808", "1e300", "inf", "infinity", "1.5"}},
      {"best_cost",
       {"100000000", "9223372036854775807", "9223372036854775808", "1e300", "inf", "infinity", "1.5"}},
      {"seconds", {"100000000", "1.5"}},
      {"window_seconds", {"100000000", "1.5"}},
      {"window_nll", {"100000000", "9223372036854775807", "9223372036854775808", "1.5"}},
      {"grad_norm", {"100000000", "9223372036854775807", "9223372036854775808", "1.5"}},
      {"baseline",
       {"-5", "-1", "100000000", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
        "1.5"}}};
  const std::map<std::string, std::string> named = {
      {"data", "other training data"}, {"seed", "--seed"}, {"batch_size", "--batch-size"}};
  gradus::SafetensorsFile good = good_state();
  REQUIRE(complaint_about(good) == "");
  size_t refused = 0;
  for (const auto& [key, value] : good.metadata) {
    for (const std::string& text : hostile) {
      if (text == value) continue;
      auto may = plausible.find(key);
      bool expected = may != plausible.end() && std::count(may->second.begin(), may->second.end(), text) > 0;
      gradus::SafetensorsFile spoilt = good;
      spoilt.metadata[key] = text;
      std::string said = complaint_about(spoilt);
      CAPTURE(key);
      CAPTURE(text.substr(0, 40));
      CAPTURE(said);
      CHECK(said.empty() == expected);
      if (expected) continue;
      CHECK(has(said, named.count(key) ? named.at(key) : key));
      CHECK(said.size() < 500);
      CHECK_FALSE(has(said, "\x1b"));
      ++refused;
    }
    gradus::SafetensorsFile without = good;
    without.metadata.erase(key);
    // States of before there were these.
    const std::map<std::string, std::string> usual = recipe(TrainOptions());
    bool may_be_missing = key.starts_with("--") ? key == "--optimizer" || value == usual.at(key)
                                                : key == "validation_due" || key == "best_cost" ||
                                                      key == "since_best" || key == "kept" ||
                                                      key == "grad_norm" || key == "norms" || key == "links" ||
                                                      key == "valid";
    CAPTURE(key);
    CHECK(has(complaint_about(without), key) == !may_be_missing);
  }
  CHECK(refused > 600);
}

TEST_CASE("a run that once had a perfect BLEU, which is a little more than 100, goes on") {
  const std::string out = runs::directory("state-perfect");
  TrainOptions o = rich(out);
  o.metric = "bleu";
  REQUIRE(run(o));
  gradus::SafetensorsFile state = gradus::load_safetensors(out + "/last.safetensors");
  state.metadata["best_cost"] = "-100.00000000000004";
  gradus::save_safetensors(out + "/last.safetensors", state);
  o.epochs = 4;
  CHECK(run(o, true));
}

TEST_CASE("numbers of a state that are possible one by one must go together") {
  auto said = [](const char* key, const std::string& value) {
    gradus::SafetensorsFile state = good_state();
    state.metadata[key] = value;
    return complaint_about(state);
  };
  gradus::SafetensorsFile good = good_state();
  int64_t batches = std::stoll(good.metadata.at("batches_per_epoch")),
          step = std::stoll(good.metadata.at("step"));
  REQUIRE(batches == 5);
  CHECK(has(said("batches_per_epoch", "6"), "\"batches_per_epoch\" must be a whole number from 5 to 5: 6"));
  CHECK(has(said("batch", "6"), "\"batch\" must be a whole number from 0 to 5: 6"));
  CHECK(has(said("epoch", "0"), "\"step\" must be "));
  CHECK(has(said("step", std::to_string(step - 1)), "\"step\" must be "));
  CHECK(has(said("skipped", std::to_string(step + 1)), "\"skipped\" must be "));
  CHECK(has(said("skipped", std::to_string(step)), "must be a number of steps from 1 to 0"));
  CHECK(has(said("base_lr", "0.011"), "\"base_lr\" must be a number from 0 to 0.01"));
}

TEST_CASE("every tensor of a state x every way to spoil it: refused with the file and the tensor's name") {
  using gradus::DType;
  using gradus::Tensor;
  gradus::SafetensorsFile good = good_state();
  const std::vector<double> never = {std::nan(""), INFINITY, -INFINITY};
  for (size_t i = 0; i < good.tensors.size(); ++i) {
    const auto& [name, tensor] = good.tensors[i];
    size_t dot = name.find('.');
    bool prefixed = name.starts_with("optimizer.") || name.starts_with("plateau.") || name.starts_with("ema.");
    std::string own = prefixed ? name.substr(dot + 1) : name;
    CAPTURE(name);
    auto refused = [&](const Tensor& spoilt) {
      gradus::SafetensorsFile state = good;
      state.tensors[i].second = spoilt;
      std::string said = complaint_about(state);
      CAPTURE(said);
      CHECK(has(said, own));
    };
    auto with = [&](double x) {
      Tensor t = tensor.clone();
      t.set(t.numel() - 1, x);
      return t;
    };
    for (double x : never)
      if (!(own == "best" && x == INFINITY)) refused(with(x));
    refused(Tensor::zeros({7, 3}, tensor.dtype()));
    refused(Tensor::zeros(tensor.shape(), DType::i32));
    bool squares = name.starts_with("optimizer.v.");
    bool counts = own.starts_with("step.") || own == "updates" || own == "bad" || own == "cooldown";
    if (squares || counts) refused(with(-1));
    if (counts) {
      refused(with(1e300));
      refused(with(1.5));
      refused(with(9223372036854775808.0));
    }
    if (own == "lr") refused(with(-1));
    gradus::SafetensorsFile without = good;
    without.tensors.erase(without.tensors.begin() + static_cast<long>(i));
    CHECK((complaint_about(without) == "") == (name == "optimizer.lr"));  // the schedule gives it anew
  }
  gradus::SafetensorsFile more = good;
  more.tensors.emplace_back("optimizer.m.nobody", Tensor::zeros({2}));
  CHECK(has(complaint_about(more), "unexpected m.nobody"));
  more = good;
  std::erase_if(more.tensors, [](const auto& t) { return t.first.starts_with("optimizer."); });
  CHECK(has(complaint_about(more), "has no state of the optimiser after 15 steps"));
  more = good;
  std::erase_if(more.tensors, [](const auto& t) { return t.first.starts_with("ema."); });
  CHECK(has(complaint_about(more), "has 0 averages of the weights"));
}

TEST_CASE("a state with a number that is not finite can be looked at with --check-finite") {
  std::string out = runs::directory("state-poisoned");
  gradus::SafetensorsFile state = good_state();
  for (auto& [name, tensor] : state.tensors)
    if (name == "encoder.embedding.weight") tensor.fill(INFINITY);
  gradus::save_safetensors(out + "/last.safetensors", state);
  Model model = runs::small_model(training(), "bahdanau");
  TrainOptions options = rich(out);
  options.check_finite = true;
  Trainer trainer(model, training(), validation(), options);
  CHECK_NOTHROW(trainer.resume());
}

TEST_CASE(
    "a validation that is interrupted is made up for when the run goes on: the same run, to the last bit") {
  std::string out;
  int due = 0;
  whole_run();
  auto begin = std::chrono::steady_clock::now();
  REQUIRE(run(rich(runs::directory("state-timed"))));
  auto length = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  // The stop comes somewhere in the run; often enough it is within a validation.
  for (int attempt = 0; attempt < 400 && due < 3; ++attempt) {
    out = runs::directory("state-stopped");
    std::atomic<bool> stop{false};
    std::thread later([&] {
      std::this_thread::sleep_for(length * (attempt * 37 % 100) / 100);
      stop = true;
    });
    bool finished = run(rich(out), false, stop);
    later.join();
    if (finished) continue;
    const gradus::SafetensorsFile state = gradus::load_safetensors(out + "/last.safetensors");
    if (state.metadata.at("validation_due") != "1") continue;
    ++due;
    check_norms(state);
    fs::copy_file(out + "/last.safetensors", out + "/due");
    // And once more, as if the process had been killed when it had logged the validation, before it saved its
    // state.
    for (bool killed : {false, true}) {
      CAPTURE(killed);
      if (killed) fs::rename(out + "/due", out + "/last.safetensors");
      REQUIRE(run(rich(out), true));
      check_same_tensors(out + "/last.safetensors", whole_run() + "/last.safetensors");
      check_same_tensors(out + "/model.safetensors", whole_run() + "/model.safetensors");
      CHECK(resumable(out) == resumable(whole_run()));
    }
  }
  CHECK(due > 0);
}

TEST_CASE("a log that is ahead of the state, or was cut off by a crash, has each validation once in the end") {
  std::string out = runs::directory("state-behind");
  std::atomic<bool> stop{false};
  std::thread later([&] {
    for (int i = 0; i < 10000 && !stop; ++i) {
      std::ifstream log(out + "/train.log");
      std::string text{std::istreambuf_iterator<char>(log), {}};
      if (has(text, "\"step\":4,")) stop = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  bool finished = run(rich(out), false, stop);
  stop = true;
  later.join();
  fs::copy_file(out + "/last.safetensors", out + "/behind");
  if (!finished) REQUIRE(run(rich(out), true));
  fs::rename(out + "/behind", out + "/last.safetensors");
  std::ofstream(out + "/train.log", std::ios::app) << "{\"event\":\"valid";
  REQUIRE(run(rich(out), true));
  CHECK(resumable(out) == resumable(whole_run()));
  check_same_tensors(out + "/last.safetensors", whole_run() + "/last.safetensors");
  CHECK(runs::log(out, "start").size() == 1);
}

TEST_CASE("a run that was stopped before its first step begins its log anew") {
  const std::string out = runs::directory("state-unbegun");
  const std::atomic<bool> stop{true};
  REQUIRE_FALSE(run(rich(out), false, stop));
  REQUIRE(run(rich(out), true));
  CHECK(runs::log(out, "start").size() == 1);
  CHECK(runs::log(out, "end").size() == 1);
}
