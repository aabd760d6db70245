// Training, step by step, where each number can be said beforehand.

#include <algorithm>
#include <atomic>
#include <cmath>

#include <gradus/io/safetensors.h>
#include <translator/training/trainer.h>

#include "../about.h"
#include "../io/scratch.h"
#include "tiny.h"

using namespace gradus;
using namespace translator;

namespace {

const std::atomic<bool> kNever{false};

// Where it is not the given one, the largest difference decides; NaN is one.
void check_near(const tiny::Values& seen, const tiny::Values& expected) {
  REQUIRE(seen.size() == expected.size());
  for (const auto& [name, numbers] : expected) {
    CAPTURE(name);
    const auto& other = seen.at(name);
    REQUIRE(other.size() == numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      CAPTURE(i);
      REQUIRE(std::abs(other[i] - numbers[i]) < 1e-6);
    }
  }
}

// Values and gradients of all pairs as one batch, before any step.
struct Start {
  tiny::Values weights, gradients;
  double norm = 0, nll = 0;
  int64_t tokens = 0;
};

Start start_of(const Model& model, const std::vector<SentencePair>& pairs, double label_smoothing = 0) {
  std::vector<size_t> all(pairs.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  CrossEntropy loss =
      model.network->loss(make_batch(encode(pairs, model), all), {.label_smoothing = label_smoothing});
  Gradients grads = backward(loss.loss);
  Start out{tiny::weights(model), {}, 0, loss.nll, loss.tokens};
  for (const auto& p : nn::named_parameters(*model.network)) {
    auto& g = out.gradients[p.name] = grads[p.parameter->var()].to_vector();
    for (double x : g) out.norm += x * x;
  }
  out.norm = std::sqrt(out.norm);
  return out;
}

template <class F>
tiny::Values moved(const Start& start, F&& step) {
  tiny::Values out = start.weights;
  for (auto& [name, numbers] : out)
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] -= step(start.gradients.at(name)[i]);
  return out;
}

std::map<std::string, std::string> metadata(const scratch::Directory& directory) {
  return load_safetensors(directory.file("last.safetensors")).metadata;
}

// The number behind the last `key` in the log.
double logged(const scratch::Directory& directory, const std::string& key) {
  std::string log = scratch::read(directory.file("train.log"));
  size_t at = log.rfind(key);
  REQUIRE(at != log.npos);
  return std::stod(log.substr(at + key.size()));
}

std::vector<SentencePair> many(int n) {
  std::vector<SentencePair> out;
  for (int i = 0; i < n; ++i) out.push_back(tiny::pairs()[static_cast<size_t>(i % 6)]);
  return out;
}

}  // namespace

TEST_CASE("one step is the weights minus the rate times the gradient of the mean over the batch's words") {
  auto pairs = tiny::pairs();
  for (int threads : {1, 2, 4}) {
    CAPTURE(threads);
    scratch::Directory directory;
    Model model = tiny::model();
    Start start = start_of(model, pairs);
    TrainOptions o = tiny::plain(directory);
    o.threads = threads;
    Trainer trainer(model, pairs, pairs, o);
    CHECK(trainer.run(kNever));
    CHECK(trainer.step() == 1);
    CHECK(trainer.epochs() == 1);
    check_near(tiny::weights(model), moved(start, [](double g) { return 0.1 * g; }));
    REQUIRE(trainer.validations().size() == 1);
    const Validation& v = trainer.validations()[0];
    CHECK(v.train_loss == about(start.nll / static_cast<double>(start.tokens), 1e-5));
    CHECK(v.epoch == 1);
    CHECK(v.step == 1);
    CHECK(v.best);
    CHECK(v.evaluation.sentences == 6);
    CHECK(trainer.best_loss() == v.evaluation.nll);
    CHECK(v.tokens_per_second > 0);
    CHECK(v.tokens_per_second < 1e9);
    CHECK(std::stod(metadata(directory).at("baseline")) == about(v.train_loss));
  }
}

