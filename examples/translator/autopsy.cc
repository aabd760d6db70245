#include <translator/autopsy.h>

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include <gradus/error.h>
#include <gradus/io/safetensors.h>
#include <gradus/parallel.h>
#include <translator/text/error.h>

#include "json_text.h"

namespace translator {

namespace fs = std::filesystem;
namespace nn = gradus::nn;

namespace {

// Column b of time-major ids without what pads it.
std::string words(const Vocabulary& vocabulary, const gradus::Tensor& ids, int64_t b) {
  std::vector<int32_t> own;
  for (int64_t t = 0; t < ids.size(0); ++t) {
    int32_t id = ids.i32()[t * ids.size(1) + b];
    if (id != nn::kPad && id != nn::kBos && id != nn::kEos) own.push_back(id);
  }
  std::string text;
  for (const std::string& word : vocabulary.decode(own)) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::string> sentences(const Model& model, const nn::Seq2SeqBatch& part) {
  std::vector<std::string> out;
  for (int64_t b = 0; b < part.source.size(1); ++b)
    out.push_back(words(model.source, part.source, b) + "  ->  " + words(model.target, part.target_out, b));
  return out;
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw InputError(path.string(), 0, "cannot be written");
}

std::string read(const fs::path& path) {
  std::ifstream file(path);
  if (!file) throw InputError(path.string(), 0, "cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A part's share of the target words.
double share(const StepBatch& batch, int part) {
  int64_t tokens = 0;
  for (const nn::Seq2SeqBatch& p : batch.parts) tokens += p.target_tokens;
  return static_cast<double>(batch.parts[static_cast<size_t>(part)].target_tokens) /
         static_cast<double>(tokens);
}

}  // namespace

nn::OutputGradients differentiate(const Model& model, const StepBatch& batch, gradus::ThreadPool& pool) {
  gradus::Training training(batch.training_seed);
  nn::OutputLayer layer = model.network->output_layer();
  layer.options.label_smoothing = batch.label_smoothing;
  return nn::parallel_output_gradients(
      pool, static_cast<int>(batch.parts.size()),
      [&](int k) {
        return model.network->before_output(batch.parts[static_cast<size_t>(k)], batch.label_smoothing,
                                            share(batch, k), batch.baseline);
      },
      layer);
}

std::string Autopsy::text(size_t sentences_shown) const {
  if (finding.empty()) return "every number is finite\n";
  std::string out = finding + "\n";
  if (sentences.empty()) return out;
  out += fmt::format("while it worked on {} sentence pair{}:\n", sentences.size(),
                     sentences.size() == 1 ? "" : "s");
  for (size_t i = 0; i < sentences.size() && i < sentences_shown; ++i) out += "  " + sentences[i] + "\n";
  if (sentences.size() > sentences_shown)
    out += fmt::format("  and {} more\n", sentences.size() - sentences_shown);
  return out;
}

// One thread takes the parts in their order, with the seeds that they had: what happens is the same every time. Each
// part goes through an output layer of its own, so that what happens there, too, happens in one part.
Autopsy examine(const Model& model, const StepBatch& batch) {
  gradus::ThreadPool one(1);
  gradus::CheckFinite checking;
  gradus::Training training(batch.training_seed);
  size_t current = 0;
  try {
    nn::parallel_gradients(one, static_cast<int>(batch.parts.size()), [&](int k) {
      current = static_cast<size_t>(k);
      return model.network->loss(batch.parts[current], batch.label_smoothing, share(batch, k), batch.baseline)
          .loss;
    });
  } catch (const gradus::NotFinite& e) {
    return {e.what(), sentences(model, batch.parts[current])};
  }
  return {};
}

void save_bundle(const std::string& directory, const Model& model, const StepBatch& batch,
                 const Autopsy& autopsy) {
  model.save_description(directory);
  model.save_weights(directory, {{"step", std::to_string(batch.step)}});
  gradus::SafetensorsFile file;
  for (size_t k = 0; k < batch.parts.size(); ++k) {
    const nn::Seq2SeqBatch& part = batch.parts[k];
    for (const auto& [name, tensor] : {std::pair{"source", part.source},
                                       {"source_lengths", part.source_lengths},
                                       {"target_in", part.target_in},
                                       {"target_out", part.target_out}})
      file.tensors.emplace_back(fmt::format("{}.{}", k, name), tensor);
    if (part.alignment.defined()) file.tensors.emplace_back(fmt::format("{}.alignment", k), part.alignment);
  }
  save_safetensors((fs::path(directory) / "batch.safetensors").string(), file);
  nlohmann::ordered_json step = {{"step", batch.step},
                                 {"parts", batch.parts.size()},
                                 {"label_smoothing", batch.label_smoothing},
                                 {"training_seed", batch.training_seed},
                                 {"baseline", batch.baseline}};
  for (const nn::Seq2SeqBatch& part : batch.parts) step["target_tokens"].push_back(part.target_tokens);
  write(fs::path(directory) / "step.json", json_text::dump(step, 2) + "\n");
  write(fs::path(directory) / "report.txt", autopsy.text(autopsy.sentences.size()));
}

Replay replay(const std::string& directory) {
  fs::path from = directory;
  if (!fs::exists(from / "step.json"))
    throw InputError(directory, 0, "is not what a stopped training left: it has no step.json");
  Replay out;
  StepBatch batch;
  Model model = Model::load(directory);
  gradus::SafetensorsFile file = gradus::load_safetensors((from / "batch.safetensors").string());
  auto tensor = [&](const std::string& name) {
    for (const auto& [key, value] : file.tensors)
      if (key == name) return value;
    if (name.ends_with(".alignment")) return gradus::Tensor();
    throw InputError((from / "batch.safetensors").string(), 0, "has no " + name);
  };
  try {
    nlohmann::ordered_json step = json_text::parse(read(from / "step.json"));
    out.step = batch.step = step.at("step");
    batch.label_smoothing = step.at("label_smoothing");
    batch.training_seed = step.at("training_seed");
    batch.baseline = step.at("baseline");
    for (size_t k = 0; k < step.at("parts").get<size_t>(); ++k) {
      auto part = [&](const char* name) { return tensor(fmt::format("{}.{}", k, name)); };
      batch.parts.push_back({part("source"), part("source_lengths"), part("target_in"), part("target_out"),
                             step.at("target_tokens").at(k).get<int64_t>(), part("alignment")});
    }
  } catch (const nlohmann::ordered_json::exception& e) {
    throw InputError((from / "step.json").string(), 0, fmt::format("is damaged: {}", e.what()));
  }
  out.saved_text = read(from / "report.txt");
  out.autopsy = examine(model, batch);
  return out;
}

}  // namespace translator
