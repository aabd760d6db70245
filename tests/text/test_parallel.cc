#include <common/error.h>
#include <translator/text/parallel.h>
#include <translator/text/tokenizer.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "../quick_doctest.h"

using namespace translator;

namespace {

ParallelData read(const std::string& text, const ReadOptions& options = {}) {
  std::istringstream in(text);
  return read_pairs(in, "pairs.tsv", options);
}

ParallelData read_two(const std::string& source, const std::string& target, const ReadOptions& options = {}) {
  std::istringstream first(source);
  std::istringstream second(target);
  return read_pairs(first, "a.en", second, "a.fr", options);
}

using Tokens = std::vector<std::string>;

}  // namespace

TEST_CASE("parallel: pairs with their tokens and texts") {
  const auto data = read("He doesn't like apples.\tIl n'aime pas les pommes.\nGo!\tVa\u202F!\tCC-BY 2.0\n");
  REQUIRE(data.pairs.size() == 2);
  CHECK(data.pairs[0].source == Tokens{"he", "doesn't", "like", "apples", "."});
  CHECK(data.pairs[0].target == Tokens{"il", "n'", "aime", "pas", "les", "pommes", "."});
  CHECK(data.pairs[0].source_text == "He doesn't like apples.");
  CHECK(data.pairs[1].target_text == "Va\u202F!");
  CHECK(data.pairs[1].target == Tokens{"va", "!"});
  CHECK(data.pairs[1].line == 2);
  CHECK_FALSE(data.pairs[1].alignment.has_value());
  CHECK(data.report.lines == 2);
  CHECK(data.report.pairs == 2);
  CHECK(data.report.bad == 0);
  CHECK(data.report.summary() == "pairs.tsv: 2 of 2 lines read, 1 with further columns, which are not read");
  CHECK(read("He\tIl\n", {.text = {.lowercase = false}}).pairs[0].source == Tokens{"He"});
}

TEST_CASE("parallel: a line that is one endless word is too long, too") {
  const std::string endless(501, 'a');
  const auto data = read("a b\tc\n" + endless + "\tx\nx\t" + endless.substr(1) + "\n", {.max_length = 5});
  CHECK(data.pairs.size() == 2);
  CHECK(data.report.too_long == 1);
}

TEST_CASE("parallel: line ends, BOM, blank lines") {
  const auto data = read(
      "\xEF\xBB\xBF"
      "a\tb\r\n\r\n   \nc\td");
  REQUIRE(data.pairs.size() == 2);
  CHECK(data.pairs[0].source_text == "a");
  CHECK(data.pairs[0].target_text == "b");
  CHECK(data.pairs[1].target_text == "d");
  CHECK(data.report.lines == 4);
  CHECK(data.report.blank == 2);
  CHECK(data.report.bad == 0);
  CHECK(read("").pairs.empty());
  CHECK(read("\n").report.blank == 1);
  CHECK(read("a\tb\rc").pairs[0].target == Tokens{"b", "c"});
}

TEST_CASE("parallel: bad lines are counted, named and left out") {
  const std::string text = "good\tbon\nno tab here\ncaf\xe9\tcafé\ncafé\tcaf\xe9\n\tvide\nvide\t \nok\toui\n";
  const auto data = read(text);
  CHECK(data.pairs.size() == 2);
  CHECK(data.report.bad == 5);
  CHECK(data.report.messages == Tokens{"pairs.tsv:2: no tab between source and target",
                                       "pairs.tsv:3: byte 4 (0xe9) is not valid UTF-8",
                                       "pairs.tsv:4: byte 10 (0xe9) is not valid UTF-8",
                                       "pairs.tsv:5: the source side is empty",
                                       "pairs.tsv:6: the target side is empty"});
  CHECK(data.report.summary() == "pairs.tsv: 2 of 7 lines read, 5 bad");
  CHECK(read(text, {.kept_messages = 1}).report.messages.size() == 1);
  CHECK_THROWS_WITH_AS(read(text, {.strict = true}), "pairs.tsv:2: no tab between source and target",
                       InputError);
  CHECK_THROWS_WITH_AS(read("a\t\u200B\n", {.strict = true}), "pairs.tsv:1: the target side is empty",
                       InputError);
  CHECK_THROWS_WITH_AS(read("a\t\n", {.swap_columns = true, .strict = true}),
                       "pairs.tsv:1: the source side is empty", InputError);
}

