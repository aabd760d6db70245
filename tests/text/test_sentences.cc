// The sentences of a paragraph.

#include <translator/text/sentences.h>

#include "../quick_doctest.h"

using namespace translator;

namespace {

// Sentences with | between them; the check that nothing is lost is made on the way.
std::string cut(const std::string& line) {
  std::string out, whole;
  for (const SentenceOfText& s : sentences_of(line)) {
    out += (out.empty() ? "" : "|") + s.text;
    whole += s.text + s.space;
  }
  CHECK(whole == line);
  return out;
}

void check_cuts(const std::string& expected) {
  std::string line;
  for (char c : expected) line += c == '|' ? ' ' : c;
  CHECK(cut(line) == expected);
}

}  // namespace

TEST_CASE("a sentence ends behind its stop") {
  check_cuts("She eats.|He sings!|Do they?|Yes");
  check_cuts("What?!|No...|Well");
  check_cuts("There is a plan B...|It fails.");
  check_cuts("Really\xE2\x80\xA6|He left.");
  check_cuts("\"Come in.\"|He did.");
  check_cuts("(He left.)|\xC2\xAB Oui. \xC2\xBB|Non.");
  check_cuts("\xC2\xBFQu\xC3\xA9?|\xC2\xA1S\xC3\xAD!|Bueno.");
  check_cuts(
      "Er kommt.|\xE2\x80\x9EGut.\xE2\x80\x9C|\xC3\x9C"
      "ben wir.");
  check_cuts("It costs 3.50.|2 are left.");
  check_cuts("One line");
  CHECK(cut("").empty());
  CHECK(cut("   ") == "");
  CHECK(cut("A.  B cd.\t\nE fg. ") == "A.  B cd.|E fg.");
}

TEST_CASE("no sentence ends behind an abbreviation, an initial, before a small letter or within a number") {
  check_cuts("Mr. Smith and Mrs. Jones met Dr. Who.|They sat.");
  check_cuts("J. S. Bach wrote it.|So did C. P. E. Bach.");
  check_cuts("Mme. Curie, M. Curie et Mlle. Noir.|Oui.");
  check_cuts("Use it, e.g. Here, or i.e. There.|Good.");
  check_cuts("See No. 5 and fig. 3.|No.|Nothing.");
  check_cuts("He lives in the U.S. and works.|It was 5 p.m.|He left.");
  check_cuts("Pi is 3.14 and 1.000.000 is a lot.|See example.com for more.");
  check_cuts("Well ... perhaps.|So... no.");
  check_cuts("Das ist z.B. Hans.|Und bzw. Karl.");
}

TEST_CASE("scripts have stops of their own") {
  CHECK(
      cut("\xE4\xBB\x8A\xE5\xA4\xA9\xE3\x80\x82\xE6\x98\x8E\xE5\xA4\xA9\xEF\xBC\x81\xE5\xA5\xBD\xE3\x80\x82") ==
      "\xE4\xBB\x8A\xE5\xA4\xA9\xE3\x80\x82|\xE6\x98\x8E\xE5\xA4\xA9\xEF\xBC\x81|\xE5\xA5\xBD\xE3\x80\x82");
  CHECK(cut("\xE3\x80\x8C\xE5\xA5\xBD\xE3\x80\x82\xE3\x80\x8D\xE6\x98\x8E") ==
        "\xE3\x80\x8C\xE5\xA5\xBD\xE3\x80\x82\xE3\x80\x8D|\xE6\x98\x8E");
  check_cuts(  // danda
      "\xE0\xA4\xB9\xE0\xA4\xBE\xE0\xA5\xA4|\xE0\xA4\xA8\xE0\xA4\xB9\xE0\xA5\x80\xE0\xA4\x82\xE0\xA5\xA4");
  check_cuts("\xD9\x85\xD8\xA7\xD8\x9F|\xD9\x84\xD8\xA7.");  // the Arabic question mark
  const std::string thai = "\xE0\xB8\x81\xE0\xB8\x82 \xE0\xB8\x84\xE0\xB8\x87";
  CHECK(cut(thai) == thai);
}

TEST_CASE("blank lines and single tags are no text") {
  for (const char* line :
       {"", "  \t", "<p>", " </div> ", "<br/>", "<!-- note -->", "<?xml version=\"1.0\"?>", "<a href=\"x\">"})
    CHECK(is_markup_line(line));
  for (const char* line : {"a", "<3", "<p>text</p>", "< 5 >", "x <p>", "<>", "<a <b>", "<a <"})
    CHECK(!is_markup_line(line));
}
