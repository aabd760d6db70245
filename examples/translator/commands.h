#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include <gradus/nn/search.h>
#include <translator/data.h>
#include <translator/given_pairs.h>
#include <translator/model.h>
#include <translator/trainer.h>

// The commands of the program: what they are told, and what they do. main.cc fills the structs from the
// command line. run returns the exit status; bad data and files throw InputError, options that do not go
// together UsageError.

namespace translator {

/// The command line asks for what makes no sense; exit status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct CommonOptions {
  int threads = 0;       ///< 0: the processors this process may use
  bool verbose = false;  ///< say on stderr what is computed with
};
/// Fills the default and prints the --verbose line.
void apply(CommonOptions& options);

struct CorpusCommand {
  std::string split = "train", out = "-", alignments;
  int64_t count = 0;
  uint64_t seed = 1;
  int max_length = kCorpusLength;
  bool tokens = false, links = false;
};

struct TrainCommand {
  DataOptions data;
  TrainOptions train;
  CommonOptions common;
  ModelConfig model;
  int64_t subword_size = 0;  ///< 0: by the data
  int64_t min_count = 0;     ///< words seen less often are <unk>; 0: by the data
  int64_t max_vocabulary = 20000;
  bool resume = false, force = false;
  std::string probe;  ///< sentence whose attention is watched; empty: the first probe of the data
  std::set<std::string> given = {};  ///< options on the command line, "--cell"; fill_defaults sets the others
};

/// Fills in what was not given, by the kind of network and of data. @throws UsageError for a run that would
/// never end.
void fill_defaults(TrainCommand& command, bool embedded);

/// How the data's text is read and written: what every model of a race has in common.
struct LearntText {
  Vocabulary source, target;
  TextModels models = {};
  bool french = false;  ///< which spacing leaves fewer marks
};
/// @throws UsageError for options of words among those of pieces, and the other way round.
LearntText learn_text(const TrainCommand& command, const Data& data);
/// A fresh model for the data: languages, weights from the seed.
Model fresh_model(const TrainCommand& command, const Data& data, const LearntText& text);
/// From now on the first Ctrl-C (SIGTERM, SIGHUP) sets what is returned; a second ends the program as usual.
const std::atomic<bool>& stop_on_signals();

/// The same training for several attentions and seeds.
struct CompareCommand {
  TrainCommand train;  ///< what all runs have in common; its seed is the first one
  std::vector<std::string> attentions;
  int64_t seeds = 3;
  std::string work = "compare", out;  ///< directory of the runs; Markdown file, with an SVG beside it
  bool force = false;
};

struct TranslateCommand {
  std::string model;
  std::optional<std::string> sentence;  ///< none: standard input, line by line
  gradus::nn::SearchOptions search;
  int64_t n_best = 1;
  bool map = false, scores = false, alignments = false;
  bool pieces = false;  ///< the map shows pieces, not words
  bool json = false;
  CommonOptions common;
};

struct EvaluateCommand {
  std::string model, alignments, hypotheses, references;
  GivenPairsOptions given;
  gradus::nn::SearchOptions search;
  CommonOptions common;
  bool embedded = false, json = false, by_length = false;
};

struct ScoreCommand {
  std::string model;
  GivenPairsOptions given;
  CommonOptions common;
  bool words = false, json = false;
};

struct DiffCommand {
  std::string a, b;  ///< model directories, or files with a translation for each line of the pairs
  GivenPairsOptions given;
  std::string train;  ///< pairs whose target words are counted; empty: the references' are
  gradus::nn::SearchOptions search;
  CommonOptions common;
  uint64_t seed = 12345;  ///< of the bootstrap
  bool lowercase = false, json = false;
};

struct ReplayCommand {
  std::string bundle;
  bool all = false;  ///< all sentences
};

int run(CorpusCommand& command);
int run(TrainCommand& command);
int run(CompareCommand& command);
int run(TranslateCommand& command);
int run(EvaluateCommand& command);
int run(ScoreCommand& command);
int run(DiffCommand& command);
int run(ReplayCommand& command);

}  // namespace translator
