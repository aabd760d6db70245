#include <translator/model/model.h>

#include <gradus/io/safetensors.h>

#include <filesystem>
#include <tuple>

#include <fmt/core.h>

#include <gradus/error.h>
#include <translator/model/files.h>
#include <translator/model/forecast.h>
#include <translator/model/int8_state.h>
#include <translator/model/shortlist.h>
#include <common/error.h>

namespace translator {
namespace {

namespace fs = std::filesystem;
namespace nn = gradus::nn;

// Within a model directory: a new model while it is made, and when it is whole.
constexpr const char *kNew = "new", *kReady = "ready";
constexpr const char* kShortlist = "shortlist.safetensors";

// The vocabularies' sizes go into the description of whichever network it is.
ModelConfig sized(ModelConfig config, const Vocabulary& source, const Vocabulary& target) {
  config.network.source_vocabulary = config.transformer.source_vocabulary = source.size();
  config.network.target_vocabulary = config.transformer.target_vocabulary = target.size();
  return config;
}

std::unique_ptr<nn::TranslationModel> fresh(const ModelConfig& config, uint64_t seed) {
  if (config.model != "transformer" && config.model != "gru")
    gradus::fail("translator", "unknown model \"" + config.model + "\": gru or transformer");
  if (std::string why = why_too_large(config); !why.empty()) gradus::fail("translator", why);
  gradus::Rng rng(seed);
  if (config.model == "transformer") return std::make_unique<nn::TransformerSeq2Seq>(config.transformer, rng);
  nn::Seq2SeqConfig network = config.network;
  network.embedding_deviation = 0.3;  // docs/defaults.md says why
  return std::make_unique<nn::Seq2Seq>(network, rng);
}

// Where a file of the model is to be read. A new model that a crash kept from its place counts already.
std::string found_in(const std::string& directory, const char* file) {
  fs::path ready = fs::path(directory) / kReady / file;
  std::error_code ignored;
  return fs::exists(ready, ignored) ? ready.string() : in(directory, file);
}

// Where the pieces of a side are.
std::string pieces_file(const ModelConfig& config, const char* side) {
  return (config.subword_model == "joint" ? "pieces" : std::string(side)) + ".model";
}

TextModels text_models(const std::string& directory, const ModelConfig& config) {
  TextModels out;
  if (config.subwords != "none") {
    auto load = [&](const char* side) {
      return std::make_shared<const Subwords>(
          Subwords::load(found_in(directory, pieces_file(config, side).c_str())));
    };
    out.source = load("source");
    out.target = config.subword_model == "joint" ? out.source : load("target");
  }
  if (config.letter_case == "first") {
    auto load = [&](const char* file) {
      return std::make_shared<const Truecaser>(Truecaser::load(found_in(directory, file)));
    };
    if (config.source_folded) out.source_case = load("source.truecase");
    if (config.target_folded) out.target_case = load("target.truecase");
  }
  return out;
}

SegmenterOptions target_text(const ModelConfig& config) {
  return {.letter_case = config.letter_case,
          .typography = config.french ? Typography::french : Typography::other,
          .marks = true};
}

// The model of a directory but for its weights, which are to come from the file `weights`, if it is there.
Model described(const std::string& directory, const std::string& weights) {
  std::error_code none;
  if (!fs::is_directory(directory, none))
    throw InputError(directory, 0, "no such model directory (made by `translator train --out`)");
  const std::string path = found_in(directory, "config.json");
  const ModelConfig config = read_config(path);
  const bool transformer = config.model == "transformer";
  auto words = [&](const char* file, int64_t in_transformer, int64_t in_recurrent) {
    const std::string name = found_in(directory, file);
    Vocabulary found = Vocabulary::load(name);
    if (const int64_t said = transformer ? in_transformer : in_recurrent; found.size() != said)
      throw InputError(name, 0, fmt::format("has {} entries, config.json says {}", found.size(), said));
    return found;
  };
  const TextModels text = text_models(directory, config);
  Vocabulary source =
      words("source.vocab", config.transformer.source_vocabulary, config.network.source_vocabulary);
  Vocabulary target =
      words("target.vocab", config.transformer.target_vocabulary, config.network.target_vocabulary);
  for (const auto& [side, entries, pieces, said] :
       {std::tuple("source", &source, &text.source, &config.source_pieces),
        std::tuple("target", &target, &text.target, &config.target_pieces)}) {
    if (!*pieces) continue;
    const std::string file = found_in(directory, pieces_file(config, side).c_str());
    if (!entries->is_with_tags((*pieces)->vocabulary()))
      throw InputError(file, 0,
                       fmt::format("has other pieces than {}.vocab: they do not belong together", side));
    if (const std::string sum = (*pieces)->checksum(); !said->empty() && *said != sum)
      throw InputError(file, 0,
                       fmt::format("is not the file that the model was trained with: damaged, or of another "
                                   "model (its checksum is {}, config.json says {})",
                                   sum, *said));
  }
  auto fault = [&](const std::string& what) {
    return InputError(path, 0, "describes no network that can be built: " + what);
  };
  try {
    // A network is made only for weights that may be its own: each takes a byte at the least, two as F16.
    std::error_code error;  // whoever reads the weights says it
    const uintmax_t bytes = fs::file_size(weights, error);
    const double parameters = error ? 0 : foretold_parameters(config);
    if (!error && parameters > static_cast<double>(bytes) + 1000)
      throw InputError(
          path, 0,
          fmt::format("describes a network of about {:.2g} parameters, but {} has {} bytes: they "
                      "do not belong together",
                      parameters, weights, bytes));
    return Model(config, std::move(source), std::move(target), 0, text);
  } catch (const gradus::Error& e) {  // an unknown attention, a size that does not fit
    throw fault(e.message());
  } catch (const std::bad_alloc&) {
    throw fault("out of memory");
  }
}

Model with_shortlist(Model model, const std::string& directory) {
  if (const std::string path = found_in(directory, kShortlist); fs::exists(path))
    model.shortlist =
        std::make_shared<const Shortlist>(Shortlist::load(path, model.source.size(), model.target.size()));
  return model;
}

// What a search keeps of a sentence grows with the square of its tokens: 200 MB for so many.
constexpr int64_t kMostTokens = 5000;

}  // namespace

Model::Model(ModelConfig c, Vocabulary s, Vocabulary t, uint64_t seed, TextModels text)
    : config(sized(std::move(c), s, t)),
      source(std::move(s)),
      target(std::move(t)),
      reads({.letter_case = config.letter_case}, std::move(text.source), std::move(text.source_case)),
      writes(target_text(config), std::move(text.target), std::move(text.target_case)),
      network(fresh(config, seed)) {
  if (reads.subwords()) config.source_pieces = reads.subwords()->checksum();
  if (writes.subwords()) config.target_pieces = writes.subwords()->checksum();
}

// A model holds whichever network its description names; this is the one place that tells them apart.
const nn::Seq2Seq* Model::recurrent() const { return dynamic_cast<const nn::Seq2Seq*>(network.get()); }
const nn::TransformerSeq2Seq* Model::transformer() const {
  return dynamic_cast<const nn::TransformerSeq2Seq*>(network.get());
}

bool Model::takes_alignments() const { return recurrent() && config.network.attention == "oracle"; }

int64_t Model::most_positions() const {
  return !recurrent() && config.transformer.positions == "learned" ? config.transformer.max_positions : 0;
}

std::string Model::length_fault(size_t tokens) const {
  int64_t n = static_cast<int64_t>(tokens), positions = most_positions();
  const char* what = config.tokens();
  if (positions > 0 && n >= positions)
    return fmt::format("has {} {}, but this model has learned {} positions: {} {} and </s>", n, what,
                       positions, positions - 1, what);
  return n > kMostTokens ? fmt::format("has {} {}; {} at most are taken", n, what, kMostTokens) : "";
}

std::string Model::length_fault(const Segmenter& side, const std::string& text) const {
  const int64_t positions = most_positions(), bytes = static_cast<int64_t>(text.size());
  if (bytes <= kMostTokens && (positions == 0 || bytes < positions))
    return "";  // a token has a byte at the least
  return length_fault(side.split(text).pieces.size());
}

Model Model::load_description(const std::string& directory) {
  return with_shortlist(described(directory, ""), directory);
}

Model Model::load(const std::string& directory, bool any_numbers) {
  std::string weights = found_in(directory, "model.safetensors");
  Model model = with_shortlist(described(directory, weights), directory);
  const gradus::SafetensorsFile file = gradus::load_safetensors(weights);
  const auto said = file.metadata.find("weights");
  model.int8 = said != file.metadata.end() && said->second == "int8";
  if (!model.int8) {
    nn::load(*model.network, weights);
  } else {
    try {
      nn::load_state_dict(*model.network, widened(file.tensors));
    } catch (const gradus::Error& e) {
      throw InputError(weights, 0, e.message());
    }
  }
  if (any_numbers) return model;
  for (const auto& [name, tensor] : nn::state_dict(*model.network))
    if (!gradus::all_finite(tensor))
      throw InputError(weights, 0,
                       fmt::format("{} holds a NaN or an infinity: what trained it diverged (a lower --lr may "
                                   "help), or the file is damaged",
                                   name));
  return model;
}

void Model::round_to_int8() {
  translator::round_to_int8(*network);
  int8 = true;
}

void Model::extend(ModelConfig c, Vocabulary s, Vocabulary t, uint64_t seed) {
  const nn::StateDict before = nn::state_dict(*network);
  c.source_pieces = config.source_pieces, c.target_pieces = config.target_pieces;
  config = sized(std::move(c), s, t);
  source = std::move(s);
  target = std::move(t);
  network = fresh(config, seed);
  shortlist = nullptr;  // of the words before
  nn::StateDict now;
  for (size_t i = 0; auto& [name, tensor] : nn::state_dict(*network)) {
    const gradus::Tensor& old = before.at(i++).second;
    if (old.shape() == tensor.shape()) {
      now.emplace_back(name, old);
    } else {
      now.emplace_back(name, tensor.clone());
      now.back().second.rows(0, old.size(0)).copy_from(old);
    }
  }
  nn::load_state_dict(*network, now);
}

void Model::save_description(const std::string& directory) const {
  make_directory(directory);
  write_file(in(directory, "source.vocab"), source.text());
  write_file(in(directory, "target.vocab"), target.text());
  for (const auto& [side, text] : {std::pair("source", &reads), std::pair("target", &writes)}) {
    if (text->subwords())
      write_file(in(directory, pieces_file(config, side).c_str()), text->subwords()->bytes());
    if (text->truecaser())
      write_file(in(directory, (std::string(side) + ".truecase").c_str()), text->truecaser()->text());
  }
  if (shortlist) shortlist->save(in(directory, kShortlist));
  write_file(in(directory, "config.json"), to_json(config) + "\n");
}

void Model::replace(const std::string& directory, const std::function<void(const std::string& where)>& save) {
  make_directory(directory);
  std::string made = in(directory, kNew), ready = in(directory, kReady);
  std::error_code error;
  fs::remove_all(made, error);  // of an attempt that ended early
  try {
    save(made);
  } catch (...) {
    fs::remove_all(made, error);
    throw;
  }
  fs::rename(made, ready, error);
  if (error) throw InputError(ready, 0, "cannot be replaced: " + error.message());
  finish_replacing(directory);
}

void Model::finish_replacing(const std::string& directory) {
  std::error_code error;
  fs::path ready = fs::path(directory) / kReady;
  if (!fs::is_directory(ready, error)) return;
  auto done = [&] {
    if (error) throw InputError(ready.string(), 0, "cannot be replaced: " + error.message());
  };
  auto move = [&](const std::string& name) {
    fs::rename(ready / name, fs::path(directory) / name, error);
    done();
  };
  // This one first: as long as it waits nothing was moved, and what the new model has not is of the one before.
  constexpr const char* kFirst = "config.json";
  if (fs::exists(ready / kFirst, error)) {
    for (const char* name : {"train.log", "kept", kShortlist, "last.safetensors", "training.json"})
      if (!fs::exists(ready / name, error)) fs::remove_all(fs::path(directory) / name, error);
    done();
    move(kFirst);
  }
  for (const std::string& name : names_in(ready.string())) move(name);
  fs::remove(ready, error);
  done();
}

void Model::save_weights(const std::string& directory,
                         const std::map<std::string, std::string>& metadata) const {
  nn::save(*network, in(directory, "model.safetensors"), metadata);
}

}  // namespace translator
