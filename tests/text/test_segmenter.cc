// The way from text to pieces and back: nothing is lost, words stay whole, damaged models are refused.

#include <translator/text/segmenter.h>
#include <translator/text/word_picture.h>

#include <common/error.h>
#include <common/utf8.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "../pieces.h"
#include "../quick_doctest.h"
#include "../scratch.h"

using namespace translator;
using gradus::testing::no_pieces;

namespace {

using Strings = std::vector<std::string>;

Segmenter learnt(const Strings& lines, SubwordOptions options,
                 SegmenterOptions text = {.letter_case = "keep"}) {
  TokenCounts counts;
  const Segmenter words(text);
  for (const std::string& line : lines) words.count_words(line, counts);
  options.quiet = true;
  return Segmenter(text, std::make_shared<Subwords>(Subwords::learn(counts, options)));
}

const Strings kEnglish = {"The cat doesn't sleep.", "The dog sleeps, and the cats sleep.",
                          "Does the cat see the dog?", "It's 3.14 o'clock -- said \"Tom\".",
                          "The dogs don't see the sleeping cats!"};

// Sentences in ten scripts with the marks, joiners, digits and punctuation that they have.
Strings ten_scripts(size_t lines) {
  struct Script {
    std::u32string letters, marks, punctuation;
    bool spaced;
  };
  const std::vector<Script> scripts = {
      {U"abcdefghijklmnopqrstuvwxyzéèçœßłøABCDEÉ", U"", U".,;:!?'’\"“”«»()-–…%&/@#", true},
      {U"абвгдежзийклмнопрстуфхцчшщъыьэюяіїёАБВ", U"\u0301", U".,!?«»—„“", true},
      {U"αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώΑΒΓ", U"", U".,;·!«»", true},
      {U"ابتثجحخدذرزسشصضطظعغفقكلمنهويءآأؤئپچژگ", U"\u064B\u064E\u0651\u200C", U"،؛؟.!٪", true},
      {U"אבגדהוזחטיכלמנסעפצקרשתךםןףץ", U"\u05B0\u05B8\u05BC", U".,?!־׳״", true},
      {U"अआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसह", U"\u093E\u093F\u0940\u0947\u094B\u094D\u0902\u200D",
       U"।॥,?!", true},
      {U"的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生今日天气很好", U"",
       U"，。！？、「」《》（）：；", false},
      {U"あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもアイウエオカキクケコ猫犬食飲",
       U"", U"。、！？「」・ー", false},
      {U"가각간갇갈감갑값강개거건걸검게겨결경계고과관교구국군그극기나날남내너네노다대도동되두", U"", U".,!?",
       true},
      {U"กขคงจฉชซดตถทธนบปผพฟมยรลวศสหอฮเแโไ", U"\u0E31\u0E34\u0E35\u0E48\u0E49\u0E38", U"ๆฯ", false}};
  const Strings others = {"3",        "1,000",    "10:30", "２０２６", "😀",  "👩‍👩‍👧",
                          "👍🏽", "e\u0301",  "Zork",  "€5",       "x²", "٣",
                          "①",        "a\u0308b", "ﬁ",     "…",        "--", "🇫🇷"};
  std::mt19937 random(12);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  Strings out;
  for (size_t i = 0; i < lines; ++i) {
    const Script& s = scripts[i % scripts.size()];
    std::string line;
    for (size_t words = 1 + below(8); words > 0; --words) {
      if (below(12) == 0) {
        line += others[below(others.size())];
      } else {
        for (size_t letters = 1 + below(6); letters > 0; --letters) {
          utf8::append(line, s.letters[below(s.letters.size())]);
          if (!s.marks.empty() && below(4) == 0) utf8::append(line, s.marks[below(s.marks.size())]);
        }
      }
      if (below(4) == 0) {
        if (below(3) == 0) line += ' ';
        utf8::append(line, s.punctuation[below(s.punctuation.size())]);
      }
      if (s.spaced || below(6) == 0) line += below(9) == 0 ? "\u00A0" : below(9) == 0 ? "\u202F" : " ";
    }
    out.push_back(line);
  }
  return out;
}

// What a line may come back as: NFC, spaces of all kinds one plain space, none outside.
std::string composed_and_spaced(const std::string& line) {
  std::string out;
  for (char32_t c : utf8::decode_lossy(utf8::nfc(line))) {
    if (!utf8::is_space(c))
      utf8::append(out, c);
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

}  // namespace

TEST_CASE("segmenter: 10,000 lines of ten scripts come back byte for byte from pieces of every kind") {
  if (no_pieces()) return;
  const Strings lines = ten_scripts(10'000);
  const Strings seen(lines.begin(), lines.begin() + 300);  // of the others characters may be new
  for (const char* type : {"bpe", "unigram", "char"}) {
    CAPTURE(type);
    const Segmenter s = learnt(seen, {.type = type, .size = 1200});
    const Vocabulary vocabulary = s.subwords()->vocabulary();
    size_t lost = 0, unknown = 0, torn = 0, bytes = 0;
    for (const std::string& line : lines) {
      const Segmented found = s.split(line);
      if (s.join(found.pieces) != composed_and_spaced(line) && lost++ < 3)
        CHECK(s.join(found.pieces) == line);
      for (const std::string& piece : found.pieces) {
        unknown += !vocabulary.contains(piece);
        bytes += piece.starts_with("<0x");
      }
      const Segmented back = s.words_of(found.pieces);
      if ((back.words != found.words || back.word_of != found.word_of) && torn++ < 3)
        CHECK(back.words == found.words);
    }
    CHECK(lost == 0);
    CHECK(unknown == 0);
    CHECK(torn == 0);
    CHECK(bytes > 0);
  }
}

TEST_CASE("segmenter: words come back, too, with marks where spacing follows no rule") {
  const Strings lines = ten_scripts(2000);
  for (Typography typography : {Typography::other, Typography::french}) {
    const Segmenter s({.letter_case = "keep", .typography = typography, .marks = true});
    size_t lost = 0;
    for (const std::string& line : lines) {
      const std::string wanted = normalize(line, s.reading());
      if (wanted.find("\u200C") != wanted.npos || wanted.find("\u200D") != wanted.npos)
        continue;  // stray ones go
      if (s.join(s.split(line).pieces) != wanted && lost++ < 3) CHECK(s.join(s.split(line).pieces) == wanted);
    }
    CHECK(lost == 0);
  }
  const Segmenter french({.letter_case = "keep", .typography = Typography::french, .marks = true});
  CHECK(french.split("Ça va ?").pieces == Strings{"Ça", "va", "?"});
  CHECK(french.split("Ça va?").pieces == Strings{"Ça", "va", "\uFFED?"});
  CHECK(french.split("Ça va? Oui .").pieces == Strings{"Ça", "va", "\uFFED?", "Oui", "\u2581."});
  CHECK(french.split("Ça va?").words == Strings{"Ça", "va", "?"});
  CHECK(french.words_of({"va", "\uFFED?"}).words == Strings{"va", "?"});
  CHECK(french.join({"\u2581va", "\uFFED?"}) == "va?");  // no model is kept from beginning with a space
  CHECK(without_mark("\uFFED?") == "?");
  CHECK(without_mark("\uFFED") == "\uFFED");  // a sign of the text
  // Only a target's spaces are to come back.
  CHECK(Segmenter({.letter_case = "keep"}).split("Ça va !").pieces == Strings{"Ça", "va", "!"});
}

TEST_CASE("segmenter: Chinese, Japanese and Thai are split, and joined without spaces") {
  const Segmenter words({.letter_case = "keep", .marks = true});
  CHECK(words.split("今天天气很好。").pieces == Strings{"今", "天", "天", "气", "很", "好", "。"});
  CHECK(words.join({"今", "天", "很", "好", "。"}) == "今天很好。");
  CHECK(words.split("我有3个iPhone手机").words == Strings{"我", "有", "3", "个", "iPhone", "手", "机"});
  CHECK(words.join(words.split("我有3个 iPhone手机").pieces) == "我有3个 iPhone手机");
  CHECK(words.split("สวัสดี").words == Strings{"ส", "วั", "ส", "ดี"});
  if (no_pieces()) return;
  const Segmenter pieces = learnt({"今天天气很好。", "今天天气不好。", "天气很好。"}, {.size = 300});
  const Segmented found = pieces.split("今天天气很好。");
  CHECK(found.words.size() ==
        found.pieces.size() - (found.pieces[0] == "\u2581" ? 1 : 0));  // each piece is a word
  CHECK(pieces.join(found.pieces) == "今天天气很好。");
  CHECK(pieces.words_of({"\u2581", "天", "气"}).words == Strings{"天", "气"});
}

TEST_CASE("segmenter: the words of pieces are tokenize()'s; what no piece has is spelt in bytes") {
  if (no_pieces()) return;
  for (const char* type : {"bpe", "unigram", "char"}) {
    CAPTURE(type);
    const Segmenter s = learnt(kEnglish, {.type = type, .size = 340});
    for (const std::string& line : kEnglish) {
      const Segmented found = s.split(line);
      CHECK(found.words == tokenize(line, {.lowercase = false, .plain = false}));
      CHECK(found.word_of.size() == found.pieces.size());
      CHECK(std::is_sorted(found.word_of.begin(), found.word_of.end()));
      CHECK(static_cast<size_t>(found.word_of.back()) + 1 == found.words.size());
    }
    const Segmented foreign = s.split("Zß 😀");
    CHECK(foreign.words == Strings{"Zß", "😀"});
    CHECK(std::count(foreign.pieces.begin(), foreign.pieces.end(), "<0xF0>") == 1);
    CHECK(s.join(foreign.pieces) == "Zß 😀");
    // What a model may write: bytes that are no character, a space alone, spaces one behind the other.
    CHECK(s.join({"<0xF0>", "<0x9F>", "\u2581cat"}) == "\uFFFD\uFFFD cat");
    CHECK(s.words_of({"<0xF0>", "<0x9F>", "\u2581cat"}).words == Strings{"\uFFFD", "\uFFFD", "cat"});
    CHECK(s.join({"\u2581", "\u2581", "a"}) == "a");
    CHECK(s.words_of({"\u2581", "\u2581", "a"}).word_of.size() == 3);
    for (const std::string& word : s.split("cat \u200Dsleeps").words)  // a joiner that joins nothing
      CHECK(word.find(' ') == std::string::npos);
    CHECK(s.join({}).empty());
    CHECK(s.split("").pieces.empty());
    CHECK(s.split(" \t\u00A0").pieces.empty());
  }
}

TEST_CASE("segmenter: case kept, folded at the beginning of a sentence and given back, or lowered") {
  auto names = std::make_shared<Truecaser>();
  for (const char* line :
       {"The dog sees Tom", "Now Tom sees the USA", "We saw Tom", "I saw the dog", "Dogs see Paris"})
    names->count(tokenize(line, {.lowercase = false}));
  names->decide();
  CHECK(names->text() == "paris\ntom\nusa\n");
  CHECK(names->begins_with_capital());
  Truecaser small, none, mixed;
  small.count({"the", "Tom"});
  none.count({"मुझे", "पानी"});
  CHECK_FALSE(small.begins_with_capital());
  CHECK_FALSE(none.begins_with_capital());
  mixed.count({"Tom", "sleeps"});
  for (int i = 0; i < 2; ++i) mixed.count({"मुझे", "पानी"});
  CHECK(mixed.begins_with_capital());
  CHECK(Segmenter({.letter_case = "first"}).join({"the", "dog"}) == "the dog");  // nothing was folded
  CHECK(names->fold("The dog") == "the dog");
  CHECK(names->fold("Tom sleeps") == "Tom sleeps");
  CHECK(names->fold("\"The dog\"") == "\"the dog\"");
  CHECK(names->fold("NATO sleeps") == "NATO sleeps");
  CHECK(names->fold("...") == "...");
  CHECK(names->fold("") == "");
  // What a capital at the beginning would not give back.
  for (const char* same : {"3D Printing", "1. Introduction", "İyi akşamlar"}) CHECK(names->fold(same) == same);
  const Segmenter first({.letter_case = "first", .marks = true}, nullptr, names);
  CHECK(first.split("The dog sees Tom.").pieces == Strings{"the", "dog", "sees", "Tom", "."});
  CHECK(first.split("The dog sees Tom.").words == Strings{"The", "dog", "sees", "Tom", "."});
  CHECK(first.join({"the", "dog", "sees", "Tom", "."}) == "The dog sees Tom.");
  // Nor of what stands in a tag.
  CHECK(names->fold("<b>The dog</b>") == "<b>the dog</b>");
  CHECK(names->fold("\"<p class=\"A\"> <i>Tom sleeps") == "\"<p class=\"A\"> <i>Tom sleeps");
  for (const char* line : {"<b>The</b> dog", "<p class='x'> The dog", "<3 The dog", "</br> 3D The", "<b>",
                           "<b The dog", "<!-- a --><!<!The", "5 > 3", "a <b>The"})
    CHECK(first.join(first.split(line).pieces) == capitalized(line));
  CHECK(capitalized("<b>the dog</b>") == "<b>The dog</b>");
  CHECK(capitalized("a <b>the") == "A <b>the");
  CHECK(capitalized("<b the dog") == "<B the dog");
  CHECK(first.words_of({"<", "b", ">", "the", "dog"}).words == Strings{"<", "b", ">", "The", "dog"});
  CHECK(first.split("<b>The dog").words == Strings{"<", "b", ">", "The", "dog"});
  Truecaser tags;
  tags.count({"<", "b", ">", "The", "dog"});
  tags.decide();
  CHECK(tags.begins_with_capital());
  CHECK(tags.text() == "");
  const Segmenter lower;
  CHECK(lower.split("The DOG").pieces == Strings{"the", "dog"});
  CHECK(lower.split("The DOG").words == Strings{"The", "DOG"});
  scratch::Directory directory;
  std::ofstream(directory.file("case")) << names->text();
  CHECK(Truecaser::load(directory.file("case")).text() == names->text());
  for (const auto& [second, fault] : {std::pair("", "the word is empty"),
                                      {"par\x1Bis", "the word has a control character in it"}}) {
    std::ofstream(directory.file("bad")) << "tom\n" << second << "\n";
    CHECK_THROWS_WITH(Truecaser::load(directory.file("bad")),
                      (directory.file("bad") + ":2: " + fault).c_str());
  }
}

TEST_CASE("segmenter: what normalisation changes is told with its count") {
  ChangedCharacters plain, pieces;
  for (const char* line : {"l’homme", "l’eau\u200B", "e\u0301t\u00E9", "plain text", "a\u202Fb"}) {
    plain.add(line, {});
    pieces.add(line, {.plain = false});
  }
  CHECK(
      plain.summary() ==
      "3 characters are read otherwise than written: U+2019 ’ as ' (2), U+200B dropped (1); 1 space is read "
      "as a plain one; 1 line is composed (NFC)");
  CHECK(pieces.summary() == "1 space is read as a plain one; 1 line is composed (NFC)");
  ChangedCharacters one;
  one.add("a\x07", {.plain = false});
  CHECK(one.summary() == "1 character is read otherwise than written: U+0007 dropped (1)");
  CHECK(ChangedCharacters().summary().empty());
}

TEST_CASE("weights of words: what is looked at is added, what looks is averaged, </s> stays") {
  // Two target words of 2 and 1 pieces, two source words of 1 and 2.
  const std::vector<std::vector<float>> weights = {
      {0.5f, 0.25f, 0.125f, 0.125f}, {0, 1, 0, 0}, {0.25f, 0.25f, 0.25f, 0.25f}, {0, 0, 0, 1}};
  const auto words = weights_of_words(weights, {0, 0, 1}, {0, 1, 1});
  CHECK(words == std::vector<std::vector<float>>{{0.25f, 0.6875f, 0.0625f}, {0.25f, 0.5f, 0.25f}, {0, 0, 1}});
  CHECK(weights_of_words(weights, {0, 1, 2}, {0, 1, 2}) == weights);
  CHECK(weights_of_words({}, {}, {0}).empty());
}

TEST_CASE("subwords: what is learnt is what is read: typographic apostrophes are pieces, and no bytes") {
  if (no_pieces()) return;
  const Segmenter s = learnt({"l\u2019homme", "l\u2019eau \u201Cici\u201D"}, {.size = 300});
  for (const std::string& piece : s.split("l\u2019eau \u201Cici\u201D").pieces)
    CHECK_FALSE(piece.starts_with("<0x"));
}

TEST_CASE("subwords: the same text gives the same pieces, in a file that is all that is needed") {
  if (no_pieces()) return;
  scratch::Directory directory;
  for (const char* type : {"bpe", "unigram", "char"}) {
    const Segmenter s = learnt(kEnglish, {.type = type, .size = 330});
    CHECK(learnt(kEnglish, {.type = type, .size = 330}).subwords()->bytes() == s.subwords()->bytes());
    const std::string file = directory.file(type);
    std::ofstream(file, std::ios::binary) << s.subwords()->bytes();
    const Subwords loaded = Subwords::load(file);
    CHECK(loaded.bytes() == s.subwords()->bytes());
    CHECK(loaded.vocabulary() == s.subwords()->vocabulary());
    CHECK(loaded.split(" sleeping") == s.subwords()->split(" sleeping"));
    CHECK(s.subwords()->vocabulary().size() <= 330);
    CHECK(s.subwords()->vocabulary().token(Vocabulary::kSpecials) == "<0x00>");
  }
}

TEST_CASE("subwords: dropout draws other splits of the same text, the same ones for the same seed") {
  if (no_pieces()) return;
  for (const char* type : {"bpe", "unigram"}) {
    CAPTURE(type);
    const Segmenter s = learnt(kEnglish, {.type = type, .size = 340});
    auto drawn = [&](uint64_t seed, double dropout) {
      std::vector<Strings> out;
      Subwords::seeded(seed, [&] {
        for (int i = 0; i < 5; ++i)
          for (const std::string& line : kEnglish) out.push_back(s.split(line, dropout).pieces);
      });
      return out;
    };
    const auto once = drawn(3, 0.3);
    CHECK(drawn(3, 0.3) == once);
    CHECK(drawn(4, 0.3) != once);
    CHECK(drawn(3 + (uint64_t{1} << 32), 0.3) != once);
    size_t others = 0;
    for (size_t i = 0; i < once.size(); ++i) {
      CHECK(s.join(once[i]) == kEnglish[i % kEnglish.size()]);
      others += once[i] != s.split(kEnglish[i % kEnglish.size()]).pieces;
    }
    CHECK(others > 5);
    CHECK(drawn(3, 0) == drawn(4, 0));
  }
  CHECK_THROWS_WITH_AS(Subwords::seeded(1, [] { throw InputError("x", 0, "y"); }), "x: y", InputError);
}

TEST_CASE("subwords: damaged and foreign models are refused, and sizes without room") {
  if (no_pieces()) return;
  scratch::Directory directory;
  const std::string good = learnt(kEnglish, {.size = 330}).subwords()->bytes();
  auto fault = [&](const std::string& bytes) -> std::string {
    const std::string file = directory.file("x.model");
    std::ofstream(file, std::ios::binary) << bytes;
    try {
      Subwords::load(file).vocabulary();
      return "";
    } catch (const InputError& e) {
      const std::string what = e.what();
      CHECK(what.starts_with(file));
      return what.substr(file.size());
    }
  };
  CHECK(fault(good).empty());
  CHECK(fault("") == ": is no SentencePiece model, or damaged");
  CHECK(fault("no model at all") == ": is no SentencePiece model, or damaged");
  CHECK(fault(good.substr(0, good.size() / 2)) == ": is no SentencePiece model, or damaged");
  CHECK_THROWS_WITH(Subwords::load(directory.file("none")),
                    (directory.file("none") + ": cannot be opened: No such file or directory").c_str());
  // A space put in front of every text, and several read as one.
  const size_t rules = good.rfind("identity");
  REQUIRE(rules != std::string::npos);
  REQUIRE(good.substr(rules + 8) == std::string("\x12\0\x18\0\x20\0", 6));
  for (size_t at : {rules + 11, rules + 13}) {
    std::string other = good;
    other[at] = 1;
    CHECK(fault(other) == ": is damaged, or a SentencePiece model that changes spaces");
  }
  // One byte changed, anywhere: refused, or a model like another.
  for (size_t i = 0; i < good.size(); i += 7) {
    std::string other = good;
    other[i] = static_cast<char>(other[i] ^ 0x55);
    fault(other);
  }
  TokenCounts none;
  CHECK_THROWS_WITH(Subwords::learn(none, {.quiet = true}),
                    "training data: has no words to learn pieces from");
  // With no room for every character, the rarest are spelt in bytes.
  const Segmenter narrow = learnt(kEnglish, {.size = 290});
  for (const std::string& line : kEnglish) CHECK(narrow.join(narrow.split(line).pieces) == line);
}
