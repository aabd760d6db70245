// The tokenizer's round trips: its tokens are tokens again, and so is what people read.

#include <translator/text/detokenizer.h>
#include <translator/text/tokenizer.h>
#include <common/utf8.h>
#include <translator/text/vocabulary.h>

#include <algorithm>
#include <sstream>

#include "fuzz.h"

using namespace fuzzing;
using namespace translator;
using namespace std::string_literals;

namespace {

std::string shown(const std::vector<std::string>& tokens) {
  std::string out;
  for (const std::string& t : tokens) out += "[" + utf8::printable(t) + "]";
  return out;
}

// Words of a text are tokens of a vocabulary, and its file gives them back.
void keeps_words(const std::vector<std::string>& tokens) {
  TokenCounts counts;
  counts.add(tokens);
  Vocabulary words = Vocabulary::build(counts);
  std::istringstream file(words.text());
  must(Vocabulary::load(file, "words") == words, "a vocabulary is read as it was written");
  std::vector<std::string> known = words.decode(words.encode(tokens));
  must(known.size() == tokens.size(), "a token has an id");
  for (size_t i = 0; i < tokens.size(); ++i)
    must(known[i] == tokens[i] || !words.contains(tokens[i]), "a known token has an id of its own");
}

}  // namespace

FUZZ_TARGET(tokenizer,
            {"\0\0\0He doesn't like apples."s, "\1\1\0L'homme qu'il aime n'est-il pas aujourd'hui là?",
             "\0\2\1\"Quoted\" 'text' (in brackets), 3.14 and 10:30 p.m. -- boys' o'clock..."s,
             "\1\0\1"
             "dell'arte п'ять rock'n'roll",
             "\1\1\1«Oui» – ‘non’ “yes” l’ s d' m", "\1\2\1नमस्ते। क्\u200Dष a/b a / b",
             "\1\1\1<s> </s> <unk> <pad> \u00AD\uFEFFx"}) {
  Choices choices(input);
  bool lowercase = choices.yes();
  TokenizerOptions how{.lowercase = lowercase};
  const Typography people = choices.yes() ? Typography::french : Typography::other;
  std::string_view text = choices.rest();
  std::string normal = normalize(text, how);
  must(!utf8::first_invalid_byte(normal), "normal text is UTF-8");
  must(normalize(normal, how) == normal, "normalising twice changes nothing", [&] { return normal; });
  std::vector<std::string> tokens = tokenize(text, how);
  for (const std::string& t : tokens) {
    must(!t.empty() && t.find_first_of(" \t\r\n") == t.npos, "a token has no space in it");
    must(!utf8::first_invalid_byte(t), "a token is UTF-8");
    is_elision(t);
  }
  must(tokenize(normal, how) == tokens, "normal text has the same tokens");
  must(split_tokens(join_tokens(tokens)) == tokens, "tokens that are joined are split again");
  std::vector<std::string> again = tokenize(join_tokens(tokens), how);
  must(again == tokens, "text that is tokenised has the same tokens",
       [&] { return shown(tokens) + " gives " + shown(again); });
  must(!utf8::first_invalid_byte(detokenize(tokens, people)), "text for people is UTF-8");
  keeps_words(tokens);
  return !tokens.empty();
}
