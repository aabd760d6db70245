// Text from files and arguments that would act on the terminal it is shown on: none of it gets there, whether
// what is shown is a message, a translation or a picture, and whether a terminal or a pipe reads it.

#include "../quick_doctest.h"
#include "program.h"

using namespace cli;
namespace fs = std::filesystem;

namespace {

// Clears the screen, sets the title, colours all that follows (CSI as one C1 code point), and writes from right
// to left.
const std::string kHostile = "\x1b[2J\x1b]0;owned\x07\xC2\x9B" "31m\xE2\x80\xAEx";

void check_harmless(const Result& r) {
  INFO(r.out << r.err);
  CHECK(acts_on_terminal(r.out) == "");
  CHECK(acts_on_terminal(r.err) == "");
}

// The vocabulary with its fifth word, the first that is none of the specials, put as `word`.
void respell(const std::string& path, const std::string& word) {
  std::string text;
  size_t n = 0;
  for (const std::string& line : lines_of(read_file(path))) text += (++n == 5 ? word : line) + "\n";
  write_file(path, text);
}

}  // namespace

TEST_CASE("a vocabulary with control characters is refused, by file and line") {
  const std::vector<std::pair<std::string, std::string>> words = {{"\x1b[31mle", "U+001B"},
                                                                  {"le\x07", "U+0007"},
                                                                  {"\xC2\x9B"
                                                                   "31m",
                                                                   "U+009B"},
                                                                  {"le\x7f", "U+007F"},
                                                                  {"\xE2\x80\xAE"
                                                                   "el",
                                                                   "U+202E"},
                                                                  {std::string("l\0e", 3), "U+0000"}};
  for (const char* side : {"source", "target"})
    for (const auto& [word, name] : words) {
      CAPTURE(name);
      copy_model("hostile");
      respell(std::string("hostile/") + side + ".vocab", word);
      for (const Arguments& command : {Arguments{"translate", "hostile", "she eats"},
                                       {"evaluate", "hostile", short_pairs()}}) {
        Result r = run(command);
        CHECK(r.code == 1);
        CHECK(r.out.empty());
        CHECK(r.err == std::string("translator: hostile/") + side +
                           ".vocab:5: the token has the control character " + name + " in it\n");
      }
    }
}

TEST_CASE("names of files and models with control characters are shown without them") {
  const std::string model = "m" + kHostile, data = "d" + kHostile + ".tsv";
  for (const Arguments& command : {Arguments{"translate", model, "a"},
                                   {"evaluate", model, data},
                                   {"train", "--data", data, "--out", model},
                                   {"replay", model},
                                   {"train", "--out", model, "--resume"}}) {
    Result r = run(command);
    CHECK(r.code == 1);
    CHECK(count(r.err, "[2J") > 0);  // what can be shown is
    check_harmless(r);
  }
  copy_model(model);
  check_harmless(run({"train", "--out", model}));
  check_harmless(run({"translate", model, "she eats apples", "--attention-map"}));
  write_file(model + "/config.json", "{" + kHostile);
  Result damaged = run({"translate", model, "a"});
  CHECK(damaged.code == 1);
  check_harmless(damaged);
  fs::remove(scratch_path() / (model + "/config.json"));
  fs::remove(scratch_path() / (model + "/model.safetensors"));
  check_harmless(run({"translate", model, "a"}));
}

TEST_CASE("sentences with control characters: trained on, evaluated, translated, and never shown with them") {
  std::string pairs;
  for (const std::string& line : lines_of(read_file(short_pairs()))) {
    size_t tab = line.find('\t');
    pairs += kHostile + line.substr(0, tab) + kHostile + "\t" + kHostile + line.substr(tab + 1) + "\n";
  }
  const std::string file = "p" + kHostile + ".tsv";
  write_file(file, pairs + kHostile + "no tab\nna\xEFve\t" + kHostile + "\n\n");
  Result trained = run({"train", "--data", file, "--hidden", "16", "--embedding", "16", "--epochs", "1",
                        "--threads", "1", "--out", "learned", "--probe", kHostile + "she eats" + kHostile});
  INFO(trained.err);
  CHECK(trained.code == 0);
  CHECK(count(trained.err, "2 bad") == 1);
  CHECK(count(trained.err, "  ->  ") > 0);  // the samples
  check_harmless(trained);
  for (const char* side : {"source", "target"})
    CHECK(acts_on_terminal(read_file(std::string("learned/") + side + ".vocab")) == "");

  write_file("few" + kHostile, kHostile + "she eats\t" + kHostile + "elle mange\n" + kHostile + "\n");
  Result evaluated =
      run({"evaluate", trained_model(), "few" + kHostile, "--hypotheses", "h", "--references", "r"});
  CHECK(evaluated.code == 1);
  CHECK(count(evaluated.err, "1 bad") == 1);
  check_harmless(evaluated);
  CHECK(acts_on_terminal(read_file("h")) == "");
  CHECK(read_file("r") == kHostile + "elle mange\n\n");  // to compare with, byte for byte

  Result compared = run({"diff", trained_model(), "h", "few" + kHostile});
  CHECK(compared.code == 1);
  check_harmless(compared);
  // A translation that is worse is shown, and the name of its file, which is no UTF-8 either.
  write_file("said\xFF" + kHostile, kHostile + "autre\n\n");
  for (const Arguments& how : {Arguments{}, {"--json"}}) {
    compared = run(Arguments{"diff", "h", "said\xFF" + kHostile, "few" + kHostile} + how);
    CHECK(compared.code == 1);
    CHECK(count(compared.out, "autre") == 1);
    check_harmless(compared);
  }
  // What score writes is data again, byte for byte, but to a terminal.
  Result scored = run({"score", trained_model(), "few" + kHostile});
  CHECK(scored.out.ends_with(kHostile + "she eats\t" + kHostile + "elle mange\n\n"));
  CHECK(acts_on_terminal(scored.err) == "");

  // A word nobody knows is copied from the source: from a hostile source it must come without what is hostile.
  Result piped = run({"translate", trained_model(), "--attention-map", "--scores", "--alignments"},
                     {.input = kHostile + "zyx " + kHostile + "\n" + kHostile + "\xFF\n"});
  CHECK(piped.code == 1);
  check_harmless(piped);
  check_harmless(run({"translate", trained_model(), kHostile + "zyx \xFF"}));
}

TEST_CASE("compare believes no result that names another run, whatever that is called") {
  Arguments race = {"compare",
                    "--corpus-size",
                    "300",
                    "--hidden",
                    "8",
                    "--embedding",
                    "8",
                    "--epochs",
                    "1",
                    "--seeds",
                    "1",
                    "--threads",
                    "1",
                    "--work",
                    "hostile_race",
                    "--attention",
                    "none"};
  REQUIRE(run(race).code == 0);
  std::string result = read_file("hostile_race/none-42/race.json");
  size_t at = result.find("\"attention\":\"none\"");
  REQUIRE(at != std::string::npos);
  write_file("hostile_race/none-42/race.json",
             result.substr(0, at) + "\"attention\":\"\\u001b[31mnone\"" + result.substr(at + 18));
  Result r = run(race);
  CHECK(r.code == 1);
  CHECK(r.says("was made with other settings"));
  check_harmless(r);
}
