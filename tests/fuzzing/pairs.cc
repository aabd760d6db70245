// Sentence pairs: one file with tabs, two files line by line; and a vocabulary and Moses links, which are
// read likewise. What was read is written and read again the same.

#include <translator/text/alignment.h>
#include <common/error.h>
#include <translator/text/parallel.h>
#include <translator/text/vocabulary.h>

#include <algorithm>
#include <sstream>

#include "fuzz.h"

using namespace fuzzing;
using namespace translator;
using namespace std::string_literals;

namespace {

void adds_up(const ParallelData& data) {
  const ReadReport& r = data.report;
  must(r.pairs == static_cast<int64_t>(data.pairs.size()), "as many pairs as are counted");
  must(r.lines == r.pairs + r.blank + r.too_long + r.bad, "every line is a pair, blank, too long or bad");
  must(static_cast<int64_t>(r.messages.size()) <= r.bad, "a message is about a bad line");
  for (const std::string& m : r.messages) must_be_a_message(m);
  must_be_a_message(r.summary());
  for (const SentencePair& p : data.pairs) {
    must(!p.source.empty() && !p.target.empty(), "both sides have a word");
    must(!p.alignment ||
             fits(*p.alignment, static_cast<int64_t>(p.source.size()), static_cast<int64_t>(p.target.size())),
         "links lie within the sentences");
    must(p.line > 0, "a pair knows its line");
  }
}

// Tabs and returns within a line that came from a file of its own would not come back.
bool can_be_a_column(const std::string& text) { return text.find_first_of("\t\r\n") == text.npos; }

void comes_back(const ParallelData& data, ReadOptions options) {
  std::string tsv =
      "\xEF\xBB\xBF";  // a mark of which one is taken away, so that the text may begin with another
  for (const SentencePair& p : data.pairs) {
    if (!can_be_a_column(p.source_text) || !can_be_a_column(p.target_text)) return;
    tsv += p.source_text + "\t" + p.target_text;
    if (p.alignment) tsv += "\t" + format_moses(*p.alignment);
    tsv += "\n";
  }
  options.swap_columns = false;
  options.strict = true;
  std::istringstream in(tsv);
  ParallelData again = read_pairs(in, "again.tsv", options);
  must(again.pairs.size() == data.pairs.size(), "pairs that are written are read");
  for (size_t i = 0; i < data.pairs.size(); ++i) {
    const SentencePair &a = data.pairs[i], &b = again.pairs[i];
    must(a.source == b.source && a.target == b.target && a.source_text == b.source_text &&
             a.target_text == b.target_text,
         "a pair is read as it was written");
    bool none = !a.alignment || (a.alignment->sure.empty() && a.alignment->possible.empty());
    must(none || a.alignment == b.alignment, "links are read as they were written");
  }
}

bool vocabulary_comes_back(const std::string& text) {
  std::istringstream in(text);
  Vocabulary words;
  if (!accepts<InputError>([&] { words = Vocabulary::load(in, "a.vocab"); })) return false;
  std::istringstream file(words.text());
  must(Vocabulary::load(file, "again.vocab") == words, "a vocabulary is read as it was written");
  for (int32_t id = Vocabulary::kSpecials; id < words.size(); ++id)
    must(words.id(words.token(id)) == id, "a token's id is its line");
  return true;
}

void links_come_back(const std::string& text) {
  if (auto gold = parse_moses(text)) {
    must(parse_moses(format_moses(*gold)) == gold, "links are read as they were written");
    must(swapped(swapped(*gold)) == *gold, "links exchanged twice are as they were");
    AlignmentScore score;
    score.add(gold->sure, *gold);
    must(score.error_rate() >= 0 && score.error_rate() <= 1, "an error rate is between 0 and 1");
  }
}

}  // namespace

FUZZ_TARGET(pairs, {"\0\0she sings\telle chante\t0-0 1-1\nno tab\n\n"s,
                    "\1\3A b c d\tE f g\r\n\xEF\xBB\xBFx\ty\tz\n"s, "\2\0one\ntwo\n--- \nun\ndeux\n"s,
                    "\3\0\xFF\xFEu\0t\0f\0"s, "\0\0\xEF\xBB\xBF bom\tx\n\xFF\ty\nz\t\n"s,
                    "\4\1<unk>\n<pad>\n<s>\n</s>\na\nb\n"s,
                    "\5\1"
                    "0-0 1-2 3?4"s,
                    "\6\2\t\t\t\n \t \n\ta\n"s}) {
  Choices choices(input);
  int kind = choices.upto(7), flags = choices.upto(255);
  ReadOptions options{.swap_columns = (flags & 1) != 0,
                      .strict = (flags & 2) != 0,
                      .text = {.lowercase = (flags & 4) == 0, .plain = (flags & 32) == 0},
                      .max_length = (flags & 8) ? 3 : 0,
                      .max_pairs = (flags & 16) ? 2 : 0};
  std::string text(choices.rest());
  if (kind == 4) return vocabulary_comes_back(text);
  if (kind == 5) return links_come_back(text), parse_moses(text).has_value();
  ParallelData data;
  bool accepted = accepts<InputError>([&] {
    if (kind < 2) {
      std::istringstream in(text);
      data = read_pairs(in, "a.tsv", options);
    } else {
      auto both = sections(text);
      std::istringstream source(both[0].second), target(both.size() > 1 ? both[1].second : "");
      data = read_pairs(source, "a.en", target, "a.fr", options);
    }
  });
  if (!accepted) return false;
  adds_up(data);
  comes_back(data, options);
  return !data.pairs.empty();
}