TEST_CASE("hidden matrices are those with two axes that are neither words, positions nor the output") {
  auto names = [](nn::TranslationModel& network) {
    std::vector<std::string> out;
    for (const NamedParameter& p : hidden_matrices(network)) out.push_back(p.name);
    return out;
  };
  Model gru = tiny::model();
  CHECK(names(*gru.network) ==
        std::vector<std::string>{"encoder.rnn.weight_ih_l0", "encoder.rnn.weight_hh_l0",
                                 "encoder.rnn.weight_ih_l0_reverse", "encoder.rnn.weight_hh_l0_reverse",
                                 "decoder.attention.query.weight", "decoder.attention.key.weight",
                                 "decoder.cell.weight_ih", "decoder.cell.weight_hh", "decoder.bridge.weight",
                                 "decoder.readout.weight"});
  nn::TransformerConfig c;
  c.source_vocabulary = 9, c.target_vocabulary = 8;
  c.d_model = 16, c.num_heads = 2, c.num_layers = 1;
  c.positions = "learned";
  Rng rng(7);
  nn::TransformerSeq2Seq transformer(c, rng);
  CHECK(names(transformer) ==
        std::vector<std::string>{
            "encoder.layers.0.self_attn.in_proj_weight", "encoder.layers.0.self_attn.out_proj.weight",
            "encoder.layers.0.linear1.weight", "encoder.layers.0.linear2.weight",
            "decoder.layers.0.self_attn.in_proj_weight", "decoder.layers.0.self_attn.out_proj.weight",
            "decoder.layers.0.multihead_attn.in_proj_weight",
            "decoder.layers.0.multihead_attn.out_proj.weight", "decoder.layers.0.linear1.weight",
            "decoder.layers.0.linear2.weight"});
}

TEST_CASE("clipping: the norm is brought down to the limit and no further; single entries; smoothing; decay") {
  auto pairs = tiny::pairs();
  auto trained = [&](auto&& change) {
    scratch::Directory directory;
    Model model = tiny::model();
    TrainOptions o = tiny::plain(directory);
    change(o);
    Trainer trainer(model, pairs, {}, o);
    trainer.run(kNever);
    return tiny::weights(model);
  };
  Start start = start_of(tiny::model(), pairs);
  const double norm = start.norm;
  REQUIRE(norm > 0.1);
  check_near(trained([](TrainOptions& o) { o.clip = 0.05; }),
             moved(start, [&](double g) { return 0.1 * g * 0.05 / norm; }));
  check_near(trained([&](TrainOptions& o) { o.clip = 2 * norm; }),
             moved(start, [](double g) { return 0.1 * g; }));
  check_near(trained([](TrainOptions& o) { o.clip_value = 0.01; }),
             moved(start, [](double g) { return 0.1 * std::clamp(g, -0.01, 0.01); }));
  Start smoothed = start_of(tiny::model(), pairs, 0.2);
  check_near(trained([](TrainOptions& o) { o.label_smoothing = 0.2; }),
             moved(smoothed, [](double g) { return 0.1 * g; }));
  tiny::Values decayed = moved(start, [](double g) { return 0.1 * g; });
  for (auto& [name, numbers] : decayed)
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] -= 0.1 * 0.5 * start.weights.at(name)[i];
  check_near(trained([](TrainOptions& o) { o.weight_decay = 0.5; }), decayed);
}

TEST_CASE("each epoch meets each pair once, whatever the batches; what was measured is of that epoch alone") {
  // At such a rate no weight moves, and the mean over an epoch is that over all pairs.
  for (int64_t batch_size : {1, 7, 64}) {
    CAPTURE(batch_size);
    scratch::Directory directory;
    Model model = tiny::model();
    auto pairs = many(83);
    pairs.push_back(tiny::pair("he sees apples today", "il voit des pommes"));
    Total all = total_loss(model, encode(pairs, model), {});
    TrainOptions o = tiny::plain(directory);
    o.lr = 1e-30;
    o.epochs = 3;
    o.batch_size = batch_size;
    o.threads = 2;
    Trainer trainer(model, pairs, pairs, o);
    CHECK(trainer.run(kNever));
    int64_t batches = (84 + batch_size - 1) / batch_size;
    CHECK(trainer.step() == 3 * batches);
    REQUIRE(trainer.validations().size() == 3);
    for (int64_t k = 0; k < 3; ++k) {
      const Validation& v = trainer.validations()[static_cast<size_t>(k)];
      CHECK(v.train_loss == about(all.nats / static_cast<double>(all.tokens), 1e-5));
      CHECK(v.evaluation.nll == about(v.train_loss, 1e-5));
      CHECK(v.epoch == k + 1);
      CHECK(v.step == (k + 1) * batches);
      CHECK(v.best == (k == 0));  // the others are no better
    }
    auto facts = metadata(directory);
    CHECK(facts.at("epoch") == "3");
    CHECK(facts.at("batch") == "0");
    CHECK(facts.at("step") == std::to_string(3 * batches));
    CHECK(facts.at("batches_per_epoch") == std::to_string(batches));
    CHECK(facts.at("skipped") == "0");
    CHECK(facts.at("window_tokens") == "0");
  }
}

