#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <gradus/io/safetensors.h>
#include <translator/recipe.h>
#include <translator/text/error.h>
#include <translator/trainer.h>

#include "json_text.h"

// What a run leaves behind, and how it goes on from there.

namespace translator {
namespace {

namespace nn = gradus::nn;
using json = nlohmann::ordered_json;

// What last.safetensors holds besides the weights, by the beginning of its name.
const std::string kOptimizer = "optimizer.", kPlateau = "plateau.", kAverage = "ema.";

bool begins_with(const std::string& name, const std::string& prefix) { return name.rfind(prefix, 0) == 0; }

}  // namespace

void Trainer::save_start() const {
  json options = {{"epochs", options_.epochs},         {"max_minutes", options_.max_minutes},
                  {"batch_size", options_.batch_size}, {"lr", options_.lr},
                  {"warmup_steps", warmup_},           {"seed", options_.seed}};
  for (const auto& [name, value] : recipe(options_)) options.emplace(name.substr(2), value);  // lr is there
  std::string path = (std::filesystem::path(options_.out) / "training.json").string();
  std::ofstream file(path);
  file << json_text::dump(options, 2) << "\n";
  file.close();
  if (!file) throw InputError(path, 0, "cannot be written");
  save_best();
  save_last();
}

void Trainer::save_best() const {
  std::map<std::string, std::string> facts = {{"step", std::to_string(step_)}};
  if (std::isfinite(best_loss_) && !valid_.empty())
    facts["validation_loss"] = fmt::format("{:.6f}", best_loss_);
  model_.save_weights(options_.out, facts);
}

void Trainer::save_last() const {
  gradus::SafetensorsFile file;
  for (auto& [name, tensor] : nn::state_dict(*model_.network)) file.tensors.emplace_back(name, tensor);
  auto add = [&](const std::string& prefix, const nn::StateDict& state) {
    for (auto& [name, tensor] : state) file.tensors.emplace_back(prefix + name, tensor);
  };
  add(kOptimizer, optimizer_->state_dict(*model_.network));
  add(kAverage, ema_.state_dict());
  if (options_.schedule == "plateau") add(kPlateau, plateau_.state_dict());
  file.metadata = {{"epoch", std::to_string(epoch_)},
                   {"batch", std::to_string(batch_)},
                   {"step", std::to_string(step_)},
                   {"best_loss", fmt::format("{}", best_loss_)},
                   {"seconds", fmt::format("{}", seconds_)},
                   {"batches_per_epoch", std::to_string(batches_per_epoch_)},
                   {"seed", std::to_string(options_.seed)},
                   {"batch_size", std::to_string(options_.batch_size)},
                   {"data", std::to_string(fingerprint_)},
                   {"skipped", std::to_string(skipped_)},
                   {"window_nll", fmt::format("{}", window_nll_)},
                   {"window_tokens", std::to_string(window_tokens_)},
                   {"window_seconds", fmt::format("{}", window_seconds_)},
                   {"base_lr", fmt::format("{}", base_lr_)},
                   {"baseline", fmt::format("{}", baseline_)}};
  file.metadata.merge(recipe(options_));
  gradus::save_safetensors((std::filesystem::path(options_.out) / "last.safetensors").string(), file);
}

void Trainer::resume() {
  std::string path = (std::filesystem::path(options_.out) / "last.safetensors").string();
  gradus::SafetensorsFile file = gradus::load_safetensors(path);
  nn::StateDict weights, moments, plateau, averages;
  for (auto& [name, tensor] : file.tensors) {
    if (begins_with(name, kOptimizer))
      moments.emplace_back(name.substr(kOptimizer.size()), tensor);
    else if (begins_with(name, kPlateau))
      plateau.emplace_back(name.substr(kPlateau.size()), tensor);
    else if (begins_with(name, kAverage))
      averages.emplace_back(name.substr(kAverage.size()), tensor);
    else weights.emplace_back(name, tensor);
  }
  auto text = [&](const char* key) {
    auto at = file.metadata.find(key);
    if (at == file.metadata.end())
      throw InputError(path, 0, std::string("has no \"") + key + "\": not written by `translator train`");
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
    if (text(key) != now)
      throw InputError(path, 0, fmt::format("was made with {}: the run cannot go on from it", what));
  };
  same("data", std::to_string(fingerprint_), "other training data");
  same("batch_size", std::to_string(options_.batch_size), "another --batch-size");
  same("seed", std::to_string(options_.seed), "another --seed");
  for (const auto& [option, value] : recipe(options_))
    if (file.metadata.count(option)) same(option.c_str(), value, ("another " + option).c_str());
  nn::load_state_dict(*model_.network, weights);
  optimizer_->load_state_dict(*model_.network, moments);
  ema_.load_state_dict(averages);
  if (options_.schedule == "plateau") {
    plateau_.load_state_dict(plateau);
    base_lr_ = number("base_lr");
  }
  epoch_ = static_cast<int64_t>(number("epoch"));
  batch_ = static_cast<int64_t>(number("batch"));
  step_ = static_cast<int64_t>(number("step"));
  best_loss_ = number("best_loss");
  seconds_ = number("seconds");
  skipped_ = static_cast<int64_t>(number("skipped"));
  window_nll_ = number("window_nll");
  window_tokens_ = static_cast<int64_t>(number("window_tokens"));
  window_seconds_ = number("window_seconds");
  baseline_ = number("baseline");
}

}  // namespace translator
