#include <translator/text/tokenizer.h>
#include <common/utf8.h>

#include <random>

#include "../quick_doctest.h"

using namespace translator;

namespace {

// The tokens with spaces between them: easier to read in a check than lists.
std::string tok(std::string_view line) { return join_tokens(tokenize(line)); }
std::string keep_case(std::string_view line) { return join_tokens(tokenize(line, {.lowercase = false})); }

std::string repeated(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace

TEST_CASE("normalize: one spelling for spaces, apostrophes and what cannot be seen") {
  CHECK(normalize("\uFEFF  A\u00A0b\u202F\u2009c\u3000d\t e\r\n") == "a b c d e");
  CHECK(normalize("L\u2019homme dit \u201Cnon\u201D") == "l'homme dit \"non\"");
  CHECK(normalize("co\u00ADop\u200Beration") == "cooperation");
  CHECK(normalize("semi\u2010fini \u22125") == "semi-fini -5");
  CHECK(normalize("e\u0301tE\u0301") == "été");
  CHECK(normalize("ÉTÉ", {.lowercase = false}) == "ÉTÉ");
  CHECK(normalize("e\u200B\u0301") == "é");  // composes once the invisible character is gone
  CHECK(normalize("") == "");
  CHECK(normalize(" \u00A0 ") == "");
  CHECK(normalize("a\xff") == "a\uFFFD");
  CHECK(normalize("क्\u200Dष") == "क्\u200Dष");  // the joiner decides the shape: it stays
}

TEST_CASE("tokenize: words, numbers and punctuation") {
  CHECK(tok("He likes apples.") == "he likes apples .");
  CHECK(keep_case("He likes apples.") == "He likes apples .");
  CHECK(tok("Hello, world! (Really?)") == "hello , world ! ( really ? )");
  CHECK(tok("Pi is 3.14, not 1,000.") == "pi is 3.14 , not 1,000 .");
  CHECK(tok("At 10:30, 2nd floor; 50%") == "at 10:30 , 2nd floor ; 50 %");
  CHECK(tok("22/7 costs $5") == "22 / 7 costs $ 5");
  CHECK(tok("a well-known dit-il, -5 and 5-") == "a well-known dit-il , - 5 and 5 -");
  CHECK(tok("Wait... what -- now…") == "wait ... what -- now …");
  CHECK(tok("at 2:30 p.m. in the U.S.A.") == "at 2:30 p.m. in the u.s.a.");
  CHECK(tok("plan b. go") == "plan b . go");
  CHECK(tok("« Oui\u202F», dit-elle.") == "« oui » , dit-elle .");
  CHECK(tok("") == "");
  CHECK(tok(" \t ") == "");
}

TEST_CASE("tokenize: English contractions stay whole") {
  CHECK(tok("He doesn't like apples.") == "he doesn't like apples .");
  CHECK(tok("I'm sure it's John's.") == "i'm sure it's john's .");
  CHECK(tok("We'll say they're what you've got, I'd bet") == "we'll say they're what you've got , i'd bet");
  CHECK(tok("CAN\u2019T WON\u2019T") == "can't won't");
  CHECK(tok("I'd've thought shouldn't've") == "i'd've thought shouldn't've");
  CHECK(tok("mother-in-law's 1990's") == "mother-in-law's 1990's");
  CHECK(tok("five o'clock, O'Brien, ma'am, y'all") == "five o'clock , o'brien , ma'am , y'all");
  CHECK(tok("do n't") == "do n't");
  CHECK(tok("the boys' books") == "the boys' books");
  CHECK(tok("rock'n'roll") == "rock'n'roll");
}

TEST_CASE("tokenize: French elisions are tokens of their own") {
  CHECK(tok("Il n'aime pas les pommes.") == "il n' aime pas les pommes .");
  CHECK(tok("L'homme d'Italie, j'ai s'il c'est m'a t'aime") ==
        "l' homme d' italie , j' ai s' il c' est m' a t' aime");
  CHECK(tok("Qu'est-ce qu'il a ?") == "qu' est-ce qu' il a ?");
  CHECK(tok("jusqu'à lorsqu'elle puisqu'on quelqu'un presqu'île") ==
        "jusqu' à lorsqu' elle puisqu' on quelqu' un presqu' île");
  CHECK(tok("Aujourd'hui, d'aujourd'hui jusqu'aujourd'hui") ==
        "aujourd'hui , d' aujourd'hui jusqu' aujourd'hui");
  CHECK(tok("main-d'œuvre, prud'hommes") == "main-d' œuvre , prud'hommes");
  CHECK(tok("l\u2019\u00e9t\u00e9") == "l' été");
  CHECK(tok("plus d'1 euro, l'« ami »") == "plus d' 1 euro , l' « ami »");
  CHECK(tok("j'm'en vais, c't'été") == "j' m' en vais , c' t' été");
}

TEST_CASE("tokenize: where English and French rules meet") {
  // After an elidable stem it is French, whatever the suffix; after any other stem English endings win.
  CHECK(tok("l's d'm t'll qu's") == "l' s d' m t' ll qu' s");
  CHECK(tok("it's she'd he'll who're") == "it's she'd he'll who're");
  CHECK(tok("d'you") == "d' you");
  CHECK(tok("p's and i's") == "p's and i's");
  CHECK(tok("un'altra dell'arte") == "un' altra dell' arte");
  CHECK(tok("п'ять") == "п'ять");
}

TEST_CASE("tokenize: quotation marks are no apostrophes") {
  CHECK(tok("'hello' and 'good bye'") == "' hello ' and ' good bye '");
  CHECK(tok("\"Non\", dit-il") == "\" non \" , dit-il");
  CHECK(tok("he said 'I don't know'") == "he said ' i don't know '");
}

TEST_CASE("tokenize: Devanagari keeps its marks") {
  CHECK(tok("हमारे लिए उसका घर ढूँढना आसान नहीं था।") == "हमारे लिए उसका घर ढूँढना आसान नहीं था ।");
  CHECK(tok("क्या तुम्हें सिगरेट पीना है?") == "क्या तुम्हें सिगरेट पीना है ?");
  CHECK(tokenize("विद्यार्थी।") == std::vector<std::string>{"विद्यार्थी", "।"});
  CHECK(tok("१२.५ रुपये॥") == "१२.५ रुपये ॥");
  CHECK(tok("धीरे-धीरे") == "धीरे-धीरे");
}

TEST_CASE("tokenize: symbols keep what modifies them") {
  CHECK(tok("I ❤\uFE0F you👍🏽!") == "i ❤\uFE0F you 👍🏽 !");
  CHECK(tok("👍🏻👍🏿") == "👍🏻 👍🏿");  // the first skin tone and the last
  CHECK(tokenize("👩\u200D🚀x") == std::vector<std::string>{"👩\u200D🚀", "x"});
}

TEST_CASE("tokenize: text that is tokenised already comes out the same") {
  for (const char* line : {"il n' aime pas les pommes .", "he doesn't like apples .", "' hello ' he said",
                           "qu' est-ce que c' est ?", "the boys' books aren't here",
                           "« l' ami » , dit-il ...", "' un'altra ' un' altra", "p.m. 3.14 -- 1,000"}) {
    CHECK(tok(line) == line);
  }
}

TEST_CASE("tokenize: time grows with a line, not with its square, whatever it is full of") {
  constexpr size_t kTimes = 200'000;  // hours, were each looked at from the beginning of all
  const std::string s = repeated("'s", kTimes), stops = repeated("a.", kTimes),
                    cyrillic = repeated("п'", kTimes);
  CHECK(tokenize("a" + s) == std::vector<std::string>{"a" + s});
  CHECK(tokenize(cyrillic + "я") == std::vector<std::string>{cyrillic + "я"});
  CHECK(tokenize(stops) == std::vector<std::string>{stops});
  CHECK(tokenize(stops + "bc").size() == 2 * kTimes + 1);
  // What is known of one run holds for no other.
  CHECK(tok("a.b.c a.b. a.b.cd p.m.") == "a . b . c a.b. a . b . cd p.m.");
}

TEST_CASE("split_tokens cuts at spaces and nowhere else") {
  CHECK(split_tokens("  a  b\u00A0c l'x ") == std::vector<std::string>{"a", "b\u00A0c", "l'x"});
  CHECK(split_tokens("").empty());
  CHECK(split_tokens("   ").empty());
}

TEST_CASE("is_elision tells l' from boys'") {
  for (const char* token : {"l'", "qu'", "Jusqu'", "D'", "dell'", "un'", "main-d'"}) CHECK(is_elision(token));
  for (const char* token : {"'", "boys'", "goin'", "l", "", "doesn't", "9'"}) CHECK_FALSE(is_elision(token));
}

TEST_CASE("tokenize: any bytes at all") {
  // Random bytes, and random sequences of the characters that rules exist for: no crash, valid UTF-8 without
  // blanks inside tokens, and nothing changes the second time.
  const std::u32string alphabet =
      U"aInslqutmdoé'''’’-..,:5 3  \"«»()।क्\u093F\u0301\u200D\u200C\u00AD\u00A0\uFE0F😀🏽中İпŒ\r\t\u0085";
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 4000; ++round) {
    std::string line;
    for (size_t n = below(24); n > 0; --n) {
      if (round % 2 == 0) {
        line.push_back(static_cast<char>(below(256)));
      } else {
        utf8::append(line, alphabet[below(alphabet.size())]);
      }
    }
    const bool lowercase = below(2) == 0;
    const std::string once = normalize(line, {.lowercase = lowercase});
    CAPTURE(line);
    CHECK(normalize(once, {.lowercase = lowercase}) == once);
    const std::vector<std::string> tokens = tokenize(line, {.lowercase = lowercase});
    const std::string joined = join_tokens(tokens);
    CHECK(split_tokens(joined) == tokens);
    CHECK_FALSE(utf8::first_invalid_byte(joined).has_value());
    CHECK(join_tokens(tokenize(joined, {.lowercase = lowercase})) == joined);
  }
}
