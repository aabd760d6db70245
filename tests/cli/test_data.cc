// A person's own sentence pairs.

#include <fmt/format.h>

#include <algorithm>

#include "../quick_doctest.h"
#include <common/json_text.h>
#include "program.h"

using namespace cli;

namespace {

Arguments memorise(const std::string& out, const Arguments& data) {
  Arguments a = {"train", "--out",    out,    "--hidden",         "32",   "--embedding",  "32",   "--threads",
                 "1",     "--lr",     "0.02", "--min-count",      "1",    "--batch-size", "4",    "--dropout",
                 "0",     "--epochs", "60",   "--validate-every", "1000", "--subwords",   "none", "--case",
                 "lower"};
  return a + data;
}

bool has_line(const std::string& text, const std::string& line) {
  auto lines = lines_of(text);
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

const char* const kHindi =
    "I need water.\tमुझे पानी चाहिए।\n"
    "He reads a book.\tवह किताब पढ़ता है।\n"
    "She reads a book.\tवह किताब पढ़ती है।\n"
    "I drink tea.\tमैं चाय पीता हूँ।\n"
    "This is my house.\tयह मेरा घर है।\n"
    "Where is the water?\tपानी कहाँ है?\n"
    "We speak Hindi.\tहम हिन्दी बोलते हैं।\n"
    "They went home.\tवे घर गए।\n";

}  // namespace

TEST_CASE("Hindi: learned from swapped columns and as the target, marks with their letters") {
  write_file("hindi.tsv", kHindi);
  Result r = run_well(memorise("from_hindi", {"--data", "hindi.tsv", "--swap"}));
  CHECK(r.says("hindi.tsv: 8 of 8 lines read\n"));
  CHECK_FALSE(r.says("  valid "));  // too few pairs to hold any out
  CHECK(r.says("The model is in from_hindi.\n"));
  std::string words = read_file("from_hindi/source.vocab");
  for (const char* word : {"हिन्दी", "किताब", "हूँ", "पढ़ता", "।"}) CHECK_MESSAGE(has_line(words, word), word);
  CHECK(run({"translate", "from_hindi", "मुझे पानी चाहिए।"}).out == "i need water.\n");
  CHECK(run({"translate", "from_hindi"}, {.input = "यह मेरा घर है।\r\nपानी कहाँ है?\n"}).out ==
        "this is my house.\nwhere is the water?\n");
  CHECK(run({"translate", "from_hindi", "वे घर गए।", "--attention-map"}).out.find("घर") != std::string::npos);

  REQUIRE(run(memorise("to_hindi", {"--data", "hindi.tsv", "-q"})).code == 0);
  CHECK(run({"translate", "to_hindi", "we speak hindi."}).out == "हम हिन्दी बोलते हैं।\n");
}

TEST_CASE("a pair of files in English and French, with typographic apostrophes and French spaces") {
  write_file("a.en",
             "\xEF\xBB\xBFHe doesn’t sing.\r\nDoes he sing?\r\nI like the water.\r\nShe eats.\r\nCome!\r\n");
  write_file(
      "a.fr",
      "Il ne chante pas.\nEst-ce qu’il chante\xC2\xA0?\nJ’aime l’eau.\nElle mange.\nViens\xE2\x80\xAF!\n");
  Result r = run_well(memorise(
      "files", {"--source", "a.en", "--target", "a.fr", "--valid-source", "a.en", "--valid-target", "a.fr"}));
  CHECK(r.says("a.en, a.fr: 5 of 5 lines read\n"));
  Result t = run({"translate", "files"}, {.input = "does he sing?\nhe doesn't sing.\nI like the water.\n"});
  auto lines = lines_of(t.out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[1] == "il ne chante pas.");
  CHECK(lines[2] == "j'aime l'eau.");
  CHECK(lines[0].find("est-ce qu'il chante") == 0);
  CHECK(lines[0] != "est-ce qu'il chante?");  // a space of some kind before the question mark
  // The other way round.
  REQUIRE(run(memorise("files_back", {"--source", "a.en", "--target", "a.fr", "--swap", "-q"})).code == 0);
  CHECK(run({"translate", "files_back", "elle mange."}).out == "she eats.\n");
}

TEST_CASE("training pairs from standard input; --case keep keeps capitals") {
  Result r = run_well(memorise("from_stdin", {"--data", "-", "--case", "keep"}),
                      {.input = "Anna sings\tAnna chante\nPaul eats\tPaul mange\n"});
  CHECK(r.says("standard input: 2 of 2 lines read\n"));
  CHECK(run({"translate", "from_stdin", "Anna sings"}).out == "Anna chante\n");
}

TEST_CASE("bad lines are counted and named, or refused by --strict; nothing is made of the latter") {
  write_file("bad.tsv", "one\tun\nno tab\n\ntwo\tdeux\n\tempty source\nna\xEFve\tx\nlong " +
                            std::string("a ", 0) + "a a a a a a\tlong\nthree\ttrois\n");
  Result r = run(memorise("lenient", {"--data", "bad.tsv", "--max-length", "5"}));
  CHECK(r.code == 0);
  CHECK(
      r.says("bad.tsv: 3 of 8 lines read, 1 blank, 1 too long, 3 bad\n"
             "  bad.tsv:2: no tab between source and target\n"
             "  bad.tsv:5: the source side is empty\n"
             "  bad.tsv:6: byte 3 (0xef) is not valid UTF-8\n"));
  Result strict = run(memorise("strict", {"--data", "bad.tsv", "--strict"}));
  CHECK(strict.code == 1);
  CHECK(strict.err == "translator: bad.tsv:2: no tab between source and target\n");
  CHECK_FALSE(exists("strict"));
}

TEST_CASE("three pairs of one's own, and nothing else said: they are learnt, and shown") {
  write_file("typed.tsv",
             "The dog sleeps.\tLe chien dort.\nAnna sings!\tAnna chante !\nGood night.\tBonne nuit.\n");
  const Result r = run_well({"train", "--data", "typed.tsv", "--out", "typed"});
  CHECK(r.says("no pairs are held out of typed.tsv for validation"));
  CHECK(r.says("  Anna sings!  ->  Anna chante !\n"));
  CHECK(run({"translate", "typed"}, {.input = "The dog sleeps.\nAnna sings!\nGood night.\n"}).out ==
        "Le chien dort.\nAnna chante !\nBonne nuit.\n");
  CHECK(events("typed", "validation").size() == 20);
}

TEST_CASE("what is not read of a file, and that nothing was held out of it, is said") {
  std::string text;
  for (int i = 0; i < 12; ++i) text += fmt::format("she eats {0}\telle mange {0}\tCC-BY\t{1}\n", i, 100 + i);
  write_file("ids.tsv", text);
  const Result r = run(memorise("ids", {"--data", "ids.tsv," + short_pairs(), "--epochs", "1"}));
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(r.says("ids.tsv: 12 of 12 lines read, 12 with further columns, which are not read\n"));
  CHECK(r.says(
      "no pairs are held out of ids.tsv for validation, as of any fewer than 200: --valid names some\n"));
  const Result judged = run({"evaluate", trained_model(), "ids.tsv"});
  CHECK(judged.code == 0);
  CHECK(judged.says("ids.tsv: 12 of 12 lines read, 12 with further columns, which are not read\n"));
}

TEST_CASE("what is no text in lines is named, and how it becomes some") {
  write_file("old-mac.tsv", "one\tun\rtwo\tdeux\rthree\ttrois\r");
  CHECK(run({"train", "--data", "old-mac.tsv", "--out", "none"}).err ==
        "translator: old-mac.tsv: has CR alone between its lines: tr '\\r' '\\n' makes line feeds of them\n");
  write_file("numbered.tsv", "1276\tshe sings\t1286\telle chante\n");
  const Result numbered = run({"train", "--data", "numbered.tsv", "--out", "none"});
  CHECK(numbered.code == 1);
  CHECK(numbered.err ==
        "translator: numbered.tsv: has the numbers of its sentences, too, as Tatoeba's files of pairs do: "
        "cut -f2,4 leaves the sentences\n");
  write_file("packed.tsv.gz", "\x1F\x8B\x08 and so on");
  CHECK(run({"train", "--data", "packed.tsv.gz", "--out", "none"})
            .says("packed.tsv.gz:1: is compressed: zcat unpacks it, and - in the place of its name reads what "
                  "comes of that\n"));
  CHECK_FALSE(exists("none"));
  std::string wide = "\xFF\xFE";
  for (int i = 0; i < 50; ++i) wide += std::string("a\0\n\0", 4);
  check_refused({"translate", trained_model()}, 1,
                "standard input:1: looks like UTF-16: iconv -f UTF-16 -t UTF-8 makes UTF-8 of it",
                {.input = wide});
}

TEST_CASE("sources that go together, and standard input once: files of options are held to it, too") {
  auto refused = [](const Arguments& arguments, const std::string& text) {
    check_refused(arguments, 2, text, {.input = "one\tun\n"});
  };
  const std::string once = " name standard input, which can be read once";
  refused({"train", "--data", "-", "--valid", "-", "--out", "none"}, "--data and --valid" + once);
  refused({"train", "--data", "a.tsv,-", "--valid-source", "-", "--valid-target", "b", "--out", "none"},
          "--data and --valid-source" + once);
  refused({"doctor", "-", "--test", "-"}, "pairs and --test" + once);
  write_file("half.json", "{\"source\": \"a.en\"}");
  write_file("other-half.json", "{\"valid-target\": \"a.en\"}");
  write_file("a.en", "a\n");
  refused({"train", "--config", "half.json", "--out", "none"}, "--source requires --target");
  refused({"train", "--config", "other-half.json", "--out", "none"}, "--valid-target requires --valid-source");
  CHECK_FALSE(exists("none"));
}

TEST_CASE("pairs of one source, which those held out take with them, want --valid") {
  std::string same;
  for (int i = 0; i < 200; ++i) same += "she eats\telle mange " + std::to_string(i) + "\n";
  write_file("same.tsv", same);
  const Result r =
      run({"train", "--data", "same.tsv", "--out", "same", "--print-config", "--subwords", "none"});
  CHECK(r.code == 1);
  CHECK(r.says("same.tsv: has no pair whose source is not among those held out for validation: give --valid"));
}

TEST_CASE("--valid beside the embedded corpus is what it is judged by") {
  write_file("mine.tsv", "she eats apples\telle mange des pommes\n");
  run_well({"train", "--corpus-size", "300", "--valid", "mine.tsv", "--out", "judged", "--hidden", "16",
            "--embedding", "16", "--epochs", "1", "--threads", "1"});
  auto log = events("judged", "validation");
  REQUIRE(log.size() == 1);
  REQUIRE(log[0].at("samples").size() == 2);
  CHECK(log[0].at("samples")[0].at("source") == "he doesn't like apples");
  CHECK(log[0].at("samples")[1].at("source") == "she eats apples");
}

TEST_CASE("French spaces are those of the target, where it has them") {
  std::string french, english;
  for (int i = 1; i <= 30; ++i) {
    french += fmt::format("{} cats sing!\t{} chats chantent !\n", i, i);
    english += fmt::format("{} chats chantent !\t{} cats sing!\n", i, i);
  }
  for (const std::string name : {"french", "english"}) {
    const std::string out = "spaced-" + name;
    write_file(out + ".tsv", name == "french" ? french : english);
    REQUIRE(run({"train", "--data", out + ".tsv", "--out", out, "--subwords", "none", "--hidden", "8",
                 "--epochs", "1", "-q"})
                .code == 0);
    const auto config = json_text::parse(read_file(out + "/config.json"));
    CHECK(config.at("french_typography") == (name == "french"));
  }
}
