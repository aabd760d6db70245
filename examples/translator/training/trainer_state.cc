#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <limits>

#include <gradus/error.h>
#include <gradus/io/safetensors.h>
#include <gradus/numeric.h>
#include <translator/model/files.h>
#include <common/error.h>
#include <common/utf8.h>
#include <translator/training/trainer.h>

// What a run leaves behind, and how it goes on from there.

namespace translator {
namespace {

namespace nn = gradus::nn;

// What last.safetensors holds besides the weights, by the beginning of its name.
const std::string kOptimizer = "optimizer.", kPlateau = "plateau.", kAverage = "ema.", kNorms = "norms.";

constexpr int64_t kMostSteps = int64_t{1} << 40;
constexpr double kMostSeconds = 1e9, kMostNats = std::numeric_limits<float>::max();

}  // namespace

// The facts of last.safetensors. It may come from anywhere: whatever a fact cannot be is said with the file and
// its name.
class StateFacts {
 public:
  StateFacts(std::string path, const std::map<std::string, std::string>& all)
      : path_(std::move(path)), all_(all) {}

  bool has(const std::string& key) const { return all_.count(key) > 0; }
  const std::string& text(const std::string& key) const {
    auto at = all_.find(key);
    if (at == all_.end()) fault("has no \"" + key + "\": not written by `translator train`");
    return at->second;
  }
  int64_t whole(const std::string& key, int64_t least, int64_t most) const {
    const std::string what = fmt::format("a whole number from {} to {}", least, most);
    const int64_t value = parsed<int64_t>(key, what);
    if (value < least || value > most) must_be(key, what);
    return value;
  }
  double number(const std::string& key, double least, double most, bool or_nan = false) const {
    double value = parsed<double>(key, "a number");
    if (!(value >= least && value <= most) && !(or_nan && std::isnan(value)))
      must_be(key, fmt::format("a number from {} to {}", least, most));
    return value;
  }
  void same(const std::string& key, const std::string& now, const std::string& what) const {
    if (text(key) != now) fault(fmt::format("was made with {}: the run cannot go on from it", what));
  }
  [[noreturn]] void fault(const std::string& what) const { throw InputError(path_, 0, what); }
  [[noreturn]] void must_be(const std::string& key, const std::string& what) const {
    fault(fmt::format("\"{}\" must be {}: {}", key, what,
                      utf8::printable(std::string_view(text(key)).substr(0, 60))));
  }

 private:
  template <class Number>
  Number parsed(const std::string& key, const std::string& what) const {
    const std::string& value = text(key);
    Number out{};
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
    if (error != std::errc() || end != value.data() + value.size()) must_be(key, what);
    return out;
  }

