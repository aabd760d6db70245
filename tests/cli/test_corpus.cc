// `translator corpus`, and what --help and --version say.

#include <set>

#include <translator/text/alignment.h>
#include <translator/text/tokenizer.h>

#include "../quick_doctest.h"
#include "program.h"

using namespace cli;

TEST_CASE("corpus writes TSV with links that fit, and the same alignments into a file") {
  Result r = run({"corpus", "-n", "200", "--links", "--alignments", "links.txt"});
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  auto lines = lines_of(r.out), alone = lines_of(read_file("links.txt"));
  REQUIRE(lines.size() == 200);
  REQUIRE(alone.size() == 200);
  for (size_t i = 0; i < lines.size(); ++i) {
    auto c = columns_of(lines[i]);
    CAPTURE(lines[i]);
    REQUIRE(c.size() == 3);
    CHECK(c[2] == alone[i]);
    auto gold = translator::parse_moses(c[2]);
    REQUIRE(gold);
    CHECK_FALSE(gold->sure.empty());
    CHECK(translator::fits(*gold, static_cast<int64_t>(translator::tokenize(c[0]).size()),
                           static_cast<int64_t>(translator::tokenize(c[1]).size())));
  }
}

TEST_CASE("corpus --tokens is what the tokeniser makes of the readable text") {
  auto text = lines_of(run({"corpus", "-n", "100"}).out),
       tokens = lines_of(run({"corpus", "-n", "100", "--tokens"}).out);
  REQUIRE(text.size() == 100);
  REQUIRE(tokens.size() == 100);
  for (size_t i = 0; i < text.size(); ++i)
    for (size_t side : {0, 1})
      CHECK(translator::join_tokens(translator::tokenize(columns_of(text[i])[side])) ==
            columns_of(tokens[i])[side]);
}

TEST_CASE(
    "corpus: the seed decides, the parts share no sentence, the held-out one is in none, lengths keep their "
    "limit") {
  Result one = run({"corpus", "-n", "3000", "--max-length", "9"});
  CHECK(one.out == run({"corpus", "-n", "3000", "--max-length", "9"}).out);
  CHECK(one.out != run({"corpus", "-n", "3000", "--max-length", "9", "--seed", "2"}).out);
  std::set<std::string> seen;
  size_t total = 0;
  for (const char* split : {"train", "valid", "test"}) {
    Result r = run({"corpus", "--split", split, "--max-length", "9"});
    CHECK(r.code == 0);
    auto lines = lines_of(r.out);
    CHECK(lines.size() == (split == std::string("train") ? 40000 : 1000));
    for (const std::string& line : lines) {
      auto c = columns_of(line);
      REQUIRE(c.size() == 2);
      CHECK((" " + c[0]).find(" he doesn't like apples") == std::string::npos);
      for (const std::string& side : c) {
        bool fits = translator::tokenize(side).size() <= 9;
        CHECK_MESSAGE(fits, side);
      }
      seen.insert(c[0]);
      ++total;
    }
  }
  CHECK(seen.size() == total);
}

TEST_CASE("corpus -o writes the file and nothing else; a reader that goes away ends it quietly") {
  Result r = run({"corpus", "-n", "50", "-o", "fifty.tsv"});
  CHECK(r.code == 0);
  CHECK(r.out + r.err == "");
  CHECK(read_file("fifty.tsv") == run({"corpus", "-n", "50"}).out);
  Result piped = shell("\"$T\" corpus | head -n 2");
  CHECK(piped.code == 0);
  CHECK(lines_of(piped.out).size() == 2);
  CHECK(piped.err.empty());
}

TEST_CASE("corpus: what cannot be written is said") {
  check_refused({"corpus", "-n", "5", "-o", "nowhere/x.tsv"}, 1,
                "nowhere/x.tsv: cannot be written: No such file or directory");
  if (std::filesystem::exists("/dev/full")) {
    Result full = shell("\"$T\" corpus -n 5 > /dev/full");
    CHECK(full.code == 1);
    CHECK(full.err == "translator: standard output cannot be written: No space left on device\n");
  }
  check_refused({"corpus", "--split", "test", "-n", "1001"}, 2,
                "--count: the test part has 1000 sentences, --split train has more");
}

