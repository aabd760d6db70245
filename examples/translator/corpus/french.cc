#include <translator/corpus/sentence.h>

#include <translator/text/tokenizer.h>

#include <algorithm>
#include <iterator>
#include <string_view>

// French: agreement, clitics, negation, contraction and elision.
namespace translator::corpus {
namespace {

const char* form(const Adjective& adjective, const Agreement& a, bool vowel_follows) {
  if (a.plural) return a.gender == Gender::feminine ? adjective.feminine_plural : adjective.masculine_plural;
  if (a.gender == Gender::feminine) return adjective.feminine;
  return vowel_follows ? adjective.before_vowel : adjective.masculine;
}

std::string participle(const Verb& verb, const Agreement& a) {
  std::string text = verb.participle;
  if (a.gender == Gender::feminine) text += "e";
  if (a.plural) text += "s";
  return text;
}

// A pronoun as a subject, after a preposition (avec lui), as a direct and as an indirect object.
struct Forms {
  const char *subject, *stressed, *direct, *dative;
};

Forms forms(const NounPhrase& np) {
  const bool feminine = agreement(np).gender == Gender::feminine;
  switch (np.pronoun) {
    case Pronoun::i: return {"je", "moi", "me", "me"};
    case Pronoun::we: return {"nous", "nous", "nous", "nous"};
    case Pronoun::they: return {feminine ? "elles" : "ils", feminine ? "elles" : "eux", "les", "leur"};
    default: return {feminine ? "elle" : "il", feminine ? "elle" : "lui", feminine ? "la" : "le", "lui"};
  }
}

// How the object's determiner is read: pas de pommes; aimer les pommes.
struct Reading {
  bool negated = false;
  bool generic = false;
};

class French {
 public:
  explicit French(WordOrder order) : verb_final_(order == WordOrder::verb_final) {}

  std::vector<Word> take() {
    contract();
    if (!verb_final_) elide();
    return std::move(words_);
  }

  // How many words are said.
  size_t place() const { return words_.size(); }

  // Where verbs are last: the words from place `second` on come before those from place `first` on.
  void swap(size_t first, size_t second) {
    if (!verb_final_) return;
    const auto at = [this](size_t place) { return words_.begin() + static_cast<std::ptrdiff_t>(place); };
    std::rotate(at(first), at(second), words_.end());
  }

  // The words of the text, or none.
  void say(std::string_view text, Keys keys, bool article = false) {
    for (const std::string& word : split_tokens(text)) words_.push_back({word, keys, article});
  }

  // What a word leads; where verbs are last it stands behind that, and both before the words from `first` on.
  template <class Say>
  void led(size_t first, std::string_view leader, const Keys& keys, const Say& say_rest) {
    const size_t at = place();
    say(leader, keys);
    const size_t rest = place();
    say_rest();
    swap(at, rest);
    swap(first, at);
  }

  void phrase(const NounPhrase& np, Reading reading, bool subject = false) {
    if (np.pronoun != Pronoun::none) {
      say(subject ? forms(np).subject : forms(np).stressed, {key(np.id, kNoun)});
      return;
    }
    const bool prenominal = np.adjective != nullptr && np.adjective->before_noun;
    const std::string noun = np.plural ? np.noun->french_plural : np.noun->french;
    const Agreement a{np.plural ? 3 : 1, np.noun->gender, np.plural};
    const std::string adjective =
        np.adjective != nullptr ? form(*np.adjective, a, prenominal && starts_with_vowel(noun)) : "";
    const size_t first = place();
    determiner(np, a, prenominal ? adjective : noun, reading, prenominal);
    const size_t determined = place();
    if (prenominal) say(adjective, {key(np.id, kAdjective)});
    const size_t named = place();
    say(noun, {key(np.id, kNoun)});
    swap(determined, named);
    if (np.adjective != nullptr && !prenominal) say(adjective, {key(np.id, kAdjective)});
    swap(first, determined);
    if (np.determiner == Determiner::whose)
      led(first, "de", {key(np.id, kPossessor)}, [&] { phrase(np.possessor[0], {}); });
    for (const Clause& relative : np.relative)
      led(first, relative.gap == Gap::subject ? "qui" : "que", {key(relative.id, kRelative)},
          [&] { clause(relative); });
    for (const NounPhrase& second : np.second) {
      say("et", {key(second.id, kAnd)});
      phrase(second, reading, subject);
    }
  }

  void clause(const Clause& c) {
    if (c.time_first && c.time != nullptr) {
      time(c);
      say(",", {key(c.id, kComma)});
    }
    const bool existence = c.verb->kind == VerbKind::there_be;
    if (existence) {
      say("il", {key(c.id, kPredicate)});
    } else if (c.subject_said && c.gap != Gap::subject) {
      phrase(c.subject, {.generic = true}, true);  // children like ...: les enfants
    }
    const size_t verb = place();
    verb_group(c, existence);
    const size_t rest = place();
    complements(c);
    swap(verb, rest);
  }

