#include <translator/inference/ensemble.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include <common/error.h>
#include <fmt/core.h>
#include <translator/inference/evaluation.h>
#include <translator/model/files.h>

namespace translator {
namespace {

namespace nn = gradus::nn;

struct Listed {
  std::string directory;
  double weight = 1;
};

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

Listed listed(const std::string& item) {
  const size_t equals = item.rfind('=');
  if (is_directory(item) || equals == item.npos) return {item};
  Listed out{item.substr(0, equals)};
  const char *begin = item.data() + equals + 1, *all = item.data() + item.size();
  const auto [end, error] = std::from_chars(begin, all, out.weight);
  if (error != std::errc() || end != all || !(out.weight >= 0.001 && out.weight <= 1000))
    throw InputError(item, 0, "behind = must stand from 0.001 to 1000, the weight of the model");
  return out;
}

std::vector<Listed> list_of(const std::string& text) {
  std::vector<Listed> out;
  auto add = [&out](const Listed& item) {
    const auto members = members_in(item.directory);
    if (members.empty()) out.push_back(item);
    for (const std::string& member : members) out.push_back({member, item.weight});
  };
  if (is_directory(text)) return add({text}), out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    if (end == at && !text.empty())
      throw InputError(text, 0, "has no model directory between two commas, or at an end");
    add(listed(text.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

std::string difference(const char* side, const Vocabulary& a, const Vocabulary& b) {
  const int64_t n = std::min(a.size(), b.size());
  for (int32_t i = 0; i < n; ++i)
    if (a.token(i) != b.token(i))
      return fmt::format("token {} of the {} vocabularies is \"{}\" and \"{}\"", i, side, a.token(i),
                         b.token(i));
  return a.size() == b.size()
             ? ""
             : fmt::format("the {} vocabularies have {} and {} tokens", side, a.size(), b.size());
}

std::string difference(const char* side, const Segmenter& a, const Segmenter& b) {
  auto bytes = [](const Segmenter& s) { return s.subwords() ? s.subwords()->bytes() : ""; };
  return bytes(a) == bytes(b) ? "" : fmt::format("they split {} words into pieces in different ways", side);
}

}  // namespace

std::vector<std::string> members_in(const std::string& directory) {
  auto has = [&](const char* file) {
    std::error_code ignored;
    return std::filesystem::exists(in(directory, file), ignored);
  };
  std::vector<std::string> out;
  if (has("config.json") || !has("1/config.json")) return out;  // others may have directories with numbers, too
  for (;;) {
    std::string next = in(directory, fmt::format("{}", out.size() + 1));
    if (!is_directory(next)) {
      const std::string after = fmt::format("{}/config.json", out.size() + 2);
      if (has(after.c_str()))
        throw InputError(next, 0, "is missing, and " + in(directory, after) + " is there");
      return out;
    }
    out.push_back(std::move(next));
  }
}

std::string difference_in_text(const Model& a, const Model& b) {
  const ModelConfig &x = a.config, &y = b.config;
  if (x.subwords != y.subwords) return fmt::format("--subwords is {} and {}", x.subwords, y.subwords);
  if (x.letter_case != y.letter_case) return fmt::format("--case is {} and {}", x.letter_case, y.letter_case);
  if (x.source_folded != y.source_folded || x.target_folded != y.target_folded || x.french != y.french)
    return "they deal in different ways with capitals or French spaces";
  for (const std::string& d :
       {difference("source", a.source, b.source), difference("target", a.target, b.target),
        difference("source", a.reads, b.reads), difference("target", a.writes, b.writes)})
    if (!d.empty()) return d;
  return "";
}

std::vector<std::string> model_directories(const std::string& text) {
  std::vector<std::string> out;
  for (const Listed& item : list_of(text)) out.push_back(item.directory);
  return out;
}

Ensemble::Ensemble(const std::string& models, nn::EnsembleSpace space, bool int8) : space_(space) {
  for (const Listed& each : list_of(models)) {
    Model model = Model::load(each.directory);
    if (int8) model.round_to_int8();
    if (!models_.empty())
      if (const std::string d = difference_in_text(models_[0], model); !d.empty())
        throw InputError(
            each.directory, 0,
            fmt::format("cannot go with the models before it: {}. Train it with --from, or with the "
                        "same pairs, --subwords, --subword-size and --case",
                        d));
    const int64_t own = model.most_positions(), first = models_.empty() ? 0 : models_[0].most_positions();
    const bool fewest = own > 0 && (first == 0 || own < first);
    models_.insert(fewest ? models_.begin() : models_.end(), std::move(model));
    weights_.insert(fewest ? weights_.begin() : weights_.end(), each.weight);
  }
}

void Ensemble::use_shortlist(double least_mass) {
  Model& model = models_[0];
  if (models_.size() > 1)
    throw InputError("--shortlist", 0, "is for one model: several have no one output layer");
  if (!model.shortlist)
    throw InputError(
        "--shortlist", 0,
        "this model's directory has no shortlist.safetensors: train with --shortlist, and it will");
  model.least_mass = least_mass;
}

std::unique_ptr<nn::Generator> Ensemble::generator() const {
  std::vector<nn::EnsembleMember> members;
  for (size_t i = 0; i < models_.size(); ++i) members.push_back({models_[i].generator(), weights_[i]});
  return nn::ensemble_of(std::move(members), space_);
}

std::vector<std::vector<double>> Ensemble::token_losses(const std::vector<EncodedPair>& pairs,
                                                        const Work& work) const {
  double all = 0;
  for (double w : weights_) all += w;
  std::vector<std::vector<double>> p;
  for (size_t m = 0; m < models_.size(); ++m) {
    const auto own = translator::token_losses(models_[m], pairs, work);
    p.resize(own.size());
    for (size_t i = 0; i < own.size(); ++i) {
      p[i].resize(own[i].size());
      for (size_t t = 0; t < own[i].size(); ++t) p[i][t] += weights_[m] / all * std::exp(-own[i][t]);
    }
  }
  for (auto& pair : p)
    for (double& each : pair) each = -std::log(each);
  return p;
}

}  // namespace translator
