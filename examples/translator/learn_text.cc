// What is learnt of the training text before any weight is: words or pieces, and case.

#include <common/utf8.h>
#include <fmt/core.h>
#include <translator/commands.h>
#include <translator/text/segmenter.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>

namespace translator {
namespace {

using Text = std::string SentencePair::*;  // of one side

Vocabulary vocabulary_of(const std::vector<SentencePair>& pairs, Text side, const Segmenter& segmenter,
                         const TrainCommand& o) {
  TokenCounts counts;
  for (const SentencePair& p : pairs) counts.add(segmenter.split(p.*side).pieces);
  return Vocabulary::build(counts, {.min_count = o.min_count, .max_size = o.max_vocabulary});
}

// Nothing where sentences do not begin with a capital.
std::shared_ptr<const Truecaser> case_of(const std::vector<SentencePair>& pairs, Text side) {
  auto out = std::make_shared<Truecaser>();
  for (const SentencePair& p : pairs) out->count(tokenize(p.*side, {.lowercase = false, .plain = false}));
  out->decide();
  return out->begins_with_capital() ? out : nullptr;
}

// Fewer pairs see each piece less often, so that there must be fewer pieces (docs/measured.md); besides those
// that scripts of many characters need.
int64_t default_subword_size(size_t pairs, const TokenCounts& words) {
  constexpr size_t kAlphabet = 200;  // characters of a text in a script of few
  std::set<char32_t> characters;
  for (const auto& [word, count] : words.all())
    for (char32_t c : utf8::decode_lossy(word)) characters.insert(c);
  const size_t many = characters.size() > kAlphabet ? 2 * (characters.size() - kAlphabet) : 0;
  return (pairs < 10'000 ? 1000 : pairs < 400'000 ? 4000 : 8000) + static_cast<int64_t>(many);
}

std::shared_ptr<const Subwords> subwords_of(const std::vector<SentencePair>& pairs,
                                            const std::vector<Text>& sides, const TextModels& text,
                                            const TrainCommand& o) {
  TokenCounts counts;
  for (Text side : sides) {
    const Segmenter segmenter({.letter_case = o.model.letter_case}, nullptr,
                              side == &SentencePair::source_text ? text.source_case : text.target_case);
    for (const SentencePair& p : pairs) segmenter.count_words(p.*side, counts);
  }
  return std::make_shared<const Subwords>(Subwords::learn(
      counts, {.type = o.model.subwords,
               .size = o.subword_size ? o.subword_size : default_subword_size(pairs.size(), counts),
               .quiet = o.train.quiet}));
}

// The spacing that leaves fewer marks in the target.
bool is_french(const std::vector<SentencePair>& pairs) {
  constexpr size_t kLooked = 2000;  // pairs
  std::array<size_t, 2> marks{};
  for (size_t i = 0; i < std::min(kLooked, pairs.size()); ++i)
    for (bool french : {false, true}) {
      const Segmenter s({.letter_case = "keep",
                         .typography = french ? Typography::french : Typography::other,
                         .marks = true});
      for (const std::string& piece : s.split(pairs[i].target_text).pieces)
        marks[french] += without_mark(piece).size() < piece.size();
    }
  return marks[true] < marks[false];
}

void refuse_options_of_other_tokens(const TrainCommand& o) {
  const bool pieces = o.model.subwords != "none";
  auto refuse = [&](std::initializer_list<const char*> options, const std::string& why) {
    for (const char* option : options)
      if (o.given.count(option)) throw UsageError(fmt::format("{} {}", option, why));
  };
  if (pieces) {
    refuse({"--min-count", "--max-vocabulary"},
           "is for words: with pieces nothing is unknown; --subwords none makes words the tokens");
  } else {
    refuse({"--subword-size", "--subword-model", "--subword-dropout"},
           "is for pieces, but words are the tokens here");
  }
  if (o.model.subwords == "char")
    refuse({"--subword-dropout"}, "has nothing to choose from: a text has its characters in one way only");
}

}  // namespace

LearntText learn_text(const TrainCommand& o, const Data& data) {
  constexpr Text kSource = &SentencePair::source_text, kTarget = &SentencePair::target_text;
  LearntText out;
  TextModels& models = out.models;
  refuse_options_of_other_tokens(o);
  if (o.model.letter_case == "first") {
    models.source_case = case_of(data.train, kSource);
    models.target_case = case_of(data.train, kTarget);
  }
  if (o.model.subwords != "none") {
    const bool joint = o.model.subword_model == "joint";
    models.source =
        subwords_of(data.train, joint ? std::vector{kSource, kTarget} : std::vector{kSource}, models, o);
    models.target = joint ? models.source : subwords_of(data.train, {kTarget}, models, o);
    out.source = models.source->vocabulary();
    out.target = models.target->vocabulary();
    return out;
  }
  out.french = is_french(data.train);
  const SegmenterOptions source{.letter_case = o.model.letter_case},
      target{.letter_case = o.model.letter_case,
             .typography = out.french ? Typography::french : Typography::other,
             .marks = true};
  out.source = vocabulary_of(data.train, kSource, Segmenter(source, nullptr, models.source_case), o);
  out.target = vocabulary_of(data.train, kTarget, Segmenter(target, nullptr, models.target_case), o);
  return out;
}

}  // namespace translator
