#include <translator/training/checkpoints.h>

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include <gradus/io/safetensors.h>
#include <translator/model/files.h>
#include <translator/model/int8_state.h>
#include <translator/text/chrf.h>
#include <common/error.h>

namespace translator {
namespace {

const std::string kName = "step-";

// The number that the text begins with, taken off it.
template <class Number>
bool take_number(std::string_view& text, Number& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, char c) {
  const bool there = text.starts_with(c);
  if (there) text.remove_prefix(1);
  return there;
}

}  // namespace

double score_of(const Evaluation& e, const std::string& metric, bool lowercase) {
  if (metric == "loss") return e.nll;
  if (metric == "bleu") return e.bleu.score;
  if (metric == "exact") return 100 * e.exact_match;
  if (e.hypotheses.empty()) return 0;
  const Metric chrf = chrf_metric({.lowercase = lowercase});
  return chrf.score(count(chrf, e.hypotheses, e.references).sum());
}

Checkpoints::Checkpoints(const std::string& directory, int64_t most)
    : directory_(in(directory, "kept")), most_(static_cast<size_t>(most)) {}

std::string Checkpoints::path(int64_t step) const { return in(directory_, kName + std::to_string(step)); }
std::string Checkpoints::weights(int64_t step) const { return in(path(step), "model.safetensors"); }

void Checkpoints::offer(const Model& model, Checkpoint checkpoint,
                        const std::map<std::string, std::string>& facts) {
  auto place =
      std::find_if(best_.begin(), best_.end(), [&](const Checkpoint& c) { return checkpoint.cost < c.cost; });
  if (static_cast<size_t>(place - best_.begin()) >= most_) return;
  model.save_description(path(checkpoint.step));
  model.save_weights(path(checkpoint.step), facts);
  best_.insert(place, checkpoint);
  if (best_.size() > most_) best_.pop_back();
}

void Checkpoints::tidy() const {
  if (most_ == 0) return;
  for (const std::string& name : names_in(directory_)) {
    const bool wanted = std::any_of(best_.begin(), best_.end(), [&](const Checkpoint& c) {
      return name == kName + std::to_string(c.step);
    });
    std::error_code ignored;
    if (!wanted && name.starts_with(kName)) std::filesystem::remove_all(in(directory_, name), ignored);
  }
}

std::string Checkpoints::text() const {
  std::string out;
  for (const Checkpoint& c : best_) out += fmt::format("{}{} {}", out.empty() ? "" : ";", c.step, c.cost);
  return out;
}

bool Checkpoints::read(const std::string& text) {
  best_.clear();
  for (std::string_view rest = text; !rest.empty();) {
    Checkpoint c{};
    if (!take_number(rest, c.step) || !take(rest, ' ') || !take_number(rest, c.cost)) return false;
    if (!rest.empty() && (!take(rest, ';') || rest.empty())) return false;
    const bool in_order = best_.empty() || c.cost >= best_.back().cost;
    if (c.step < 1 || !std::isfinite(c.cost) || !in_order || best_.size() == 1000) return false;
    best_.push_back(c);
  }
  std::erase_if(best_, [&](const Checkpoint& c) {
    std::error_code ignored;
    return !std::filesystem::exists(weights(c.step), ignored);
  });
  if (best_.size() > most_) best_.resize(most_);
  return true;
}

gradus::nn::StateDict mean_of_weights(const std::vector<std::string>& files) {
  gradus::nn::StateDict sum;
  for (const std::string& path : files) {
    const gradus::nn::StateDict state = widened(gradus::load_safetensors(path).tensors);
    auto must_fit = [&](bool right, const std::string& name) {
      if (!right)
        throw InputError(path, 0,
                         fmt::format("has other weights than {} ({}): no mean can be taken", files[0], name));
    };
    must_fit(sum.empty() || sum.size() == state.size(), "another number of them");
    if (sum.empty())
      for (const auto& [name, tensor] : state)
        sum.emplace_back(name, gradus::Tensor::zeros(tensor.shape(), gradus::DType::f64));
    for (const auto& own : state) {  // in any order: 8-bit files have another
      const auto is_its = [&](const auto& of) { return of.first == own.first; };
      const auto at = std::find_if(sum.begin(), sum.end(), is_its);
      must_fit(at != sum.end() && at->second.shape() == own.second.shape(), own.first);
      const gradus::Tensor value = own.second.to(gradus::DType::f64);
      double* to = at->second.f64();
      for (int64_t k = 0; k < value.numel(); ++k) to[k] += value.f64()[k] / static_cast<double>(files.size());
    }
  }
  return sum;
}

gradus::nn::StateDict Checkpoints::mean() const {
  std::vector<std::string> files;
  for (const Checkpoint& c : best_) files.push_back(weights(c.step));
  return mean_of_weights(files);
}

}  // namespace translator