TEST_CASE("dropout rises by the passes that are over, and then stays") {
  // At such a rate no weight moves: a pass has the loss of its dropout.
  auto losses = [](double dropout, double warmup, double usual = 0) {
    scratch::Directory directory;
    Model model = tiny::model("bahdanau", dropout);
    TrainOptions o = tiny::plain(directory);
    o.lr = 1e-30;
    o.epochs = 4;
    o.dropout_warmup = warmup;
    o.usual_epochs = usual;
    Trainer trainer(model, tiny::pairs(), tiny::pairs(), o);
    CHECK(trainer.run(kNever));
    std::vector<double> out;
    for (const Validation& v : trainer.validations()) out.push_back(v.train_loss);
    return out;
  };
  const auto none = losses(0, 0), half = losses(0.25, 0), whole = losses(0.5, 0), rising = losses(0.5, 2);
  REQUIRE(rising.size() == 4);
  CHECK(rising[0] == none[0]);
  CHECK(rising[1] == half[1]);
  CHECK(rising[2] == whole[2]);
  CHECK(rising[3] == whole[3]);
  for (size_t pass : {1, 2, 3}) CHECK(rising[pass] != none[pass]);
  CHECK(whole[0] != none[0]);
  CHECK(whole[1] != half[1]);
  // In a quarter of the usual passes it rises half as fast, and in more of them as ever.
  const auto shorter = losses(0.5, 1, 16);
  CHECK(shorter[0] == none[0]);
  CHECK(shorter[1] == half[1]);
  CHECK(shorter[2] == whole[2]);
  CHECK(losses(0.5, 2, 3) == rising);
}

TEST_CASE("validations come every so many steps and at the end") {
  scratch::Directory directory;
  Model model = tiny::model();
  TrainOptions o = tiny::plain(directory);
  o.epochs = 2;
  o.batch_size = 4;
  o.validate_every = 3;
  Trainer trainer(model, many(20), tiny::pairs(), o);
  trainer.run(kNever);
  std::vector<int64_t> steps, epochs;
  for (const Validation& v : trainer.validations()) {
    steps.push_back(v.step);
    epochs.push_back(v.epoch);
  }
  CHECK(steps == std::vector<int64_t>{3, 6, 9, 10});
  CHECK(epochs == std::vector<int64_t>{0, 1, 1, 2});  // that are over
}

TEST_CASE("a run by the clock ends with a validation, at the end of its schedule; its seconds only grow") {
  scratch::Directory directory;
  Model model = tiny::model();
  TrainOptions o = tiny::plain(directory);
  o.epochs = 0;
  o.max_minutes = 0.01;
  o.batch_size = 4;
  o.schedule = "exponential";
  o.validate_every = 1'000'000;
  {
    Trainer trainer(model, many(20), tiny::pairs(), o);
    CHECK(trainer.run(kNever));
    REQUIRE(trainer.validations().size() == 1);
    CHECK(trainer.validations()[0].step == trainer.step());
    CHECK(trainer.seconds() >= 0.6);
  }
  CHECK(logged(directory, "\"lr\":") == about(0.1 * 0.01, 1e-9));
  o.validate_every = 7;
  o.warmup = 0;
  o.usual_warmup = 1'000'000;
  Trainer trainer(model, many(20), tiny::pairs(), o);
  CHECK(trainer.warmup() == o.usual_warmup);  // as long as the pace is not known
  trainer.run(kNever);
  CHECK(trainer.warmup() == std::lround(0.25 * static_cast<double>(trainer.step())));
  double before = 0;
  for (const Validation& v : trainer.validations()) {
    REQUIRE(v.seconds > before);
    REQUIRE(v.tokens_per_second > 0);
    before = v.seconds;
  }
}

TEST_CASE("the probes' translations are logged, and where the first one's words look") {
  scratch::Directory directory;
  Model model = tiny::model();
  Trainer trainer(model, tiny::pairs(), tiny::pairs(), tiny::plain(directory));
  auto probes = tiny::pairs();
  probes.resize(4);
  trainer.set_probes(probes);
  trainer.run(kNever);
  std::string log = scratch::read(directory.file("train.log"));
  CHECK(testing::contains(log, "\"source_words\":[\"she\",\"eats\",\"</s>\"]"));
  std::string samples = log.substr(log.find("\"samples\":"));
  for (const SentencePair& p : probes)
    CHECK(testing::contains(samples, "{\"source\":\"" + p.source_text + "\",\"reference\":\"" + p.target_text +
                                         "\",\"output\":"));
}

