// `translator translate`: argument, standard input, prompt.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include <common/json_text.h>

#include "../quick_doctest.h"
#include "../skip.h"
#include "program.h"
#include "terminal.h"

using namespace cli;

namespace {

Result translate(const Arguments& more, const Setting& setting = {}) {
  return run(Arguments{"translate", trained_model()} + more, setting);
}

}  // namespace

TEST_CASE("translate: an argument, and the same sentence on standard input") {
  Result r = translate({"she eats apples"});
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  REQUIRE(lines_of(r.out).size() == 1);
  CHECK(r.out.size() > 4);
  CHECK(translate({}, {.input = "she eats apples\n"}).out == r.out);
  CHECK(translate({"  SHE  eats apples "}).out == r.out);
  CHECK(translate({""}).out == "\n");
  CHECK(translate({""}, {.input = "not read\n"}).out == "\n");
}

TEST_CASE("translate: --top-k and --last-only leave few weights, and are for models that attend") {
  auto weights = [](const Arguments& more) {
    const Result r = translate(Arguments{"she eats apples", "--attention-map", "--json"} + more);
    INFO(r.err);
    REQUIRE(r.code == 0);
    return json_text::parse(r.out).at("attention").at("weights").get<std::vector<std::vector<double>>>();
  };
  auto most_looked_at = [](const std::vector<std::vector<double>>& rows) {
    int64_t most = 0;
    for (const auto& row : rows)
      most = std::max<int64_t>(most, std::count_if(row.begin(), row.end(), [](double w) { return w > 0; }));
    return most;
  };
  CHECK(most_looked_at(weights({})) > 2);
  CHECK(most_looked_at(weights({"--top-k", "2"})) == 2);
  CHECK(weights({"--top-k", "100"}) == weights({"--top-k", "99"}));
  const auto last_only = weights({"--last-only"});
  REQUIRE(last_only.size() > 1);
  for (const auto& row : last_only) {
    CHECK(row.back() == 1);
    CHECK(most_looked_at({row}) == 1);
  }
  CHECK(translate({"she eats apples", "--last-only", "--top-k", "1"}).code == 2);

  REQUIRE(run(small_run("one-vector", {"--attention", "none", "--epochs", "1"})).code == 0);
  for (const Arguments& cut : {Arguments{"--top-k", "1"}, Arguments{"--last-only"}}) {
    const Result none = run(Arguments{"translate", "one-vector", "she eats"} + cut);
    CHECK(none.code == 2);
    CHECK(none.says("--top-k and --last-only are for recurrent models with attention"));
  }
}

TEST_CASE("translate: one line out for each line in; empty lines, CRLF, a BOM and a missing last line end") {
  std::string eats = translate({"she eats apples"}).out, sings = translate({"he sings"}).out;
  Result r =
      translate({}, {.input = "\xEF\xBB\xBFshe eats apples\r\n\r\n\n  \t \nhe sings\nshe eats apples"});
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(r.out == eats + "\n\n\n" + sings + eats);
  CHECK(translate({"--paragraphs"}, {.input = "\xEF\xBB\xBF<p>\n"}).out == "<p>\n");
  CHECK(translate({}, {.input = ""}).out == "");
  CHECK(translate({}, {.input = "\n"}).out == "\n");
  // More lines than go through together, in order, on any number of threads.
  std::string many, expected;
  for (int i = 0; i < 300; ++i) {
    many += i % 3 == 0 ? "he sings\n" : i % 3 == 1 ? "\n" : "she eats apples\n";
    expected += i % 3 == 0 ? sings : i % 3 == 1 ? "\n" : eats;
  }
  CHECK(translate({"--threads", "2"}, {.input = many}).out == expected);
}

TEST_CASE(
    "translate: a line that is not UTF-8 is named, an empty line stands for it, the rest goes through") {
  std::string sings = translate({"he sings"}).out;
  Result r = translate({}, {.input = "he sings\nna\xEFve\nhe sings\n"});
  CHECK(r.code == 1);
  CHECK(r.out == sings + "\n" + sings);
  CHECK(r.err ==
        "translator: standard input:2: byte 3 (0xef) is not valid UTF-8; an empty line stands for it\n");
  Result argument = translate({"na\xEFve"});
  CHECK(argument.code == 1);
  CHECK(argument.err == "translator: the sentence: byte 3 (0xef) is not valid UTF-8\n");
}

namespace {

// A Transformer with 256 learned positions, made once.
const std::string& learned_model() {
  static const std::string name = [] {
    run_well(
        {"train",       "--data",    short_pairs(), "--subwords", "none",    "--model", "transformer",
         "--positions", "learned",   "--d-model",   "16",         "--heads", "2",       "--layers",
         "1",           "--threads", "1",           "--epochs",   "1",       "--out",   "learned_positions"});
    return std::string("learned_positions");
  }();
  return name;
}

std::string words(int n) {
  std::string line;
  for (int i = 0; i < n; ++i) line += i % 2 ? "eats " : "she ";
  return line;
}

}  // namespace

