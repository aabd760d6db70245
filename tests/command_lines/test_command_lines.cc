// Every program refuses values that are out of range, absurd, empty or unknown: exit status 2, one short line
// on stderr that names the option and says what it takes, nothing on stdout, nothing written.

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "../cli/program.h"
#include "../quick_doctest.h"
#include "../skip.h"

using namespace cli;

namespace {

struct Wrong {
  const char* program;
  Arguments arguments;
  std::string says;  // part of the error
};

std::vector<Wrong> all_wrong() {
  std::vector<Wrong> out;
  auto add = [&](const char* program, const Arguments& before, const std::string& option,
                 const std::string& value, const std::string& says) {
    Arguments a = before;
    a.push_back(option);
    a.push_back(value);
    out.push_back({program, a, says});
  };
  struct Number {
    const char* program;
    Arguments command;
    std::vector<std::string> options;
    bool zero;  // is a value
  };
  const std::vector<Number> numbers = {
      {TRANSLATOR, {"train"}, {"--max-minutes", "--lr", "--clip-value", "--temperature"}, false},
      {TRANSLATOR,
       {"train"},
       {"--hidden", "--embedding", "--layers", "--ffn", "--heads", "--window", "--batch-size", "--warmup",
        "--validate-every", "--min-count", "--max-length", "--subword-size"},
       false},
      {TRANSLATOR,
       {"train"},
       {"--weight-decay", "--clip-norm", "--momentum", "--ema", "--dropout", "--recurrent-dropout",
        "--scheduled-sampling", "--label-smoothing", "--subword-dropout", "--top-k", "--epochs"},
       true},
      {TRANSLATOR, {"train"}, {"--threads", "--corpus-size", "--max-vocabulary"}, false},
      {TRANSLATOR, {"compare"}, {"--seeds", "--hidden", "--lr", "--max-minutes", "--batch-size"}, false},
      {TRANSLATOR, {"corpus"}, {"--count", "--max-length"}, false},
      {TRANSLATOR,
       {"translate", "m"},
       {"--beam-size", "--top-k", "--n-best", "--max-length", "--threads"},
       false},
      {TRANSLATOR, {"translate", "m"}, {"--length-penalty"}, true},
      {TRANSLATOR, {"evaluate", "m", "p"}, {"--beam-size", "--top-k", "--threads"}, false},
      {TRANSLATOR, {"evaluate", "m", "p"}, {"--length-penalty"}, true},
      {TRANSLATOR, {"score", "m", "p"}, {"--threads"}, false},
      {TRANSLATOR, {"diff", "a", "b", "p"}, {"--beam-size", "--threads"}, false},
      {LENS, {"diff", "a", "b", "p"}, {"--beam-size", "--threads"}, false},
      {LENS, {"explain"}, {"--step", "--units", "--layer", "--head"}, false},
      {LENS, {"graph"}, {"--step"}, false},
      {LENS, {"flow"}, {"--length", "--seeds"}, false},
      {LENS, {"ablate"}, {"--length", "--hidden", "--epochs", "--seeds"}, false},
      {LENS, {"lesson"}, {"--time-limit"}, false},
      {BENCH, {"train"}, {"--threads", "--steps", "--losses"}, false},
      {BENCH, {"train"}, {"--warmup"}, true},
      {BENCH, {"ops"}, {"--factor"}, false},
      {BENCH, {"floor"}, {"--warmup"}, true},
      {BENCH, {"scale"}, {"--threads", "--steps"}, false},
  };
  for (const Number& n : numbers)
    for (const std::string& option : n.options) {
      for (const char* value : {"-1", "nan", "1e300", ""})
        add(n.program, n.command, option, value, option + ": ");
      // A run may be blown up by its learning rate, to see what --check-finite says.
      if (option != "--lr") add(n.program, n.command, option, "99999999999999999999", option + ": ");
      if (!n.zero) add(n.program, n.command, option, "0", option + ": ");
      if (option != n.options.front()) continue;
      for (const char* value : {"-inf", "seven", "1x"})
        add(n.program, n.command, option, value, option + ": ");
    }
  // Whole numbers without a bound.
  for (const char* value : {"-1", "1.5", "nan", "1e300", "99999999999999999999", "", "x"})
    for (const auto& [program, command] : {std::pair(TRANSLATOR, "train"),
                                           {TRANSLATOR, "corpus"},
                                           {TRANSLATOR, "compare"},
                                           {LENS, "ablate"},
                                           {BENCH, "train"}})
      add(program, {command}, "--seed", value, "--seed");
  // Names.
  for (const char* value : {"", "none such", "\x1b[31mred"}) {
    for (const char* option : {"--model", "--attention", "--decoder", "--readout", "--positions", "--cell",
                               "--optimizer", "--schedule"})
      add(TRANSLATOR, {"train"}, option, value, option);
    add(TRANSLATOR, {"corpus"}, "--split", value, "--split: ");
    add(TRANSLATOR, {"compare"}, "--attention", value, "--attention: ");
    add(LENS, {"flow"}, "--cell", value, "--cell: ");
    add(LENS, {"flow"}, "--init", value, "--init: ");
    add(LENS, {"graph"}, "--level", value, "--level: ");
    add(LENS, {"explain"}, "--sublayer", value, "--sublayer: ");
    add(LENS, {"ablate"}, "--cut", value, "--cut: ");
    add(LENS, {"ablate"}, "--task", value, "--task: ");
    add(BENCH, {"train"}, "--size", value, "--size: ");
    add(BENCH, {"train"}, "--variant", value, "--variant: ");
    add(BENCH, {"train"}, "--load", value, "--load: ");
  }
  // A file or directory that a variable forgot to name.
  for (const char* option : {"--data", "--valid", "--out", "--probe"})
    add(TRANSLATOR, {"train"}, option, "", option);
  add(TRANSLATOR, {"corpus"}, "--out", "", "--out: it is empty");
  add(TRANSLATOR, {"compare"}, "--work", "", "--work: it is empty");
  add(TRANSLATOR, {"evaluate", "m", "p"}, "--hypotheses", "", "--hypotheses: it is empty");
  out.push_back({TRANSLATOR, {"translate", ""}, "model: it is empty"});
  out.push_back({TRANSLATOR, {"evaluate", "m", ""}, "pairs: it is empty"});
  out.push_back({TRANSLATOR, {"score", "m", ""}, "pairs: it is empty"});
  out.push_back({TRANSLATOR, {"diff", "a", "", "p"}, "B: it is empty"});
  out.push_back({TRANSLATOR, {"replay", ""}, "bundle: it is empty"});
  add(LENS, {"diff", "a", "b", "p"}, "--out", "", "--out: it is empty");
  add(LENS, {"explain"}, "--out", "", "--out: it is empty");
  add(LENS, {"explain"}, "--target", "", "--target: it is empty");
  add(LENS, {"report", "m"}, "--out", "", "--out: it is empty");
  out.push_back({LENS, {"report", ""}, "run: it is empty"});
  for (const auto& [command, places] : {std::pair("explain", "[MODEL] [SENTENCE]"),
                                        {"graph", "[MODEL] [SENTENCE]"},
                                        {"flow", "[MODEL [SENTENCE]]"}})
    for (const Arguments& options : {Arguments{}, {"--transformer"}})
      out.push_back({LENS, Arguments{command, "a", "b", "he \x1b[31m", "sings"} + options,
                     std::string("no place for \"he \xEF\xBF\xBD[31m\" after ") + places +
                         "; a sentence of several words stands in quotes"});
  for (const char* command : {"explain", "graph", "flow"}) {
    const std::string sentence =
        "lens: the sentence is empty; write one in quotes, \"she sings\", or leave it out";
    const std::string model =
        "lens: the model directory is empty; name one that `translator train` made, or leave it out";
    out.push_back({LENS, {command, "m", ""}, sentence});
    out.push_back({LENS, {command, "", "she sings"}, model});
    out.push_back({LENS, {command, ""}, command == std::string("flow") ? model : sentence});
    out.push_back({LENS, {command, "--transformer", ""}, sentence});
  }
  // A sentence that is too long for a file's name.
  out.push_back({LENS,
                 {"flow", "--transformer", std::string(300, 'a'), "--length", "10"},
                 "lens: --length is of random words; a sentence has its own"});
  // What there is not.
  for (const char* program : {TRANSLATOR, LENS, BENCH}) {
    out.push_back({program, {}, "A subcommand is required"});
    out.push_back({program, {"sing"}, "there is no command \"sing\", only "});
    out.push_back({program, {"\x1b[31m"}, "there is no command "});
    out.push_back({program, {"--sing"}, ""});
  }
  out.push_back({TRANSLATOR, {"train", "--sing"}, "--sing"});
  out.push_back({LENS, {"explain", "--sing"}, "--sing"});
  out.push_back({BENCH, {"train", "--sing"}, "--sing"});
  out.push_back({TRANSLATOR, {"translate", "m", "s", "\x1b]0;title\x07"}, ""});
  const std::string last = "18446744073709551615", many = "--seed " + last + ": there are no 2 seeds";
  out.push_back({LENS, {"ablate", "--seed", last, "--seeds", "2"}, many});
  out.push_back({TRANSLATOR, {"compare", "--seed", last, "--seeds", "2"}, many});
  return out;
}

size_t files() {
  namespace fs = std::filesystem;
  return static_cast<size_t>(std::distance(fs::directory_iterator(scratch_path()), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("values that make no sense: exit status 2 and a short line that names the option") {
  std::vector<Wrong> all = all_wrong();
  REQUIRE(all.size() > 350);
  size_t before = files();
  for (const Wrong& w : all) {
    Arguments words = {w.program};
    words.insert(words.end(), w.arguments.begin(), w.arguments.end());
    std::string line = std::filesystem::path(w.program).filename().string();
    for (const std::string& a : w.arguments) line += " '" + a + "'";
    INFO(line);
    Result r = run_program(words);
    INFO(r.err);
    CHECK(r.code == 2);
    CHECK(r.out.empty());
    CHECK(r.says(w.says));
    CHECK(acts_on_terminal(r.err) == "");
    // Not a number of 309 digits, not the whole of --help.
    CHECK(r.err.size() < 400);
    for (const std::string& said : lines_of(r.err)) CHECK(said.size() < 300);
  }
  CHECK(files() == before);
}

TEST_CASE("what has no such name is told the nearest one that there is") {
  auto said = [](const char* program, const Arguments& arguments) {
    Result r = run_program(Arguments{program} + arguments);
    CHECK(r.code == 2);
    return r.err;
  };
  CHECK(said(TRANSLATOR, {"train", "--epoch", "3"}) ==
        "translator train: there is no option --epoch; hint: --epochs?\n");
  CHECK(said(TRANSLATOR, {"train", "--embeding=3"}) ==
        "translator train: there is no option --embeding; hint: --embedding?\n");
  CHECK(said(TRANSLATOR, {"train", "--batch", "8"}) ==
        "translator train: there is no option --batch; hint: --batch-size or --batch-tokens?\n");
  CHECK(said(TRANSLATOR, {"translate", "m", "--beem", "3"}) ==
        "translator translate: there is no option --beem; hint: --beam-size?\n");
  CHECK(said(TRANSLATOR, {"evaluate", "m", "--qqqqqq"}) ==
        "translator evaluate: there is no option --qqqqqq\n");
  CHECK(said(TRANSLATOR, {"train", "--sing"}) == "translator train: there is no option --sing\n");
  CHECK(said(TRANSLATOR, {"train", "loud"}) == "translator train: \"loud\" was not expected\n");
  CHECK(said(TRANSLATOR, {"evaluate", "m", "--data", "t.tsv"}) ==
        "translator evaluate: there is no option --data; hint: these are named by their places: evaluate model "
        "[pairs]\n");
  CHECK(said(TRANSLATOR, {"trian"}) ==
        "translator: there is no command \"trian\", only corpus, train, compare, translate, evaluate, "
        "average, quantize, score, diff, doctor, replay; hint: train?\n");
  CHECK(said(TRANSLATOR, {"train", "--cell", "lsmt"}).starts_with(
      "--cell: there is no cell \"lsmt\", only gru, gru-reset-before, gru-bahdanau, lstm, rnn, rnn-relu; hint: "
      "lstm?\n"));
  CHECK(count(said(TRANSLATOR, {"train", "--attention", "bahdanu"}), "none; hint: bahdanau?\n") == 1);
  CHECK(count(said(TRANSLATOR, {"compare", "--attention", "dot,transfomer"}), "; hint: transformer?\n") == 1);
  CHECK(said(LENS, {"check", "sofmax"}) ==
        "lens: there is no operation sofmax: " + std::string(LENS) + " check lists them; hint: softmax?\n");
  CHECK(said(LENS, {"lesson", "nine"}) == "lens: there is no lesson nine: they go from 0 to 18\n");
  CHECK(said(LENS, {"lesson", "atention"}) ==
        "lens: there is no lesson atention: they go from 0 to 18; hint: attention?\n");
  CHECK(said(LENS, {"lab", "verfy", "2"}) ==
        "lens: there is no lab verfy: they go from 1 to 16; hint: verify?\n");
  CHECK(count(said(BENCH, {"train", "--size", "toyy"}), "(known: toy, small, base); hint: toy?") == 1);
  CHECK(said(BENCH, {"tarin"}) ==
        "bench: there is no command \"tarin\", only train, decode, floor, ops, scale; hint: train?\n");
}

TEST_CASE("whole numbers are decimal, whatever zeros stand in front") {
  for (const auto& [value, pairs] : {std::pair("010", 10), {"08", 8}, {"-0", -1}}) {
    const Result r = run_program({TRANSLATOR, "corpus", "--count", value});
    INFO(value << ": " << r.err);
    CHECK(r.code == (pairs < 0 ? 2 : 0));
    if (pairs > 0) CHECK(lines_of(r.out).size() == static_cast<size_t>(pairs));
  }
}

TEST_CASE("--help and --version are no errors") {
  for (const char* program : {TRANSLATOR, LENS, BENCH}) {
    Result help = run_program({program, "--help"});
    CHECK(help.code == 0);
    CHECK(help.err.empty());
    CHECK(count(help.out, "Usage: ") == 1);
    CHECK(count(help.out, "e+308") == 0);
  }
  Result of_train = run_program({TRANSLATOR, "train", "--help"});
  CHECK(of_train.code == 0);
  for (const char* part : {"e+308", "e-308", "nan"}) CHECK(count(of_train.out, part) == 0);
}

TEST_CASE("lens shows no control character of a model's name, its words, its log, or a file's name") {
  namespace fs = std::filesystem;
  const std::string hostile = "\x1b[2J\x1b]0;owned\x07\xC2\x9B" "31m\xE2\x80\xAEx", model = "m" + hostile;
  fs::copy(scratch_path() / trained_model(), scratch_path() / model);
  auto harmless = [&](const Arguments& arguments, int code) {
    Result r = run_program(Arguments{LENS} + arguments);
    std::string line;
    for (const std::string& a : arguments) line += a + " ";
    INFO(line << "\n" << r.out << r.err);
    CHECK(r.code == code);
    CHECK(acts_on_terminal(r.out) == "");
    CHECK(acts_on_terminal(r.err) == "");
    return r;
  };
  for (const char* command : {"explain", "graph"}) {
    CHECK(count(harmless({command, model, hostile + "she eats apples", "--text"}, 0).out, "apples") > 0);
    harmless({command, model, "she eats apples", "--target", hostile, "-o", "page" + hostile}, 0);
    harmless({command, "absent" + hostile, "she eats"}, 1);
  }
  harmless({"flow", model, "she eats apples", "--text", "--seeds", "1"}, 0);
  harmless({"report", model, "--text"}, 0);
  harmless({"report", "absent" + hostile}, 1);
  harmless({"check", hostile}, 2);
  harmless({"check", "--from", "absent" + hostile}, 1);
  harmless({"lesson", hostile}, 2);
  Result bench = run_program({BENCH, "ops", hostile});
  CHECK(bench.says("no op case has"));
  CHECK(acts_on_terminal(bench.err) == "");

  // A log in which every text is hostile, and every number.
  std::string text = "\"\\u001b[2J\\u009b31m\\u202ex\"", log;
  for (const std::string& line : lines_of(read_file("trained/train.log"))) {
    auto event = nlohmann::ordered_json::parse(line);
    for (auto& [key, value] : event.items()) {
      if (key == "event") continue;
      auto spoilt = event;
      spoilt[key] = nlohmann::ordered_json::parse(text);
      log += spoilt.dump() + "\n";
    }
    log += line + "\n";
  }
  write_file(model + "/train.log", log);
  Arguments words = {LENS, "report", model, "--text"};
  Result r = run_program(words);
  INFO(r.out << r.err);
  CHECK(r.code >= 0);  // read or refused, but not crashed
  CHECK(acts_on_terminal(r.out) == "");
  CHECK(acts_on_terminal(r.err) == "");
}

TEST_CASE("lens refuses options that would do nothing, and two texts on one output") {
  const std::string both = "--out excludes --text", file = ": must be a file: text goes to standard output";
  const std::string verify =
      "lens: verify judges the files as they are: without --hint, --solution, --reset and --watch\n";
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"explain", "--text", "-o", "x"}, both},
      {{"graph", "--text", "-o", "x"}, both},
      {{"flow", "--text", "-o", "x"}, both},
      {{"report", "m", "--text", "-o", "x"}, both},
      {{"ablate", "--text", "-o", "x"}, both},
      {{"explain", "--text", "--units", "9"}, "lens: --units is of drawings; --text has none\n"},
      {{"flow", "--depth", "--pieces"}, "--pieces excludes --depth"},
      {{"flow", trained_model(), "--init", "lecun", "--text"},
       "lens: --init with a model is of the fresh networks beside it, which only the page has\n"},
      {{"graph", "--level", "op"}, "--level requires --dot"},
      {{"graph", "--dot", "-"}, "--dot" + file},
      {{"flow", "--svg", "-"}, "--svg" + file},
      {{"check", "softmax", "-o", "-"}, "--out" + file},
      {{"flow", "--transformer", "anna", "-n", "9"},
       "lens: --length is of random words; a sentence has its own\n"},
      {{"lesson", "verify", "--watch"}, verify},
      {{"lesson", "verify", "3", "--reset"}, verify},
      {{"lab", "verify", "1", "--solution"}, verify},
  };
  for (const auto& [words, text] : cases) {
    Arguments a = words;
    a.insert(a.begin(), LENS);
    const Result r = run_program(a);
    INFO(words[0] << " " << words[1] << ": " << r.err);
    CHECK(r.code == 2);
    CHECK(r.says(text));
    CHECK(r.out == "");
  }
  CHECK_FALSE(exists("x"));
}

TEST_CASE("bench says that its output cannot be written, of help and of processes of its own as well") {
  if (!std::filesystem::exists("/dev/full")) return gradus::testing::skipped("no /dev/full here");
  for (const char* words : {"--help", "train --size toy --losses 1",
                            "train --size toy --variant all --steps 1 --warmup 0 --json"}) {
    const Result r = run_program({"/bin/sh", "-c", std::string("\"$B\" ") + words + " >/dev/full"},
                                 {.environment = {{"B", BENCH}}});
    INFO(words << ": " << r.err);
    CHECK(r.code == 1);
    if (!std::string(words).ends_with("--json")) CHECK(r.says("bench: standard output cannot be written: "));
  }
}

TEST_CASE("a file that cannot be written is told before the work is done") {
  const std::string absent = "nowhere/x: there is no directory nowhere";
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{LENS, "explain", "-o", "nowhere/x"}, "--out: " + absent},
      {{LENS, "graph", "--dot", "nowhere/x"}, "--dot: " + absent},
      {{LENS, "report", "m", "-o", "nowhere/x"}, "--out: " + absent},
      {{LENS, "diff", "a", "b", "c", "-o", "nowhere/x"}, "--out: " + absent},
      {{LENS, "ablate", "-o", "."}, "--out: . is a directory"},
      {{TRANSLATOR, "evaluate", "m", "p", "--hypotheses", "nowhere/x"}, "--hypotheses: " + absent},
      {{TRANSLATOR, "evaluate", "m", "p", "--references", "nowhere/x"}, "--references: " + absent},
      {{TRANSLATOR, "compare", "-o", "nowhere/x"}, "--out: " + absent},
  };
  for (const auto& [words, text] : cases) {
    const Result r = run_program(words);
    INFO(words[1] << ": " << r.err);
    CHECK(r.code == 2);
    CHECK(r.says(text));
    CHECK(r.out == "");
  }
}