TEST_CASE("a plateau halves the rate when the second validation in a row is no better") {
  scratch::Directory directory;
  Model model = tiny::model();
  TrainOptions o = tiny::plain(directory);
  o.lr = 1e-6;  // too small to make a loss better by the ten thousandth that counts
  o.schedule = "plateau";
  const double factors[] = {1, 1, 0.5, 0.5, 0.25};
  for (int64_t epochs = 1; epochs <= 5; ++epochs) {
    CAPTURE(epochs);
    o.epochs = epochs;
    Model fresh = tiny::model();
    Trainer trainer(fresh, tiny::pairs(), tiny::pairs(), o);
    trainer.run(kNever);
    CHECK(std::stod(metadata(directory).at("base_lr")) == about(1e-6 * factors[epochs - 1], 1e-9));
  }
}

TEST_CASE("the baseline is a moving average of a word's cost") {
  scratch::Directory directory;
  Model model = tiny::model();
  Start start = start_of(model, tiny::pairs());
  TrainOptions o = tiny::plain(directory);
  o.epochs = 2;
  Trainer trainer(model, tiny::pairs(), tiny::pairs(), o);
  trainer.run(kNever);
  double first = start.nll / static_cast<double>(start.tokens), second = trainer.validations()[1].train_loss;
  REQUIRE(std::abs(first - second) > 1e-3);
  CHECK(std::stod(metadata(directory).at("baseline")) == about(0.9 * first + 0.1 * second, 1e-5));
}

TEST_CASE("a step whose gradient is not finite is left out and counted") {
  scratch::Directory directory;
  Model model = tiny::model();
  tiny::set(model, "output.bias", 5, testing::kNaN);
  tiny::Values before = tiny::weights(model);
  TrainOptions o = tiny::plain(directory);
  o.batch_size = 3;
  Trainer trainer(model, tiny::pairs(), {}, o);
  trainer.run(kNever);
  CHECK(trainer.step() == 2);
  CHECK(metadata(directory).at("skipped") == "2");
  for (const auto& [name, numbers] : tiny::weights(model))
    for (size_t i = 0; i < numbers.size(); ++i)
      if (name != "output.bias" || i != 5) REQUIRE(numbers[i] == before.at(name)[i]);
}

TEST_CASE("a warm-up that nobody gave is a hundred steps, or a quarter of the run, or one") {
  auto warm_up = [](int64_t epochs, int64_t given, int64_t batch_size) {
    scratch::Directory directory;
    Model model = tiny::model();
    TrainOptions o = tiny::plain(directory);
    o.epochs = epochs;
    o.warmup = given;
    o.batch_size = batch_size;
    o.max_minutes = epochs ? 0 : 1;
    return Trainer(model, many(20), {}, o).warmup();
  };
  CHECK(warm_up(10, 0, 4) == 13);
  CHECK(warm_up(1, 0, 20) == 1);
  CHECK(warm_up(1000, 0, 4) == 100);
  CHECK(warm_up(0, 0, 4) == 100);
  CHECK(warm_up(10, 7, 4) == 7);
}

TEST_CASE("a run goes on with the pairs it began with and no others") {
  scratch::Directory directory;
  TrainOptions o = tiny::plain(directory);
  o.batch_size = 4;
  {
    Model model = tiny::model();
    Trainer trainer(model, many(20), tiny::pairs(), o);
    trainer.run(kNever);
  }
  o.epochs = 2;
  auto resumed = [&](const std::vector<SentencePair>& pairs) {
    Model model = tiny::model();
    Trainer trainer(model, pairs, tiny::pairs(), o);
    trainer.resume();
    return trainer.step();
  };
  CHECK(resumed(many(20)) == 5);
  auto other = many(20);
  std::swap(other[0], other[1]);
  CHECK_THROWS_WITH(resumed(other), doctest::Contains("other training data"));
  other = many(20);
  other[7].target_text = other[7].target.front();
  CHECK_THROWS_WITH(resumed(other), doctest::Contains("other training data"));
  CHECK_THROWS_WITH(resumed(many(19)), doctest::Contains("other training data"));
  other = many(20);
  other[7].weight = 2;
  CHECK_THROWS_WITH(resumed(other), doctest::Contains("other training data"));
  const EncodedPair twice{.source = {4}, .target = {4}, .weight = 2};
  EncodedPair half = twice;
  half.weight = 0.5;
  CHECK(fingerprints({twice}, {}).at("data") != fingerprints({half}, {}).at("data"));
}
