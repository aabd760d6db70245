#include <translator/trainer.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include <gradus/io/safetensors.h>
#include <gradus/nn/data_parallel.h>
#include <translator/text/error.h>
#include <translator/text/progress.h>

namespace translator {
namespace {

namespace nn = gradus::nn;
using json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr const char* kOptimizerPrefix = "optimizer.";

// FNV-1a over all ids: tells whether a run goes on with the data it began with.
uint64_t fingerprint(const std::vector<EncodedPair>& pairs) {
  uint64_t hash = 14695981039346656037ull;
  auto mix = [&hash](int32_t id) { hash = (hash ^ static_cast<uint32_t>(id)) * 1099511628211ull; };
  for (const EncodedPair& p : pairs) {
    for (int32_t id : p.source) mix(id);
    for (int32_t id : p.target) mix(id);
    mix(-1);
  }
  return hash;
}

}  // namespace

Trainer::Trainer(Model& model, std::vector<SentencePair> train, std::vector<SentencePair> valid,
                 const TrainOptions& options)
    : model_(model),
      train_(encode(train, model.source, model.target)),
      valid_(std::move(valid)),
      options_(options),
      adam_({.lr = options.lr}),
      pool_(options.threads),
      best_loss_(INFINITY) {
  if (train_.empty()) throw InputError("training data", 0, "has no sentence pairs");
  batches_per_epoch_ = static_cast<int64_t>(batches_of(0).size());
  fingerprint_ = fingerprint(train_);
  warmup_ = options_.warmup;
  if (options_.epochs > 0) warmup_ = std::min(warmup_, options_.epochs * batches_per_epoch_ / 10);
  warmup_ = std::max<int64_t>(1, warmup_);
}

// Shuffled, sorted by length within pools of 50 batches (so that a batch pads little and the order stays random), cut into
// batches, which are shuffled. A function of seed and epoch alone: a resumed run sees the same batches.
std::vector<std::vector<size_t>> Trainer::batches_of(int64_t epoch) const {
  gradus::Rng rng(options_.seed, static_cast<uint64_t>(epoch) + 1000);
  auto shuffle = [&rng](auto& v) {
    for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
  };
  std::vector<size_t> order(train_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  shuffle(order);
  size_t size = static_cast<size_t>(options_.batch_size), pool = size * 50;
  std::vector<std::vector<size_t>> batches;
  for (size_t begin = 0; begin < order.size(); begin += pool) {
    auto first = order.begin() + static_cast<long>(begin);
    auto last = order.begin() + static_cast<long>(std::min(order.size(), begin + pool));
    std::stable_sort(first, last, [&](size_t a, size_t b) {
      return std::pair(train_[a].target.size(), train_[a].source.size()) <
             std::pair(train_[b].target.size(), train_[b].source.size());
    });
    for (auto at = first; at != last;) {
      auto end = at + std::min<long>(static_cast<long>(size), last - at);
      batches.emplace_back(at, end);
      at = end;
    }
  }
  shuffle(batches);
  return batches;
}

Trainer::StepResult Trainer::train_step(const std::vector<size_t>& batch) {
  // Every shard takes each n-th sentence of a batch sorted by length: equal work, little padding.
  int shards = static_cast<int>(std::min<size_t>(batch.size(), static_cast<size_t>(pool_.size())));
  std::vector<nn::Seq2SeqBatch> parts;
  int64_t tokens = 0;
  for (int k = 0; k < shards; ++k) {
    std::vector<size_t> own;
    for (size_t i = static_cast<size_t>(k); i < batch.size(); i += static_cast<size_t>(shards)) own.push_back(batch[i]);
    parts.push_back(make_batch(train_, own));
    tokens += parts.back().target_tokens;
  }
  std::vector<double> nll(static_cast<size_t>(shards));
  gradus::Training training(options_.seed * 1000003 + static_cast<uint64_t>(step_));
  nn::ParallelGradients out = nn::parallel_gradients(pool_, shards, [&](int k) {
    double share = static_cast<double>(parts[k].target_tokens) / static_cast<double>(tokens);
    gradus::CrossEntropy loss = model_.network.loss(parts[k], options_.label_smoothing, share);
    nll[static_cast<size_t>(k)] = loss.nll;
    return loss.loss;
  });
  double norm = nn::grad_norm(out.gradients, &pool_);
  if (std::isfinite(norm)) {
    adam_.set_lr(learning_rate());
    adam_.step(model_.network, out.gradients, nn::clip_factor(norm, options_.clip), &pool_);
  } else {
    ++skipped_;
  }
  return {std::accumulate(nll.begin(), nll.end(), 0.0), tokens, norm};
}

double Trainer::progress() const {
  double by_epochs = options_.epochs > 0 ? static_cast<double>(step_) / static_cast<double>(options_.epochs * batches_per_epoch_) : 0;
  double by_time = options_.max_minutes > 0 ? seconds_ / (60 * options_.max_minutes) : 0;
  return std::min(1.0, std::max(by_epochs, by_time));
}

double Trainer::learning_rate() const {
  double warm = std::min(1.0, static_cast<double>(step_ + 1) / static_cast<double>(warmup_));
  return options_.lr * warm * std::max(0.05, 1 - progress());
}

bool Trainer::run(const std::atomic<bool>& stop) {
  auto start = Clock::now();
  seconds_before_ = seconds_;
  if (step_ == 0)
    log(json{{"event", "start"}, {"pairs", train_.size()}, {"epochs", options_.epochs}, {"max_minutes", options_.max_minutes},
             {"batch_size", options_.batch_size}, {"lr", options_.lr}, {"clip", options_.clip}, {"seed", options_.seed},
             {"label_smoothing", options_.label_smoothing}, {"threads", options_.threads},
             {"parameters", nn::num_parameters(model_.network)}}.dump());
  else
    log(json{{"event", "resume"}, {"epoch", epoch_}, {"step", step_}, {"seconds", seconds_}, {"epochs", options_.epochs},
             {"max_minutes", options_.max_minutes}, {"threads", options_.threads}}.dump());
  bool by_time_only = options_.epochs == 0;
  auto label = [&] {
    return by_time_only ? fmt::format("epoch {}", epoch_ + 1) : fmt::format("epoch {}/{}", epoch_ + 1, options_.epochs);
  };
  constexpr int64_t kBar = 1000;  // the bar shows the progress of the whole run, by epochs or by time
  Progress bar(label(), kBar, {.unit = "tokens/s", .quiet = options_.quiet});
  bar.start_at(static_cast<int64_t>(progress() * kBar));
  int64_t counted = 0;
  while (progress() < 1) {
    std::vector<std::vector<size_t>> batches = batches_of(epoch_);
    bar.set_label(label());
    for (; batch_ < static_cast<int64_t>(batches.size()) && progress() < 1;) {
      if (stop) {
        save_last();
        if (best_loss_ == INFINITY) save_best();  // no validation yet: what was learned so far is the best there is
        bar.finish();
        return false;
      }
      auto before = Clock::now();
      StepResult r = train_step(batches[static_cast<size_t>(batch_)]);
      ++batch_;
      ++step_;
      window_nll_ += r.nll;
      window_tokens_ += r.tokens;
      window_seconds_ += since(before);
      last_norm_ = r.norm;
      counted += r.tokens;
      seconds_ = seconds_before_ + since(start);
      bar.update(static_cast<int64_t>(progress() * kBar),
                 fmt::format("loss {:.3f}", window_nll_ / static_cast<double>(window_tokens_)), static_cast<double>(counted));
      if (options_.validate_every > 0 && step_ % options_.validate_every == 0) validate(bar);
    }
    if (batch_ == static_cast<int64_t>(batches.size())) {
      ++epoch_;
      batch_ = 0;
    }
    if (window_tokens_ > 0 && (options_.validate_every == 0 || progress() >= 1)) validate(bar);
    seconds_ = seconds_before_ + since(start);
  }
  bar.finish();
  return true;
}

void Trainer::validate(Progress& bar) {
  Validation v;
  v.epoch = epoch_;
  v.step = step_;
  v.train_loss = window_nll_ / static_cast<double>(window_tokens_);
  v.tokens_per_second = static_cast<double>(window_tokens_) / window_seconds_;
  v.evaluation = evaluate(model_, valid_, {.translate_at_most = options_.validation_translations, .alignment = false,
                                           .threads = options_.threads});
  v.seconds = seconds_ + v.evaluation.seconds;
  v.best = valid_.empty() || v.evaluation.nll < best_loss_;
  window_nll_ = window_seconds_ = 0;
  window_tokens_ = 0;
  const Evaluation& e = v.evaluation;
  if (v.best) {
    best_loss_ = e.nll;
    save_best();
  }
  save_last();
  std::string text = describe(v);
  json samples = json::array();
  std::vector<std::vector<std::string>> sources;
  for (const SentencePair& p : probes_) sources.push_back(p.source);
  auto translations = translate(model_, sources);
  for (size_t i = 0; i < probes_.size(); ++i) {
    std::string output = translations[i].empty() ? std::string() : readable(model_, translations[i][0].tokens);
    text += fmt::format("\n          {}  ->  {}", probes_[i].source_text, output);
    samples.push_back({{"source", probes_[i].source_text}, {"reference", probes_[i].target_text}, {"output", output}});
  }
  if (!options_.quiet) bar.print(text);
  log(json{{"event", "validation"}, {"epoch", epoch_}, {"step", step_}, {"seconds", v.seconds}, {"lr", learning_rate()},
           {"train_loss", v.train_loss}, {"valid_loss", e.nll}, {"perplexity", e.perplexity}, {"bleu", e.bleu.score},
           {"exact_match", e.exact_match}, {"tokens_per_s", v.tokens_per_second}, {"grad_norm", last_norm_},
           {"skipped_steps", skipped_}, {"best", v.best}, {"samples", samples}}.dump());
  validations_.push_back(std::move(v));
}

std::string Trainer::describe(const Validation& v) const {
  const Evaluation& e = v.evaluation;
  std::string text =
      fmt::format("{:>8}  epoch {:<3} step {:<6} train {:.3f}  ", format_duration(v.seconds), v.epoch, v.step, v.train_loss);
  if (!valid_.empty())
    text += fmt::format("valid {:.3f}  perplexity {:<7.2f} BLEU {:5.1f}  exact {:5.1f} %  ", e.nll, e.perplexity, e.bleu.score,
                        100 * e.exact_match);
  text += format_count(v.tokens_per_second) + "/s";
  return v.best && !valid_.empty() ? text + "  *" : text;
}

void Trainer::log(const std::string& line) const {
  std::ofstream file((std::filesystem::path(options_.out) / "train.log").string(), std::ios::app);
  file << line << "\n";
}

void Trainer::save_start() const {
  save_best();
  save_last();
}

void Trainer::save_best() const {
  std::map<std::string, std::string> facts = {{"step", std::to_string(step_)}};
  if (std::isfinite(best_loss_) && !valid_.empty()) facts["validation_loss"] = fmt::format("{:.6f}", best_loss_);
  model_.save_weights(options_.out, facts);
}

void Trainer::save_last() const {
  gradus::SafetensorsFile file;
  for (auto& [name, tensor] : nn::state_dict(model_.network)) file.tensors.emplace_back(name, tensor);
  for (auto& [name, tensor] : adam_.state_dict(model_.network)) file.tensors.emplace_back(kOptimizerPrefix + name, tensor);
  file.metadata = {{"epoch", std::to_string(epoch_)},   {"batch", std::to_string(batch_)},
                   {"step", std::to_string(step_)},     {"best_loss", fmt::format("{}", best_loss_)},
                   {"seconds", fmt::format("{}", seconds_)}, {"batches_per_epoch", std::to_string(batches_per_epoch_)},
                   {"seed", std::to_string(options_.seed)}, {"batch_size", std::to_string(options_.batch_size)},
                   {"data", std::to_string(fingerprint_)},  {"skipped", std::to_string(skipped_)},
                   {"window_nll", fmt::format("{}", window_nll_)}, {"window_tokens", std::to_string(window_tokens_)},
                   {"window_seconds", fmt::format("{}", window_seconds_)}};
  gradus::save_safetensors((std::filesystem::path(options_.out) / "last.safetensors").string(), file);
}

void Trainer::resume() {
  std::string path = (std::filesystem::path(options_.out) / "last.safetensors").string();
  gradus::SafetensorsFile file = gradus::load_safetensors(path);
  nn::StateDict weights, moments;
  for (auto& [name, tensor] : file.tensors) {
    if (name.rfind(kOptimizerPrefix, 0) == 0) moments.emplace_back(name.substr(std::string(kOptimizerPrefix).size()), tensor);
    else weights.emplace_back(name, tensor);
  }
  auto text = [&](const char* key) {
    auto at = file.metadata.find(key);
    if (at == file.metadata.end()) throw InputError(path, 0, std::string("has no \"") + key + "\": not written by `translator train`");
    return at->second;
  };
  auto number = [&](const char* key) {
    std::string value = text(key);
    char* end = nullptr;
    double result = std::strtod(value.c_str(), &end);
    if (value.empty() || *end) throw InputError(path, 0, fmt::format("\"{}\" is no number: {}", key, value));
    return result;
  };
  auto same = [&](const char* key, const std::string& now, const char* what) {
    if (text(key) != now) throw InputError(path, 0, fmt::format("was made with {}: the run cannot go on from it", what));
  };
  same("data", std::to_string(fingerprint_), "other training data");
  same("batch_size", std::to_string(options_.batch_size), "another --batch-size");
  same("seed", std::to_string(options_.seed), "another --seed");
  nn::load_state_dict(model_.network, weights);
  adam_.load_state_dict(model_.network, moments);
  epoch_ = static_cast<int64_t>(number("epoch"));
  batch_ = static_cast<int64_t>(number("batch"));
  step_ = static_cast<int64_t>(number("step"));
  best_loss_ = number("best_loss");
  seconds_ = number("seconds");
  skipped_ = static_cast<int64_t>(number("skipped"));
  window_nll_ = number("window_nll");
  window_tokens_ = static_cast<int64_t>(number("window_tokens"));
  window_seconds_ = number("window_seconds");
}

}  // namespace translator
