#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include <gradus/nn/search.h>
#include <translator/data.h>
#include <translator/model.h>
#include <translator/trainer.h>

// The four commands of the program: what they are told, and what they do. main.cc fills the structs from the
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
  int max_length = 40;
  bool tokens = false, links = false;
};

struct TrainCommand {
  DataOptions data;
  TrainOptions train;
  CommonOptions common;
  ModelConfig model;
  // 0, -1: by the kind of data, see fill_defaults
  int64_t hidden = 0, embedding = 0, min_count = 0, max_vocabulary = 20000;
  double dropout = -1, lr = 0;
  int64_t epochs = -1;
  bool case_sensitive = false, resume = false, force = false;
};

struct TranslateCommand {
  std::string model;
  std::optional<std::string> sentence;  ///< none: standard input, line by line
  gradus::nn::SearchOptions search;
  int64_t n_best = 1;
  bool map = false, scores = false, alignments = false;
  CommonOptions common;
};

struct EvaluateCommand {
  std::string model, pairs, target, alignments, hypotheses, references;
  ReadOptions read;
  gradus::nn::SearchOptions search;
  CommonOptions common;
  bool embedded = false, json = false, by_length = false;
};

int run(CorpusCommand& command);
int run(TrainCommand& command);
int run(TranslateCommand& command);
int run(EvaluateCommand& command);

}  // namespace translator
