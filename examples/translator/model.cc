#include <translator/model.h>

#include <dirent.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string_view>
#include <tuple>

#include <fmt/core.h>

#include <gradus/error.h>
#include <gradus/parallel.h>
#include <translator/files.h>
#include <translator/forecast.h>
#include <common/error.h>

namespace translator {
namespace {

namespace fs = std::filesystem;
namespace nn = gradus::nn;

// Within a model directory: a new model while it is made, and when it is whole.
constexpr const char *kNew = "new", *kReady = "ready";

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
  return std::make_unique<nn::Seq2Seq>(config.network, rng);
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
  if (!fs::is_directory(directory))
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
  for (const auto& [side, entries, pieces] :
       {std::tuple("source", &source, &text.source), std::tuple("target", &target, &text.target)})
    if (*pieces && !((*pieces)->vocabulary() == *entries))
      throw InputError(found_in(directory, pieces_file(config, side).c_str()), 0,
                       fmt::format("has other pieces than {}.vocab: they do not belong together", side));
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

// [T, B, S]; nothing where no pair has links.
gradus::Tensor alignment_of(const std::vector<EncodedPair>& pairs, const std::vector<size_t>& chosen,
                            int64_t T, int64_t S) {
  int64_t B = static_cast<int64_t>(chosen.size());
  if (std::all_of(chosen.begin(), chosen.end(), [&](size_t i) { return pairs[i].links.empty(); })) return {};
  gradus::Tensor weights = gradus::Tensor::zeros({T, B, S});
  for (int64_t k = 0; k < B; ++k) {
    const EncodedPair& p = pairs[chosen[k]];
    int64_t n = static_cast<int64_t>(p.target.size()), length = static_cast<int64_t>(p.source.size());
    auto row = [&](int64_t t) { return weights.f32() + (t * B + k) * S; };
    for (const Link& link : p.links) row(link.target)[link.source] = 1;
    row(n)[length - 1] = 1;
    for (int64_t t = 0; t <= n; ++t) {
      float sum = std::accumulate(row(t), row(t) + length, 0.0f);
      for (int64_t s = 0; s < length; ++s)
        row(t)[s] = sum > 0 ? row(t)[s] / sum : 1.0f / static_cast<float>(length);
    }
  }
  return weights;
}

// What links between words are between their pieces.
Links links_of_pieces(const Links& links, const Segmented& source, const Segmented& target) {
  Links out;
  for (size_t s = 0; s < source.pieces.size(); ++s)
    for (size_t t = 0; t < target.pieces.size(); ++t)
      if (std::find(links.begin(), links.end(), Link{source.word_of[s], target.word_of[t]}) != links.end())
        out.push_back({static_cast<int32_t>(s), static_cast<int32_t>(t)});
  return out;
}

// Calls f(worker, k), which returns how many sentences it has done, for k = 0 .. count-1: the same ones on
// each worker every time.
template <class F>
void divide(gradus::ThreadPool& pool, size_t count, const Work& work, F&& f) {
  std::atomic<int64_t> done{0};
  pool.run([&](int thread) {
    gradus::NoGrad guard;
    const size_t worker = static_cast<size_t>(thread);
    for (size_t k = worker; k < count; k += static_cast<size_t>(pool.size())) {
      if (work.stop && *work.stop) throw Interrupted();
      done += f(worker, k);
      if (worker == 0 && work.on_progress) work.on_progress(done);
    }
  });
}

Translation to_translation(const Model& model, const nn::Hypothesis& h, const Segmented& source,
                           bool keep_weights) {
  Translation out;
  out.log_probability = h.log_probability;
  for (size_t t = 0; t < h.tokens.size(); ++t) {
    std::string token = model.target.token(h.tokens[t]);
    if (h.tokens[t] == nn::kUnk && t < h.weights.size()) {
      auto end = h.weights[t].begin() + static_cast<long>(source.pieces.size());
      size_t from = static_cast<size_t>(std::max_element(h.weights[t].begin(), end) - h.weights[t].begin());
      if (from < source.pieces.size()) token = source.words[static_cast<size_t>(source.word_of[from])];
    }
    out.tokens.push_back(std::move(token));
  }
  if (keep_weights)
    for (const auto& row : h.weights)
      out.weights.emplace_back(row.begin(), row.begin() + static_cast<long>(source.pieces.size()) + 1);
  return out;
}

constexpr size_t kBatch = 64;  // sentences translated together
// What a search keeps of a sentence grows with the square of its tokens: 200 MB for so many.
constexpr int64_t kMostTokens = 5000;

// Which of the sentences, in their order by falling length, go together: [begin, end).
struct Together {
  size_t begin, end;
  int64_t max_length;  // target words; 0: the search's own rule
};

// Fewer of long ones, since what a search keeps of a sentence grows with the square of its length. Where
// learned positions end so do translations, and only those: a sentence's limit does not depend on who it is
// translated with.
std::vector<Together> batches_of(const std::vector<size_t>& words, int64_t most_positions,
                                 const nn::SearchOptions& options) {
  constexpr size_t kAllTogether = 512;  // words, up to which kBatch sentences are
  auto limit = [&](size_t i) {
    int64_t own = nn::max_target_length(static_cast<int64_t>(words[i]) + 1, options);
    return most_positions > 0 && own > most_positions ? most_positions : options.max_length;
  };
  std::vector<Together> out;
  for (size_t i = 0; i < words.size(); ++i) {
    bool fits = !out.empty() && limit(i) == out.back().max_length;
    if (fits) {
      size_t longest = std::max(words[out.back().begin], kAllTogether);
      fits = (i - out.back().begin) * longest * longest < kBatch * kAllTogether * kAllTogether;
    }
    if (!fits) out.push_back({i, i, limit(i)});
    ++out.back().end;
  }
  return out;
}

}  // namespace

Model::Model(ModelConfig c, Vocabulary s, Vocabulary t, uint64_t seed, TextModels text)
    : config(sized(std::move(c), s, t)),
      source(std::move(s)),
      target(std::move(t)),
      reads({.letter_case = config.letter_case}, std::move(text.source), std::move(text.source_case)),
      writes(target_text(config), std::move(text.target), std::move(text.target_case)),
      network(fresh(config, seed)) {}

// A model holds whichever network its description names; this is the one place that tells them apart.
const nn::Seq2Seq* Model::recurrent() const { return dynamic_cast<const nn::Seq2Seq*>(network.get()); }

bool Model::takes_alignments() const { return recurrent() && config.network.attention == "oracle"; }

int64_t Model::most_positions() const {
  return !recurrent() && config.transformer.positions == "learned" ? config.transformer.max_positions : 0;
}

std::string Model::length_fault(size_t tokens) const {
  int64_t n = static_cast<int64_t>(tokens), positions = most_positions();
  const char* what = reads.subwords() ? "pieces" : "words";
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

Model Model::load_description(const std::string& directory) { return described(directory, ""); }

Model Model::load(const std::string& directory) {
  std::string weights = found_in(directory, "model.safetensors");
  Model model = described(directory, weights);
  nn::load(*model.network, weights);
  return model;
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
  fs::remove(fs::path(directory) / "train.log", error);  // of the model before
  auto done = [&] {
    if (error) throw InputError(ready.string(), 0, "cannot be replaced: " + error.message());
  };
  std::vector<fs::path> files;
  // Not by fs::directory_iterator, which ends the program where there is no memory.
  std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(ready.c_str()), ::closedir);
  if (!entries) error.assign(errno, std::generic_category());
  done();
  while (const dirent* entry = ::readdir(entries.get()))
    if (std::string_view name = entry->d_name; name != "." && name != "..") files.push_back(ready / name);
  for (const fs::path& file : files) {
    fs::rename(file, fs::path(directory) / file.filename(), error);
    done();
  }
  fs::remove(ready, error);
  done();
}

void Model::save_weights(const std::string& directory,
                         const std::map<std::string, std::string>& metadata) const {
  nn::save(*network, in(directory, "model.safetensors"), metadata);
}

std::vector<int32_t> ids_of(const Vocabulary& vocabulary, const std::vector<std::string>& tokens) {
  std::vector<int32_t> out = vocabulary.encode(tokens);
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i] == Vocabulary::kUnknown) out[i] = vocabulary.id(without_mark(tokens[i]));
  return out;
}

