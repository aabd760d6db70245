#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <translator/corpus/corpus.h>
#include <translator/model/fields.h>
#include <translator/model/model_config.h>
#include <translator/text/parallel.h>

namespace translator {

/// A file of pairs among several.
struct CorpusFile {
  std::string path;
  /// how often an epoch goes through it
  double weight = 1;
  /// in front of each source; empty: none
  std::string tag = {};
};
/// Those that a text names: a.tsv=3,b.tsv,bt.tsv=0.5:<bt>. What is a file itself is one, whatever its name has
/// in it: a comma, say, or that of its directory.
/// @throws InputError for a weight or a tag that is none.
std::vector<CorpusFile> corpus_files(const std::string& text);
/// The text with absolute paths.
std::string absolute_corpus_files(const std::string& text);

/// Where sentence pairs come from.
struct DataOptions {
  /// TSV with source, target, see corpus_files; empty with `source` empty too: the embedded corpus
  std::string data;
  /// two files, line by line
  std::string source, target;
  /// TSV; empty: a part of the training data is held out
  std::string valid;
  std::string valid_source, valid_target;
  ReadOptions read;
  /// embedded training pairs
  int64_t corpus_size = 40000;
  /// see CorpusOptions
  bool verb_final = false;

  bool embedded() const { return data.empty() && source.empty(); }
  /// What errors call the training pairs.
  const std::string& name() const { return data.empty() ? source : data; }
  Fields fields();
};

struct Data {
  std::vector<SentencePair> train, valid;
  /// how many pairs there were to learn from before any were held out: what defaults go by
  int64_t given = 0;
  /// shown while training
  std::vector<SentencePair> probes = {};
  bool embedded = false;
  std::string source_language = "source", target_language = "target";
  TrainingData trained_on = {.corpus = "own"};
  /// what happened to the lines of each file, for people
  std::vector<std::string> reports = {};
};

/// Where no validation pairs are named, some of the first file's are held out.
/// @throws InputError naming file and line.
Data load_data(const DataOptions& options);

/// Of fewer pairs than so many none are held out: less than ten would tell nothing, and be missed.
constexpr int64_t kFewestJudged = 200;
/// Takes every so-many-th pair out, a twentieth and 1000 at most, and drops those left whose source occurs in
/// what was taken: they would measure memory.
std::vector<SentencePair> hold_out(std::vector<SentencePair>& pairs);

/// Pairs of a part of the embedded corpus, train, valid or test, with gold alignments; the sizes in the options
/// say nothing.
std::vector<SentencePair> embedded_pairs(const std::string& split, int64_t count, CorpusOptions options = {});

}  // namespace translator
