#include <common/utf8.h>

#include <stdexcept>

#include "../quick_doctest.h"

namespace utf8 = translator::utf8;

TEST_CASE("utf8: the first bad byte is found") {
  CHECK_FALSE(utf8::first_invalid_byte("").has_value());
  CHECK_FALSE(utf8::first_invalid_byte("naïve — क्या है? 😀").has_value());
  CHECK(utf8::first_invalid_byte("ab\xff") == 2);
  CHECK(utf8::first_invalid_byte("\xc3") == 0);              // cut off
  CHECK(utf8::first_invalid_byte("é\xe2\x82") == 2);         // cut off
  CHECK(utf8::first_invalid_byte("a\xc0\xaf") == 1);         // overlong
  CHECK(utf8::first_invalid_byte("ab\xed\xa0\x80") == 2);    // a surrogate
  CHECK(utf8::first_invalid_byte("\xf4\x90\x80\x80") == 0);  // above U+10FFFF
  CHECK(utf8::first_invalid_byte("caf\xe9 noir") == 3);      // Latin-1
  CHECK(utf8::describe_invalid_byte("caf\xe9 noir") == "byte 4 (0xe9) is not valid UTF-8");
  CHECK(utf8::describe_invalid_byte("caf\xe9 noir", 2) == "byte 6 (0xe9) is not valid UTF-8");
  CHECK(utf8::describe_invalid_byte("café") == "");
}

TEST_CASE("utf8: decoding and encoding") {
  CHECK(utf8::decode("aé€😀") == U"aé€😀");
  CHECK(utf8::encode(U"aé€😀") == "aé€😀");
  CHECK_THROWS_WITH_AS(utf8::decode("ab\xff"), "byte 3 (0xff) is not valid UTF-8", std::invalid_argument);
  CHECK(utf8::decode_lossy("a\xff\xfe"
                           "b") == U"a\uFFFD\uFFFDb");
  CHECK(utf8::encode(std::u32string{U'a', char32_t{0xD800}, char32_t{0x110000}}) == "a\uFFFD\uFFFD");
  CHECK(utf8::decode(std::string_view("a\0b", 3)).size() == 3);
}

TEST_CASE("utf8: composition and case") {
  CHECK(utf8::nfc("e\u0301te\u0301") == "été");
  CHECK(utf8::nfc("été") == "été");
  CHECK(utf8::nfc("plain") == "plain");
  CHECK(utf8::nfc("\u0928\u093C") == "\u0929");  // a Devanagari letter and its nukta
  std::u32string folded = U"ÀÉÎ ŒUVRE Straße ЁЖ";
  for (char32_t& c : folded) c = utf8::to_lower(c);
  CHECK(folded == U"àéî œuvre straße ёж");
  CHECK(utf8::capitalize("élan vital") == "Élan vital");
  CHECK(utf8::capitalize("« œuvre »") == "« Œuvre »");
  CHECK(utf8::capitalize("3 amis") == "3 amis");
  CHECK(utf8::capitalize("वह") == "वह");
  CHECK(utf8::capitalize("") == "");
}

TEST_CASE("utf8: width in terminal columns") {
  CHECK(utf8::display_width("") == 0);
  CHECK(utf8::display_width("doesn't") == 7);
  CHECK(utf8::display_width("été") == 3);
  CHECK(utf8::display_width("e\u0301te\u0301") == 3);
  CHECK(utf8::display_width("中文") == 4);
  CHECK(utf8::display_width("क्") == 1);   // the virama takes no room
  CHECK(utf8::display_width("कि") == 2);  // a spacing vowel sign does
  CHECK(utf8::width_is_certain("été 中"));
  CHECK_FALSE(utf8::width_is_certain("कि"));
  CHECK_FALSE(utf8::width_is_certain("😀"));
  CHECK(utf8::display_width("a\tb") == 2);
  CHECK(utf8::display_width("\xff") == 1);
}

TEST_CASE("utf8: grapheme clusters, cutting, cleaning") {
  CHECK(utf8::graphemes("e\u0301té") == std::vector<std::string>{"e\u0301", "t", "é"});
  CHECK(utf8::graphemes("किताब") == std::vector<std::string>{"कि", "ता", "ब"});
  CHECK(utf8::graphemes("").empty());
  CHECK(utf8::fit("attention", 9) == "attention");
  CHECK(utf8::fit("attention", 5) == "atte…");
  CHECK(utf8::fit("中文字", 4) == "中…");
  CHECK(utf8::fit("abc", 0) == "");
  CHECK(utf8::printable("a\x1b[31mb\nc\u202E") == "a\uFFFD[31mb\uFFFDc\uFFFD");
  CHECK(utf8::printable("\u009B5m\u2028\u2029\u2066\x7f\t\xff") ==
        "\uFFFD5m\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
  CHECK(utf8::printable("Héllo \u05E9\u05DC \u200D\U0001F600") == "Héllo \u05E9\u05DC \u200D\U0001F600");
  CHECK(utf8::printable_lines("a\x1b\n\nb\r\n") == "a\uFFFD\n\nb\uFFFD\n");
  CHECK(utf8::printable_lines("") == "");
  CHECK(utf8::markup("a<b> & \"c\"\x1b") == "a&lt;b&gt; &amp; &quot;c&quot;\uFFFD");
  CHECK(utf8::markup("\xEF\xBF\xBE \xEF\xBF\xBF \xF0\x9F\x90\x88") == "\uFFFD \uFFFD \U0001F408");
}

TEST_CASE("wrapped keeps to the width, counted in columns, and leaves long words whole") {
  CHECK(utf8::wrapped("one two three", 7) == "one two\nthree\n");
  CHECK(utf8::wrapped("one two three", 9, 2) == "  one two\n  three\n");
  CHECK(utf8::wrapped("été été", 7) == "été été\n");
  CHECK(utf8::wrapped("  unbelievable\n so ", 5) == "unbelievable\nso\n");
  CHECK(utf8::wrapped("", 5) == "");
}
