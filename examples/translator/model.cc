#include <translator/model.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include <gradus/error.h>
#include <gradus/parallel.h>
#include <translator/text/detokenizer.h>
#include <translator/text/error.h>

namespace translator {
namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;
namespace nn = gradus::nn;

nn::Seq2SeqConfig sized(nn::Seq2SeqConfig config, const Vocabulary& source, const Vocabulary& target) {
  config.source_vocabulary = source.size();
  config.target_vocabulary = target.size();
  return config;
}

nn::Seq2Seq fresh(const nn::Seq2SeqConfig& config, uint64_t seed) {
  gradus::Rng rng(seed);
  return nn::Seq2Seq(config, rng);
}

json to_json(const ModelConfig& c) {
  const nn::Seq2SeqConfig& n = c.network;
  return {{"format", "gradus-translator"},
          {"version", 1},
          {"source_language", c.source_language},
          {"target_language", c.target_language},
          {"lowercase", c.lowercase},
          {"french_typography", c.french},
          {"network",
           {{"source_vocabulary", n.source_vocabulary},
            {"target_vocabulary", n.target_vocabulary},
            {"embedding_dim", n.embedding_dim},
            {"hidden_size", n.hidden_size},
            {"attention_size", n.attention_size},
            {"num_layers", n.num_layers},
            {"bidirectional", n.bidirectional},
            {"attention", n.attention},
            {"decoder", n.decoder},
            {"input_feeding", n.input_feeding},
            {"dropout", n.dropout}}}};
}

ModelConfig from_json(const json& j) {
  ModelConfig c;
  c.source_language = j.value("source_language", c.source_language);
  c.target_language = j.value("target_language", c.target_language);
  c.lowercase = j.value("lowercase", c.lowercase);
  c.french = j.value("french_typography", c.french);
  const json& n = j.at("network");
  c.network = {
      n.at("source_vocabulary"), n.at("target_vocabulary"), n.at("embedding_dim"), n.at("hidden_size"),
      n.at("attention_size"),    n.at("num_layers"),        n.at("bidirectional"), n.at("attention"),
      n.at("decoder"),           n.at("input_feeding"),     n.at("dropout")};
  return c;
}

std::string in(const std::string& directory, const char* file) {
  return (fs::path(directory) / file).string();
}

}  // namespace

Model::Model(ModelConfig c, Vocabulary s, Vocabulary t, uint64_t seed)
    : config(std::move(c)),
      source(std::move(s)),
      target(std::move(t)),
      network(fresh(sized(config.network, source, target), seed)) {
  config.network = network.config;
}

Model Model::load_description(const std::string& directory) {
  if (!fs::is_directory(directory))
    throw InputError(directory, 0, "no such model directory (made by `translator train --out`)");
  std::string path = in(directory, "config.json");
  std::ifstream file(path);
  if (!file) throw InputError(path, 0, "cannot be read: is this a model directory?");
  ModelConfig config;
  try {
    config = from_json(json::parse(file));
  } catch (const json::exception& e) {
    throw InputError(path, 0, std::string("is not a translator's configuration: ") + e.what());
  }
  Vocabulary source = Vocabulary::load(in(directory, "source.vocab"));
  Vocabulary target = Vocabulary::load(in(directory, "target.vocab"));
  if (source.size() != config.network.source_vocabulary)
    throw InputError(in(directory, "source.vocab"), 0,
                     "has " + std::to_string(source.size()) + " entries, config.json says " +
                         std::to_string(config.network.source_vocabulary));
  if (target.size() != config.network.target_vocabulary)
    throw InputError(in(directory, "target.vocab"), 0,
                     "has " + std::to_string(target.size()) + " entries, config.json says " +
                         std::to_string(config.network.target_vocabulary));
  try {
    return Model(config, std::move(source), std::move(target), 0);
  } catch (const std::exception& e) {  // an unknown attention, a negative size, one too large for the memory
    throw InputError(path, 0, std::string("describes no network that can be built: ") + e.what());
  }
}

Model Model::load(const std::string& directory) {
  Model model = load_description(directory);
  nn::load(model.network, in(directory, "model.safetensors"));
  return model;
}

void Model::save_description(const std::string& directory) const {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw InputError(directory, 0, "cannot be made: " + error.message());
  source.save(in(directory, "source.vocab"));
  target.save(in(directory, "target.vocab"));
  std::string path = in(directory, "config.json"), draft = path + ".tmp";
  std::ofstream file(draft);
  file << to_json(config).dump(2) << "\n";
  file.close();
  if (!file) throw InputError(draft, 0, "cannot be written");
  fs::rename(draft, path);
}

void Model::save_weights(const std::string& directory,
                         const std::map<std::string, std::string>& metadata) const {
  nn::save(network, in(directory, "model.safetensors"), metadata);
}

