#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

/// The words of the embedded corpus: what they look like in both languages and what goes with what.
namespace translator::corpus {

using Mask = uint64_t;

enum class Gender { masculine, feminine };

/// What a noun can do. A verb names the classes that make sensible objects.
namespace noun_class {
constexpr Mask person = 1 << 0;
constexpr Mask family = 1 << 1;  // needs an owner: my sister, marie's brother
constexpr Mask name = 1 << 2;
constexpr Mask animal = 1 << 3;
constexpr Mask food = 1 << 4;
constexpr Mask drink = 1 << 5;
constexpr Mask reading = 1 << 6;
constexpr Mask sound = 1 << 8;   // what one listens to
constexpr Mask thing = 1 << 9;   // what one owns
constexpr Mask sight = 1 << 10;  // what one sees in passing
constexpr Mask lost = 1 << 11;   // what one finds
constexpr Mask gift = 1 << 12;
constexpr Mask ride = 1 << 13;   // bus, train
constexpr Mask ware = 1 << 14;   // what one buys
constexpr Mask taste = 1 << 16;  // what one likes in general
constexpr Mask place = 1 << 17;
constexpr Mask mass = 1 << 18;  // bread, water: without a plural or a number
constexpr Mask owns = 1 << 19;  // whose things are spoken of: marie's, the teacher's
}  // namespace noun_class

/// The prepositions that a place takes, and what a verb may say about the place.
namespace place_class {
constexpr Mask at = 1 << 0;    // at the market, au marché
constexpr Mask in = 1 << 1;    // in the garden, dans le jardin
constexpr Mask near = 1 << 2;  // near the station, près de la gare
constexpr Mask to = 1 << 3;    // to the beach, à la plage
constexpr Mask home = 1 << 4;  // at home, à la maison
constexpr Mask meal = 1 << 5;  // where one eats and drinks
constexpr Mask shop = 1 << 6;
constexpr Mask calm = 1 << 7;  // where one reads, sings, listens
constexpr Mask work = 1 << 8;
constexpr Mask meet = 1 << 9;   // where one sees and finds
constexpr Mask stop = 1 << 10;  // where one waits, arrives
constexpr Mask bed = 1 << 11;   // where one sleeps
constexpr Mask heal = 1 << 12;  // where the sick go
}  // namespace place_class

struct Adjective {
  const char* english;
  const char* masculine;
  /// masculine singular before a vowel: bel, nouvel, vieil
  const char* before_vowel;
  const char* feminine;
  const char* masculine_plural;
  const char* feminine_plural;
  bool before_noun;
  /// hungry: avoir faim, not an adjective in French at all
  bool with_avoir = false;

  /// the same for men and women, so that "i am ..." has one translation
  bool epicene() const;
};

struct Noun {
  const char* english;
  /// nullptr: no plural in this corpus
  const char* english_plural;
  const char* french;
  const char* french_plural;
  Gender gender;
  Mask classes;
  /// bits of adjective_index()
  Mask adjectives = 0;
  Mask places = 0;

  bool is(std::string_view word) const { return word == english; }
};

/// Persons that have forms of their own: je, il, nous, ils. There is no "you": it would be tu or vous.
struct Conjugation {
  const char* form[4] = {};
};

namespace tense_class {
constexpr Mask present = 1 << 0;
constexpr Mask past = 1 << 1;
constexpr Mask future = 1 << 2;
constexpr Mask progressive = 1 << 3;  // is eating: mange; was eating: mangeait
constexpr Mask modal = 1 << 4;        // wants to eat, can eat
constexpr Mask active = present | past | future | modal;
}  // namespace tense_class

/// Verbs that build their clause in a way of their own.
enum class VerbKind {
  ordinary,
  /// with an adjective or a place
  be,
  /// il y a
  there_be,
  /// savoir que; to know somebody is connaître, an ordinary verb
  know_that,
  think_that,
};

struct Verb {
  const char* english;
  const char* third = nullptr;
  const char* past = nullptr;
  /// nullptr: never progressive here
  const char* gerund = nullptr;
  /// "to" of listen to, "for" of wait for; nullptr: none
  const char* particle = nullptr;
  Conjugation present;
  Conjugation imperfect = {};
  const char* infinitive = nullptr;
  const char* future_stem = nullptr;
  const char* participle = nullptr;
  bool with_etre = false;
  Mask tenses = 0;
  /// classes of sensible objects; 0: none
  Mask objects = 0;
  bool needs_object = false;
  /// like: apples are les pommes, also after a negation
  bool generic = false;
  /// takes "to" somebody: talk, give
  bool to_whom = false;
  Mask places = 0;
  bool with_whom = false;
  bool for_whom = false;
  VerbKind kind = VerbKind::ordinary;
  /// whether "didn't buy a car" is more natural than "didn't eat an apple"
  bool single_denied = false;

  bool is(std::string_view word) const { return word == english; }
  bool is_one_of(std::initializer_list<std::string_view> words) const;
};

/// `every day` with `tous les jours`; align[j] is the English word that French word j stands for.
struct TimePhrase {
  const char* english;
  const char* french;
  std::vector<int> align;
  Mask tenses;
};

const std::vector<Adjective>& adjectives();
const std::vector<Noun>& nouns();
const std::vector<Verb>& verbs();
const std::vector<TimePhrase>& time_phrases();

/// By the English word. Throws std::out_of_range for a word that is not in the lexicon.
const Adjective& adjective(const std::string& english);
const Noun& noun(const std::string& english);
const Verb& verb(const std::string& english);
const TimePhrase& time_phrase(const std::string& english);
int adjective_index(const Adjective& adjective);

/// être and avoir, which are auxiliaries as well.
struct Auxiliary {
  Conjugation present, imperfect, future;
};
constexpr Auxiliary kEtre = {{{"suis", "est", "sommes", "sont"}},
                             {{"étais", "était", "étions", "étaient"}},
                             {{"serai", "sera", "serons", "seront"}}};
constexpr Auxiliary kAvoir = {{{"ai", "a", "avons", "ont"}},
                              {{"avais", "avait", "avions", "avaient"}},
                              {{"aurai", "aura", "aurons", "auront"}}};
constexpr Conjugation kVouloir = {{"veux", "veut", "voulons", "veulent"}};
constexpr Conjugation kPouvoir = {{"peux", "peut", "pouvons", "peuvent"}};

/// True where French elides and uses bel, mon amie, cet: a vowel or the h of homme (there is no other here).
bool starts_with_vowel(std::string_view french);

}  // namespace translator::corpus
