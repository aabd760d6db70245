#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include <common/error.h>
#include <common/json_text.h>
#include <common/tell.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <translator/commands/commands.h>
#include <translator/inference/ensemble.h>
#include <translator/model/files.h>
#include <translator/training/checkpoints.h>

namespace translator {
namespace {

// What makes another function of the same weights; empty: nothing. Dropout is of training.
std::string difference_in_network(ModelConfig a, ModelConfig b) {
  if (a.model != b.model) return fmt::format("a {} is no {}", b.model, a.model);
  const Fields ours = network_fields(a, a.model), theirs = network_fields(b, b.model);
  for (size_t i = 0; i < ours.size(); ++i) {
    const std::string name = ours[i].name;
    if (name.find("dropout") == name.npos && ours[i].text() != theirs[i].text())
      return fmt::format("{} is {}, not {}", name, theirs[i].text(), ours[i].text());
  }
  return "";
}

// The seed that a run drew its first weights with; nothing for one that began with a trained model's, and where
// no run is written down, as in DIR/kept.
std::optional<uint64_t> first_seed(const std::string& directory) {
  std::ifstream file(in(directory, "training.json"));
  const auto run = json_text::parse_or_discarded(file);
  const bool fresh = run.is_object() && run.contains("from") && run["from"] == "";
  if (!fresh || !run.contains("seed") || !run["seed"].is_number_unsigned()) return {};
  return run["seed"].get<uint64_t>();
}

}  // namespace

int run(AverageCommand& o) {
  DirectoryLock lock;
  lock.take(o.out);
  Model::finish_replacing(o.out);
  const std::string there = in(o.out, "model.safetensors");
  std::error_code ignored;
  if (!o.force && std::filesystem::exists(there, ignored))
    throw InputError(o.out, 0, "holds a model already: --force replaces it, --out names another place");
  must_not_replace(o.out, o.models);
  std::optional<Model> mean;
  std::vector<std::string> weights;
  for (const std::string& directory : o.models) {
    Model model = Model::load(directory);
    weights.push_back(in(directory, "model.safetensors"));
    if (!mean) {
      mean.emplace(std::move(model));
    } else if (const std::string d = difference_in_text(*mean, model); !d.empty()) {
      throw InputError(directory, 0, fmt::format("cannot be averaged with {}: {}", o.models[0], d));
    } else if (const std::string n = difference_in_network(mean->config, model.config); !n.empty()) {
      throw InputError(directory, 0, fmt::format("cannot be averaged with {}: {}", o.models[0], n));
    }
  }
  std::set<uint64_t> seeds;
  for (const std::string& directory : o.models)
    if (auto seed = first_seed(directory)) seeds.insert(*seed);
  if (seeds.size() > 1)
    tell("translator: these are of runs with different seeds, {}, and the mean of weights that began apart "
         "translates badly: translate {} takes them as one instead\n",
         fmt::join(seeds, ", "), fmt::join(o.models, ","));
  gradus::nn::load_state_dict(*mean->network, mean_of_weights(weights));
  Model::replace(o.out, [&](const std::string& where) {
    mean->save_description(where);
    mean->save_weights(where, {{"mean_of", fmt::format("{}", fmt::join(o.models, " "))}});
  });
  return 0;
}

}  // namespace translator