 private:
  void definite(const Agreement& a, Keys keys) {
    const char* text = a.plural ? "les" : a.gender == Gender::feminine ? "la" : "le";
    say(text, keys, true);
  }

  // mon, ma, mes; mon before a vowel whatever the gender.
  void possessive(char letter, const Agreement& a, const std::string& next, Keys keys) {
    const bool feminine = a.gender == Gender::feminine && !starts_with_vowel(next);
    say(std::string(1, letter) + (a.plural ? "es" : feminine ? "a" : "on"), keys);
  }

  void determiner(const NounPhrase& np, const Agreement& a, const std::string& next, Reading reading,
                  bool prenominal) {
    const Keys own = {key(np.id, kDeterminer)};
    const Keys noun = {key(np.id, kNoun)};
    switch (np.determiner) {
      case Determiner::none: return;
      case Determiner::bare: return np_without_article(a, reading, prenominal, noun);
      case Determiner::some: return np_without_article(a, {reading.negated, false}, prenominal, own);
      case Determiner::the: return definite(a, own);
      case Determiner::whose: return definite(a, noun);
      case Determiner::a:
        if (reading.negated) return say("de", own);
        return say(a.gender == Gender::feminine ? "une" : "un", own);
      case Determiner::this_:
        if (a.plural) return say("ces", own);
        if (a.gender == Gender::feminine) return say("cette", own);
        return say(starts_with_vowel(next) ? "cet" : "ce", own);
      case Determiner::two: return say("deux", own);
      case Determiner::three: return say("trois", own);
      case Determiner::many: return say("beaucoup de", own);
      case Determiner::my: return possessive('m', a, next, own);
      case Determiner::his:
      case Determiner::her: return possessive('s', a, next, own);
      case Determiner::our: return say(a.plural ? "nos" : "notre", own);
      case Determiner::their: return say(a.plural ? "leurs" : "leur", own);
    }
  }

  // apples: des pommes, de bonnes pommes, pas de pommes, aimer les pommes; bread: du pain.
  void np_without_article(const Agreement& a, Reading reading, bool prenominal, const Keys& keys) {
    if (reading.generic) return definite(a, keys);
    say("de", keys);
    if (reading.negated || (a.plural && prenominal)) return;
    definite(a, keys);
  }

  void verb_group(const Clause& c, bool existence) {
    const Agreement a = existence ? Agreement{} : c.gap == Gap::subject ? c.head : agreement(c.subject);
    const Keys verb = {key(c.id, kVerb)};
    const bool negated = c.polarity != Polarity::affirmative;
    const bool compound = c.tense == Tense::past && c.verb->participle != nullptr;
    if (negated) say("ne", {key(c.id, kNegation)});
    if (existence) say("y", {key(c.id, kPredicate)});
    if (c.modal == Modal::none) clitics(c);
    if (c.modal != Modal::none) {
      const Conjugation& modal = c.modal == Modal::want ? kVouloir : kPouvoir;
      say(modal.form[a.person], {key(c.id, kModal)});
    } else if (compound) {
      const Auxiliary& auxiliary = c.verb->with_etre ? kEtre : kAvoir;
      say(auxiliary.present.form[a.person], {key(c.id, kAuxiliary)});
    } else {
      say(finite(c, a, existence), verb);
    }
    if (negated) say(c.polarity == Polarity::never ? "jamais" : "pas", {key(c.id, kNegation)});
    if (c.frequency == Frequency::often) say("souvent", {key(c.id, kFrequency)});
    if (c.frequency == Frequency::always) say("toujours", {key(c.id, kFrequency)});
    if (c.modal != Modal::none) {
      clitics(c);
      say(c.verb->infinitive, verb);
    } else if (compound) {
      say(participle(*c.verb, participle_agreement(c, a)), verb);
    }
    if (c.adjective != nullptr) say(form(*c.adjective, a, false), {key(c.id, kPredicate)});
  }

  static std::string finite(const Clause& c, const Agreement& a, bool existence) {
    const bool state = c.verb->kind == VerbKind::be || existence;
    if (state) {
      const bool with_avoir = existence || (c.adjective != nullptr && c.adjective->with_avoir);
      const Auxiliary& verb = with_avoir ? kAvoir : kEtre;
      if (c.tense == Tense::future) return verb.future.form[a.person];
      return (c.tense == Tense::past ? verb.imperfect : verb.present).form[a.person];
    }
    static constexpr const char* kFutureEndings[] = {"ai", "a", "ons", "ont"};
    if (c.tense == Tense::future) return std::string(c.verb->future_stem) + kFutureEndings[a.person];
    return (c.tense == Tense::past_progressive ? c.verb->imperfect : c.verb->present).form[a.person];
  }

  // With être the subject; with avoir a direct object that stands before: les a mangées, que j'ai mangées.
  static Agreement participle_agreement(const Clause& c, const Agreement& subject) {
    if (c.verb->with_etre) return subject;
    if (c.gap == Gap::object) return c.head;
    if (!c.object.empty() && c.object[0].pronoun != Pronoun::none) return agreement(c.object[0]);
    return {};
  }

