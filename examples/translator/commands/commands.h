#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <string>

#include <common/error.h>
#include <gradus/nn/search.h>
#include <translator/inference/steering.h>
#include <translator/model/data.h>
#include <translator/model/given_pairs.h>
#include <translator/model/model.h>
#include <translator/training/trainer.h>

// The commands of the program: what they are told, and what they do. main.cc fills the structs from the
// command line. run returns the exit status; bad data and files throw InputError, options that do not go
// together UsageError.

namespace translator {

struct CommonOptions {
  /// 0: the processors this process may use
  int threads = 0;
  /// say on stderr what is computed with
  bool verbose = false;
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
  /// 0: by the data
  int64_t subword_size = 0;
  /// words seen less often are <unk>; 0: by the data
  int64_t min_count = 0;
  int64_t max_vocabulary = 20000;
  bool resume = false, force = false;
  /// sentence whose attention is watched; empty: the first probe of the data
  std::string probe;
  /// model directory to start from; empty: a fresh model
  std::string from;
  bool extend_vocabulary = false;
  /// file with options, see take_config
  std::string config;
  /// print all options and do nothing else
  bool print_config = false;
  /// models to be trained at once, each a --model; empty: one
  std::vector<std::string> together = {};
  /// options on the command line, "--cell"
  std::set<std::string> given = {};
  /// options that a file says and the command line does not
  std::set<std::string> configured = {};

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
  /// which spacing leaves fewer marks
  bool french = false;
};
/// @throws UsageError for options of words among those of pieces, and the other way round.
LearntText learn_text(const TrainCommand& command, const Data& data);
/// How a side is split where words are the tokens, and the spacing that this takes, as in LearntText.
struct WordSegmenters {
  bool french;
  Segmenter source, target;
};
WordSegmenters word_segmenters(const TrainCommand& command, const Data& data, const TextModels& models);
/// A fresh model for the data: languages, weights from the seed.
Model fresh_model(const TrainCommand& command, const Data& data, const LearntText& text);
/// Makes a trained model one for the data: the command's options, and new words where it wants them.
/// @throws UsageError for options of a vocabulary that stays, and for new words in a model of pieces.
void prepare(Model& trained, const TrainCommand& command, const Data& data);
/// From now on the first Ctrl-C (SIGTERM, SIGHUP) sets what is returned; a second ends the program as usual.
const std::atomic<bool>& stop_on_signals();

/// The same training for several attentions and seeds.
struct CompareCommand {
  /// what all runs have in common; its seed is the first one
  TrainCommand train;
  std::vector<std::string> attentions;
  int64_t seeds = 3;
  /// directory of the runs; Markdown file, with an SVG beside it
  std::string work = "compare", out;
  bool force = false;
};

/// What a trained attention may look at.
struct LookOptions {
  /// source words at a time; 0: as the model was trained
  int64_t top_k = 0;
  bool last_only = false;
};
/// @throws UsageError for a model that has no attention to cut.
void apply(const LookOptions& options, const Model& model);

struct TranslateCommand {
  /// weights in 8 bits
  bool int8 = false;
  /// Model's
  std::optional<double> least_mass;
  /// how several models vote, as Ensemble has it
  std::string model, ensemble = "probability";
  /// none: standard input, line by line
  std::optional<std::string> sentence;
  gradus::nn::SearchOptions search;
  LookOptions look;
  SteeringOptions steering;
  int64_t n_best = 1, together = 64;
  /// chrf or bleu: minimum Bayes risk over samples; empty: none
  std::string mbr;
  /// that mbr draws
  int64_t samples = 32;
  bool map = false, scores = false, alignments = false;
  /// the map shows pieces, not words
  bool pieces = false;
  bool json = false, moses = false;
  /// lines have a prefix behind a tab
  bool prefix_column = false;
  /// lines have several sentences
  bool paragraphs = false;
  CommonOptions common;
};

struct EvaluateCommand {
  /// weights in 8 bits
  bool int8 = false;
  /// Model's
  std::optional<double> least_mass;
  std::string model, ensemble = "probability", alignments, hypotheses, references;
  GivenPairsOptions given;
  gradus::nn::SearchOptions search;
  LookOptions look;
  CommonOptions common;
  bool embedded = false, json = false, by_length = false;
};

struct AverageCommand {
  /// directories
  std::vector<std::string> models;
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
  /// model directories, or files with a translation for each line of the pairs
  std::string a, b;
  GivenPairsOptions given;
  /// pairs whose target words are counted; empty: the references' are
  std::string train;
  gradus::nn::SearchOptions search;
  CommonOptions common;
  /// of the bootstrap
  uint64_t seed = 12345;
  bool lowercase = false, json = false;
};

struct DoctorCommand {
  /// as GivenPairsOptions
  std::string pairs, target;
  /// pairs that are not to be trained on
  std::string valid, test;
  /// file for what is worth keeping; what is not goes to clean + ".rejected"
  std::string clean;
  /// directory of one that is asked what it believes least
  std::string model;
  ReadOptions read;
  /// words: train leaves out what has more
  int64_t max_length = 50;
  /// of training that is measured; 0: none
  double seconds = 3;
  CommonOptions common;
  bool json = false;
};

struct ReplayCommand {
  std::string bundle;
  /// all sentences
  bool all = false;
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
