// From text to pieces and back, and the file that says what pieces there are.

#include <common/error.h>
#include <common/utf8.h>
#include <translator/text/segmenter.h>

#include <fstream>

#include "fuzz.h"

using namespace fuzzing;
using namespace translator;
using namespace std::string_literals;

namespace {

const std::vector<std::string> kKinds = {"bpe", "unigram", "char"};

const char* const kText =
    "The cat doesn't sleep. L'homme qu'il aime n'est-il pas là ? नमस्ते। 今天天气很好。 \U0001F600 3.14";

std::shared_ptr<const Subwords> learnt(const std::string& type) {
  TokenCounts counts;
  Segmenter({.letter_case = "keep"}).count_words(kText, counts);
  return std::make_shared<Subwords>(Subwords::learn(counts, {.type = type, .size = 340, .quiet = true}));
}

// What one may rely on of any model of pieces, damaged or not.
void splits(const Segmenter& s, std::string_view text, bool nothing_is_lost) {
  const Segmented found = s.split(text);
  must(found.word_of.size() == found.pieces.size(), "a piece is of a word");
  for (size_t i = 0; i < found.word_of.size(); ++i) {
    must(i == 0 ? found.word_of[i] == 0 : found.word_of[i] - found.word_of[i - 1] <= 1,
         "words follow each other");
    must(i == 0 || found.word_of[i] >= found.word_of[i - 1], "words follow each other");
  }
  must(found.pieces.empty() || static_cast<size_t>(found.word_of.back()) + 1 == found.words.size(),
       "a word has a piece");
  const Segmented back = s.words_of(found.pieces);
  must(back.word_of.size() == found.pieces.size(), "pieces have words again");
  const std::string normal = normalize(text, s.reading());
  must(!utf8::first_invalid_byte(s.join(found.pieces)), "what is joined is UTF-8");
  if (!nothing_is_lost) return;
  must(s.join(found.pieces) == normal, "text comes back",
       [&] { return normal + " as " + s.join(found.pieces); });
  must(back.word_of == found.word_of, "a translation's pieces have the words of the text",
       [&] { return normal; });
}

}  // namespace

FUZZ_TARGET(segmenter,
            {"\0He doesn't like apples."s, "\1L'homme qu'il aime?", "\2नमस्ते। क्\u200Dष 今天天气很好。"s,
             "\3\u2581x \uFFED y <0xF0> <s> </s> \u00AD\uFEFFx"s, "\4"s, "\5\1\0The cat"s}) {
  if (!Subwords::available()) return false;
  static const std::vector<std::shared_ptr<const Subwords>> models = [] {
    std::vector<std::shared_ptr<const Subwords>> out;
    for (const std::string& kind : kKinds) out.push_back(learnt(kind));
    return out;
  }();
  Choices choices(input);
  const int kind = choices.upto(5);
  if (kind < 3) {
    splits(Segmenter({.letter_case = "keep"}, models[static_cast<size_t>(kind)]), choices.rest(), true);
    return !choices.rest().empty();
  }
  if (kind == 3) {
    const Segmenter words({.letter_case = "keep", .marks = true});
    splits(words, choices.rest(), false);
    return true;
  }
  // A file that is another model's: pieces of the input put into a good one, or the input alone.
  std::string bytes = kind == 4 ? "" : models[0]->bytes();
  if (kind == 5) {
    const size_t at = static_cast<size_t>(choices.upto(255)) * 256 + static_cast<size_t>(choices.upto(255));
    const std::string own(choices.rest());
    bytes.replace(std::min(at % bytes.size(), bytes.size()), own.size(), own);
  } else {
    bytes = choices.rest();
  }
  const std::string path = scratch_directory() + "/x.model";
  std::ofstream(path, std::ios::binary) << bytes;
  return accepts<InputError>([&] {
    auto model = std::make_shared<const Subwords>(Subwords::load(path));
    model->vocabulary();
    splits(Segmenter({.letter_case = "keep"}, model), kText, false);
  });
}