std::vector<EncodedPair> encode(const std::vector<SentencePair>& pairs, const Model& model, double dropout,
                                const std::function<void(int64_t pairs)>& on_progress) {
  std::vector<EncodedPair> out;
  out.reserve(pairs.size());
  for (const SentencePair& p : pairs) {
    const Segmented source = model.reads.split(p.source_text, dropout),
                    target = model.writes.split(p.target_text, dropout);
    EncodedPair e{ids_of(model.source, source.pieces), ids_of(model.target, target.pieces)};
    e.source.push_back(Vocabulary::kEnd);
    if (p.alignment && model.takes_alignments()) e.links = links_of_pieces(p.alignment->sure, source, target);
    out.push_back(std::move(e));
    if (on_progress && out.size() % 1000 == 0) on_progress(static_cast<int64_t>(out.size()));
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
  nn::Seq2SeqBatch b{
      {{S, B}, DType::i32}, {{B}, DType::i32}, {{T, B}, DType::i32}, {{T, B}, DType::i32}, 0, {}};
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
  b.alignment = alignment_of(pairs, chosen, T, S);
  return b;
}

void for_each_batch(const std::vector<EncodedPair>& pairs, size_t size, const Work& work,
                    const std::function<void(size_t worker, const std::vector<size_t>& chosen)>& f) {
  std::vector<size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pairs[a].target.size() < pairs[b].target.size(); });
  const size_t batches = (order.size() + size - 1) / size;
  gradus::ThreadPool pool(std::max(1, std::min<int>(work.threads, static_cast<int>(batches))));
  divide(pool, batches, work, [&](size_t worker, size_t k) {
    auto begin = order.begin() + static_cast<long>(k * size);
    auto end = order.begin() + static_cast<long>(std::min(order.size(), (k + 1) * size));
    f(worker, {begin, end});
    return end - begin;
  });
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