TEST_CASE("translate: a line longer than learned positions costs no other its translation") {
  Arguments command = {"translate", learned_model()};
  std::string sings = run(command, {.input = "he sings\n"}).out,
              eats = run(command, {.input = "she eats\n"}).out;
  REQUIRE(lines_of(sings).size() == 1);
  for (const char* threads : {"1", "2"}) {
    Arguments with = {"translate", learned_model(), "--threads", threads};
    Result r = run(
        with, {.input = "he sings\n" + words(256) + "\n\nshe eats\n" + words(1000) + "\nna\xEFve\nhe sings\n"});
    CHECK(r.code == 1);
    CHECK(r.out == sings + "\n\n" + eats + "\n\n" + sings);
    CHECK(r.err ==
          "translator: standard input:2: has 256 words, but this model has learned 256 positions: 255 words "
          "and </s>; "
          "an empty line stands for it\n"
          "translator: standard input:5: has 1000 words, but this model has learned 256 positions: 255 words "
          "and </s>; "
          "an empty line stands for it\n"
          "translator: standard input:6: byte 3 (0xef) is not valid UTF-8; an empty line stands for it\n");
  }
  // The longest that fits, whose translation ends where positions do, and lines between whose limit is their
  // own.
  Result fits =
      run(command, {.input = words(255) + "\nhe sings\n" + words(130) + "\n" + words(124) + "\nshe eats\n"});
  CHECK(fits.code == 0);
  CHECK(fits.err.empty());
  auto lines = lines_of(fits.out);
  REQUIRE(lines.size() == 5);
  CHECK(lines[1] + "\n" == sings);
  CHECK(lines[4] + "\n" == eats);
  CHECK(lines[0] + "\n" == run(command, {.input = words(255) + "\n"}).out);
  CHECK(run({"translate", learned_model(), "--max-length", "1000"}, {.input = "he sings\n"}).code == 0);
  check_refused({"translate", learned_model(), "--min-length", "9", "--max-length", "5", "he sings"}, 2,
                "--min-length 9 is more than --max-length 5");
  // More than the 2 S + 10 words that are the usual limit.
  const std::string longer = run({"translate", learned_model(), "--min-length", "40", "he sings"}).out;
  CHECK(std::count(longer.begin(), longer.end(), ' ') >= 35);  // a word may join the one before: "l'"
  std::string prefix;  // after which there might else be 10 words
  for (int i = 0; i < 255; ++i) prefix += "elle ";
  CHECK(run({"translate", learned_model(), "--prefix", prefix, "-k", "5", "he sings"}).code == 0);
  // Several lines out for each line in, with its number: one stands for it.
  Result best = run({"translate", learned_model(), "--n-best", "3"}, {.input = words(300) + "\nhe sings\n"});
  CHECK(best.code == 1);
  REQUIRE(lines_of(best.out).size() == 4);
  CHECK(lines_of(best.out)[0] == "0\t");
  for (size_t i : {1u, 2u, 3u}) CHECK(lines_of(best.out)[i].find("1\t") == 0);

  check_refused({"translate", learned_model(), words(300)}, 1,
                "the sentence: has 300 words, but this model has learned 256 positions: 255 words and </s>");
}

TEST_CASE("translate: lines too long for any model") {
  std::string sings = translate({"he sings"}).out;
  Result r = translate({}, {.input = "he sings\n" + words(5001) + "\n" + std::string(3'000'000, 'x') +
                                     "\nhe sings\n" + std::string(2'000'000, 'y')});
  CHECK(r.code == 1);
  CHECK(r.out == sings + "\n\n" + sings + "\n");
  CHECK(r.err ==
        "translator: standard input:2: has 5001 words; 5000 at most are taken; an empty line stands for it\n"
        "translator: standard input:3: has more than 1048576 bytes; an empty line stands for it\n"
        "translator: standard input:5: has more than 1048576 bytes; an empty line stands for it\n");
}

TEST_CASE("translate: what a line is translated to does not depend on long lines beside it") {
  std::string sings = translate({"he sings"}).out, eats = translate({"she eats apples"}).out;
  std::string input, expected;
  for (int i = 0; i < 100; ++i) {
    input += i % 10 == 5 ? words(700) + "\n" : i % 2 ? "he sings\n" : "she eats apples\n";
    expected += i % 10 == 5 ? "\n" : i % 2 ? sings : eats;
  }
  Result r = translate({}, {.input = input});
  CHECK(r.code == 0);
  auto got = lines_of(r.out), wanted = lines_of(expected);
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (i % 10 != 5) CHECK(got[i] == wanted[i]);
}