TEST_CASE("--help names every option and goes to stdout") {
  const std::map<std::string, Arguments> options = {
      {"corpus",
       {"--split", "--count", "--seed", "--max-length", "--out", "--links", "--alignments", "--tokens",
        "--verb-final"}},
      {"train",
       {"--data",
        "--source",
        "--target",
        "--valid",
        "--valid-source",
        "--valid-target",
        "--swap",
        "--strict",
        "--max-length",
        "--corpus-size",
        "--verb-final",
        "--case",
        "--subwords",
        "--subword-model",
        "--subword-size",
        "--subword-dropout",
        "--min-count",
        "--max-vocabulary",
        "--attention",
        "--decoder",
        "--hidden",
        "--embedding",
        "--layers",
        "--dropout",
        "--cell",
        "--layer-norm",
        "--residual",
        "--reverse-source",
        "--variational",
        "--recurrent-dropout",
        "--epochs",
        "--max-minutes",
        "--batch-size",
        "--lr",
        "--clip",
        "--label-smoothing",
        "--validate-every",
        "--seed",
        "--out",
        "--resume",
        "--force",
        "--quiet",
        "--threads",
        "--verbose"}},
      {"translate",
       {"model", "sentence", "--beam-size", "--length-penalty", "--max-length", "--n-best", "--attention-map",
        "--scores", "--alignments", "--threads", "--verbose"}},
      {"evaluate",
       {"model", "pairs", "--target", "--embedded", "--swap", "--strict", "--multi-reference", "--alignments",
        "--beam-size", "--length-penalty", "--by-length", "--hypotheses", "--references", "--json",
        "--threads", "--verbose"}},
      {"score", {"model", "pairs", "--target", "--swap", "--strict", "--words", "--json", "--threads"}},
      {"diff",
       {"a", "b", "pairs", "--target", "--swap", "--strict", "--multi-reference", "--train", "--lowercase",
        "--seed", "--beam-size", "--json", "--threads"}}};
  Result all = run({"--help"});
  CHECK(all.code == 0);
  CHECK(all.err.empty());
  CHECK(count(all.out, "Exit status: 0 done, 1 bad data") == 1);
  for (const auto& [command, names] : options) {
    CHECK(count(all.out, "\n  " + command + " ") == 1);
    Result help = run({command, "--help"});
    CHECK(help.code == 0);
    CHECK(help.err.empty());
    CHECK(count(help.out, "Usage: translator " + command) == 1);
    for (const std::string& name : names) {
      CAPTURE(command);
      CHECK_MESSAGE(count(help.out, name) > 0, name);
    }
  }
  CHECK(run({"--version"}).out == "translator (Gradus) 0.1.0\n");
}

TEST_CASE("wrong usage ends with 2 and says what is wrong on stderr") {
  const std::vector<std::pair<Arguments, std::string>> wrong = {
      {{}, "A subcommand is required"},
      {{"sing"},
       "translator: there is no command \"sing\", only corpus, train, compare, translate, evaluate, "
       "average, quantize, score, diff, doctor, replay\n"},
      {{"corpus", "--split", "all"}, "--split"},
      {{"translate"}, "model is required"},
      {{"diff"}, "A is required"},
      {{"translate", "m", "she", "eats"}, "eats"},
      {{"train", "--attention", "strong"}, "--attention"},
      {{"train", "--source", "a.en"}, "--target"},
      {{"train", "--data", "a.tsv", "--source", "a.en", "--target", "a.fr"}, "--data excludes --source"},
      {{"train", "--force", "--resume"}, "excludes"},
      {{"train", "--data", "a.tsv", "--data", "b.tsv"},
       "--data: is given twice: several files go with commas: a.tsv,b.tsv"},
      {{"compare", "--data", "a.tsv", "--data", "b.tsv"}, "--data: is given twice: "},
      {{"--threads", "1", "train"},
       "translator train: options go behind the command: translator train --threads\n"},
      {{"--threads", "1"}, "translator: options go behind a command: translator COMMAND --threads\n"},
      {{"train", "--epochs", "0"}, "--epochs 0 needs --max-minutes: the run would never end"},
      {{"train", "--epochs", "-1"}, "--epochs"},
      {{"train", "--lr", "-1"}, "--lr"},
      {{"train", "--swap"}, "--swap needs --data or --source: the embedded corpus is English to French"},
      {{"evaluate", "m"}, "evaluate needs a file of pairs, or --embedded"},
      {{"evaluate", "m", "a.tsv", "--embedded"}, "excludes"},
      {{"evaluate", "m", "--alignments", "a.txt"}, "pairs"},
  };
  for (const auto& [arguments, text] : wrong) {
    Result r = run(arguments);
    CAPTURE(r.err);
    CHECK(r.code == 2);
    CHECK(r.out.empty());
    CHECK_MESSAGE(r.says(text), text);
  }
  CHECK_FALSE(exists("model"));
}
