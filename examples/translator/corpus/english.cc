#include <translator/corpus/sentence.h>

#include <translator/text/tokenizer.h>

#include <cstring>

// English: word order, do-support, agreement in number.
namespace translator::corpus {
namespace {

class English {
 public:
  std::vector<Word> take() { return std::move(words_); }

  // One word, or none.
  void say(const std::string& text, Keys keys) {
    if (!text.empty()) words_.push_back({text, keys});
  }

  void phrase(const NounPhrase& np, bool subject, bool negated) {
    if (np.pronoun != Pronoun::none) {
      say(pronoun(np.pronoun, subject), {key(np.id, kNoun)});
      return;
    }
    determiner(np, negated);
    if (np.adjective != nullptr) say(np.adjective->english, {key(np.id, kAdjective)});
    say(np.plural ? np.noun->english_plural : np.noun->english, {key(np.id, kNoun)});
    for (const Clause& relative : np.relative) {
      say(relative.gap == Gap::subject ? "who" : "that", {key(relative.id, kRelative)});
      clause(relative, false);
    }
    for (const NounPhrase& second : np.second) {
      say("and", {key(second.id, kAnd)});
      phrase(second, subject, negated);
    }
  }

  void clause(const Clause& c, bool question) {
    if (c.time_first && c.time != nullptr) {
      time(c);
      say(",", {key(c.id, kComma)});
    }
    const bool subject_here = c.subject_said && c.gap != Gap::subject;
    if (c.verb->kind == VerbKind::there_be) {
      existence(c, question);
    } else {
      const Group group = verb_group(c, question);
      if (subject_here && !question) phrase(c.subject, true, false);
      for (const Word& word : group.before) words_.push_back(word);
      if (subject_here && question) phrase(c.subject, true, false);
      frequency(c);
      for (const Word& word : group.after) words_.push_back(word);
    }
    complements(c, question && c.verb->kind == VerbKind::there_be);
  }

 private:
  // The finite auxiliary, if any, and what follows the place of "never" and "often".
  struct Group {
    std::vector<Word> before, after;
  };

  static const char* pronoun(Pronoun p, bool subject) {
    // By pronoun: as an object, as a subject.
    static constexpr const char* kForms[][2] = {{},           {"me", "i"},  {"him", "he"},   {"her", "she"},
                                                {"it", "it"}, {"us", "we"}, {"them", "they"}};
    return kForms[static_cast<int>(p)][subject];
  }

  void determiner(const NounPhrase& np, bool negated) {
    // By determiner; empty where nothing is said, or more decides.
    static constexpr const char* kPlain[] = {"",      "",     "the", "",    "",    "",    "two",
                                             "three", "many", "my",  "his", "her", "our", "their"};
    const Keys keys = {key(np.id, kDeterminer)};
    const char* next = np.adjective != nullptr ? np.adjective->english : np.noun->english;
    const bool vowel = std::strchr("aeio", *next);  // no "u" word and no mute h in the lexicon
    switch (np.determiner) {
      case Determiner::a: return say(vowel ? "an" : "a", keys);
      case Determiner::some: return say(negated ? "any" : "some", keys);
      case Determiner::this_: return say(np.plural ? "these" : "this", keys);
      case Determiner::whose: {
        const NounPhrase& owner = np.possessor[0];
        if (owner.determiner == Determiner::the) say("the", {key(owner.id, kDeterminer)});
        const std::string name = owner.plural ? owner.noun->english_plural : owner.noun->english;
        return say(name + "'s", {key(owner.id, kNoun), key(np.id, kPossessor)});
      }
      default: return say(kPlain[static_cast<int>(np.determiner)], keys);
    }
  }

  static const char* be(Tense tense, const Agreement& a) {
    const bool plural = a.person >= 2;
    if (tense == Tense::past || tense == Tense::past_progressive) return plural ? "were" : "was";
    return plural ? "are" : a.person == 0 ? "am" : "is";
  }

  Group verb_group(const Clause& c, bool question) const {
    const Agreement a = c.gap == Gap::subject ? c.head : agreement(c.subject);
    const bool negative = c.polarity == Polarity::negative;
    const int verb_key = key(c.id, kVerb);
    const int negation = key(c.id, kNegation);
    const bool copula = c.verb->kind == VerbKind::be;
    Group group;
    const auto finite = [&](const std::string& positive, const std::string& contracted, Keys keys) {
      const bool joined = negative && !contracted.empty();
      if (question) keys.add(key(c.id, kQuestion));
      if (joined) keys.add(negation);
      group.before.push_back({joined ? contracted : positive, keys});
      if (negative && !joined) group.before.push_back({"not", {negation}});  // am not
    };
    std::vector<Word>& after = group.after;

    if (c.tense == Tense::future) {
      finite("will", "won't", {verb_key});
      after.push_back({copula ? "be" : c.verb->english, {verb_key}});
    } else if (copula || c.tense == Tense::progressive || c.tense == Tense::past_progressive) {
      const std::string form = be(c.tense, a);
      finite(form, form == "am" ? "" : form + "n't", {verb_key});
      if (!copula) after.push_back({c.verb->gerund, {verb_key}});
    } else if (c.modal == Modal::can) {
      finite("can", "can't", {key(c.id, kModal)});
      after.push_back({c.verb->english, {verb_key}});
    } else {
      lexical(c, a, question, group, finite);
    }
    if (copula && c.adjective != nullptr) after.push_back({c.adjective->english, {key(c.id, kPredicate)}});
    if (c.verb->particle != nullptr) after.push_back({c.verb->particle, {verb_key}});
    return group;
  }

