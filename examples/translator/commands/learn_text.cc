// What is learnt of the training text before any weight is: words or pieces, and case.

#include <common/progress.h>
#include <common/tell.h>
#include <common/utf8.h>
#include <fmt/core.h>
#include <translator/commands/commands.h>
#include <translator/text/segmenter.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>

namespace translator {
namespace {

using Text = std::string SentencePair::*;  // of one side

// f of each sentence, which takes seconds where there are many.
template <class F>
void look_at(const std::vector<SentencePair>& pairs, Text side, bool quiet, const F& f) {
  const char* label = side == &SentencePair::source_text ? "reading the sources" : "reading the targets";
  Progress bar(label, static_cast<int64_t>(pairs.size()), {.delay_seconds = 1, .quiet = quiet});
  int64_t done = 0;
  for (const SentencePair& p : pairs) {
    f(p.*side);
    bar.update(++done);
  }
}

Vocabulary vocabulary_of(const std::vector<SentencePair>& pairs, Text side, const Segmenter& segmenter,
                         const TrainCommand& o) {
  TokenCounts counts;
  look_at(pairs, side, o.train.quiet,
          [&](const std::string& text) { counts.add(segmenter.split(text).pieces); });
  return Vocabulary::build(counts, {.min_count = o.min_count, .max_size = o.max_vocabulary});
}

// Nothing where sentences do not begin with a capital.
std::shared_ptr<const Truecaser> case_of(const std::vector<SentencePair>& pairs, Text side, bool quiet) {
  auto out = std::make_shared<Truecaser>();
  look_at(pairs, side, quiet, [&](const std::string& text) {
    out->count(tokenize(text, {.lowercase = false, .plain = false}));
  });
  out->decide();
  return out->begins_with_capital() ? out : nullptr;
}

// More where scripts of many characters need them, which is then said.
int64_t default_subword_size(int64_t pairs, const TokenCounts& words, bool quiet) {
  constexpr size_t kAlphabet = 200;  // characters of a text in a script of few
  std::set<char32_t> characters;
  for (const auto& [word, count] : words.all())
    for (char32_t c : utf8::decode_lossy(word)) characters.insert(c);
  const size_t many = characters.size() > kAlphabet ? 2 * (characters.size() - kAlphabet) : 0;
  const int64_t size = default_pieces(pairs) + static_cast<int64_t>(many);
  if (many > 0 && !quiet) tell("The text has {} characters: {} pieces\n", characters.size(), size);
  return size;
}

std::shared_ptr<const Subwords> subwords_of(const Data& data, const std::vector<Text>& sides,
                                            const TextModels& text, const TrainCommand& o) {
  TokenCounts counts;
  for (Text side : sides) {
    const Segmenter segmenter({.letter_case = o.model.letter_case}, nullptr,
                              side == &SentencePair::source_text ? text.source_case : text.target_case);
    look_at(data.train, side, o.train.quiet,
            [&](const std::string& line) { segmenter.count_words(line, counts); });
  }
  const int64_t size =
      o.subword_size ? o.subword_size : default_subword_size(data.given, counts, o.train.quiet);
  return std::make_shared<const Subwords>(
      Subwords::learn(counts, {.type = o.model.subwords, .size = size, .quiet = o.train.quiet}));
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

void refuse(const TrainCommand& o, std::initializer_list<const char*> options, const std::string& why) {
  for (const char* option : options)
    if (o.given.count(option)) throw UsageError(option + why);
}

void refuse_options_of_other_tokens(const TrainCommand& o) {
  const bool pieces = o.model.subwords != "none";
  if (pieces) {
    refuse(o, {"--min-count", "--max-vocabulary"},
           " is for words: with pieces nothing is unknown; --subwords none makes words the tokens");
  } else {
    refuse(o, {"--subword-size", "--subword-model"}, " is for pieces, but words are the tokens here");
    if (o.train.subword_dropout > 0)
      refuse(o, {"--subword-dropout"}, " is for pieces, but words are the tokens here");
  }
  if (o.model.subwords == "char" && o.train.subword_dropout > 0)
    refuse(o, {"--subword-dropout"},
           " has nothing to choose from: a text has its characters in one way only");
}

// The words of the data that the vocabulary lacks, in whatever spacing.
Vocabulary new_words(const Vocabulary& known, const std::vector<SentencePair>& pairs, Text side,
                     const Segmenter& segmenter, const TrainCommand& o) {
  const int64_t room = o.max_vocabulary - known.size();
  TokenCounts counts;
  for (const SentencePair& p : pairs)
    for (const std::string& word : segmenter.split(p.*side).pieces)
      if (!known.contains(word) && !known.contains(without_mark(word))) counts.add(word);
  const auto& all = counts.all();
  if (room <= 0 && std::any_of(all.begin(), all.end(), [&](const auto& c) { return c.second >= o.min_count; }))
    throw UsageError(fmt::format("--extend-vocabulary: {} has {} words a side already: --max-vocabulary makes "
                                 "room for more",
                                 o.from, known.size()));
  return Vocabulary::build(counts, {.min_count = o.min_count,
                                    .max_size = std::max<int64_t>(room, 0) + Vocabulary::kSpecials});
}

// Sources' tags are the last entries: pieces stand in the order of their model. Where both sides have the same
// pieces they have the same entries, and may share one matrix.
void add_tags(Vocabulary& source, Vocabulary& target, bool joint, const Data& data) {
  TokenCounts tags;
  for (const SentencePair& p : data.train)
    if (!p.tag.empty()) tags.add(p.tag);
  const Vocabulary found = Vocabulary::build(tags);
  source = source.extended(found);
  if (joint) target = target.extended(found);
}

}  // namespace

void prepare(Model& model, const TrainCommand& o, const Data& data) {
  Vocabulary source = model.source, target = model.target;
  const bool pieces = model.config.subwords != "none";
  const std::string keeps = fmt::format(": --from keeps the {} of {}", model.config.tokens(), o.from);
  if (pieces)
    refuse(o, {"--extend-vocabulary", "--subword-size", "--min-count", "--max-vocabulary"},
           keeps + ": what is new is spelt in smaller ones, and nothing is unknown");
  refuse_options_of_other_tokens(o);
  if (!o.extend_vocabulary)
    refuse(o, {"--min-count", "--max-vocabulary"}, keeps + "; --extend-vocabulary adds to them");
  if (o.extend_vocabulary && !pieces) {
    source = source.extended(new_words(source, data.train, &SentencePair::source_text, model.reads, o));
    target = target.extended(new_words(target, data.train, &SentencePair::target_text, model.writes, o));
  }
  add_tags(source, target, pieces && model.config.subword_model == "joint", data);
  ModelConfig config = o.model;
  config.trained_on = data.trained_on;
  model.extend(config, source, target, o.train.seed);
}

WordSegmenters word_segmenters(const TrainCommand& o, const Data& data, const TextModels& models) {
  const bool french = is_french(data.train);
  const SegmenterOptions source{.letter_case = o.model.letter_case},
      target{.letter_case = o.model.letter_case,
             .typography = french ? Typography::french : Typography::other,
             .marks = true};
  return {french, Segmenter(source, nullptr, models.source_case),
          Segmenter(target, nullptr, models.target_case)};
}

LearntText learn_text(const TrainCommand& o, const Data& data) {
  constexpr Text kSource = &SentencePair::source_text, kTarget = &SentencePair::target_text;
  LearntText out;
  TextModels& models = out.models;
  refuse_options_of_other_tokens(o);
  if (o.model.letter_case == "first") {
    models.source_case = case_of(data.train, kSource, o.train.quiet);
    models.target_case = case_of(data.train, kTarget, o.train.quiet);
  }
  if (o.model.subwords != "none") {
    const bool joint = o.model.subword_model == "joint";
    models.source =
        subwords_of(data, joint ? std::vector{kSource, kTarget} : std::vector{kSource}, models, o);
    models.target = joint ? models.source : subwords_of(data, {kTarget}, models, o);
    out.source = models.source->vocabulary();
    out.target = models.target->vocabulary();
    add_tags(out.source, out.target, joint, data);
    return out;
  }
  const WordSegmenters words = word_segmenters(o, data, models);
  out.french = words.french;
  out.source = vocabulary_of(data.train, kSource, words.source, o);
  out.target = vocabulary_of(data.train, kTarget, words.target, o);
  add_tags(out.source, out.target, false, data);
  return out;
}

}  // namespace translator
