#include <translator/corpus/lexicon.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace translator::corpus {
namespace {

template <class Entry>
const Entry& find(const std::vector<Entry>& entries, const std::string& english) {
  for (const Entry& entry : entries) {
    if (english == entry.english) return entry;
  }
  throw std::out_of_range("the lexicon has no word '" + english + "'");
}

}  // namespace

bool Adjective::epicene() const { return with_avoir || std::string_view(masculine) == feminine; }

bool Verb::is_one_of(std::initializer_list<std::string_view> words) const {
  return std::find(words.begin(), words.end(), english) != words.end();
}

const std::vector<Adjective>& adjectives() {
  static const std::vector<Adjective> kAdjectives = {
      {"big", "grand", "grand", "grande", "grands", "grandes", true},
      {"small", "petit", "petit", "petite", "petits", "petites", true},
      {"beautiful", "beau", "bel", "belle", "beaux", "belles", true},
      {"old", "vieux", "vieil", "vieille", "vieux", "vieilles", true},
      {"new", "nouveau", "nouvel", "nouvelle", "nouveaux", "nouvelles", true},
      {"young", "jeune", "jeune", "jeune", "jeunes", "jeunes", true},
      {"good", "bon", "bon", "bonne", "bons", "bonnes", true},
      {"red", "rouge", "rouge", "rouge", "rouges", "rouges", false},
      {"white", "blanc", "blanc", "blanche", "blancs", "blanches", false},
      {"interesting", "intéressant", "intéressant", "intéressante", "intéressants", "intéressantes", false},
      {"hot", "chaud", "chaud", "chaude", "chauds", "chaudes", false},
      {"cold", "froid", "froid", "froide", "froids", "froides", false},
      {"tired", "fatigué", "fatigué", "fatiguée", "fatigués", "fatiguées", false},
      {"happy", "heureux", "heureux", "heureuse", "heureux", "heureuses", false},
      {"sad", "triste", "triste", "triste", "tristes", "tristes", false},
      {"sick", "malade", "malade", "malade", "malades", "malades", false},
      {"hungry", "faim", "faim", "faim", "faim", "faim", false, true},
      {"thirsty", "soif", "soif", "soif", "soif", "soif", false, true},
  };
  return kAdjectives;
}

int adjective_index(const Adjective& adjective) { return static_cast<int>(&adjective - adjectives().data()); }

const Adjective& adjective(const std::string& english) { return find(adjectives(), english); }
const Noun& noun(const std::string& english) { return find(nouns(), english); }
const Verb& verb(const std::string& english) { return find(verbs(), english); }
const TimePhrase& time_phrase(const std::string& english) { return find(time_phrases(), english); }

const std::vector<TimePhrase>& time_phrases() {
  using namespace tense_class;
  static const std::vector<TimePhrase> kPhrases = {
      {"every day", "tous les jours", {0, 0, 1}, present},
      {"every morning", "tous les matins", {0, 0, 1}, present},
      {"every evening", "tous les soirs", {0, 0, 1}, present},
      {"yesterday", "hier", {0}, past},
      {"this morning", "ce matin", {0, 1}, past},
      {"last week", "la semaine dernière", {1, 1, 0}, past},
      {"tomorrow", "demain", {0}, future},
      {"this evening", "ce soir", {0, 1}, future},
      {"next week", "la semaine prochaine", {1, 1, 0}, future},
      {"now", "maintenant", {0}, progressive},
  };
  return kPhrases;
}

bool starts_with_vowel(std::string_view french) {
  static constexpr std::string_view kPlain = "aeiouyh";
  static constexpr std::string_view kMarked[] = {"à", "â", "é", "è", "ê", "î", "ô", "œ"};
  if (french.empty()) return false;
  return kPlain.find(french[0]) != std::string_view::npos ||
         std::any_of(std::begin(kMarked), std::end(kMarked),
                     [&](std::string_view vowel) { return french.starts_with(vowel); });
}

}  // namespace translator::corpus
