#include <translator/corpus/grammar.h>

#include <algorithm>

namespace translator::corpus {
namespace {

bool shows_gender(const NounPhrase& subject) {
  return subject.pronoun != Pronoun::i && subject.pronoun != Pronoun::we;
}

Mask tense_bit(Tense tense, Modal modal) {
  if (modal != Modal::none) return tense_class::modal;
  switch (tense) {
    case Tense::present: return tense_class::present;
    case Tense::past: return tense_class::past;
    case Tense::future: return tense_class::future;
    default: return tense_class::progressive;
  }
}

// How often a verb is drawn.
int frequency_of(const Verb& verb) {
  if (verb.is("eat") || verb.is("like")) return 13;
  if (verb.is("hate") || verb.is("know")) return 6;
  return verb.is("arrive") ? 7 : 10;
}

}  // namespace

Grammar::World Grammar::world(const Clause& c) {
  if (c.tense == Tense::past || c.tense == Tense::past_progressive) return World::past;
  return c.tense == Tense::future ? World::future : World::now;
}

// "i went" hides the gender that "je suis allé(e)" must show.
bool Grammar::allowed(const Verb& verb, const NounPhrase& subject, Tense tense, Modal modal) const {
  if (!(verb.tenses & tense_bit(tense, modal))) return false;
  return !(verb.with_etre && tense == Tense::past && !shows_gender(subject));
}

// "they read" is present or past; "he read" and "didn't read" are past.
bool Grammar::past_is_visible(const Clause& c, bool question) const {
  if (!c.verb->is("read") || (c.tense != Tense::present && c.tense != Tense::past)) return true;
  if (question || c.polarity == Polarity::negative || c.modal != Modal::none) return true;
  const Agreement a = c.gap == Gap::subject ? c.head : agreement(c.subject);
  return a.person == 1;
}

// "the boys read" becomes "are reading" or "were reading".
void Grammar::make_past_visible(Clause& c, bool question) const {
  if (past_is_visible(c, question)) return;
  c.tense = c.tense == Tense::past ? Tense::past_progressive : Tense::progressive;
  c.polarity = Polarity::affirmative;  // it may have been "never"
}

void Grammar::choose_polarity(Clause& c, const Wish& wish) {
  if (wish.affirmative || c.verb->is("hate")) return;
  if (wish.question) {
    if (random_.chance(4)) c.polarity = Polarity::negative;
    return;
  }
  const bool plain = c.modal == Modal::none && c.verb->tenses & tense_class::past &&
                     c.tense != Tense::progressive && c.tense != Tense::past_progressive;
  if (random_.chance(wish.embedded ? 14 : 27)) {
    c.polarity = Polarity::negative;
  } else if (plain && !c.verb->is_one_of({"find", "arrive", "sleep", "see"}) && random_.chance(6)) {
    c.polarity = Polarity::never;
  }
}

Clause Grammar::clause(const Wish& wish) {
  const NounPhrase who = wish.subject != nullptr ? *wish.subject : subject(wish);
  Tense tense = Tense::present;
  Modal modal = Modal::none;
  if (wish.tense) {
    tense = *wish.tense;
  } else {
    const bool past = !wish.world || wish.world == World::past;
    const bool now = !wish.world || wish.world == World::now;
    const bool later = !wish.world || wish.world == World::future;
    const int present = now ? 38 : later ? 7 : 0;
    switch (weighted(
        {present, past ? 28 : 0, later ? 18 : 0, now ? 6 : 0, past ? 5 : 0, now ? 8 : 0, now ? 6 : 0})) {
      case 0: break;
      case 1: tense = Tense::past; break;
      case 2: tense = Tense::future; break;
      case 3: tense = Tense::progressive; break;
      case 4: tense = Tense::past_progressive; break;
      case 5: modal = Modal::want; break;
      default: modal = Modal::can;
    }
  }
  const auto choices = those(verbs(), [&](const Verb& verb) { return allowed(verb, who, tense, modal); });
  std::vector<int> weights;
  for (const Verb* verb : choices) weights.push_back(frequency_of(*verb));
  return clause_with(*choices[weighted(weights)], who, tense, modal, wish);
}

Clause Grammar::clause_with(const Verb& verb, const NounPhrase& who, Tense tense, Modal modal,
                            const Wish& wish) {
  Clause c{.subject = who, .verb = &verb, .tense = tense, .modal = modal};
  choose_polarity(c, wish);
  make_past_visible(c, wish.question);
  if (c.polarity != Polarity::affirmative && who.relative.empty()) make_definite(c.subject);
  if (verb.objects && (verb.needs_object || random_.chance(88))) c.object.push_back(object(verb, c, wish));
  // Children like apples, all of them.
  if (verb.generic && who.noun != nullptr && who.plural && who.determiner == Determiner::the &&
      who.relative.empty() && who.adjective == nullptr && random_.chance(50)) {
    c.subject.determiner = Determiner::bare;
  }
  if (verb.to_whom) add_recipient(c, wish);
  add_adjuncts(c, wish);
  add_time(c, wish);
  return c;
}

void Grammar::add_recipient(Clause& c, const Wish& wish) {
  const bool gives = c.verb->is("give");
  // "the book that he gave me" stays out: it needs an order of words of its own.
  if (c.gap == Gap::none && random_.chance(gives ? 45 : 35)) {
    if (std::optional<NounPhrase> p = human_pronoun(c, wish, false)) {
      // "gives her bread" could be read as the bread of hers.
      if (!c.object.empty() && c.object[0].determiner == Determiner::bare) {
        c.object[0].determiner = Determiner::some;
      }
      c.recipient.push_back(*p);
      return;
    }
  }
  switch (weighted({40, 30, 30})) {
    case 0: c.recipient.push_back(named()); break;
    case 1: c.recipient.push_back(kin(true, agreement(c.subject))); break;
    default:
      c.recipient.push_back(human(agreement(c.subject)));
      if (c.polarity != Polarity::affirmative) make_definite(c.recipient[0]);
  }
}

void Grammar::add_adjuncts(Clause& c, const Wish& wish) {
  using namespace place_class;
  const int percent = wish.detail == 2 ? 55 : wish.detail == 1 ? 22 : 6;
  const Agreement owner = agreement(c.subject);
  const bool goes = c.verb->is("go");
  if (c.verb->for_whom && random_.chance(percent / 2)) {
    c.adjuncts.push_back({Preposition::for_, random_.chance(40) ? named() : kin(false, owner)});
  } else if (!goes && c.verb->with_whom && random_.chance(percent / 2)) {
    std::optional<NounPhrase> p;
    Wish alone = wish;
    alone.follows = true;  // no "them"
    if (random_.chance(35)) p = human_pronoun(c, alone, false);
    c.adjuncts.push_back({Preposition::with, p ? *p : random_.chance(50) ? named() : kin(true, owner)});
  }
  const Mask wanted = c.verb->places;
  const bool arrives = c.verb->is("arrive");
  const bool place_needed = goes || (arrives && (c.tense == Tense::present || random_.chance(50)));
  if (!wanted || !(place_needed || random_.chance(percent))) return;
  if (wanted & home && random_.chance(30)) {
    c.adjuncts.push_back({Preposition::home, {}});
    return;
  }
  const auto choices =
      those(nouns(), [&](const Noun& noun) { return noun.places & wanted & ~home && !used(&noun); });
  if (choices.empty()) {
    if (goes) c.adjuncts.push_back({Preposition::to, place(noun("market"))});
    return;
  }
  const Noun& spot = *any_of(choices);
  Preposition preposition = spot.places & in ? Preposition::in : Preposition::at;
  if (goes) {
    preposition = Preposition::to;
  } else if (spot.places & near && !c.verb->is("arrive") && random_.chance(20)) {
    preposition = Preposition::near;
  }
  c.adjuncts.push_back({preposition, place(spot)});
  if (goes && c.verb->with_whom && random_.chance(percent / 2)) {
    c.adjuncts.push_back({Preposition::with, random_.chance(50) ? named() : kin(true, owner)});
  }
}

void Grammar::add_time(Clause& c, const Wish& wish) {
  const bool state = !(c.verb->tenses & (tense_class::past | tense_class::future)) && !c.verb->is("be");
  if (state) return;
  const bool negative = c.polarity != Polarity::affirmative;
  const bool momentary = c.verb->is("find") || c.verb->is("be") || c.verb->is("arrive");
  if (c.tense == Tense::present && c.modal == Modal::none && !negative && !momentary && random_.chance(13)) {
    c.frequency = random_.chance(60) ? Frequency::often : Frequency::always;
    return;
  }
  if (c.polarity == Polarity::never) return;
  const int percent = wish.detail == 2 ? 45 : wish.detail == 1 ? 22 : 7;
  if (!random_.chance(percent)) return;
  const Mask wanted = c.modal != Modal::none ? tense_class::future : tense_bit(c.tense, Modal::none);
  if (c.tense == Tense::past_progressive) return;
  if (wanted == tense_class::present && (momentary || negative)) return;
  const auto choices = those(time_phrases(), [&](const TimePhrase& phrase) {
    return phrase.tenses & wanted && std::find(times_.begin(), times_.end(), &phrase) == times_.end();
  });
  if (choices.empty()) return;
  c.time = any_of(choices);
  times_.push_back(c.time);
  c.time_first = !wish.embedded && !wish.follows && !wish.question && c.tense != Tense::progressive &&
                 random_.chance(30);
}

}  // namespace translator::corpus
