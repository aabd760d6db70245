// The embedded sentences in the order of a language that puts heads last: the same words, links and parts.

#include "../quick_doctest.h"
#include "sample.h"

#include <translator/text/detokenizer.h>
#include <translator/text/tokenizer.h>

#include <array>
#include <cmath>
#include <map>
#include <set>

using namespace translator;

namespace {

const Corpus& french() {
  static const Corpus corpus = generate_corpus({.train = 6000});
  return corpus;
}

const Corpus& verb_final() {
  static const Corpus corpus = generate_corpus({.train = 6000, .verb_final = true});
  return corpus;
}

// The links that cross another, of all pairs of links between different words of either side.
double crossing(const std::vector<SentencePair>& pairs) {
  double crossed = 0, all = 0;
  for (const SentencePair& p : pairs)
    for (const Link& a : p.alignment->sure)
      for (const Link& b : p.alignment->sure)
        if (a.source < b.source && a.target != b.target) {
          ++all;
          crossed += a.target > b.target;
        }
  return crossed / all;
}

// Of the words of the translations those whose English word is so near, in hundredths.
int within(const std::vector<SentencePair>& pairs, int window) {
  double near = 0, all = 0;
  for (const SentencePair& p : pairs) {
    std::set<int32_t> found;
    for (const Link& link : p.alignment->sure)
      if (std::abs(link.source - link.target) <= window) found.insert(link.target);
    near += static_cast<double>(found.size());
    all += static_cast<double>(p.target.size());
  }
  return static_cast<int>(std::lround(100 * near / all));
}

// What each English word is translated by, whatever its place.
std::vector<std::multiset<std::string>> translations(const SentencePair& p) {
  std::vector<std::multiset<std::string>> out(p.source.size());
  for (const Link& link : p.alignment->sure)
    out[static_cast<size_t>(link.source)].insert(p.target[static_cast<size_t>(link.target)]);
  return out;
}

}  // namespace

TEST_CASE("verb-final: verbs, articles, prepositions and conjunctions stand behind what they lead") {
  const SentencePair held_out = held_out_pair({.verb_final = true});
  CHECK(join_tokens(held_out.target) == "il pommes les ne aime pas");
  CHECK(format_moses(held_out.alignment->sure) == "0-0 1-3 1-5 2-4 3-1 3-2");
  CHECK(held_out.target_text == "il pommes les ne aime pas");
  std::map<std::string, std::string> said;
  for (const SentencePair& p : verb_final().test) said[join_tokens(p.source)] = join_tokens(p.target);
  for (const auto& [english, expected] : std::map<std::string, std::string>{
           {"my mother is tired", "mère ma est fatiguée"},
           {"when did the sick man sing in the kitchen ?",
            "homme malade le cuisine la dans a chanté quand est-ce que ?"},
           {"i know that her brother found a key", "je frère son clé une a trouvé que sais"},
           {"if the boy isn't hungry , he will leave .", "il partira , garçon le ne a pas faim si ."},
           {"marc didn't go to the school because he was tired .",
            "il était fatigué parce que marc école la à ne est pas allé ."},
           {"he wants to buy the apple that his father gave to his sisters at the market .",
            "il marché le à père son sœurs ses à a donnée que pomme la veut acheter ."}}) {
    CAPTURE(english);
    CHECK(said[english] == expected);
  }
}

TEST_CASE("verb-final: the same sentences in the same parts, of the same words, linked alike") {
  int alone = 0, alike = 0;
  for (auto part : {&Corpus::train, &Corpus::valid, &Corpus::test}) {
    std::map<std::string, SentencePair> found;
    for (const SentencePair& p : verb_final().*part) found[padded(p.source)] = p;
    for (const SentencePair& a : french().*part) {
      const auto b = found.find(padded(a.source));
      alone += b == found.end();  // with the verbs last it has more than 40 tokens
      // Where nothing is elided, nor a preposition melted into an article, all words are the same.
      if (b == found.end() || padded(a.target).find('\'') != std::string::npos ||
          a.target.size() != b->second.target.size())
        continue;
      ++alike;
      CHECK(translations(a) == translations(b->second));
    }
  }
  CHECK(alone <= 8);
  CHECK(alike > 3000);
}

TEST_CASE("verb-final: links cross, and text is cut into the same tokens again") {
  CHECK(crossing(french().train) < 0.1);
  CHECK(crossing(verb_final().train) > 0.4);
  // As docs/experiments/focus.md says.
  const std::array<int, 4> near = {73, 89, 96, 98}, far = {22, 32, 41, 49};
  for (size_t window = 1; window <= 4; ++window) {
    CHECK(within(french().test, static_cast<int>(window)) == near[window - 1]);
    CHECK(within(verb_final().test, static_cast<int>(window)) == far[window - 1]);
  }
  int wrong = 0;
  for (const SentencePair& p : verb_final().train) {
    wrong += tokenize(detokenize(p.target, Typography::french)) != p.target;
    std::set<int32_t> sources, targets;
    for (const Link& link : p.alignment->sure) sources.insert(link.source), targets.insert(link.target);
    wrong += sources.size() != p.source.size() || targets.size() != p.target.size();
  }
  CHECK(wrong == 0);
}

TEST_CASE("verb-final: every sentence has one translation, and none is in two parts, whatever the seed") {
  std::map<std::string, std::string> translation;
  std::map<std::string, size_t> part_of;
  for (uint64_t seed : {1, 2, 3})
    for (int length : {9, 40}) {
      const Corpus c = generate_corpus(
          {.seed = seed, .train = 5000, .valid = 300, .test = 300, .max_length = length, .verb_final = true});
      size_t number = 0;
      for (const auto* pairs : {&c.train, &c.valid, &c.test}) {
        for (SentencePair p : *pairs) {
          CHECK(p.target.size() <= static_cast<size_t>(length));
          for (auto* side : {&p.source, &p.target})
            if (side->back() == ".") side->pop_back();
          CHECK(translation.emplace(padded(p.source), padded(p.target)).first->second == padded(p.target));
          CHECK(part_of.emplace(padded(p.target), number).first->second == number);
        }
        ++number;
      }
    }
}
