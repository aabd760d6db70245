// The command lines of all programs: the first line of the input names one, the others are its arguments.
// Each main() runs as it is, but for the commands, which only look at what they were told.

#include <common/command_line.h>
#include <gradus/error.h>
#include <translator/commands/commands.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "../../tools/bench/commands.h"
#include "blame/blame.h"
#include "commands.h"
#include "diff/diff.h"
#include <common/program.h>
#include "caught.h"
#include "fuzz.h"

namespace {

using fuzzing::lines;
using fuzzing::must;
using fuzzing::must_be_printable;

int commands_run = 0;

// A number of an option: finite, and between the limits.
void between(double least, double x, double most, const char* option) {
  must(x >= least && x <= most, "an option is within its bounds", [&] { return option; });
}
constexpr double kMost = 1e300;  // of what has no limit but to be a number

void check(const translator::ReadOptions& o) {
  between(0, static_cast<double>(o.max_length), 0x1p62, "--max-length");
}

void check(const gradus::nn::SearchOptions& o) {
  between(1, static_cast<double>(o.beam_size), 100, "--beam-size");
  between(0, o.length_penalty.value_or(0), 100, "--length-penalty");
  between(0, o.coverage_penalty, 100, "--coverage-penalty");
  between(0, static_cast<double>(o.no_repeat_ngram), 1000, "--no-repeat-ngram");
  between(1e-300, o.sampling.temperature, kMost, "--temperature");
  between(1e-6, o.sampling.top_p, 1, "--top-p");
  between(0, o.sampling.min_p, 1, "--min-p");
}

void check(translator::TrainCommand& o) {
  check(o.data.read);
  if (!fuzzing::accepts<translator::UsageError>([&] {
        translator::fill_text_defaults(o);
        translator::fill_defaults(o, 1000);
      }))
    return;
  const translator::TrainOptions& t = o.train;
  between(0, t.lr, kMost, "--lr");
  between(0, t.momentum, 0.9999, "--momentum");
  between(0, t.weight_decay, kMost, "--weight-decay");
  between(0, t.clip, kMost, "--clip");
  between(0, t.clip_value, kMost, "--clip-value");
  between(0, t.ema, 0.999999, "--ema");
  between(0, t.scheduled_sampling, 1, "--scheduled-sampling");
  between(0, t.label_smoothing, 0.9, "--label-smoothing");
  between(0, t.max_minutes, kMost, "--max-minutes");
  between(0, static_cast<double>(t.epochs), 0x1p62, "--epochs");
  between(1, static_cast<double>(t.batch_size), 0x1p62, "--batch-size");
  between(0, o.model.network.rnn.dropout, translator::kMostDropout, "--dropout");
  between(0, o.model.network.rnn.recurrent_dropout, translator::kMostDropout, "--recurrent-dropout");
  between(1e-300, o.model.network.attention_options.temperature, kMost, "--temperature");
  between(1e-300, o.model.transformer.temperature, kMost, "--temperature");
  between(100, static_cast<double>(o.data.corpus_size), 2000000, "--corpus-size");
}

}  // namespace

namespace translator {
namespace {

int parsed(CorpusCommand& o) {
  ++commands_run;
  between(0, static_cast<double>(o.count), 0x7FFFFFFF, "--count");  // the grammar counts in int
  between(3, o.max_length, 100, "--max-length");
  return 0;
}
int parsed(TrainCommand& o) { return ++commands_run, check(o), 0; }
int parsed(CompareCommand& o) {
  ++commands_run;
  check(o.train);
  must(!o.attentions.empty(), "there is something to compare");
  between(1, static_cast<double>(o.seeds), 100, "--seeds");
  return 0;
}
int parsed(TranslateCommand& o) {
  ++commands_run;
  check(o.search);
  between(0, o.common.threads, 256, "--threads");
  between(1, static_cast<double>(o.n_best), 100, "--n-best");
  return 0;
}
int parsed(EvaluateCommand& o) { return ++commands_run, check(o.search), check(o.given.read), 0; }
int parsed(AverageCommand& o) {
  must(!o.models.empty(), "there is something to average");
  return ++commands_run, 0;
}
int parsed(QuantizeCommand& o) {
  must(!o.model.empty() && !o.out.empty(), "both directories are named");
  return ++commands_run, 0;
}
int parsed(ScoreCommand& o) { return ++commands_run, check(o.given.read), 0; }
int parsed(DiffCommand& o) {
  must(!o.a.empty() && !o.b.empty() && !o.given.pairs.empty(), "there is something to compare");
  return ++commands_run, check(o.search), check(o.given.read), 0;
}
int parsed(DoctorCommand& o) {
  must(!o.pairs.empty(), "there is something to look at");
  between(0, o.seconds, 3600, "--seconds");
  between(1, static_cast<double>(o.max_length), 100000, "--max-length");
  return ++commands_run, check(o.read), 0;
}
int parsed(ReplayCommand&) { return ++commands_run, 0; }

}  // namespace
}  // namespace translator

#define main translator_main
#define run parsed
#include "../../examples/translator/main.cc"
#undef run
#undef main

