// Options of the corpus's grammar: seed, sizes, length. Every sentence is new, fits, and has links within
// it.

#include <translator/corpus/corpus.h>
#include <translator/text/alignment.h>
#include <translator/text/detokenizer.h>
#include <translator/text/tokenizer.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "fuzz.h"

using namespace fuzzing;
using namespace translator;
using namespace std::string_literals;

FUZZ_TARGET(grammar, {"\5\2\2\50\1"s, "\0\0\0\3"s, "\50\0\1\x64\7seed"s,
                      "\1\1\1\4\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s}) {
  Choices choices(input);
  // Of each part a few: another seed shows more than more sentences of one.
  CorpusOptions options{.train = choices.upto(9) - 1,
                        .valid = choices.upto(2) - 1,
                        .test = choices.upto(2) - 1,
                        .max_length = choices.upto(97) + 3,
                        .verb_final = choices.yes()};
  // Of short sentences there are few: to find out that there are no more takes 20,000 draws, a second.
  if (options.max_length < 9) options.valid = options.test = 0, options.train = std::min(options.train, 2);
  std::string_view rest = choices.rest();
  options.seed = 0;
  std::memcpy(&options.seed, rest.data(), std::min(rest.size(), sizeof options.seed));
  Corpus corpus;
  if (!accepts<std::invalid_argument>([&] { corpus = generate_corpus(options); })) return false;
  must(static_cast<int>(corpus.train.size()) == options.train &&
           static_cast<int>(corpus.valid.size()) == options.valid &&
           static_cast<int>(corpus.test.size()) == options.test,
       "as many sentences as asked for");
  std::set<std::vector<std::string>> seen;
  for (const auto* part : {&corpus.train, &corpus.valid, &corpus.test})
    for (const SentencePair& p : *part) {
      must(static_cast<int>(std::max(p.source.size(), p.target.size())) <= options.max_length,
           "no sentence is too long");
      must(seen.insert(p.source).second, "no sentence comes twice");
      const GoldAlignment gold{.sure = p.alignment->sure};
      must(fits(gold, static_cast<int64_t>(p.source.size()), static_cast<int64_t>(p.target.size())),
           "links lie within the sentences");
      must(parse_moses(format_moses(p.alignment->sure)) == gold, "links are read as they were written");
      const std::string english = detokenize(p.source), french = detokenize(p.target, Typography::french);
      must(tokenize(english) == p.source && tokenize(french) == p.target,
           "a sentence that is written is read as the same words", [&] { return french; });
    }
  return true;
}