TEST_CASE("parallel: swapped columns, limits") {
  const auto data = read("Wow!\tवाह!\n", {.swap_columns = true});
  CHECK(data.pairs[0].source == Tokens{"वाह", "!"});
  CHECK(data.pairs[0].target_text == "Wow!");
  const auto shorter = read("a b c\tx\na b\tx\na\tx y z\n", {.max_length = 2});
  CHECK(shorter.pairs.size() == 1);
  CHECK(shorter.report.too_long == 2);
  CHECK(shorter.report.summary() == "pairs.tsv: 1 of 3 lines read, 2 too long");
  CHECK(read("a\tb\nc\td\nbad", {.strict = true, .max_pairs = 2}).pairs.size() == 2);
}

TEST_CASE("parallel: alignments in the third column") {
  const auto data = read("he doesn't\til n' pas\t0-0 1-1 1?2\nb\tc\t0-1\nd\te\t\nf\tg\t0-0\tmore\n");
  REQUIRE(data.pairs.size() == 4);
  REQUIRE(data.pairs[0].alignment.has_value());
  CHECK(data.pairs[0].alignment->sure == Links{{0, 0}, {1, 1}});
  CHECK(data.pairs[0].alignment->possible == Links{{1, 2}});
  CHECK_FALSE(data.pairs[1].alignment.has_value());  // points behind the sentence
  CHECK_FALSE(data.pairs[2].alignment.has_value());
  CHECK(data.pairs[3].alignment->sure == Links{{0, 0}});
  CHECK(data.report.aligned == 2);
  CHECK(data.report.bad_alignments == 1);
  CHECK(data.report.summary() ==
        "pairs.tsv: 4 of 4 lines read, 2 with alignments, 1 with further columns, which are not read, "
        "1 alignments that do not fit their sentences");
  const auto back = read("a b\tx\t1-0\n", {.swap_columns = true});
  CHECK(back.pairs[0].alignment->sure == Links{{0, 1}});
}

TEST_CASE("parallel: further columns are counted, unless they are read or blank") {
  const std::string whose = "Let's go!\tAllons-y !\tCC-BY\t373\nI see.\tJe vois.\tCC-BY\t374\n";
  CHECK(read(whose).report.summary() ==
        "pairs.tsv: 2 of 2 lines read, 2 with further columns, which are not read");
  CHECK(read(whose, {.swap_columns = true}).report.with_further == 2);
  CHECK(read(whose, {.multi_reference = true}).report.with_further == 0);
  CHECK(read("a\tb\t \t\nc\td\t0-0\t\ne\tf\t\tg\n\th\ti\n").report.with_further == 1);
}

