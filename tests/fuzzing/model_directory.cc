// A model directory: a good one, of which the input gives some files anew, each behind a line "--- NAME".
// Without weights of its own ("--- model.safetensors") it gets fresh ones, so that networks of any shape
// are run: what is accepted translates.

#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include <gradus/error.h>
#include <gradus/nn/search.h>
#include <common/error.h>

#include "fuzz.h"
#include "small_model.h"
#include <translator/inference/translation.h>

using namespace fuzzing;
using translator::Model;
using translator::ModelConfig;

namespace {

const char* const kFiles[] = {"config.json", "source.vocab", "target.vocab", "model.safetensors"};

// The files of a good one.
const std::vector<std::string>& good_files(const std::string& kind) {
  static const auto of = [](const char* which) {
    std::string directory = scratch_directory() + "/good-" + which;
    Model model = small_model(which);
    model.save_description(directory);
    model.save_weights(directory);
    std::vector<std::string> out;
    for (const char* name : kFiles) out.push_back(read_file(directory + "/" + name));
    return out;
  };
  static const std::vector<std::string> gru = of("gru"), transformer = of("transformer");
  return kind == "transformer" ? transformer : gru;
}

// What is neither small nor impossible takes its time, which is no fault: such networks are left out.
bool quick(const ModelConfig& c) {
  const auto& n = c.network;
  const auto& t = c.transformer;
  auto one = [](double x, double most) { return std::abs(x) <= most || std::abs(x) > 0x1p21; };
  for (int64_t size :
       {n.embedding_dim, n.hidden_size, n.attention_size, t.d_model, t.num_heads, t.dim_feedforward,
        n.attention_options.heads, n.attention_options.filters, n.attention_options.filter_width})
    if (!one(static_cast<double>(size), 48)) return false;
  for (int64_t count : {n.rnn.num_layers, t.num_layers})
    if (!one(static_cast<double>(count), 4)) return false;
  for (int64_t count : {t.max_positions, n.attention_options.max_positions})
    if (!one(static_cast<double>(count), 10000)) return false;
  return true;
}

std::string config_with(const std::string& kind, const std::string& old, const std::string& now) {
  ModelConfig c = small_config(kind);
  c.network.source_vocabulary = c.transformer.source_vocabulary = 7;
  c.network.target_vocabulary = c.transformer.target_vocabulary = 7;
  std::string text = translator::to_json(c);
  size_t at = text.find(old);
  if (at != text.npos) text.replace(at, old.size(), now);
  return "--- config.json\n" + text + "\n";
}

std::vector<std::string> variants() {
  std::vector<std::string> out = {"", "transformer", "--- source.vocab\n<unk>\n<pad>\n<s>\n</s>\na\n",
                                  "--- model.safetensors\n"};
  auto gru = [&](const std::string& old, const std::string& now) {
    out.push_back(config_with("gru", old, now));
  };
  for (const char* attention :
       {"none", "dot", "general", "local-m", "local-p", "multihead", "hard", "location", "oracle"})
    gru("bahdanau", attention);
  for (const char* cell : {"lstm", "rnn", "gru-bahdanau"})
    gru("\"cell\": \"gru\"", "\"cell\": \"" + std::string(cell) + "\"");
  gru("\"hidden_size\": 4", "\"hidden_size\": 2305843009213693952");
  gru("\"hidden_size\": 4", "\"hidden_size\": -1");
  gru("\"num_layers\": 1", "\"num_layers\": 1000000000000000000");
  gru("\"temperature\": 1.0", "\"temperature\": 0");
  gru("\"top_k\": 0", "\"top_k\": -3");
  gru("\"dropout\": 0.0", "\"dropout\": 1e300");
  gru("\"layer_norm\": false", "\"layer_norm\": true");
  out.push_back(config_with("transformer", "sinusoidal", "learned"));
  out.push_back(config_with("transformer", "\"num_heads\": 2", "\"num_heads\": 0"));
  out.push_back(config_with("transformer", "\"max_positions\"", "\"max_positions\": 1, \"x\""));
  return out;
}

}  // namespace

FUZZ_TARGET(model_directory, (variants())) {
  auto given = sections(input);
  const std::vector<std::string>& files =
      good_files(given[0].second.starts_with("transformer") ? "transformer" : "gru");
  std::string directory = scratch_directory() + "/model";
  static const bool made = ::mkdir(directory.c_str(), 0700) == 0;
  must(made, "the directory of the model can be made");
  bool weights = false;
  for (size_t i = 0; i < std::size(kFiles); ++i) {
    auto at =
        std::find_if(given.begin() + 1, given.end(), [&](const auto& g) { return g.first == kFiles[i]; });
    write_file(directory + "/" + kFiles[i], at == given.end() ? files[i] : at->second);
    weights = weights || (at != given.end() && i == 3);
  }
  if (given.size() == 1) weights = true;
  return accepts<gradus::Error, translator::InputError>([&] {
    if (!quick(translator::read_config(directory + "/config.json"))) return;
    Model model = weights ? Model::load(directory) : Model::load_description(directory);
    translator::encode(few_pairs(), model);
    gradus::nn::SearchOptions search;
    search.beam_size = 2;
    search.max_length = 4;
    std::vector<translator::Segmented> sentences;
    for (const char* text : {"a b", "c", ""}) sentences.push_back(model.reads.split(text));
    auto translations = translator::translate(model, sentences, search);
    must(translations.size() == sentences.size(), "every sentence is translated");
    for (const auto& found : translations)
      for (const translator::Translation& t : found) {
        must(!std::isnan(t.log_probability), "a translation has a probability");
        model.writes.join(t.tokens);
      }
  });
}