std::vector<std::vector<Translation>> translate(const Model& model, const nn::Generator& generator,
                                                const std::vector<Segmented>& sources,
                                                nn::SearchOptions options, const Work& work) {
  bool keep_weights = options.weights;
  options.weights = true;  // for unknown words
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].pieces.size() > sources[b].pieces.size(); });
  std::vector<std::vector<Translation>> out(sources.size());
  std::vector<size_t> lengths;
  for (size_t i : order) lengths.push_back(sources[i].pieces.size());
  const std::vector<Together> batches = batches_of(lengths, model.most_positions(), options);
  gradus::ThreadPool all(std::max(1, work.threads)), caller(1);
  const bool whole = batches.size() >= static_cast<size_t>(all.size());  // batches for each thread
  if (!whole) options.pool = &all;
  divide(whole ? all : caller, batches.size(), work, [&](size_t, size_t k) {
    const auto [begin, end, max_length] = batches[k];
    nn::SearchOptions how = options;
    how.max_length = max_length;
    std::vector<std::vector<int32_t>> ids;
    for (size_t i = begin; i < end; ++i) {
      ids.push_back(model.source.encode(sources[order[i]].pieces));
      ids.back().push_back(nn::kEos);
    }
    SourceBatch batch = make_source_batch(ids);
    auto found = nn::translate(generator, batch.ids, batch.lengths, how);
    for (size_t i = begin; i < end; ++i)
      for (const nn::Hypothesis& h : found[i - begin])
        out[order[i]].push_back(to_translation(model, h, sources[order[i]], keep_weights));
    return static_cast<int64_t>(end - begin);
  });
  return out;
}

std::vector<std::vector<Translation>> translate(const Model& model, const std::vector<Segmented>& sources,
                                                nn::SearchOptions options, int threads) {
  return translate(model, *model.network->generator(), sources, options, {.threads = threads});
}

WordPicture picture_of(const Segmented& source, const Segmented& target,
                       const std::vector<std::vector<float>>& weights) {
  WordPicture out{source.words, target.words, {}};
  if (weights.size() >= target.pieces.size())
    out.weights = weights_of_words(weights, target.word_of, source.word_of);
  out.source.push_back("</s>");
  out.ended = weights.size() > target.pieces.size();
  if (out.ended) out.target.push_back("</s>");
  return out;
}

Links links_of(const WordPicture& words) {
  std::vector<float> flat;
  for (const std::vector<float>& row : words.weights) flat.insert(flat.end(), row.begin(), row.end());
  const auto rows = static_cast<int64_t>(words.weights.size()),
             columns = static_cast<int64_t>(words.source.size());
  return links_from_attention({rows, columns, flat}, columns - 1, rows - (words.ended ? 1 : 0));
}

WordPicture picture_of_pieces(const Segmented& source, const Segmented& target,
                              const std::vector<std::vector<float>>& weights) {
  auto each = [](const Segmented& s) {
    Segmented out{.pieces = s.pieces, .word_of = s.word_of, .words = s.pieces};
    std::iota(out.word_of.begin(), out.word_of.end(), 0);
    return out;
  };
  return picture_of(each(source), each(target), weights);
}

}  // namespace translator