TEST_CASE("translate: a line that takes more memory than there is costs no other its translation") {
  if (!gradus::testing::memory_can_be_limited()) return;
  // Nothing learned: no translation comes to an end before its limit, and each word's weights are kept.
  REQUIRE(run(small_run("endless", {"--epochs", "1", "--lr", "1e-12", "-q"})).code == 0);
  write_file("short.en", "he sings\nshe eats apples\n");
  write_file("long.en", "he sings\n" + words(3500) + "\nshe eats apples\n");
  std::string said = run({"translate", "endless"}, {.input = read_file("short.en")}).out;
  REQUIRE(lines_of(said).size() == 2);
  auto within = [](int megabytes, const std::string& input) {
    return shell("export OPENBLAS_NUM_THREADS=1; ulimit -v " + std::to_string(1024 * megabytes) +
                 " && \"$T\" translate endless --threads 1 < " + input);
  };
  int enough = 50;  // for the short lines, and 100 to 200 MB too little for the long one
  while (enough < 3000 && within(enough, "short.en").code != 0) enough += 25;
  REQUIRE(enough < 3000);
  Result r = within(enough + 10, "long.en");
  INFO(r.err);
  CHECK(r.code == 1);
  auto got = lines_of(r.out), wanted = lines_of(said);
  REQUIRE(got.size() == 3);
  CHECK(got[0] == wanted[0]);
  CHECK(got[1] == "");
  CHECK(got[2] == wanted[1]);
  CHECK(lines_of(r.err).size() == 1);
  CHECK(r.says("translator: standard input:2: "));
  CHECK(r.says("; an empty line stands for it\n"));
}

TEST_CASE("translate: words nobody has seen, and a NUL among them, do no harm") {
  Result r =
      translate({}, {.input = std::string("zyx\0wv \xE0\xA4\xB9\xE0\xA4\xBF\n", 14) + "\xF0\x9F\x98\x80\n"});
  CHECK(r.code == 0);
  CHECK(lines_of(r.out).size() == 2);
}

TEST_CASE("translate: --beam-size, --n-best, --scores, --alignments") {
  std::string greedy = lines_of(translate({"the girl eats apples", "--scores"}).out).at(0);
  auto best = lines_of(
      translate({"the girl eats apples", "--beam-size", "4", "--n-best", "3", "--scores", "--alignments"})
          .out);
  REQUIRE(best.size() == 3);
  double log_probability = std::stod(columns_of(greedy).at(1));
  CHECK(log_probability <= 0);
  for (const std::string& line : best) {
    auto f = columns_of(line);
    REQUIRE(f.size() == 4);
    CHECK(f[0] == "0");  // the sentence
    CHECK(std::stod(f[2]) <= 0);
    CHECK(f[3].find('-') != std::string::npos);
  }
  CHECK(best[0] != best[1]);
  CHECK(lines_of(translate({"the girl eats apples", "--beam-size", "4"}).out).at(0) == columns_of(best[0])[1]);
  // Which lines belong together their numbers tell; an empty line has one.
  auto counted = lines_of(translate({"--n-best", "2"}, {.input = "he sings\n\nhe sings\n"}).out);
  REQUIRE(counted.size() == 5);
  CHECK(counted[2] == "1\t");
  for (size_t i : {0u, 1u}) CHECK("2" + counted[i].substr(1) == counted[3 + i]);
  auto links = columns_of(lines_of(translate({"he sings", "--alignments"}).out).at(0));
  REQUIRE(links.size() == 2);
}

TEST_CASE("translate --attention-map: a table without colours, colours where they are forced") {
  Result plain = translate({"she eats apples", "--attention-map"});
  CHECK(plain.code == 0);
  CHECK(plain.out.find('\x1b') == std::string::npos);
  for (const char* word : {"she\n", "eats\n", "apples\n", "</s>\n"})
    CHECK_MESSAGE(count(plain.out, word) >= 1, word);
  std::string translation = lines_of(plain.out).at(0);
  CHECK(translation + "\n" == translate({"she eats apples"}).out);
  Result forced = translate({"she eats apples", "--attention-map"}, {.environment = {{"FORCE_COLOR", "1"}}});
  CHECK(forced.out.find("\x1b[48;5;") != std::string::npos);
  CHECK(lines_of(forced.out).at(0) == translation);
  Result deep = translate({"she eats apples", "--attention-map"},
                          {.environment = {{"FORCE_COLOR", "1"}, {"COLORTERM", "truecolor"}}});
  CHECK(deep.out.find("\x1b[48;2;") != std::string::npos);
  Result both = translate({"she eats apples", "--attention-map"},
                          {.environment = {{"FORCE_COLOR", "1"}, {"NO_COLOR", "1"}}});
  CHECK(both.out == plain.out);
  // One of several that attends is enough, whichever is the first.
  REQUIRE(run(small_run("not-attending", {"--attention", "none", "--epochs", "1"})).code == 0);
  for (const char* option : {"--attention-map", "--alignments"})
    CHECK(run({"translate", "not-attending," + trained_model(), "she eats apples", option}).err.empty());
  CHECK(run({"translate", "not-attending", "she eats apples", "--alignments"}).err ==
        "translator: this model has no attention to align words by\n");
}