  template <class Finite>
  void lexical(const Clause& c, const Agreement& a, bool question, Group& group, const Finite& finite) const {
    const bool third = a.person == 1;
    const bool want = c.modal == Modal::want;
    const std::string verb = c.verb->english;
    const bool clausal = c.verb->kind != VerbKind::ordinary;
    const std::string head = !clausal ? verb : c.verb->kind == VerbKind::know_that ? "know" : "think";
    const int main = want ? key(c.id, kModal) : key(c.id, kVerb);
    if (question || c.polarity == Polarity::negative) {
      if (c.tense == Tense::past) {
        finite("did", "didn't", {key(c.id, kAuxiliary)});
      } else {
        finite(third ? "does" : "do", third ? "doesn't" : "don't", {});
      }
      group.after.push_back({want ? "want" : head, {main}});
    } else if (want) {
      group.after.push_back({third ? "wants" : "want", {main}});
    } else if (c.tense == Tense::past) {
      group.after.push_back({c.verb->past, {main, key(c.id, kAuxiliary)}});
    } else {
      group.after.push_back({third ? (clausal ? head + "s" : c.verb->third) : head, {main}});
    }
    if (want) {
      group.after.push_back({"to", {key(c.id, kVerb)}});
      group.after.push_back({verb, {key(c.id, kVerb)}});
    }
  }

  void frequency(const Clause& c) {
    if (c.polarity == Polarity::never) say("never", {key(c.id, kNegation)});
    if (c.frequency == Frequency::often) say("often", {key(c.id, kFrequency)});
    if (c.frequency == Frequency::always) say("always", {key(c.id, kFrequency)});
  }

  void existence(const Clause& c, bool question) {
    const std::string form = be(c.tense, agreement(c.object[0]));
    const bool negative = c.polarity == Polarity::negative;
    Keys keys = {key(c.id, kVerb)};
    if (negative) keys.add(key(c.id, kNegation));
    if (question) keys.add(key(c.id, kQuestion));
    const Word verb{negative ? form + "n't" : form, keys};
    if (question) words_.push_back(verb);
    say("there", {key(c.id, kPredicate)});
    if (!question) words_.push_back(verb);
  }

  // `any`: also where nothing is denied, as in "are there any cats?"
  void complements(const Clause& c, bool any) {
    const bool negated = any || c.polarity != Polarity::affirmative;
    const bool pronoun_first = !c.recipient.empty() && c.recipient[0].pronoun != Pronoun::none &&
                               !c.object.empty() && c.object[0].pronoun == Pronoun::none &&
                               c.gap != Gap::object;
    if (pronoun_first) phrase(c.recipient[0], false, false);  // gives him a book
    if (!c.object.empty() && c.gap != Gap::object) phrase(c.object[0], false, negated);
    if (!c.recipient.empty() && !pronoun_first) {
      say("to", {key(c.id, kTo)});
      phrase(c.recipient[0], false, false);
    }
    for (size_t i = 0; i < c.adjuncts.size(); ++i) adjunct(c.adjuncts[i], c.id + 1 + static_cast<int>(i));
    if (c.time != nullptr && !c.time_first) time(c);
    for (const Clause& inner : c.that) {
      say("that", {key(c.id, kThat)});
      clause(inner, false);
    }
  }

  void adjunct(const Adjunct& a, int id) {
    static constexpr const char* kPrepositions[] = {"at", "in", "near", "to", "with", "for", "at"};
    say(kPrepositions[static_cast<int>(a.preposition)], {key(id, kPreposition)});
    if (a.preposition == Preposition::home) {
      say("home", {key(id, kNoun)});
    } else {
      phrase(a.phrase, false, false);
    }
  }

  void time(const Clause& c) {
    int role = kTime;
    for (const std::string& word : split_tokens(c.time->english)) say(word, {key(c.id, role++)});
  }

  std::vector<Word> words_;
};

}  // namespace

std::vector<Word> to_english(const Sentence& sentence) {
  // By Join and by Mood.
  static constexpr const char* kConjunctions[] = {"", "and", "but", "because", "when", "if"};
  static constexpr const char* kInterrogatives[] = {"", "", "what", "who", "who", "where", "when", "why"};
  English out;
  const Mood mood = sentence.mood;
  out.say(kInterrogatives[static_cast<int>(mood)], {key(sentence.parts[0].clause.id, kInterrogative)});
  for (size_t i = 0; i < sentence.parts.size(); ++i) {
    const Part& part = sentence.parts[i];
    if (part.comma) out.say(",", {key(part.clause.id + 7, kComma)});
    out.say(kConjunctions[static_cast<int>(part.join)], {key(part.clause.id, kJoin)});
    out.clause(part.clause, i == 0 && mood != Mood::statement && mood != Mood::who);
  }
  return out.take();
}

}  // namespace translator::corpus