std::vector<EncodedPair> encode(const std::vector<SentencePair>& pairs, const Vocabulary& source,
                                const Vocabulary& target) {
  std::vector<EncodedPair> out;
  out.reserve(pairs.size());
  for (const SentencePair& p : pairs) {
    EncodedPair e{source.encode(p.source), target.encode(p.target)};
    e.source.push_back(Vocabulary::kEnd);
    out.push_back(std::move(e));
  }
  return out;
}

nn::Seq2SeqBatch make_batch(const std::vector<EncodedPair>& pairs, const std::vector<size_t>& chosen) {
  int64_t B = static_cast<int64_t>(chosen.size()), S = 0, T = 0;
  for (size_t i : chosen) {
    S = std::max<int64_t>(S, static_cast<int64_t>(pairs[i].source.size()));
    T = std::max<int64_t>(T, static_cast<int64_t>(pairs[i].target.size()) + 1);
  }
  using gradus::DType;
  nn::Seq2SeqBatch b{{{S, B}, DType::i32}, {{B}, DType::i32}, {{T, B}, DType::i32}, {{T, B}, DType::i32}, 0};
  for (const gradus::Tensor* t : {&b.source, &b.target_in, &b.target_out}) t->fill(nn::kPad);
  for (int64_t k = 0; k < B; ++k) {
    const EncodedPair& p = pairs[chosen[k]];
    for (size_t s = 0; s < p.source.size(); ++s) b.source.i32()[s * B + k] = p.source[s];
    b.source_lengths.i32()[k] = static_cast<int32_t>(p.source.size());
    b.target_in.i32()[k] = nn::kBos;
    for (size_t t = 0; t < p.target.size(); ++t) {
      b.target_in.i32()[(t + 1) * B + k] = p.target[t];
      b.target_out.i32()[t * B + k] = p.target[t];
    }
    b.target_out.i32()[p.target.size() * B + k] = nn::kEos;
    b.target_tokens += static_cast<int64_t>(p.target.size()) + 1;
  }
  return b;
}

SourceBatch make_source_batch(const std::vector<std::vector<int32_t>>& sentences) {
  int64_t B = static_cast<int64_t>(sentences.size()), S = 0;
  for (const auto& s : sentences) S = std::max<int64_t>(S, static_cast<int64_t>(s.size()));
  SourceBatch batch{{{S, B}, gradus::DType::i32}, {{B}, gradus::DType::i32}};
  batch.ids.fill(nn::kPad);
  for (int64_t b = 0; b < B; ++b) {
    for (size_t s = 0; s < sentences[b].size(); ++s) batch.ids.i32()[s * B + b] = sentences[b][s];
    batch.lengths.i32()[b] = static_cast<int32_t>(sentences[b].size());
  }
  return batch;
}

namespace {

Translation to_translation(const Model& model, const nn::Hypothesis& h,
                           const std::vector<std::string>& source, bool keep_weights) {
  Translation out;
  out.log_probability = h.log_probability;
  for (size_t t = 0; t < h.tokens.size(); ++t) {
    std::string token = model.target.token(h.tokens[t]);
    if (h.tokens[t] == nn::kUnk && t < h.weights.size()) {
      auto end = h.weights[t].begin() + static_cast<long>(source.size());
      size_t from = static_cast<size_t>(std::max_element(h.weights[t].begin(), end) - h.weights[t].begin());
      if (from < source.size()) token = source[from];
    }
    out.tokens.push_back(std::move(token));
  }
  if (keep_weights)
    for (const auto& row : h.weights)
      out.weights.emplace_back(row.begin(), row.begin() + static_cast<long>(source.size()) + 1);
  return out;
}

}  // namespace

std::vector<std::vector<Translation>> translate(const Model& model,
                                                const std::vector<std::vector<std::string>>& sources,
                                                nn::SearchOptions options, int threads) {
  constexpr size_t kBatch = 64;
  bool keep_weights = options.weights;
  options.weights = true;  // for unknown words
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });
  std::vector<std::vector<Translation>> out(sources.size());
  size_t batches = (order.size() + kBatch - 1) / kBatch;
  gradus::ThreadPool pool(std::max(1, std::min<int>(threads, static_cast<int>(batches))));
  pool.run([&](int worker) {
    for (size_t k = static_cast<size_t>(worker); k < batches; k += static_cast<size_t>(pool.size())) {
      std::vector<std::vector<int32_t>> ids;
      size_t begin = k * kBatch, end = std::min(order.size(), begin + kBatch);
      for (size_t i = begin; i < end; ++i) {
        ids.push_back(model.source.encode(sources[order[i]]));
        ids.back().push_back(nn::kEos);
      }
      SourceBatch batch = make_source_batch(ids);
      auto found = nn::translate(model.network, batch.ids, batch.lengths, options);
      for (size_t i = begin; i < end; ++i)
        for (const nn::Hypothesis& h : found[i - begin])
          out[order[i]].push_back(to_translation(model, h, sources[order[i]], keep_weights));
    }
  });
  return out;
}

std::string readable(const Model& model, const std::vector<std::string>& tokens) {
  return detokenize(tokens, {.typography = model.config.french ? Typography::french : Typography::other});
}

}  // namespace translator
