// What one pair tells by itself.

#include <common/utf8.h>
#include <translator/doctor/contents.h>


#include "../quick_doctest.h"

using namespace translator;
using namespace translator::doctor;

namespace {

std::string numbers(const std::string& source, const std::string& target) {
  return number_difference(utf8::decode(source), utf8::decode(target));
}
std::string odd(const std::string& text) { return odd_characters(utf8::decode(text)); }
Folded folded(const std::string& text) { return fold(utf8::decode(text)); }
std::string alike(const std::string& source, const std::string& target) {
  return likeness(folded(source), folded(target));
}
std::string repeated(const std::string& source, const std::string& target) {
  return repetition(folded(source), folded(target));
}

}  // namespace

TEST_CASE("folding: case, marks and spaces go, question marks and accents stay") {
  auto text = [](const std::string& s) { return utf8::encode(folded(s).text); };
  CHECK(text("  Hello,   World! ") == "hello world");
  CHECK(text("Tu viens ?") == "tu viens ?");
  CHECK(text("Tu viens?") == "tu viens ?");
  CHECK(text("L'ÉTÉ") == "l été");
  CHECK(text("你好。") == "你好");
  CHECK(text("...") == "");
  CHECK(folded("GO AWAY!").shouts());
  CHECK_FALSE(folded("NATO").shouts());
  CHECK_FALSE(folded("Go away!").shouts());
  CHECK_FALSE(folded("你好 世界").shouts());
  CHECK(folded("«été»").begins_small);
  CHECK(folded("Été").begins_capital);
}

TEST_CASE("numbers: each side has one that the other has not") {
  CHECK(numbers("I am 31.", "J'ai 13 ans.") == "31 against 13");
  CHECK(numbers("1.2 and 4.8", "1,4 et 4,8") == "2 against 4");
  CHECK(numbers("at 9:00", "à 9 h 99") == "00 against 99");
  CHECK(numbers("10,000 yen", "10 622 yens") == "10000 against 10622");
  CHECK(numbers("room 12", "कमरा १३") == "12 against 13");
  for (const auto& [s, t] : std::vector<std::pair<std::string, std::string>>{{"three cats", "3 chats"},
                                                                             {"2:30", "14 h 30"},
                                                                             {"at 8:00 p.m.", "à 20 h"},
                                                                             {"1,500", "1 500"},
                                                                             {"1,500", "1\u202F500"},
                                                                             {"1500", "1.500"},
                                                                             {"2,000,000", "2 millions"},
                                                                             {"1.5 million", "150万"},
                                                                             {"the 1990s", "les années 90"},
                                                                             {"12 May", "le 12/05"},
                                                                             {"room 12", "कमरा १२"},
                                                                             {"room 12", "１２号室"},
                                                                             {"3.14", "3,14"}}) {
    CAPTURE(s);
    CHECK(numbers(s, t) == "");
  }
}

TEST_CASE("markup on one side only") {
  CHECK(markup_difference("a <b>word</b>", "un mot") == "<b> in the source only");
  CHECK(markup_difference("a word", "un <BR/> mot") == "<br> in the target only");
  CHECK(markup_difference("R&amp;D", "R&D") == "&amp; in the source only");
  CHECK(markup_difference("It's", "C&#39;est") == "&#39; in the target only");
  CHECK(markup_difference("%s files", "fichiers") == "%s in the source only");
  CHECK(markup_difference("{name} left", "{nom} est parti") == "{name} in the source only");
  CHECK(markup_difference("see http://a.b/c", "voir") == "www in the source only");
  CHECK(markup_difference("ask a.b@c-d.org.", "demandez") == "@ in the source only");
  CHECK(markup_difference("ask me@here.org", "demandez à moi@ici.fr") == "");
  for (const char* none : {"me @ home.", "me@home", "@home.org", "me@.org", "me@home.", "me@"})
    CHECK(markup_difference(none, "rien") == "");
  for (const auto& [s, t] :
       std::vector<std::pair<std::string, std::string>>{{"a <b>word</b>", "un <b>mot</b>"},
                                                        {"50% de", "50 % de"},
                                                        {"a < b > c", "a"},
                                                        {"Q&A; more", "Q & A"},
                                                        {"{a b}", "x"},
                                                        {"100%s", "100 %"},
                                                        {"see http://a.b/c", "voir https://a.fr/d"},
                                                        {"<3", "x"}}) {
    CAPTURE(s);
    // "Q&A;" is what an entity looks like, and the one thing here that is told.
    CHECK(markup_difference(s, t) == (s[0] == 'Q' ? "&A; in the source only" : ""));
  }
}

TEST_CASE("markup: a tag ends before another begins, and time grows with the text") {
  CHECK(markup_difference("a <b <i>c</i>", "un <i>c</i>") == "");
  for (const std::string part : {"<", "<a", "a@"}) {
    std::string text;
    for (int i = 0; i < 1'000'000; ++i) text += part;
    CHECK(markup_difference(text, "rien") == "");  // in time that grows with the square, an hour
  }
}

TEST_CASE("odd characters") {
  CHECK(odd("a\x07"
            "b") == "a control character, U+0007");
  CHECK(odd("a\uFFFDb") == "U+FFFD, which stands for what could not be read");
  CHECK(odd("\uE000") == "a private character, U+E000");
  CHECK(odd("prÃ©s") == "\"Ã©\" looks like UTF-8 that was read as Latin-1");
  CHECK(odd("Ã\u00A0 moi").find("Latin-1") != std::string::npos);
  CHECK(odd("â€™") != "");
  for (const char* fine : {"«été»", "café\u00A0!", "NÃO", "20 °C", "मैं", "你好", "a\tb", "👍"}) {
    CAPTURE(fine);
    CHECK(odd(fine) == "");
  }
  // Letters that are right may be the bytes of another one, here of U+047A.
  CHECK(odd("Ñº") == "\"Ñº\" looks like UTF-8 that was read as Latin-1");
}

TEST_CASE("copies: three words, or nearly all of four") {
  CHECK(alike("Leave me alone", "leave me alone!") == "the same on both sides");
  CHECK(alike("Please leave me alone now", "please leave me alone maintenant") ==
        "4 of 5 words are the same on both sides");
  CHECK(alike("Tom, Mary!", "Tom, Mary !") == "");
  CHECK(alike("Please leave me alone", "Laisse-moi tranquille") == "");
  CHECK(alike("1 2 3 4", "1 2 3 4") == "");
}

TEST_CASE("repetition that the other side has not") {
  CHECK(repeated("no", "non non non non") == "\"non\" 4 times running");
  CHECK(repeated("x", "ha hi ha hi ha hi ha hi") == "\"ha hi\" 4 times running");
  CHECK(repeated("I like that.", "J'ai aimé ça. J'ai aimé ça.") == "the target says the same 2 times");
  CHECK(repeated("no no no no", "non non non non") == "");
  CHECK(repeated("No, no!", "Non, non !") == "");
  CHECK(repeated("the more the more", "plus on plus on") == "");
}
