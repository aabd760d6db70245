#include <common/error.h>
#include <translator/text/vocabulary.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "../quick_doctest.h"
#include "../scratch.h"

using namespace translator;

namespace {

Vocabulary load_text(const std::string& text) {
  std::istringstream in(text);
  return Vocabulary::load(in, "vocab.txt");
}

const std::string kHead = "<unk>\n<pad>\n<s>\n</s>\n";

TokenCounts count(const std::vector<std::string>& tokens) {
  TokenCounts counts;
  counts.add(tokens);
  return counts;
}

}  // namespace

TEST_CASE("vocabulary: specials first, then by frequency, then by spelling") {
  const Vocabulary v = Vocabulary::build(count({"le", "chat", "dort", "le", "ami", "chat", "le"}));
  REQUIRE(v.size() == 8);
  CHECK(v.token(0) == "<unk>");
  CHECK(v.token(1) == "<pad>");
  CHECK(v.token(2) == "<s>");
  CHECK(v.token(3) == "</s>");
  CHECK(v.token(4) == "le");
  CHECK(v.token(5) == "chat");
  CHECK(v.token(6) == "ami");
  CHECK(v.token(7) == "dort");
  // The order in which tokens were seen does not matter.
  CHECK(v == Vocabulary::build(count({"dort", "ami", "le", "le", "le", "chat", "chat"})));
}

TEST_CASE("vocabulary: limits") {
  const TokenCounts counts = count({"a", "a", "a", "b", "b", "c"});
  CHECK(counts.all().at("a") == 3);
  CHECK_FALSE(counts.all().contains("nothing"));
  CHECK(Vocabulary::build(counts, {.min_count = 2}).size() == 6);
  CHECK(Vocabulary::build(counts, {.max_size = 5}).size() == 5);
  CHECK(Vocabulary::build(counts, {.max_size = 5}).contains("a"));
  CHECK_FALSE(Vocabulary::build(counts, {.max_size = 5}).contains("b"));
  CHECK(Vocabulary::build(counts, {.max_size = 4}) == Vocabulary());
  CHECK_THROWS_WITH_AS(Vocabulary::build(counts, {.max_size = 3}),
                       "Vocabulary::build: max_size 3 has no room for the 4 specials", std::invalid_argument);
  CHECK_THROWS_WITH_AS(Vocabulary::build(count({"a\nb"})),
                       "Vocabulary::build: the token has a line break in it", std::invalid_argument);
  CHECK_THROWS_WITH_AS(Vocabulary::build(count({""})), "Vocabulary::build: the token is empty",
                       std::invalid_argument);
}

TEST_CASE("vocabulary: ids and back") {
  const Vocabulary v = Vocabulary::build(count({"le", "le", "chat"}));
  CHECK(v.encode({"le", "chien", "chat"}) == std::vector<int32_t>{4, 0, 5});
  CHECK(v.decode({2, 4, 0, 5, 3, 4}) == std::vector<std::string>{"le", "<unk>", "chat"});
  CHECK(v.decode({4, 1, 1}) == std::vector<std::string>{"le"});
  CHECK_THROWS_WITH_AS(v.token(6), "Vocabulary::token: no id 6 among 6 entries", std::out_of_range);
  CHECK_THROWS_AS(v.token(-1), std::out_of_range);
}

TEST_CASE("vocabulary: a word of the data that looks like a special is only a word") {
  const Vocabulary v = Vocabulary::build(count({"</s>", "</s>", "<pad>", "word"}));
  CHECK(v.size() == 5);
  CHECK(v.id("</s>") == Vocabulary::kUnknown);
  CHECK(v.id("<pad>") == Vocabulary::kUnknown);
  CHECK(v.id("<s>") == Vocabulary::kUnknown);
  CHECK(v.id("word") == 4);
}

TEST_CASE("vocabulary: saved and loaded") {
  const Vocabulary v = Vocabulary::build(count({"n'", "क्या", "#", "œuf", "n'"}));
  CHECK(v.text() == kHead + "n'\n#\nœuf\nक्या\n");
  CHECK(load_text(v.text()) == v);
  CHECK(load_text("\xEF\xBB\xBF<unk>\r\n<pad>\r\n<s>\r\n</s>\r\nle\r\n").id("le") == 4);
  CHECK(load_text(kHead + "le").id("le") == 4);  // no line end after the last

  scratch::Directory directory;
  const std::string path = directory.file("vocabulary");
  std::ofstream(path, std::ios::binary) << v.text();
  CHECK(Vocabulary::load(path) == v);
}

TEST_CASE("vocabulary: what is wrong with a file is said with its line") {
  CHECK_THROWS_WITH_AS(
      load_text(""), "vocab.txt:1: expected the special token <unk>, found the end of the file", InputError);
  CHECK_THROWS_WITH_AS(load_text("<unk>\n<pad>\nthe\n"),
                       "vocab.txt:3: expected the special token <s>, found \"the\"", InputError);
  CHECK_THROWS_WITH_AS(load_text(kHead + "le\nla\nle\n"),
                       "vocab.txt:7: the token \"le\" is on line 5 already", InputError);
  CHECK_THROWS_WITH_AS(load_text(kHead + "<s>\n"), "vocab.txt:5: the token \"<s>\" is on line 3 already",
                       InputError);
  CHECK_THROWS_WITH_AS(load_text(kHead + "le\n\nla\n"), "vocab.txt:6: the token is empty", InputError);
  CHECK_THROWS_WITH_AS(load_text(kHead + "caf\xe9\n"), "vocab.txt:5: byte 4 (0xe9) is not valid UTF-8",
                       InputError);
  CHECK_THROWS_WITH_AS(Vocabulary::load("/nonexistent/vocab"),
                       "/nonexistent/vocab: cannot be opened: No such file or directory", InputError);
  CHECK_THROWS_WITH_AS(load_text(kHead + "\n"), "vocab.txt:5: the token is empty", InputError);
}

TEST_CASE("vocabulary: tags, and entries that are another's with tags behind them") {
  for (const char* tag : {"<bt>", "<2fr>", "<back-translated_1>"}) CHECK(Vocabulary::is_tag(tag));
  const std::string too_long = "<" + std::string(39, 'a') + ">";
  for (const char* word : {"bt", "<>", "<a b>", "<s>", "<0x41>", too_long.c_str()})
    CHECK_FALSE(Vocabulary::is_tag(word));
  const Vocabulary v = load_text(kHead + "le\n");
  CHECK(load_text(kHead + "le\n<bt>\n").is_with_tags(v));
  for (const char* other : {"", "la\n<bt>\n", "le\nla\n"})
    CHECK_FALSE(load_text(kHead + other).is_with_tags(v));
}
