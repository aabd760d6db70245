#include <translator/corpus/sentence.h>

// English: word order, do-support, agreement in number.
namespace translator::corpus {
namespace {

bool contains_vowel_first(const std::string& word) {
  return std::string("aeio").find(word[0]) != std::string::npos;  // no "u" word and no mute h in the lexicon
}

class English {
 public:
  std::vector<Word> take() { return std::move(words_); }

  void say(const std::string& text, Keys keys) { words_.push_back({text, keys}); }

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
      Group group = verb_group(c, question);
      if (question) {
        for (const Word& word : group.before) words_.push_back(word);
        if (subject_here) phrase(c.subject, true, false);
      } else {
        if (subject_here) phrase(c.subject, true, false);
        for (const Word& word : group.before) words_.push_back(word);
      }
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
    switch (p) {
      case Pronoun::i: return subject ? "i" : "me";
      case Pronoun::he: return subject ? "he" : "him";
      case Pronoun::she: return subject ? "she" : "her";
      case Pronoun::it: return "it";
      case Pronoun::we: return subject ? "we" : "us";
      default: return subject ? "they" : "them";
    }
  }

  void determiner(const NounPhrase& np, bool negated) {
    const Keys keys = {key(np.id, kDeterminer)};
    const std::string next = np.adjective != nullptr ? np.adjective->english : np.noun->english;
    switch (np.determiner) {
      case Determiner::none:
      case Determiner::bare: return;
      case Determiner::the: return say("the", keys);
      case Determiner::a: return say(contains_vowel_first(next) ? "an" : "a", keys);
      case Determiner::some: return say(negated ? "any" : "some", keys);
      case Determiner::this_: return say(np.plural ? "these" : "this", keys);
      case Determiner::two: return say("two", keys);
      case Determiner::three: return say("three", keys);
      case Determiner::many: return say("many", keys);
      case Determiner::my: return say("my", keys);
      case Determiner::his: return say("his", keys);
      case Determiner::her: return say("her", keys);
      case Determiner::our: return say("our", keys);
      case Determiner::their: return say("their", keys);
      case Determiner::whose: {
        const NounPhrase& owner = np.possessor[0];
        if (owner.determiner == Determiner::the) say("the", {key(owner.id, kDeterminer)});
        const char* form = owner.plural ? owner.noun->english_plural_genitive : owner.noun->english_genitive;
        return say(form, {key(owner.id, kNoun), key(np.id, kPossessor)});
      }
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
      if (question) keys.add(key(c.id, kQuestion));
      if (!negative) {
        group.before.push_back({positive, keys});
      } else if (contracted.empty()) {  // am not
        group.before.push_back({positive, keys});
        group.before.push_back({"not", {negation}});
      } else {
        keys.add(negation);
        group.before.push_back({contracted, keys});
      }
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
    Agreement a = agreement(c.object[0]);
    std::string form = be(c.tense, a);
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
    for (size_t i = 0; i < c.time->english.size(); ++i) {
      say(c.time->english[i], {key(c.id, kTime + static_cast<int>(i))});
    }
  }

  std::vector<Word> words_;
};

const char* conjunction(Join join) {
  switch (join) {
    case Join::and_: return "and";
    case Join::but: return "but";
    case Join::because: return "because";
    case Join::when: return "when";
    case Join::if_: return "if";
    case Join::none: break;
  }
  return nullptr;
}

const char* interrogative(Mood mood) {
  switch (mood) {
    case Mood::what: return "what";
    case Mood::who:
    case Mood::whom: return "who";
    case Mood::where: return "where";
    case Mood::when: return "when";
    case Mood::why: return "why";
    default: return nullptr;
  }
}

}  // namespace

std::vector<Word> to_english(const Sentence& sentence) {
  English out;
  const Mood mood = sentence.mood;
  const int first = sentence.parts[0].clause.id;
  if (const char* word = interrogative(mood)) out.say(word, {key(first, kInterrogative)});
  for (size_t i = 0; i < sentence.parts.size(); ++i) {
    const Part& part = sentence.parts[i];
    if (part.comma) out.say(",", {key(part.clause.id + 7, kComma)});
    if (const char* word = conjunction(part.join)) out.say(word, {key(part.clause.id, kJoin)});
    out.clause(part.clause, i == 0 && mood != Mood::statement && mood != Mood::who);
  }
  if (mood != Mood::statement) {
    out.say("?", {0});
  } else if (sentence.stop) {
    out.say(".", {0});
  }
  return out.take();
}

}  // namespace translator::corpus
