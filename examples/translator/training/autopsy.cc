#include <translator/training/autopsy.h>

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include <gradus/error.h>
#include <gradus/io/safetensors.h>
#include <gradus/parallel.h>
#include <translator/model/fields_json.h>
#include <translator/model/files.h>
#include <translator/text/tokenizer.h>
#include <common/error.h>
#include <common/json_text.h>

namespace translator {

namespace {

namespace nn = gradus::nn;

// The words of column b of time-major ids, without what pads it.
std::string words(const Segmenter& side, const Vocabulary& vocabulary, const gradus::Tensor& ids, int64_t b) {
  std::vector<int32_t> own;
  for (int64_t t = 0; t < ids.size(0); ++t) {
    int32_t id = ids.i32()[t * ids.size(1) + b];
    if (id != nn::kPad && id != nn::kBos && id != nn::kEos) own.push_back(id);
  }
  return join_tokens(side.words_of(vocabulary.decode(own)).words);
}

std::vector<std::string> sentences(const Model& model, const nn::Seq2SeqBatch& part) {
  std::vector<std::string> out;
  for (int64_t b = 0; b < part.source.size(1); ++b)
    out.push_back(words(model.reads, model.source, part.source, b) + "  ->  " +
                  words(model.writes, model.target, part.target_out, b));
  return out;
}

// What the network itself does not look at: that the tensors of a part are of one batch. Words that are none it
// refuses.
void must_be_a_batch(const std::string& path, int64_t k, const nn::Seq2SeqBatch& b) {
  using gradus::Shape;
  auto must_be = [&](const char* name, const gradus::Tensor& t, gradus::DType type, bool shaped) {
    if (t.dtype() != type || !shaped || t.numel() == 0)
      throw InputError(path, 0,
                       fmt::format("\"{}.{}\" is not of one batch with the others: {} {}", k, name,
                                   gradus::name_of(t.dtype()), t.shape().str()));
  };
  const gradus::DType ids = gradus::DType::i32;
  must_be("source", b.source, ids, b.source.dims() == 2);
  int64_t B = b.source.size(1);
  must_be("source_lengths", b.source_lengths, ids, b.source_lengths.shape() == Shape{B});
  must_be("target_in", b.target_in, ids, b.target_in.dims() == 2 && b.target_in.size(1) == B);
  must_be("target_out", b.target_out, ids, b.target_out.shape() == b.target_in.shape());
  if (b.alignment.defined())
    must_be("alignment", b.alignment, gradus::DType::f32,
            b.alignment.shape() == Shape{b.target_in.size(0), B, b.source.size(0)});
  int64_t words = b.target_out.numel() -
                  std::count(b.target_out.i32(), b.target_out.i32() + b.target_out.numel(), nn::kPad);
  if (words != b.target_tokens || words == 0)
    throw InputError(
        path, 0, fmt::format("\"{}.target_out\" has {} words, step.json says {}", k, words, b.target_tokens));
}

}  // namespace

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

// One thread takes the parts in their order, with the seeds that they had: what happens is the same every time.
// Each part goes through an output layer of its own, so that what happens there, too, happens in one part.
Autopsy examine(const Model& model, const StepBatch& batch) {
  gradus::ThreadPool one(1);
  gradus::CheckFinite checking;
  ProductsOf products(batch.bf16);
  gradus::Training training(batch.training_seed, batch.dropout_share);
  size_t current = 0;
  try {
    nn::parallel_gradients(one, static_cast<int>(batch.parts.size()), [&](int k) {
      current = static_cast<size_t>(k);
      return model.network->loss(batch.parts[current], batch.loss_of(current)).loss;
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
  save_safetensors(in(directory, "batch.safetensors"), file);
  nlohmann::ordered_json step = {{"step", batch.step},
                                 {"parts", batch.parts.size()},
                                 {"label_smoothing", batch.loss.label_smoothing},
                                 {"training_seed", batch.training_seed},
                                 {"dropout_share", batch.dropout_share},
                                 {"bf16", batch.bf16},
                                 {"baseline", batch.loss.baseline},
                                 {"guided_alignment", batch.loss.guided_alignment}};
  for (const nn::Seq2SeqBatch& part : batch.parts) step["target_tokens"].push_back(part.target_tokens);
  write_file(in(directory, "step.json"), json_text::dump(step, 2) + "\n");
  write_file(in(directory, "report.txt"), autopsy.text(autopsy.sentences.size()));
}

Replay replay(const std::string& directory) {
  const std::string facts = in(directory, "step.json"), batches = in(directory, "batch.safetensors");
  if (!std::filesystem::exists(facts))
    throw InputError(directory, 0, "is not what a stopped training left: it has no step.json");
  Replay out;
  StepBatch batch;
  Model model = Model::load(directory, true);
  gradus::SafetensorsFile file = gradus::load_safetensors(batches);
  auto tensor = [&](const std::string& name) {
    for (const auto& [key, value] : file.tensors)
      if (key == name) return value;
    if (name.ends_with(".alignment")) return gradus::Tensor();
    throw InputError(batches, 0, "has no " + name);
  };
  try {
    nlohmann::ordered_json step = json_text::parse(read_file(facts));
    constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
    constexpr double kLargest = std::numeric_limits<double>::max();
    int64_t parts = 0;
    read_fields(step, {facts, "is damaged", "is damaged"}, "",
                {{"", Whole{&batch.step, 0, kAny}, "", "step", kRequired},
                 {"", Whole{&parts, 1, kAny}, "", "parts", kRequired},
                 {"", Number{&batch.loss.label_smoothing, 0, 0.9}, "", "label_smoothing", kRequired},
                 {"", Seed{&batch.training_seed}, "", "training_seed", kRequired},
                 {"", Number{&batch.dropout_share, 0, 1}, "", "dropout_share"},
                 {"", Switch{&batch.bf16}, "", "bf16"},
                 {"", Number{&batch.loss.baseline, -kLargest, kLargest}, "", "baseline", kRequired},
                 {"", Number{&batch.loss.guided_alignment, 0, 1000}, "", "guided_alignment"}});
    out.step = batch.step;
    for (int64_t k = 0; k < parts; ++k) {
      auto part = [&](const char* name) { return tensor(fmt::format("{}.{}", k, name)); };
      batch.parts.push_back({part("source"), part("source_lengths"), part("target_in"), part("target_out"),
                             step.at("target_tokens").at(static_cast<size_t>(k)), part("alignment")});
      must_be_a_batch(batches, k, batch.parts.back());
    }
  } catch (const nlohmann::ordered_json::exception& e) {
    throw InputError(facts, 0, fmt::format("is damaged: {}", e.what()));
  }
  out.saved_text = read_file(in(directory, "report.txt"));
  out.autopsy = examine(model, batch);
  return out;
}

}  // namespace translator
