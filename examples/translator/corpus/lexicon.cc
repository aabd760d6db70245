#include <translator/corpus/lexicon.h>

#include <stdexcept>
#include <string_view>

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

bool Verb::is_one_of(std::initializer_list<const char*> words) const {
  for (const char* word : words) {
    if (is(word)) return true;
  }
  return false;
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

const TimePhrase& time_phrase(const std::string& english) {
  for (const TimePhrase& phrase : time_phrases()) {
    std::string text;
    for (const char* word : phrase.english) text += (text.empty() ? "" : " ") + std::string(word);
    if (text == english) return phrase;
  }
  throw std::out_of_range("the lexicon has no time '" + english + "'");
}

const std::vector<TimePhrase>& time_phrases() {
  using namespace tense_class;
  static const std::vector<TimePhrase> kPhrases = {
      {{"every", "day"}, {"tous", "les", "jours"}, {0, 0, 1}, present},
      {{"every", "morning"}, {"tous", "les", "matins"}, {0, 0, 1}, present},
      {{"every", "evening"}, {"tous", "les", "soirs"}, {0, 0, 1}, present},
      {{"yesterday"}, {"hier"}, {0}, past},
      {{"this", "morning"}, {"ce", "matin"}, {0, 1}, past},
      {{"last", "week"}, {"la", "semaine", "dernière"}, {1, 1, 0}, past},
      {{"tomorrow"}, {"demain"}, {0}, future},
      {{"this", "evening"}, {"ce", "soir"}, {0, 1}, future},
      {{"next", "week"}, {"la", "semaine", "prochaine"}, {1, 1, 0}, future},
      {{"now"}, {"maintenant"}, {0}, progressive},
  };
  return kPhrases;
}

const Auxiliary& etre() {
  static const Auxiliary kForms = {{{"suis", "est", "sommes", "sont"}},
                                   {{"étais", "était", "étions", "étaient"}},
                                   {{"serai", "sera", "serons", "seront"}}};
  return kForms;
}

const Auxiliary& avoir() {
  static const Auxiliary kForms = {{{"ai", "a", "avons", "ont"}},
                                   {{"avais", "avait", "avions", "avaient"}},
                                   {{"aurai", "aura", "aurons", "auront"}}};
  return kForms;
}

const Conjugation& vouloir() {
  static const Conjugation kForms = {{"veux", "veut", "voulons", "veulent"}};
  return kForms;
}

const Conjugation& pouvoir() {
  static const Conjugation kForms = {{"peux", "peut", "pouvons", "peuvent"}};
  return kForms;
}

bool starts_with_vowel(std::string_view french) {
  static constexpr std::string_view kPlain = "aeiouyh";
  static constexpr std::string_view kMarked[] = {"à", "â", "é", "è", "ê", "î", "ô", "œ"};
  if (french.empty()) return false;
  if (kPlain.find(french[0]) != std::string_view::npos) return true;
  for (std::string_view vowel : kMarked) {
    if (french.compare(0, vowel.size(), vowel) == 0) return true;
  }
  return false;
}

}  // namespace translator::corpus
