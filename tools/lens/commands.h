#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <common/error.h>

namespace lens {

using translator::UsageError;

/// What to look at.
struct SentenceOptions {
  /// empty: the small one that comes with the program
  std::string model;
  /// the small one is to be a Transformer
  bool transformer = false;
  std::string source = "he doesn't like apples";
  /// empty: the model's own translation
  std::string target;
  /// from 1; 0: where the loss is largest
  int step = 0;
  /// show a model's pieces, not the words that they make
  bool pieces = false;
};
/// At most two words of the command line: model directory and sentence; one alone is the sentence, if there is
/// no such directory and it is not written as one, ./model or model/.
void take_words(SentenceOptions& options, const std::vector<std::string>& words);

struct ExplainOptions : SentenceOptions {
  std::string out = "explain.html";
  bool text = false, json = false;
  int units = 64;
  // Of a Transformer.
  /// a name of explain_sublayers(); empty: where the gradient is largest
  std::string sublayer;
  /// from 1; 0: where it is largest
  int layer = 0, head = 0;
  /// as if its decoder had no causal mask
  bool unmasked = false;
};
/// "encoder", "decoder", "cross", "encoder-ff", "decoder-ff"
const std::vector<std::string>& explain_sublayers();
int explain(const ExplainOptions& options);

/// Without a model: fresh networks; `step` says nothing here
struct FlowOptions : SentenceOptions {
  std::string versus;
  /// of fresh networks; init empty: "lecun", for a model's shape "pytorch"
  std::string cell = "gru", init;
  bool bidirectional = false;
  /// random words; 0: 30, or with a model the sentence first
  int64_t length = 0;
  /// layers of fresh Transformer stacks instead of words
  bool depth = false;
  int seeds = 8;
  std::string out = "flow.html", svg;
  bool text = false, json = false;
};
/// How fresh networks start. "lecun": every weight N(0, 1/fan_in) (LeCun et al. 1998); "glorot": U(-a, a)
/// with a = sqrt(6 / (fan_in + fan_out)), a gate at a time (Glorot & Bengio 2010); "orthogonal": the same,
/// recurrent matrices orthonormal, a gate at a time (Saxe et al. 2013); biases are 0 in these, an LSTM's
/// forget gate 1. "pytorch": U(-1/sqrt(H), 1/sqrt(H)), what torch.nn and these modules start from. Embeddings
/// are N(0, 1) in all.
const std::vector<std::string>& flow_inits();
int flow(const FlowOptions& options);

struct GraphOptions : SentenceOptions {
  std::string out = "graph.html", dot;
  /// of the DOT file: operations instead of modules
  bool operations = false;
  bool text = false, json = false;
};
int graph(const GraphOptions& options);

struct ReportOptions {
  /// directory of `translator train`
  std::string run;
  std::string out = "report.html";
  bool text = false;
  /// write the worst sentences' explain pages beside it
  bool explain = false;
};
int report(const ReportOptions& options);

struct AblateTask {
  /// the digits backwards; or "copy"
  std::string kind = "reverse";
  /// digits
  int64_t length = 7;
  int64_t hidden = 32;
  /// steps an epoch
  int64_t epochs = 16, steps = 60, batch = 32;
  double lr = 0.005;
  uint64_t seed = 1;
};
struct AblateOptions : AblateTask {
  /// value, score, recurrent; empty: all three. One without is always there
  std::vector<std::string> cuts;
  /// seed, seed + 1, ...: the first is drawn, the others show what is chance
  int seeds = 4;
  std::string out = "ablate.html";
  bool text = false;
};
int ablate(const AblateOptions& options);

struct CheckCommandOptions {
  /// of op cases, or how they begin; none: list them
  std::vector<std::string> names;
  bool all = false;
  /// the composed twin of the op
  bool reference = false;
};
int check_command(const CheckCommandOptions& options);

struct CourseOptions {
  /// nothing, a number, "verify", or "verify" and a number
  std::vector<std::string> what;
  /// the learner's own
  std::string folder;
  bool hint = false, solution = false, watch = false, quiet = false;
  /// seconds that a learner's program may run
  int time_limit = 120;
  /// hand out the file anew; the old one is kept beside it
  bool reset = false;
};
int lesson_command(const CourseOptions& options);
int lab_command(const CourseOptions& options);

struct ServeOptions {
  /// directories; none: the two small ones that come with the program
  std::vector<std::string> models;
  /// empty: this machine alone
  std::string host;
  int port = 8008;
};
int serve(const ServeOptions& options);

/// Exit status of a command that compared numbers: 0; where the worst error is not below what is allowed, or is
/// NaN, 1, and a line on stderr about `what`.
int verdict(const std::string& what, double worst, double allowed = 1e-6);

/// Runs a command and writes a page of all checks that it, and programs that it starts, make. Without a file to
/// write it only runs the command. Returns the command's result.
int with_check_page(const std::string& out, const std::function<int()>& command);

/// The page of a log; 1 when a check in it failed.
int check_page(const std::string& log, const std::string& out);

/// Where a model that comes with the program lies: "model", or "model-transformer".
std::string own_model(const std::string& name = "model");

}  // namespace lens
