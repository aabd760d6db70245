#pragma once

#include <translator/corpus/corpus.h>
#include <translator/corpus/lexicon.h>

#include <initializer_list>
#include <list>
#include <string>
#include <vector>

/// A sentence before it is in any language: what both realisations start from.
namespace translator::corpus {

enum class Pronoun { none, i, he, she, it, we, they };

enum class Determiner {
  /// names and pronouns
  none,
  /// apples, bread
  bare,
  the, a,
  /// some apples, some bread; "any" after a negation
  some,
  this_, two, three, many,
  my, his, her, our, their,
  /// the teacher's ...: NounPhrase::possessor
  whose,
};

struct Clause;

struct NounPhrase {
  Pronoun pronoun = Pronoun::none;
  /// of a pronoun: it, they and them follow their visible antecedent
  Gender gender = Gender::masculine;
  const Noun* noun = nullptr;
  bool plural = false;
  Determiner determiner = Determiner::none;
  const Adjective* adjective = nullptr;
  /// none or one
  std::vector<NounPhrase> possessor{};
  /// none or one: "... and my sister"
  std::vector<NounPhrase> second{};
  /// none or one; clang takes no vector of what is incomplete
  std::list<Clause> relative{};
  int id = 0;
};

/// What a verb or a participle agrees with.
struct Agreement {
  /// index into Conjugation: je, il, nous, ils
  int person = 1;
  Gender gender = Gender::masculine;
  bool plural = false;
};
Agreement agreement(const NounPhrase& phrase);

enum class Tense { present, past, future, progressive, past_progressive };
enum class Polarity { affirmative, negative, never };
enum class Modal { none, want, can };
enum class Frequency { none, often, always };
enum class Preposition { at, in, near, to, with, for_, home };

/// What is missing in a relative clause or a question about a noun phrase: its head, the interrogative.
enum class Gap { none, subject, object };

struct Adjunct {
  Preposition preposition;
  /// unused with home
  NounPhrase phrase;
};

struct Clause {
  NounPhrase subject{};
  /// false for the second verb of "buys an apple and eats it"; subject says who
  bool subject_said = true;
  const Verb* verb = nullptr;
  Tense tense = Tense::present;
  Polarity polarity = Polarity::affirmative;
  Modal modal = Modal::none;
  Frequency frequency = Frequency::none;
  /// with be
  const Adjective* adjective = nullptr;
  /// none or one, as below
  std::vector<NounPhrase> object{};
  std::vector<NounPhrase> recipient{};
  std::vector<Adjunct> adjuncts{};
  const TimePhrase* time = nullptr;
  bool time_first = false;
  Gap gap = Gap::none;
  /// with a gap: what stands in for the missing phrase
  Agreement head{};
  /// none or one, with know that and think that
  std::vector<Clause> that{};
  int id = 0;
};

enum class Join { none, and_, but, because, when, if_ };
enum class Mood { statement, yes_no, what, whom, who, where, when, why };

struct Part {
  Join join = Join::none;
  /// before the part
  bool comma = false;
  Clause clause;
};

struct Sentence {
  Mood mood = Mood::statement;
  std::vector<Part> parts{};
  /// whether a statement ends in "."; questions always end in "?"
  bool stop = true;
};

/// What a token stands for, at most six things. Two tokens that share a key are linked.
struct Keys {
  Keys() = default;
  Keys(std::initializer_list<int> list) { for (int k : list) add(k); }
  void add(int k) { if (count < 6) item[count++] = k; }
  const int* begin() const { return item; }
  const int* end() const { return item + count; }
  int item[6];
  int count = 0;
};

struct Word {
  std::string text;
  Keys keys;
  /// le, les that melt into du, des, au, aux (the pronouns do not)
  bool article = false;
};

/// What a phrase or clause contributes; its key is id * 32 + role.
enum Role {
  kDeterminer, kAdjective, kNoun, kPossessor, kAnd,
  kVerb = 8, kAuxiliary, kNegation, kQuestion, kModal, kPredicate, kFrequency, kRelative, kThat, kJoin,
  kComma, kInterrogative, kTo, kPreposition,
  kTime = 24,
};
inline int key(int id, int role) { return id * 32 + role; }

/// What stands before what in French words; see CorpusOptions::verb_final.
enum class WordOrder { french, verb_final };

/// The words of a sentence whose phrases and clauses are numbered, but for the stop at its end.
std::vector<Word> to_english(const Sentence& sentence);
std::vector<Word> to_french(const Sentence& sentence, WordOrder order);

/// Tokens and links; with_texts adds what a person would write, which only pairs that are kept need.
SentencePair realise(Sentence sentence, WordOrder order = WordOrder::french);
SentencePair with_texts(SentencePair pair);

}  // namespace translator::corpus
