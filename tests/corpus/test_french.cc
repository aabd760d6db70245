#include "../function_ref.h"
#include "../quick_doctest.h"
#include "sample.h"

#include <translator/corpus/lexicon.h>

#include <map>
#include <set>

using namespace translator;

namespace {

using Tokens = std::vector<std::string>;
using corpus::Gender;

// Calls visit(token, next, position) for neighbours and names the first sentence that breaks the rule.
using Broken = gradus::testing::FunctionRef<bool(const Tokens&, size_t)>;
void check_neighbours(const char* rule, const Broken& broken) {
  int count = 0;
  for (const SentencePair& pair : large_sample().train) {
    for (size_t i = 0; i + 1 < pair.target.size(); ++i) {
      if (broken(pair.target, i) && ++count == 1) FAIL_CHECK((std::string(rule) + ":" + padded(pair.target)));
    }
  }
  CHECK_MESSAGE(count == 0, rule);
}

bool vowel(const std::string& word) { return corpus::starts_with_vowel(word); }

struct Form {
  Gender gender;
  bool plural;
};

const std::map<std::string, Form>& noun_forms() {
  static const std::map<std::string, Form> kForms = [] {
    std::map<std::string, Form> forms;
    for (const corpus::Noun& noun : corpus::nouns()) {
      if (noun.classes & corpus::noun_class::name) continue;
      forms[noun.french] = {noun.gender, false};
      if (noun.french_plural != nullptr) forms[noun.french_plural] = {noun.gender, true};
    }
    return forms;
  }();
  return kForms;
}

}  // namespace

TEST_CASE("elision: l' n' d' qu' j' m' before a vowel, and only there") {
  check_neighbours("elided word before a vowel", [](const Tokens& t, size_t i) {
    static const std::set<std::string> kWords = {"le", "la", "je", "ne", "me", "de", "que"};
    return kWords.count(t[i]) && vowel(t[i + 1]);
  });
  check_neighbours("apostrophe before a consonant",
                   [](const Tokens& t, size_t i) { return t[i].back() == '\'' && !vowel(t[i + 1]); });
  check_neighbours("si il", [](const Tokens& t, size_t i) {
    return t[i] == "si" && (t[i + 1] == "il" || t[i + 1] == "ils");
  });
  check_neighbours("s' before anything but il", [](const Tokens& t, size_t i) {
    return t[i] == "s'" && t[i + 1] != "il" && t[i + 1] != "ils";
  });
}

TEST_CASE("contraction: du, des, au, aux") {
  check_neighbours("de le, de les, à le, à les", [](const Tokens& t, size_t i) {
    // "à le" and "de le" before an infinitive would be a pronoun, which this grammar has not.
    return (t[i] == "de" || t[i] == "à") && (t[i + 1] == "le" || t[i + 1] == "les");
  });
  check_neighbours("du or au before a vowel", [](const Tokens& t, size_t i) {
    return (t[i] == "du" || t[i] == "au") && vowel(t[i + 1]);
  });
}

TEST_CASE("words that change before a vowel") {
  check_neighbours("beau oiseau, ce homme, ma orange", [](const Tokens& t, size_t i) {
    static const std::set<std::string> kWords = {"beau", "nouveau", "vieux", "ce", "ma", "sa"};
    const auto noun = noun_forms().find(t[i + 1]);
    if (t[i] == "vieux" && noun != noun_forms().end() && noun->second.plural) return false;
    return kWords.count(t[i]) && noun != noun_forms().end() && vowel(t[i + 1]);
  });
  check_neighbours("bel, nouvel, vieil, cet only before a vowel", [](const Tokens& t, size_t i) {
    static const std::set<std::string> kWords = {"bel", "nouvel", "vieil", "cet"};
    return kWords.count(t[i]) && !vowel(t[i + 1]);
  });
}