TEST_CASE("parallel: very long lines survive") {
  std::string line(3'000'000, 'x');
  const auto data = read(line + "\t" + line + "\na\tb\n");
  REQUIRE(data.pairs.size() == 2);
  CHECK(data.pairs[0].source.size() == 1);
  CHECK(data.pairs[0].source[0].size() == line.size());
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += "ab ";
  CHECK(read(many + "\tz").pairs[0].source.size() == 200'000);
}

TEST_CASE("parallel: two files") {
  const auto data = read_two("a\r\n\nc\n", "x\n\nz");
  REQUIRE(data.pairs.size() == 2);
  CHECK(data.pairs[1].source_text == "c");
  CHECK(data.pairs[1].target_text == "z");
  CHECK(data.pairs[1].line == 3);
  CHECK(data.report.blank == 1);
  CHECK(data.report.summary() == "a.en, a.fr: 2 of 3 lines read, 1 blank");
  CHECK(read_two("a\tb\n", "c\n").pairs[0].source == Tokens{"a", "b"});  // a tab is only a space here
  CHECK_THROWS_WITH_AS(read_two("a\nb\nc\nd\n", "x\n"), "a.en: has 4 lines, but a.fr has 1", InputError);
  CHECK_THROWS_WITH_AS(read_two("a\n", "x\ny\nz\n"), "a.en: has 1 line, but a.fr has 3", InputError);
  CHECK_THROWS_WITH_AS(read_two("a\nb\n", "x\n\n", {.strict = true}), "a.fr:2: the target side is empty",
                       InputError);
  CHECK_THROWS_WITH_AS(read_two("a\nb\n", "x\ny\xff\n", {.strict = true}),
                       "a.fr:2: byte 2 (0xff) is not valid UTF-8", InputError);
  CHECK_THROWS_WITH_AS(read_two("\n", "x\n", {.swap_columns = true, .strict = true}),
                       "a.en:1: the target side is empty", InputError);
}

TEST_CASE("parallel: files that cannot be read") {
  CHECK_THROWS_WITH_AS(read_pairs("/nonexistent/pairs.tsv"),
                       "/nonexistent/pairs.tsv: cannot be opened: No such file or directory", InputError);
  const std::string directory = std::filesystem::temp_directory_path().string();
  CHECK_THROWS_WITH_AS(read_pairs(directory), (directory + ": is a directory").c_str(), InputError);
  CHECK_THROWS_WITH_AS(read_pairs("-", "-", {}), "standard input: cannot be both the source and the target",
                       InputError);
  const char* wide = "pairs.tsv:1: looks like UTF-16: iconv -f UTF-16 -t UTF-8 makes UTF-8 of it";
  CHECK_THROWS_WITH_AS(read(std::string("\xFF\xFE"
                                        "a\0\t\0",
                                        6)),
                       wide, InputError);

  for (const char* bytes : {"a\0b\0\t\0", "\0a\0b\0\t", "\xFE\xFF\x4E\x2D\x65\x87"})
    CHECK_THROWS_WITH_AS(read(std::string(bytes, 6)),
                         wide, InputError);
  CHECK(read(std::string("\0\0\0\0a\tb\n", 8)).pairs.size() == 1);  // dropped, and told

  for (auto [bytes, unpacks] : {std::pair("\x1F\x8B\x08", "zcat"), {"\xFD\x37zXZ", "xzcat"},
                                {"BZh91AY&SY", "bzcat"}, {"\x28\xB5\x2F\xFD", "zstdcat"}})
    CHECK_THROWS_WITH_AS(read(bytes),
                         ("pairs.tsv:1: is compressed: " + std::string(unpacks) +
                          " unpacks it, and - in the place of its name reads what comes of that")
                             .c_str(),
                         InputError);
  CHECK_THROWS_WITH_AS(read("PK\x03\x04\x14"),
                       "pairs.tsv:1: is a spreadsheet or an archive: save it as text, with tabs between the "
                       "columns",
                       InputError);
  CHECK_THROWS_WITH_AS(read("a\tb\rc\td\re\tf\r"),
                       "pairs.tsv: has CR alone between its lines: tr '\\r' '\\n' makes line feeds of them",
                       InputError);
  CHECK_THROWS_AS(read_two("a\rb\rc", "x\n"), InputError);
  CHECK(read("a\tb\rc\rd\n").pairs.size() == 1);

  const std::string path = directory + "/gradus-pairs-" + std::to_string(getpid()) + ".tsv";
  std::ofstream(path) << "a\tb\n";
  CHECK(read_pairs(path).pairs.size() == 1);
  CHECK(read_pairs(path, path, {}).pairs[0].target == Tokens{"a", "b"});
  std::filesystem::remove(path);
}

TEST_CASE("parallel: any bytes at all") {
  std::mt19937 random(5);
  for (int round = 0; round < 600; ++round) {
    std::string text;
    for (size_t n = random() % 120; n > 0; --n) {
      const auto kind = random() % 8;
      text.push_back(kind == 0   ? '\t'
                     : kind == 1 ? '\n'
                     : kind < 5  ? 'a'
                                 : static_cast<char>(random() % 256));
    }
    ParallelData data;
    try {
      data = read(text, {.max_length = 9});
    } catch (const InputError&) {
      CHECK((!unreadable_as(text).empty() || text.find('\n') == text.npos));
      continue;
    }
    const ReadReport& r = data.report;
    CHECK(r.lines == r.pairs + r.blank + r.bad + r.too_long);
    for (const SentencePair& pair : data.pairs) {
      CHECK_FALSE(pair.source.empty());
      CHECK_FALSE(pair.target.empty());
    }
  }
}

TEST_CASE("parallel: numbers of sentences are no sentences") {
  const std::string says =
      "pairs.tsv: has the numbers of its sentences, too, as Tatoeba's files of pairs do: cut -f2,4 leaves the "
      "sentences";
  CHECK_THROWS_WITH_AS(read("1276\tGo.\t1286\tVa.\n\n1277\tHi.\t1290\tSalut.\r\n"), says.c_str(),
                       InputError);
  // Who learns to write numbers has some in all places but one.
  for (const char* line : {"x\tGo.\t1286\tVa.\n", "1278\tGo.\tx\tVa.\n", "7\tseven\t8\n",
                           "7\tseven\t8\t \n", "7\tseven\n", "\tGo.\t1286\tVa.\n"})
    CHECK(read("1276\tGo.\t1286\tVa.\n" + std::string(line)).report.lines == 2);
}
