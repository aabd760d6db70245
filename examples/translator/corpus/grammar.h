#pragma once

#include <translator/corpus/sentence.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace translator::corpus {

/// SplitMix64 (Steele, Lea, Flood 2014): a corpus must come out the same on every platform, which the
/// distributions of <random> do not promise.
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  /// A number from 0 to n - 1; n small enough that the bias of the multiplication does not matter.
  int below(int n) { return static_cast<int>(((next() >> 32) * static_cast<uint64_t>(n)) >> 32); }

  /// True in `percent` of 100 cases.
  bool chance(int percent) { return below(100) < percent; }

 private:
  uint64_t state_;
};

/// Draws sentences that make sense, one after another, from a stream of random numbers.
///
/// Every choice keeps the English sentence translatable in one way only:
/// - no "you" (tu or vous); "i" and "we" get no participle or adjective that would show their gender;
/// - "they" and "them" are masculine unless they take up a feminine antecedent, which is always the subject
///   (they) or the object (them, it) of the clause before;
/// - states (like, want, know) stay in the present; the past is passé composé for events, imparfait for
///   "was reading" and for to be; "read" is left out where it could be present or past.
class Grammar {
 public:
  explicit Grammar(SplitMix& random) : random_(random) {}

  Sentence sentence();

 private:
  using D = Determiner;

  // When the story happens: clauses side by side stay in one world.
  enum class World { now, past, future };
  static World world(const Clause& clause);

  // What a clause must respect. Unset: free choice.
  struct Wish {
    const NounPhrase* subject = nullptr;
    std::optional<Tense> tense{};
    std::optional<World> world{};  // a tense that goes with another clause
    bool embedded = false;         // in a relative or a that-clause: short, nothing fronted, no new "they"
    bool follows = false;          // not the first clause: no "them" without antecedent
    bool question = false;
    bool affirmative = false;
    bool no_object_pronoun = false;
    int detail = 1;                         // 0 bare, 1 usual, 2 rich
    std::optional<Agreement> antecedent{};  // embedded: whom "they" takes up
  };

  // The random numbers
  size_t weighted(const std::vector<int>& weights);
  // One of the values, each with its weight.
  template <class T>
  T draw(std::initializer_list<std::pair<T, int>> values) {
    std::vector<int> weights;
    for (const auto& [value, weight] : values) weights.push_back(weight);
    return values.begin()[weighted(weights)].first;
  }
  template <class T>
  const T& any_of(const std::vector<T>& items) {
    return items[random_.below(static_cast<int>(items.size()))];
  }

  // Noun phrases (grammar_phrases.cc)
  const Noun* pick_noun(Mask classes, Mask without = 0);
  bool used(const Noun* noun) const;
  NounPhrase named();
  NounPhrase kin(bool plural_allowed, const std::optional<Agreement>& owner);
  NounPhrase human(const std::optional<Agreement>& owner);
  NounPhrase subject(const Wish& wish);
  void make_definite(NounPhrase& phrase);
  NounPhrase pair_of_subjects();
  NounPhrase thing_subject();
  NounPhrase object(const Verb& verb, const Clause& clause, const Wish& wish);
  NounPhrase place(const Noun& noun);
  Determiner owner_determiner(const std::optional<Agreement>& owner);
  void set_owner(NounPhrase& phrase, const std::optional<Agreement>& owner);
  void add_adjective(NounPhrase& phrase, int percent);
  void add_subject_relative(NounPhrase& phrase);
  void add_object_relative(NounPhrase& phrase, const Clause& outer, const Wish& wish);
  std::optional<NounPhrase> human_pronoun(const Clause& clause, const Wish& wish, bool direct);

  // Clauses (grammar_clauses.cc)
  Clause clause(const Wish& wish);
  Clause clause_with(const Verb& verb, const NounPhrase& subject, Tense tense, Modal modal, const Wish& wish);
  Clause state(const Wish& wish);
  Clause existence(const Wish& wish);
  Clause animal_clause(const Wish& wish);
  const Adjective* mood_adjective(const NounPhrase& subject);
  bool fits_inside(const Noun& what, const Noun& spot) const;
  bool allowed(const Verb& verb, const NounPhrase& subject, Tense tense, Modal modal) const;
  bool past_is_visible(const Clause& clause, bool question) const;
  void make_past_visible(Clause& clause, bool question) const;
  void choose_polarity(Clause& clause, const Wish& wish);
  void add_recipient(Clause& clause, const Wish& wish);
  void add_adjuncts(Clause& clause, const Wish& wish);
  void add_time(Clause& clause, const Wish& wish);

  // Sentences (grammar_sentences.cc)
  Sentence question();
  Sentence simple();
  Sentence two_clauses(int detail);
  Sentence take_up(int detail);
  Sentence reason(int detail);
  Sentence moment(int detail);
  Sentence condition(int detail);
  Sentence whenever(int detail);
  Sentence opinion(int detail);
  Sentence long_sentence();
  std::optional<Clause> follow_up(const Clause& first, bool same_subject_omitted);
  std::optional<Clause> meet_again(const Clause& first, bool same_subject_omitted);
  static bool follows_from(const Clause& mood, const Clause& action);
  Clause because_of(const Clause& first);
  static Sentence joined(Join lead, Clause first, Join link, Clause second);
  Clause next_clause(const Clause& previous, int detail, int same_subject_percent);
  std::optional<Clause> remark(const Clause& first);

  SplitMix& random_;
  void start();  // forgets what the last sentence used

  // nouns and times of this sentence: none comes twice
  std::vector<const Noun*> used_;
  std::vector<const TimePhrase*> times_;
};

/// The entries of the lexicon that fit.
template <class Entry, class Fits>
std::vector<const Entry*> those(const std::vector<Entry>& entries, const Fits& fits) {
  std::vector<const Entry*> out;
  for (const Entry& entry : entries) {
    if (fits(entry)) out.push_back(&entry);
  }
  return out;
}

/// Whether it is a person, whom a pronoun or a noun stands for.
bool is_person(const NounPhrase& phrase);

/// The pronoun that takes up a phrase: she for marie, they (feminine) for the girls, it for the car.
NounPhrase pronoun_for(const NounPhrase& antecedent);

}  // namespace translator::corpus