  // me nous < le la les < lui leur.
  void clitics(const Clause& c) {
    const bool direct = !c.object.empty() && c.object[0].pronoun != Pronoun::none && c.gap != Gap::object;
    const bool dative = !c.recipient.empty() && c.recipient[0].pronoun != Pronoun::none;
    const auto say_dative = [&] {
      say(forms(c.recipient[0]).dative, {key(c.recipient[0].id, kNoun), key(c.id, kTo)});
    };
    const bool dative_first =
        dative && (c.recipient[0].pronoun == Pronoun::i || c.recipient[0].pronoun == Pronoun::we);
    if (dative_first) say_dative();
    if (direct) say(forms(c.object[0]).direct, {key(c.object[0].id, kNoun)});
    if (dative && !dative_first) say_dative();
  }

  void complements(const Clause& c) {
    const Reading reading{c.polarity != Polarity::affirmative, c.verb->generic};
    const size_t first = place();
    if (!c.object.empty() && c.object[0].pronoun == Pronoun::none && c.gap != Gap::object) {
      phrase(c.object[0], reading);
    }
    if (!c.recipient.empty() && c.recipient[0].pronoun == Pronoun::none) {
      led(first, "à", {key(c.id, kTo)}, [&] { phrase(c.recipient[0], {}); });
    }
    for (size_t i = 0; i < c.adjuncts.size(); ++i)
      adjunct(first, c.adjuncts[i], c.id + 1 + static_cast<int>(i));
    const size_t at = place();
    if (c.time != nullptr && !c.time_first) time(c);
    swap(first, at);
    for (const Clause& inner : c.that) led(first, "que", {key(c.id, kThat)}, [&] { clause(inner); });
  }

  void adjunct(size_t first, const Adjunct& a, int id) {
    static constexpr const char* kPrepositions[] = {"à", "dans", "près de", "à", "avec", "pour", "à"};
    led(first, kPrepositions[static_cast<int>(a.preposition)], {key(id, kPreposition)}, [&] {
      if (a.preposition == Preposition::home) {
        say("la maison", {key(id, kNoun)});
      } else {
        phrase(a.phrase, {});
      }
    });
  }

  void time(const Clause& c) {
    size_t j = 0;
    for (const std::string& word : split_tokens(c.time->french))
      say(word, {key(c.id, kTime + c.time->align[j++])});
  }

  // de + le: du; de + les: des; à + le: au; à + les: aux; but de l', à l'.
  void contract() {
    std::vector<Word> out;
    for (size_t i = 0; i < words_.size(); ++i) {
      Word& word = words_[i];
      const bool of = word.text == "de", to = word.text == "à";
      if ((of || to) && i + 1 < words_.size() && words_[i + 1].article && words_[i + 1].text != "la") {
        const Word& article = words_[i + 1];
        const bool plural = article.text == "les";
        if (plural || verb_final_ || !starts_with_vowel(words_[i + 2].text)) {
          word.text = of ? (plural ? "des" : "du") : (plural ? "aux" : "au");
          for (int k : article.keys) word.keys.add(k);
          ++i;
        }
      }
      out.push_back(std::move(word));
    }
    words_ = std::move(out);
  }

  void elide() {
    static constexpr std::string_view kElided[] = {"je", "me", "le", "la", "ne", "de", "que"};
    for (size_t i = 0; i + 1 < words_.size(); ++i) {
      std::string& text = words_[i].text;
      const std::string& next = words_[i + 1].text;
      if (!starts_with_vowel(next)) continue;
      if (std::find(std::begin(kElided), std::end(kElided), text) != std::end(kElided)) text.back() = '\'';
      if (text == "si" && (next == "il" || next == "ils")) text = "s'";
    }
  }

  const bool verb_final_;
  std::vector<Word> words_;
};

}  // namespace

std::vector<Word> to_french(const Sentence& sentence, WordOrder order) {
  // By Join and by Mood.
  static constexpr const char* kConjunctions[] = {"", "et", "mais", "parce que", "quand", "si"};
  static constexpr const char* kInterrogatives[] = {"", "", "que", "qui", "qui", "où", "quand", "pourquoi"};
  French out(order);
  const int first = sentence.parts[0].clause.id;
  out.say(kInterrogatives[static_cast<int>(sentence.mood)], {key(first, kInterrogative)});
  // qu'est-ce que, où est-ce que ...: the do of the English question.
  if (sentence.mood != Mood::statement && sentence.mood != Mood::who) {
    out.say("est-ce que", {key(first, kQuestion)});
  }
  const size_t asked = out.place();
  for (const Part& part : sentence.parts) {
    const size_t comma = out.place();
    if (part.comma) out.say(",", {key(part.clause.id + 7, kComma)});
    out.led(comma, kConjunctions[static_cast<int>(part.join)], {key(part.clause.id, kJoin)},
            [&] { out.clause(part.clause); });
    out.swap(asked, comma);
  }
  out.swap(0, asked);
  return out.take();
}

}  // namespace translator::corpus
