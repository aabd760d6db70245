#include <translator/data.h>

#include <algorithm>
#include <unordered_set>

#include <translator/corpus/corpus.h>
#include <translator/text/tokenizer.h>

namespace translator {
namespace {

constexpr int kHeldOut = 1000;  // embedded validation and test sentences, each

Data embedded(const DataOptions& options) {
  int max_length = options.read.max_length > 0 ? static_cast<int>(options.read.max_length) : kCorpusLength;
  Corpus corpus = generate_corpus({.seed = options.corpus_seed,
                                   .train = static_cast<int>(options.corpus_size),
                                   .valid = kHeldOut,
                                   .test = kHeldOut,
                                   .max_length = max_length});
  Data data{.train = std::move(corpus.train),
            .valid = std::move(corpus.valid),
            .embedded = true,
            .source_language = "English",
            .target_language = "French",
            .trained_on = {"embedded", kCorpusVersion, options.corpus_size,
                           static_cast<int64_t>(options.corpus_seed), max_length}};
  data.probes = {held_out_pair(), data.valid.at(0), data.valid.at(1)};
  return data;
}

ParallelData read(const std::string& tsv, const std::string& source, const std::string& target,
                  const ReadOptions& options) {
  return tsv.empty() ? read_pairs(source, target, options) : read_pairs(tsv, options);
}

}  // namespace

std::vector<SentencePair> hold_out(std::vector<SentencePair>& pairs) {
  std::vector<SentencePair> out;
  size_t wanted = std::min<size_t>(1000, pairs.size() / 20);
  if (wanted == 0) return out;
  size_t every = pairs.size() / wanted;
  std::unordered_set<std::string> held;
  for (size_t i = 0; i < pairs.size() && out.size() < wanted; i += every) {
    held.insert(join_tokens(pairs[i].source));
    out.push_back(pairs[i]);
  }
  std::erase_if(pairs, [&](const SentencePair& p) { return held.count(join_tokens(p.source)) > 0; });
  return out;
}

Data load_data(const DataOptions& options) {
  Data data;
  const bool has_valid = !options.valid.empty() || !options.valid_source.empty();
  auto report = [&](const ReadReport& r) {
    data.reports.push_back(r.summary());
    for (const std::string& message : r.messages) data.reports.push_back("  " + message);
    if (const std::string changed = r.changed.summary(); !changed.empty())
      data.reports.push_back("  " + changed);
  };
  if (options.embedded()) {
    data = embedded(options);
    if (!has_valid) return data;
    data.probes.resize(1);
  } else {
    ParallelData train = read(options.data, options.source, options.target, options.read);
    data.train = std::move(train.pairs);
    report(train.report);
  }
  if (has_valid) {
    ParallelData valid = read(options.valid, options.valid_source, options.valid_target, options.read);
    data.valid = std::move(valid.pairs);
    report(valid.report);
  } else {
    data.valid = hold_out(data.train);
    if (!data.valid.empty())
      data.reports.push_back("no validation data given: " + std::to_string(data.valid.size()) +
                             " pairs held out of the training data");
  }
  for (size_t i = 0; i < std::min<size_t>(3, data.valid.size()); ++i)
    data.probes.push_back(data.valid[i * std::max<size_t>(1, data.valid.size() / 3)]);
  return data;
}

std::vector<SentencePair> embedded_pairs(const std::string& split, int64_t count, uint64_t seed,
                                         int max_length) {
  auto wanted = [&](const char* part) { return split == part ? static_cast<int>(count) : 0; };
  Corpus corpus = generate_corpus({.seed = seed,
                                   .train = wanted("train"),
                                   .valid = wanted("valid"),
                                   .test = wanted("test"),
                                   .max_length = max_length});
  return std::move(split == "train" ? corpus.train : split == "valid" ? corpus.valid : corpus.test);
}

}  // namespace translator