TEST_CASE("translate answers a line before it waits for the next one") {
  trained_model();
  // The second line is written only after the first answer was read.
  Result r = shell(
      "mkfifo to from && (\"$T\" translate trained < to > from &) && exec 3> to 4< from && echo he sings >&3 "
      "&& "
      "read -r first <&4 && echo she sings >&3 && read -r second <&4 && exec 3>&- && echo \"$first\" && echo "
      "\"$second\"");
  CHECK(r.code == 0);
  CHECK(r.out == translate({}, {.input = "he sings\nshe sings\n"}).out);
}

#ifdef HAVE_PTY
TEST_CASE("translate at a prompt: answers at once; Ctrl-D ends it, Ctrl-C too and harms nothing") {
  std::string answer = lines_of(translate({"he sings"}).out).at(0),
              weights = read_file("trained/model.safetensors");
  {
    Terminal t({"translate", "trained"});
    REQUIRE(t.until("> "));
    CHECK(count(t.seen(), "One sentence a line; Ctrl-D ends.") == 1);
    t.type("he sings\n");
    REQUIRE(t.until("> ", 2));
    CHECK(count(t.seen(), answer + "\r\n") == 1);
    t.type("\x04");
    CHECK(t.wait() == 0);
  }
  {
    Terminal t({"translate", "trained"});
    REQUIRE(t.until("> "));
    t.type("he si\x03");
    CHECK(t.wait() == -SIGINT);  // a shell shows it as 130
    CHECK(count(t.seen(), "translator:") == 0);
  }
  CHECK(read_file("trained/model.safetensors") == weights);
}

TEST_CASE("translate at a prompt: a line that cannot be translated ends nothing") {
  std::string answer = lines_of(run({"translate", learned_model()}, {.input = "he sings\n"}).out).at(0);
  Terminal t({"translate", learned_model()});
  REQUIRE(t.until("> "));
  t.type(words(300) + "\n");
  REQUIRE(t.until("standard input:1: has 300 words"));
  REQUIRE(t.until("> ", 2));
  t.type("he sings\n");
  REQUIRE(t.until("> ", 3));
  CHECK(count(t.seen(), answer + "\r\n") >= 1);
  t.type("\x04");
  CHECK(t.wait() == 1);
}

TEST_CASE("translate: a configuration whose languages hold control characters is refused, and shows none") {
  copy_model("prompted");
  std::string config = read_file("prompted/config.json");
  size_t at = config.find("\"source_language\": \"source\"");
  REQUIRE(at != std::string::npos);
  write_file("prompted/config.json", config.substr(0, at) + "\"source_language\": \"\\u001b[31mred\\u009b5m\"" +
                                         config.substr(at + 27));
  Result r = run({"translate", "prompted", "he sings"});
  CHECK(r.code == 1);
  CHECK(r.out.empty());
  CHECK(r.err.find("source_language") != std::string::npos);
  CHECK(r.err.find("without control characters") != std::string::npos);
  CHECK(r.err.find("\x1b") == std::string::npos);
  CHECK(r.err.find("\xC2\x9B") == std::string::npos);
}

TEST_CASE("score: a terminal gets the columns, and nothing that acts on it") {
  write_file("acting.tsv", "she \x1b[31meats\telle \xC2\x9B\xE2\x80\xAEmange\n");
  Terminal t({"score", trained_model(), "acting.tsv"});
  CHECK(t.wait() == 0);
  CHECK(count(t.seen(), "\tshe \xEF\xBF\xBD[31meats\telle \xEF\xBF\xBD\xEF\xBF\xBDmange") == 1);
}

TEST_CASE("translate --paragraphs: markup goes through as it is, but not to a terminal") {
  const std::string line = "<b\x1b[31mx>\n";
  CHECK(run({"translate", trained_model(), "--paragraphs"}, {.input = line}).out == line);
  Terminal t({"translate", trained_model(), "--paragraphs", "<b\x1b[31mx>"});
  CHECK(t.wait() == 0);
  CHECK(count(t.seen(), "<b\xEF\xBF\xBD[31mx>") == 1);
}
#endif
