#include "../read.h"
#include "../scratch.h"
#include "small.h"

#include <filesystem>
#include <sstream>

#include <translator/model/data.h>

#include <common/json_text.h>

namespace runs {

namespace fs = std::filesystem;
using translator::Model;
using translator::SentencePair;

namespace {

translator::Vocabulary words(const std::vector<SentencePair>& pairs,
                             std::vector<std::string> SentencePair::* side) {
  translator::TokenCounts counts;
  for (const SentencePair& p : pairs) counts.add(p.*side);
  return translator::Vocabulary::build(counts, {.min_count = 1, .max_size = 1000});
}

}  // namespace

Model small_model(const std::vector<SentencePair>& pairs, const std::string& attention,
                  const std::string& kind) {
  translator::ModelConfig config;
  config.model = kind;
  config.network.hidden_size = config.network.embedding_dim = config.transformer.d_model = 16;
  config.transformer.num_heads = 2;
  config.transformer.num_layers = 1;
  config.network.attention = attention;
  config.french = true;
  return Model(config, words(pairs, &SentencePair::source), words(pairs, &SentencePair::target), 7);
}

std::vector<SentencePair> pairs(const std::string& split, int64_t count) {
  return translator::embedded_pairs(split, count, {.max_length = 9});
}

std::string directory(const std::string& name) {
  static scratch::Directory directory;  // removed when the tests are over
  fs::path path = directory.path() / name;
  fs::remove_all(path);
  fs::create_directories(path);
  return path.string();
}

translator::TrainOptions options(const std::string& out, int64_t epochs) {
  translator::TrainOptions o;
  o.epochs = epochs;
  o.lr = 0.01;
  o.batch_size = 32;
  o.out = out;
  o.quiet = true;
  return o;
}

std::string train(const std::string& name, int64_t epochs, const std::string& attention) {
  std::string out = directory(name);
  std::vector<SentencePair> data = pairs("train", 600), valid = pairs("valid", 60);
  Model model = small_model(data, attention);
  model.save_description(out);
  translator::Trainer trainer(model, data, valid, options(out, epochs));
  trainer.set_probes({valid[0], valid[1]});
  trainer.save_start(out);
  std::atomic<bool> stop{false};
  REQUIRE(trainer.run(stop));
  return out;
}

std::string read(const std::string& path) { return read_whole(path); }

std::vector<nlohmann::ordered_json> log(const std::string& directory, const std::string& event) {
  std::istringstream in(read(directory + "/train.log"));
  std::vector<nlohmann::ordered_json> out;
  for (std::string line; std::getline(in, line);) {
    auto one = json_text::parse(line);
    if (event.empty() || one.at("event") == event) out.push_back(one);
  }
  return out;
}

}  // namespace runs