TEST_CASE("articles and other determiners agree with the noun behind them") {
  const std::map<std::string, Form> kDeterminers = {
      {"le", {Gender::masculine, false}},   {"la", {Gender::feminine, false}},
      {"un", {Gender::masculine, false}},   {"une", {Gender::feminine, false}},
      {"ce", {Gender::masculine, false}},   {"cet", {Gender::masculine, false}},
      {"cette", {Gender::feminine, false}}, {"du", {Gender::masculine, false}},
      {"au", {Gender::masculine, false}}};
  const std::map<std::string, bool> kNumber = {
      {"les", true}, {"des", true},  {"aux", true},   {"ces", true},    {"mes", true},
      {"ses", true}, {"nos", true},  {"leurs", true}, {"deux", true},   {"trois", true},
      {"l'", false}, {"mon", false}, {"son", false},  {"notre", false}, {"leur", false}};
  std::map<std::string, corpus::Adjective> kBefore;
  for (const corpus::Adjective& a : corpus::adjectives()) {
    if (!a.before_noun) continue;
    for (const char* form :
         {a.masculine, a.before_vowel, a.feminine, a.masculine_plural, a.feminine_plural}) {
      kBefore.emplace(form, a);
    }
  }
  check_neighbours("determiner, adjective, noun", [&](const Tokens& t, size_t i) {
    size_t at = i + 1;
    const auto adjective = kBefore.find(t[at]);
    if (adjective != kBefore.end() && at + 1 < t.size()) ++at;
    const auto noun = noun_forms().find(t[at]);
    if (noun == noun_forms().end()) return false;
    const Form form = noun->second;
    if (adjective != kBefore.end() && at == i + 2) {
      const corpus::Adjective& a = adjective->second;
      const bool feminine = form.gender == Gender::feminine;
      const std::string right = form.plural    ? (feminine ? a.feminine_plural : a.masculine_plural)
                                : feminine     ? a.feminine
                                : vowel(t[at]) ? a.before_vowel
                                               : a.masculine;
      if (t[i + 1] != right) return true;
    }
    const auto exact = kDeterminers.find(t[i]);
    if (exact != kDeterminers.end())
      return exact->second.gender != form.gender || exact->second.plural != form.plural;
    const auto number = kNumber.find(t[i]);
    return number != kNumber.end() && number->second != form.plural;
  });
}

TEST_CASE("negation and its articles") {
  int both = 0, broken = 0;
  for (const SentencePair& pair : large_sample().train) {
    int ne = 0, pas = 0;
    for (const std::string& token : pair.target) {
      ne += token == "ne" || token == "n'";
      pas += token == "pas" || token == "jamais";
    }
    both += ne > 0;
    broken += ne != pas;
  }
  CHECK(broken == 0);
  CHECK(both > 20000);
  check_neighbours("pas du, pas des, pas un after a verb other than aimer", [](const Tokens& t, size_t i) {
    if (t[i] != "pas" && t[i] != "jamais") return false;
    return t[i + 1] == "du" || t[i + 1] == "des" || t[i + 1] == "un" || t[i + 1] == "une";
  });
  // With a state of liking the article stays definite.
  check_neighbours("aimer pas de", [](const Tokens& t, size_t i) {
    static const std::set<std::string> kLike = {"aime",    "aimons",    "aiment",
                                                "déteste", "détestons", "détestent"};
    if (!kLike.count(t[i])) return false;
    const size_t next = t[i + 1] == "pas" && i + 2 < t.size() ? i + 2 : i + 1;
    return t[next] == "de" || t[next] == "d'" || t[next] == "du" || t[next] == "des";
  });
}

TEST_CASE("verbs agree with their pronoun") {
  std::map<std::string, int> kPerson = {{"je", 0}, {"j'", 0}, {"nous", 2}, {"ils", 3}, {"elles", 3}};
  std::map<std::string, std::set<int>> persons;  // of a finite form
  const auto learn = [&](const corpus::Conjugation& c) {
    for (int p = 0; p < 4; ++p) {
      if (c.form[p] != nullptr) persons[c.form[p]].insert(p);
    }
  };
  for (const corpus::Verb& verb : corpus::verbs()) {
    learn(verb.present);
    learn(verb.imperfect);
    if (verb.future_stem != nullptr) {
      static const char* const kEndings[] = {"ai", "a", "ons", "ont"};
      for (int p = 0; p < 4; ++p) persons[std::string(verb.future_stem) + kEndings[p]].insert(p);
    }
  }
  for (const corpus::Auxiliary* a : {&corpus::kEtre, &corpus::kAvoir}) {
    learn(a->present);
    learn(a->imperfect);
    learn(a->future);
  }
  learn(corpus::kVouloir);
  learn(corpus::kPouvoir);
  check_neighbours("subject pronoun and verb", [&](const Tokens& t, size_t i) {
    static const std::set<std::string> kClitics = {"ne", "n'",  "me",  "m'",   "le", "la",
                                                   "l'", "les", "lui", "leur", "y"};
    const auto person = kPerson.find(t[i]);
    if (person == kPerson.end()) return false;
    size_t at = i + 1;
    while (at + 1 < t.size() && (kClitics.count(t[at]) || t[at] == "nous")) ++at;
    const auto form = persons.find(t[at]);
    // "nous" may also be an object (il nous voit) or stand behind a preposition: then another person's verb
    // follows.
    if (t[i] == "nous") return false;
    return form == persons.end() || !form->second.count(person->second);
  });
}
