#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <string>

#include <common/error.h>
#include <gradus/nn/search.h>
#include <translator/data.h>
#include <translator/given_pairs.h>
#include <translator/model.h>
#include <translator/steering.h>
#include <translator/trainer.h>

// The commands of the program: what they are told, and what they do. main.cc fills the structs from the
// command line. run returns the exit status; bad data and files throw InputError, options that do not go
// together UsageError.

namespace translator {

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
  int max_length = CorpusOptions{}.max_length;
  bool verb_final = false, tokens = false, links = false;
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
  std::string from;   ///< model directory to start from; empty: a fresh model
  bool extend_vocabulary = false;
  std::string config;                     ///< file with options, see take_config
  bool print_config = false;              ///< and do nothing else
  std::vector<std::string> together = {};  ///< models to be trained at once, each a --model; empty: one
  std::set<std::string> given = {};       ///< options on the command line, "--cell"
  std::set<std::string> configured = {};  ///< options that a file says and the command line does not

  /// What fill_defaults sets.
  bool open(const char* option) const { return given.count(option) + configured.count(option) == 0; }
  /// What --subword-size and its like are: how the tokens are learnt.
  Fields token_fields();
  /// What it starts from.
  Fields start_fields();
};

/// The text of training.json: all that a run is told, so that the same data and program make the same model of
/// it. Paths are absolute.
std::string to_json(const TrainCommand& command);
/// Takes over what the file says of options that are not on the command line. With another --model there,
/// what the file says of its own network is left alone, and so with --optimizer, --subwords and where pairs
/// come from.
/// @throws InputError naming the file, and the field where it is to blame.
void take_config(TrainCommand& command, const std::string& path);
/// The same of the training.json of the run in command.train.out, if it is one that holds all options.
void take_own_config(TrainCommand& command);

/// Fills in what was not given of how text is read, before it is, and the attention.
/// @throws UsageError for --swap of the embedded corpus.
void fill_text_defaults(TrainCommand& command);
/// Fills in the rest, by the kind of network, the number of pairs and whether some have links. Says in a line
/// what was chosen by that number; "": nothing. @throws UsageError for a run that would never end.
std::string fill_defaults(TrainCommand& command, const Data& data);
std::string fill_defaults(TrainCommand& command, int64_t pairs, bool linked = false);
/// Pieces of a text in a script of few characters, where --subword-size is not given.
int64_t default_pieces(int64_t pairs);

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
/// Makes a trained model one for the data: the command's options, and new words where it wants them.
/// @throws UsageError for options of a vocabulary that stays, and for new words in a model of pieces.
void prepare(Model& trained, const TrainCommand& command, const Data& data);
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

/// What a trained attention may look at.
struct LookOptions {
  int64_t top_k = 0;  ///< source words at a time; 0: as the model was trained
  bool last_only = false;
};
/// @throws UsageError for a model that has no attention to cut.
void apply(const LookOptions& options, const Model& model);

struct TranslateCommand {
  bool int8 = false;                            ///< weights in 8 bits
  std::optional<double> least_mass;             ///< Model's
  std::string model, ensemble = "probability";  ///< as Ensemble has them
  std::optional<std::string> sentence;          ///< none: standard input, line by line
  gradus::nn::SearchOptions search;
  LookOptions look;
  SteeringOptions steering;
  int64_t n_best = 1, together = 64;
  std::string mbr;       ///< chrf or bleu: minimum Bayes risk over samples; empty: none
  int64_t samples = 32;  ///< for it
  bool map = false, scores = false, alignments = false;
  bool pieces = false;  ///< the map shows pieces, not words
  bool json = false, moses = false;
  bool prefix_column = false;  ///< lines have a prefix behind a tab
  bool paragraphs = false;     ///< lines have several sentences
  CommonOptions common;
};

struct EvaluateCommand {
  bool int8 = false;                 ///< likewise
  std::optional<double> least_mass;  ///< likewise
  std::string model, ensemble = "probability", alignments, hypotheses, references;
  GivenPairsOptions given;
  gradus::nn::SearchOptions search;
  LookOptions look;
  CommonOptions common;
  bool embedded = false, json = false, by_length = false;
};

struct AverageCommand {
  std::vector<std::string> models;  ///< directories
  std::string out = "averaged";
  bool force = false;
};

struct QuantizeCommand {
  std::string model, out;
  bool force = false;
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

struct DoctorCommand {
  std::string pairs, target;  ///< as GivenPairsOptions
  std::string valid, test;    ///< pairs that are not to be trained on
  std::string clean;          ///< file for what is worth keeping; what is not goes to clean + ".rejected"
  std::string model;          ///< directory of one that is asked what it believes least
  ReadOptions read;
  int64_t max_length = 50;  ///< words: train leaves out what has more
  double seconds = 3;       ///< of training that is measured; 0: none
  CommonOptions common;
  bool json = false;
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
int run(AverageCommand& command);
int run(QuantizeCommand& command);
int run(ScoreCommand& command);
int run(DiffCommand& command);
int run(DoctorCommand& command);
int run(ReplayCommand& command);

}  // namespace translator