namespace parsed_lens {
using namespace lens;

static int explain(const ExplainOptions& o) {
  between(0, o.step, 0x7FFFFFFF, "--step");
  between(4, o.units, 4096, "--units");
  between(0, o.layer, 0x7FFFFFFF, "--layer");
  between(0, o.head, 0x7FFFFFFF, "--head");
  return ++commands_run, 0;
}
static int flow(const FlowOptions& o) {
  must(o.length == 0 || (o.length >= 5 && o.length <= 60), "--length is within its bounds");
  return ++commands_run, 0;
}
static int graph(const GraphOptions&) { return ++commands_run, 0; }
static int report(const ReportOptions&) { return ++commands_run, 0; }
static int ablate(const AblateOptions& o) {
  between(4, static_cast<double>(o.hidden), 256, "--hidden");
  return ++commands_run, 0;
}
static int diff(DiffOptions& o) { return translator::parsed(o.systems); }
static int blame(const BlameOptions& o) {
  must(!o.given.pairs.empty(), "there is something to look at");
  return ++commands_run, check(o.given.read), 0;
}
static int check_command(const CheckCommandOptions&) { return ++commands_run, 0; }
static int check_page(const std::string&, const std::string&) { return ++commands_run, 0; }
static int lesson_command(const CourseOptions&) { return ++commands_run, 0; }
static int lab_command(const CourseOptions&) { return ++commands_run, 0; }
static int serve(const ServeOptions& o) {
  between(0, o.port, 65535, "--port");
  return ++commands_run, 0;
}
static int with_check_page(const std::string&, const std::function<int()>& command) { return command(); }

}  // namespace parsed_lens

#define main lens_main
#define lens parsed_lens
#include "../../tools/lens/main.cc"
#undef lens
#undef main

namespace parsed_bench {
using namespace bench;

static int any(const Options& o) {
  between(1, o.threads, 256, "--threads");
  between(0, o.steps, 0x7FFFFFFF, "--steps");
  between(0, o.warmup, 0x7FFFFFFF, "--warmup");
  return ++commands_run, 0;
}
static int train(const Options& o) { return any(o); }
static int decode(const Options& o) { return any(o); }
static int floor(const Options& o) { return any(o); }
static int ops(const Options& o) { return any(o); }
static int scale(const Options& o) { return any(o); }

}  // namespace parsed_bench

#define main bench_main
#define bench parsed_bench
#include "../../tools/bench/main.cc"
#undef bench
#undef main

FUZZ_TARGET(
    command_line,
    {"translator\ncorpus\n-n\n10\n--seed\n7\n--links",
     "translator\ntrain\n--data\na.tsv\n--lr\n0.01\n--epochs\n2",
     "translator\ntrain\n--attention\ndot\n--cell\nlstm\n--dropout\n0.5\n--hidden\n16\n--no-input-feeding",
     "translator\ntrain\n--model\ntransformer\n--heads\n4\n--ffn\n64\n--positions\nlearned\n--max-minutes\n1",
     "translator\ncompare\n-a\ndot,none\n--seeds\n2\n--work\nx",
     "translator\ntranslate\nm\na b\n-k\n5\n--n-best=3",
     "translator\nevaluate\nm\n--embedded\n--by-length\n--json",
     "translator\nscore\nm\np.tsv\n--words",
     "translator\ndiff\na\nb\np.tsv\n--train\nt.tsv\n--lowercase\n--seed\n3",
     "translator\nreplay\nx\n--all",
     "translator\n--help",
     "translator\n--version",
     "translator\ntrain\n--dropout\nnan",
     "translator\nsing",
     "lens\nexplain\nm\na b\n--target\nx\n--step\n2\n--units=8",
     "lens\nexplain\n--transformer\n--sublayer\ncross\n--layer=2\n--head\n3\n--no-mask",
     "lens\nflow\n--length\n12\n--seeds\n2\n--init\nlecun",
     "lens\nflow\n--depth\n--seeds\n1\n--svg\nd.svg",
     "lens\nflow\n--transformer\nhe sings\n--text",
     "lens\ngraph\n--transformer\nhe sings\n--step\n2",
     "translator\ntrain\n--model\ntransformer\n--no-causal-mask",
     "lens\ngraph\n--level\nop\n--dot\nx.dot",
     "lens\ncheck\nsoftmax\n--html",
     "lens\nlesson\nverify\n3\n--hint",
     "lens\nlab\n2\n--reset",
     "lens\nreport\nx\n--text",
     "lens\ndiff\na\nb\np.tsv\n-o\nd.html",
     "lens\nblame\nm\np.tsv\n--json",
     "lens\nserve\nm\nn\n--port\n0",
     "lens\nablate\n--cut\nvalue,score\n--task\ncopy",
     "bench\ntrain\n--size\ntoy\n--threads\n2\n--losses\n3",
     "bench\nops\nsoftmax\n--factor\n2",
     "bench\nscale\n--json"}) {
  std::vector<std::string> words = lines(input);
  if (words.empty()) return false;
  if (words.size() > 40) words.resize(40);
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(words.size()), code = 0;
  commands_run = 0;
  auto pipe_signal = std::signal(SIGPIPE, SIG_DFL);
  std::string said;
  {
    fuzzing::Caught caught;
    if (words[0].starts_with("l"))
      code = lens_main(argc, argv.data());
    else if (words[0].starts_with("b"))
      code = bench_main(argc, argv.data());
    else
      code = translator_main(argc, argv.data());
    said = caught.out() + caught.err();
  }
  std::signal(SIGPIPE, pipe_signal);
  must(code == 0 || code == 1 || code == 2,
       "a command line is right, or makes no sense", [&] { return std::to_string(code); });
  must(commands_run <= 1, "one command is run");
  must(code == 0 || !said.empty(), "what is wrong is said");
  if (code != 0) must_be_printable(said);
  must(code != 0 || commands_run == 1 || !said.empty(), "something is run or said");
  return code == 0 && commands_run == 1;
}
