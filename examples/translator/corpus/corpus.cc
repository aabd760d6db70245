#include <translator/corpus/corpus.h>

#include <common/fnv1a.h>
#include <translator/corpus/grammar.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <unordered_set>

namespace translator {
namespace {

constexpr int kTries = 20000;  // in a row that bring nothing new
constexpr uint64_t kShares = 16;  // of which validation and test have one each

corpus::WordOrder order_of(const CorpusOptions& options) {
  return options.verb_final ? corpus::WordOrder::verb_final : corpus::WordOrder::french;
}

// What makes two sentences the same: the words, not the stop.
std::string identity(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) {
    if (token == ".") continue;
    text += token;
    text += ' ';
  }
  return text;
}

// 0 train, 1 valid, 2 test. The French words alone decide (FNV-1a), so that no seed, length or size puts a
// sentence of either language into two parts: an English sentence has one French one, a French one may have
// several English ones.
size_t part_of(const std::vector<std::string>& french) {
  Fnv1a words;
  for (char c : identity(french)) words.mix(static_cast<unsigned char>(c));
  const uint64_t share = corpus::SplitMix(words.hash).next() % kShares;
  return share < 2 ? 1 + static_cast<size_t>(share) : 0;
}

bool has_held_out(const std::vector<std::string>& tokens) {
  static const std::vector<std::string> kWords = held_out_pair().source;
  return std::search(tokens.begin(), tokens.end(), kWords.begin(), kWords.end()) != tokens.end();
}

}  // namespace

Corpus generate_corpus(const CorpusOptions& options) {
  if (options.train < 0 || options.valid < 0 || options.test < 0) {
    throw std::invalid_argument(fmt::format("corpus sizes must not be negative: train {}, valid {}, test {}",
                                            options.train, options.valid, options.test));
  }
  corpus::SplitMix random(options.seed);
  corpus::Grammar grammar(random);
  const size_t limit = options.max_length < 0 ? 0 : static_cast<size_t>(options.max_length);
  const int64_t total = int64_t{options.train} + options.valid + options.test;
  Corpus corpus;
  const std::array<std::pair<std::vector<SentencePair>*, int>, 3> parts = {
      {{&corpus.train, options.train}, {&corpus.valid, options.valid}, {&corpus.test, options.test}}};
  for (const auto& [pairs, wanted] : parts) pairs->reserve(static_cast<size_t>(wanted));
  std::unordered_set<std::string> seen;
  int64_t missing = total;
  for (int tries = 0; missing > 0; ++tries) {
    if (tries == kTries) {
      throw std::invalid_argument(fmt::format(
          "the grammar has no {} different sentences of at most {} tokens", total, options.max_length));
    }
    const corpus::Sentence sentence = grammar.sentence();
    SentencePair pair = corpus::realise(sentence);
    const auto& [pairs, wanted] = parts[part_of(pair.target)];
    if (options.verb_final) pair = corpus::realise(sentence, order_of(options));
    if (pair.source.size() > limit || pair.target.size() > limit || has_held_out(pair.source)) continue;
    if (pairs->size() == static_cast<size_t>(wanted) || !seen.insert(identity(pair.source)).second) continue;
    pairs->push_back(corpus::with_texts(std::move(pair)));
    --missing;
    tries = 0;
  }
  return corpus;
}

SentencePair held_out_pair(const CorpusOptions& options) {
  const corpus::NounPhrase apples{
      .noun = &corpus::noun("apple"), .plural = true, .determiner = corpus::Determiner::bare};
  const corpus::Clause clause{.subject = {.pronoun = corpus::Pronoun::he},
                              .verb = &corpus::verb("like"),
                              .polarity = corpus::Polarity::negative,
                              .object = {apples}};
  return corpus::with_texts(
      corpus::realise({.parts = {{.clause = clause}}, .stop = false}, order_of(options)));
}

}  // namespace translator
