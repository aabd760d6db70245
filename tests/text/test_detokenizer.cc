#include <translator/text/detokenizer.h>
#include <translator/text/tokenizer.h>

#include <random>

#include "../quick_doctest.h"

using namespace translator;

namespace {

std::string plain(std::string_view line) { return detokenize(split_tokens(line)); }
std::string french(std::string_view line) { return detokenize(split_tokens(line), Typography::french); }

}  // namespace

TEST_CASE("detokenize: elisions and closing punctuation") {
  CHECK(plain("il n' aime pas les pommes .") == "il n'aime pas les pommes.");
  CHECK(plain("he doesn't like apples .") == "he doesn't like apples.");
  CHECK(plain("qu' est-ce qu' il a ?") == "qu'est-ce qu'il a?");
  CHECK(plain("the boys' books") == "the boys' books");
  CHECK(plain("oui , ( non ) ; ah : bon ...") == "oui, (non); ah: bon...");
  CHECK(plain("वह बूढ़ा आदमी सो रहा था ।") == "वह बूढ़ा आदमी सो रहा था।");
  CHECK(plain("22 / 7 and $ 5 or 5 €") == "22/7 and $5 or 5 €");
  CHECK(plain("") == "");
}

TEST_CASE("detokenize: French spacing") {
  CHECK(french("qu' est-ce qu' il a ?") == "qu'est-ce qu'il a ?");
  CHECK(french("« oui » , dit-il ; non !") == "« oui », dit-il ; non !");
  CHECK(french("quoi ? !") == "quoi ?!");
  CHECK(french("il a 50 % .") == "il a 50 %.");
  CHECK(plain("« oui » , dit-il ; non !") == "«oui», dit-il; non!");
}

TEST_CASE("detokenize: quotes open and close in turn") {
  CHECK(plain("he said \" no \" and \" yes \" .") == "he said \"no\" and \"yes\".");
  CHECK(plain("' hello ' , he said") == "'hello', he said");
}

TEST_CASE("detokenize undoes tokenize") {
  for (const char* line : {"He doesn't like apples.", "It's 10:30 p.m., isn't it?", "I paid $5 (not $6)!",
                           "\"Well-known,\" he said.", "L'homme n'a pas qu'un ami."}) {
    CHECK(detokenize(tokenize(line, {.lowercase = false})) == line);
  }
  for (const char* line :
       {"Qu'est-ce que c'est ?", "Aujourd'hui, il dit : « Non ! »", "D'accord ; allons-y."}) {
    CHECK(detokenize(tokenize(line, {.lowercase = false}), Typography::french) == line);
  }
}

TEST_CASE("detokenize: any tokens at all") {
  const std::vector<std::string> pool = {"",  "'", "\"", ".", "...", "l'", "a",        "É", "(", ")",  "«",
                                         "»", "?", "/",  "€", "5",   "।",  "\xff\xfe", "i", "$", "qu'"};
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> tokens;
    for (size_t n = random() % 12; n > 0; --n) tokens.push_back(pool[random() % pool.size()]);
    for (Typography typography : {Typography::other, Typography::french}) {
      size_t letters = 0;
      for (const std::string& token : tokens) letters += token.size();
      CHECK(detokenize(tokens, typography).size() >= letters);
    }
  }
}
