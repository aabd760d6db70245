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
  std::string model;   ///< empty: the small one that comes with the program
  bool transformer = false;  ///< which is then a Transformer
  std::string source = "he doesn't like apples";
  std::string target;  ///< empty: the model's own translation
  int step = 0;        ///< from 1; 0: where the loss is largest
  bool pieces = false;  ///< show a model's pieces, not the words that they make
};
/// At most two words of the command line: model directory and sentence; one alone is the sentence, if there is
/// no such directory and it is not written as one, ./model or model/.
void take_words(SentenceOptions& options, const std::vector<std::string>& words);

struct ExplainOptions : SentenceOptions {
  std::string out = "explain.html";
  bool text = false, json = false;
  int units = 64;
  // Of a Transformer.
  std::string sublayer;     ///< a name of explain_sublayers(); empty: where the gradient is largest
  int layer = 0, head = 0;  ///< from 1; 0: where it is largest
  bool unmasked = false;    ///< as if its decoder had no causal mask
};
/// "encoder", "decoder", "cross", "encoder-ff", "decoder-ff"
const std::vector<std::string>& explain_sublayers();
int explain(const ExplainOptions& options);

struct FlowOptions : SentenceOptions {  ///< without a model: fresh networks; `step` says nothing here
  std::string versus;
  std::string cell = "gru", init;  ///< of fresh networks; init empty: "lecun", for a model's shape "pytorch"
  bool bidirectional = false;
  int64_t length = 0;  ///< random words; 0: 30, or with a model the sentence first
  bool depth = false;  ///< layers of fresh Transformer stacks instead of words
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
  bool operations = false;  ///< of the DOT file: operations instead of modules
  bool text = false, json = false;
};
int graph(const GraphOptions& options);

struct ReportOptions {
  std::string run;  ///< directory of `translator train`
  std::string out = "report.html";
  bool text = false;
  bool explain = false;  ///< write the worst sentences' explain pages beside it
};
int report(const ReportOptions& options);

struct AblateTask {
  std::string kind = "reverse";  ///< the digits backwards; or "copy"
  int64_t length = 7;            ///< digits
  int64_t hidden = 32;
  int64_t epochs = 16, steps = 60, batch = 32;  ///< steps an epoch
  double lr = 0.005;
  uint64_t seed = 1;
};
struct AblateOptions : AblateTask {
  std::vector<std::string> cuts;  ///< value, score, recurrent; empty: all three. One without is always there
  int seeds = 4;  ///< seed, seed + 1, ...: the first is drawn, the others show what is chance
  std::string out = "ablate.html";
  bool text = false;
};
int ablate(const AblateOptions& options);

struct CheckCommandOptions {
  std::vector<std::string> names;  ///< of op cases, or how they begin; none: list them
  bool all = false;
  bool reference = false;  ///< the composed twin of the op
};
int check_command(const CheckCommandOptions& options);

struct CourseOptions {
  std::vector<std::string> what;  ///< nothing, a number, "verify", or "verify" and a number
  std::string folder;             ///< the learner's own
  bool hint = false, solution = false, watch = false, quiet = false;
  int time_limit = 120;  ///< seconds that a learner's program may run
  bool reset = false;  ///< hand out the file anew; the old one is kept beside it
};
int lesson_command(const CourseOptions& options);
int lab_command(const CourseOptions& options);

struct ServeOptions {
  std::vector<std::string> models;  ///< directories; none: the small one that comes with the program
  std::string host;                 ///< empty: this machine alone
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