  std::string path_;
  const std::map<std::string, std::string>& all_;
};

namespace {

// A state names its options, but for the oldest; one that it does not name was none yet.
void must_have_options(const StateFacts& facts, const TrainOptions& options) {
  facts.same("batch_size", std::to_string(options.batch_size), "another --batch-size");
  facts.same("seed", std::to_string(options.seed), "another --seed");
  const std::map<std::string, std::string> unnamed = recipe(TrainOptions());
  const bool names_options = facts.has("--optimizer");
  for (const auto& [option, value] : recipe(options)) {
    if (facts.has(option)) facts.same(option, value, "another " + option);
    else if (names_options && value != unnamed.at(option))
      facts.fault(fmt::format("was made without {}: the run cannot go on from it", option));
  }
}

// `no_best` is what a plateau's best is before there is one.
void must_be_sound(const std::string& path, const std::string& name, const gradus::Tensor& t,
                   double no_best) {
  auto wrong = [&](const std::string& what) {
    throw InputError(path, 0, fmt::format("tensor \"{}\": {}", name, what));
  };
  if (t.dtype() != gradus::DType::f32 && t.dtype() != gradus::DType::f64)
    wrong(fmt::format("must be f32 or f64: {}", gradus::name_of(t.dtype())));
  if (name.starts_with(kPlateau) && t.numel() != 1) wrong("must be one number: " + t.shape().str());
  double least = -INFINITY;
  for (const char* of_squares : {"v.", "sum.", "square_avg.", "acc_delta."})  // whose roots are taken
    if (name.starts_with(kOptimizer + of_squares)) least = 0;
  gradus::visit_floating(t, "resume", [&](const auto* x) {
    for (int64_t i = 0; i < t.numel(); ++i)
      if (!std::isfinite(x[i]) && !(name == kPlateau + "best" && x[i] == no_best))
        wrong(fmt::format("number {} is not finite: {}. --check-finite goes on and says where that shows", i,
                          x[i]));
      else if (x[i] < static_cast<decltype(*x + 0)>(least))
        wrong(fmt::format("number {} is a sum of squares and must not be negative: {}", i, x[i]));
  });
}

// The norms of the last step that was measured, for the validation that has not logged them yet. The gradient
// of a step that was skipped is not finite.
nn::StateDict tensors_of(const StepNorms& norms) {
  nn::StateDict out;
  for (const auto& [name, numbers] :
       {std::pair{"gradient", &norms.gradient}, {"weight", &norms.weight}, {"update", &norms.update}})
    out.emplace_back(name, gradus::Tensor::from({static_cast<int64_t>(numbers->size())}, *numbers,
                                                gradus::DType::f64));
  return out;
}

StepNorms norms_of(const std::string& path, int64_t step, size_t parameters, const nn::StateDict& tensors) {
  StepNorms out{.step = step, .gradient = {}, .weight = {}, .update = {}};
  const gradus::Shape shape{static_cast<int64_t>(parameters)};
  for (const auto& [name, numbers] :
       {std::pair{"gradient", &out.gradient}, {"weight", &out.weight}, {"update", &out.update}}) {
    const auto at =
        std::find_if(tensors.begin(), tensors.end(), [&, n = name](const auto& t) { return t.first == n; });
    if (at == tensors.end() || at->second.dtype() != gradus::DType::f64 || at->second.shape() != shape)
      throw InputError(path, 0, fmt::format("tensor \"{}{}\": must be f64 {}", kNorms, name, shape.str()));
    for (size_t i = 0; i < parameters; ++i) numbers->push_back(at->second.at(static_cast<int64_t>(i)));
  }
  return out;
}

}  // namespace

void Trainer::save_start(const std::string& where) const {
  save_best(where);
  save_last(where);
}

// The metadata of a model as it is now.
std::map<std::string, std::string> Trainer::facts_of(double loss, double score) const {
  std::map<std::string, std::string> facts = {{"step", std::to_string(step_)}};
  if (std::isfinite(loss) && !valid_.empty()) {
    facts["validation_loss"] = fmt::format("{:.6f}", loss);
    if (options_.metric != "loss") facts["validation_" + options_.metric] = fmt::format("{:.6f}", score);
  }
  return facts;
}

void Trainer::save_best(const std::string& where) const {
  model_.save_weights(where, facts_of(best_loss_, best_score()));
}

// At the end of a run, and again when one that is over is gone on with: the mean of the best models, if it is
// better than the best of them, or that one. False when it was interrupted.
bool Trainer::average() {
  averaged_.clear();
  const auto& best = checkpoints_.best();
  if (!options_.average || best.size() < 2) return true;
  const nn::StateDict own = nn::state_dict(*model_.network);
  nn::load_state_dict(*model_.network, checkpoints_.mean());
  bool whole = true;
  try {
    const Evaluation e = evaluate_now();
    const double score = score_of(e, options_.metric, model_.config.lowercase());
    if (cost_of(score, options_.metric) < best_cost_ && !std::isnan(e.nll)) {
      for (const auto& checkpoint : best) averaged_.push_back(checkpoint.step);
      auto facts = facts_of(e.nll, score);
      facts["mean_of_steps"] = fmt::format("{}", fmt::join(averaged_, " "));
      model_.save_weights(options_.out, facts);
    } else if (best[0].cost == best_cost_) {
      const char* file = "model.safetensors";  // it may be a mean of before the run was prolonged
      write_file(in(options_.out, file), read_file(in(checkpoints_.path(best[0].step), file)));
    }
  } catch (const Interrupted&) {
    whole = false;
  }
  nn::load_state_dict(*model_.network, own);
  return whole;
}

void Trainer::save_last(const std::string& where) const {
  gradus::SafetensorsFile file;
  auto add = [&](const std::string& prefix, const nn::StateDict& state) {
    for (auto& [name, tensor] : state) file.tensors.emplace_back(prefix + name, tensor);
  };
  add("", nn::state_dict(*model_.network));
  add(kOptimizer, optimizer_->state_dict(*model_.network));
  add(kAverage, ema_.state_dict());
  if (options_.schedule == "plateau") add(kPlateau, plateau_.state_dict());
  if (meter_.last().step >= 0) add(kNorms, tensors_of(meter_.last()));
  file.metadata = {{"epoch", std::to_string(epoch_)},
                   {"batch", std::to_string(batch_)},
                   {"step", std::to_string(step_)},
                   {"best_loss", fmt::format("{}", best_loss_)},
                   {"best_cost", fmt::format("{}", best_cost_)},
                   {"since_best", std::to_string(since_best_)},
                   {"kept", checkpoints_.text()},
                   {"seconds", fmt::format("{}", seconds_)},
                   {"batches_per_epoch", std::to_string(batches_per_epoch_)},
                   {"seed", std::to_string(options_.seed)},
                   {"batch_size", std::to_string(options_.batch_size)},
                   {"skipped", std::to_string(skipped_)},
                   {"window_nll", fmt::format("{}", window_nll_)},
                   {"window_tokens", std::to_string(window_tokens_)},
                   {"window_seconds", fmt::format("{}", window_seconds_)},
                   {"base_lr", fmt::format("{}", base_lr_)},
                   {"baseline", fmt::format("{}", baseline_)},
                   {"validation_due", validation_due_ ? "1" : "0"},
                   {"grad_norm", fmt::format("{}", last_norm_)},
                   {"norms", std::to_string(meter_.last().step)}};
  file.metadata.merge(recipe(options_));
  file.metadata.insert(fingerprints_.begin(), fingerprints_.end());
  gradus::save_safetensors(in(where, "last.safetensors"), file);
}

void Trainer::resume() {
  const std::string path = in(options_.out, "last.safetensors");
  const gradus::SafetensorsFile file = gradus::load_safetensors(path);
  const StateFacts facts(path, file.metadata);
  facts.same("data", fingerprints_.at("data"), "other training data");
  if (facts.has("links")) facts.same("links", fingerprints_.at("links"), "other links of words");
  if (facts.has("valid")) facts.same("valid", fingerprints_.at("valid"), "other validation pairs");
  must_have_options(facts, options_);
  take_numbers(facts);
  take_tensors(path, facts.has("norms") ? facts.whole("norms", -1, step_ - 1) : -1, file.tensors);
}

// Where in the run: each number by itself, and all of them together.
void Trainer::take_numbers(const StateFacts& facts) {
  const bool varies = options_.batch_tokens > 0;
  if (!varies) facts.whole("batches_per_epoch", batches_per_epoch_, batches_per_epoch_);
  epoch_ = facts.whole("epoch", 0, kMostSteps / batches_per_epoch_ - 1);
  if (varies) begin_epoch();
  batch_ = facts.whole("batch", 0, batches_per_epoch_);
  step_ = facts.whole("step", varies ? epoch_ + batch_ : 0, kMostSteps);
  if (!varies && step_ != epoch_ * batches_per_epoch_ + batch_)
    facts.must_be("step",
                  fmt::format("{}, after {} epochs of {} batches and {} batches",
                              epoch_ * batches_per_epoch_ + batch_, epoch_, batches_per_epoch_, batch_));
  skipped_ = facts.whole("skipped", 0, step_);
  validation_due_ = facts.has("validation_due") && facts.whole("validation_due", 0, 1) == 1;
  best_loss_ = facts.number("best_loss", 0, INFINITY);
  const bool by_loss = options_.metric == "loss";
  constexpr double kPerfect = -100.001;  // a perfect BLEU is a little more than 100, as sums round
  best_cost_ = by_loss && !facts.has("best_cost")
                   ? best_loss_
                   : facts.number("best_cost", by_loss ? 0 : kPerfect, INFINITY);
  since_best_ = facts.has("since_best") ? facts.whole("since_best", 0, step_) : 0;
  if (facts.has("kept") && !checkpoints_.read(facts.text("kept")))
    facts.must_be("kept", "steps and costs, the best first, as \"120 0.53;80 0.61\"");
  seconds_ = facts.number("seconds", 0, kMostSeconds);
  window_seconds_ = facts.number("window_seconds", 0, kMostSeconds);
  window_tokens_ = facts.whole("window_tokens", 0, (epoch_ + 1) * tokens_per_epoch_);
  // The loss of a step that was skipped may have been no number.
  window_nll_ = facts.number("window_nll", 0, skipped_ > 0 ? INFINITY : kMostNats, skipped_ > 0);
  baseline_ = facts.number("baseline", -kMostNats, kMostNats);
  if (facts.has("grad_norm"))  // of before it was kept
    last_norm_ = facts.number("grad_norm", 0, skipped_ > 0 ? INFINITY : kMostNats, skipped_ > 0);
  const double rate = facts.number("base_lr", 0, options_.lr);
  if (options_.schedule == "plateau") base_lr_ = rate;
}

// Weights, the optimiser's moments, averages, and the norms of step `measured`, if there is one.
void Trainer::take_tensors(const std::string& path, int64_t measured, const nn::StateDict& tensors) {
  const double no_best = options_.metric == "loss" ? INFINITY : -INFINITY;
  nn::StateDict weights, moments, plateau, averages, norms;
  for (const auto& [name, tensor] : tensors) {
    const bool norm = name.starts_with(kNorms) && measured >= 0;
    if (!options_.check_finite && !norm) must_be_sound(path, name, tensor, no_best);
    if (norm) norms.emplace_back(name.substr(kNorms.size()), tensor);
    else if (name.starts_with(kOptimizer)) moments.emplace_back(name.substr(kOptimizer.size()), tensor);
    else if (name.starts_with(kPlateau)) plateau.emplace_back(name.substr(kPlateau.size()), tensor);
    else if (name.starts_with(kAverage)) averages.emplace_back(name.substr(kAverage.size()), tensor);
    else weights.emplace_back(name, tensor);
  }
  must_be_counts_of_steps(path, moments, averages);
  if (measured >= 0) meter_.put_back(norms_of(path, measured, meter_.parameters().size(), norms));
  try {
    nn::load_state_dict(*model_.network, weights);
    optimizer_->load_state_dict(*model_.network, moments);
    ema_.load_state_dict(averages);
    const nn::EMAWeights swapped(ema_, trained_);  // refuses averages of another network
    if (options_.schedule == "plateau") plateau_.load_state_dict(plateau);
  } catch (const gradus::Error& e) {  // names, shapes and counts
    throw InputError(path, 0, e.message());
  }
}

// A parameter has had at most the steps that were taken and not skipped.
void Trainer::must_be_counts_of_steps(const std::string& path, const nn::StateDict& moments,
                                      const nn::StateDict& averages) const {
  const int64_t taken = step_ - skipped_;
  bool any = false;
  auto check = [&](const std::string& name, const gradus::Tensor& t) {
    double steps = t.numel() == 1 ? t.at(0) : NAN;
    if (!(steps >= 1 && steps <= static_cast<double>(taken)))
      throw InputError(
          path, 0,
          fmt::format("tensor \"{}\": must be a number of steps from 1 to {}: {}", name, taken, steps));
  };
  for (const auto& [name, tensor] : moments)
    if (name.starts_with("step.")) {
      check(kOptimizer + name, tensor);
      any = true;
    }
  for (const auto& [name, tensor] : averages)
    if (name == "updates") check(kAverage + name, tensor);
  if (!any && taken > 0)
    throw InputError(path, 0, fmt::format("has no state of the optimiser after {} steps", taken));
  if (averages.empty() != (options_.ema == 0 || taken == 0))
    throw InputError(path, 0,
                     fmt::format("has {} averages of the weights (\"{}\") after {} steps with --ema {}",
                                 averages.size(), kAverage, taken, options_.ema));
}

}  // namespace translator
