#include <translator/corpus/grammar.h>

#include <string_view>

namespace translator::corpus {
namespace {

bool is(const Verb& verb, const char* english) { return std::string_view(verb.english) == english; }

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
  if (is(verb, "eat") || is(verb, "like")) return 16;
  if (is(verb, "hate") || is(verb, "know") || is(verb, "arrive")) return 5;
  return verb.objects ? 10 : 8;
}

}  // namespace

Grammar::World Grammar::world(const Clause& c) {
  if (c.tense == Tense::past || c.tense == Tense::past_progressive) return World::past;
  return c.tense == Tense::future ? World::future : World::now;
}

bool Grammar::is_possession(const Verb& verb) { return is(verb, "have"); }

// "i went" hides the gender that "je suis allé(e)" must show.
bool Grammar::allowed(const Verb& verb, const NounPhrase& subject, Tense tense, Modal modal) const {
  if (!(verb.tenses & tense_bit(tense, modal))) return false;
  return !(verb.with_etre && tense == Tense::past && !shows_gender(subject));
}

// "they read" is present or past; "he read" and "didn't read" are past.
bool Grammar::past_is_visible(const Clause& c, bool question) const {
  if (!is(*c.verb, "read") || (c.tense != Tense::present && c.tense != Tense::past)) return true;
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

const Adjective* Grammar::mood_adjective(const NounPhrase& subject) {
  const Agreement who = agreement(subject);
  const bool beast = subject.noun != nullptr && subject.noun->classes & noun_class::animal;
  static const std::vector<const Adjective*> kAll = {&adjective("tired"), &adjective("happy"), &adjective("sad"),
                                                     &adjective("sick"), &adjective("hungry"), &adjective("thirsty")};
  for (;;) {
    const Adjective* choice = any_of(kAll);
    const std::string_view word = choice->english;
    if (beast && (word == "sad" || word == "happy")) continue;
    if (choice->epicene() || (who.person != 0 && who.person != 2)) return choice;
  }
}

void Grammar::choose_polarity(Clause& c, const Wish& wish) {
  if (wish.affirmative || is(*c.verb, "hate")) return;
  if (wish.question) {
    if (random_.chance(4)) c.polarity = Polarity::negative;
    return;
  }
  const bool plain = c.modal == Modal::none && c.verb->tenses & tense_class::past && c.tense != Tense::progressive &&
                     c.tense != Tense::past_progressive;
  if (random_.chance(wish.embedded ? 14 : 27)) {
    c.polarity = Polarity::negative;
  } else if (plain && !is(*c.verb, "find") && !is(*c.verb, "arrive") &&
             !is(*c.verb, "sleep") && !is(*c.verb, "see") && random_.chance(6)) {
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
    switch (weighted({now ? 38 : later ? 7 : 0, past ? 28 : 0, later ? 18 : 0, now ? 6 : 0, past ? 5 : 0,
                      now ? 8 : 0, now ? 6 : 0})) {
      case 0: break;
      case 1: tense = Tense::past; break;
      case 2: tense = Tense::future; break;
      case 3: tense = Tense::progressive; break;
      case 4: tense = Tense::past_progressive; break;
      case 5: modal = Modal::want; break;
      default: modal = Modal::can;
    }
  }
  int sum = 0;
  for (const Verb& verb : verbs()) {
    if (allowed(verb, who, tense, modal)) sum += frequency_of(verb);
  }
  int at = random_.below(sum);
  const Verb* choice = nullptr;
  for (const Verb& verb : verbs()) {
    if (!allowed(verb, who, tense, modal)) continue;
    choice = &verb;
    if ((at -= frequency_of(verb)) < 0) break;
  }
  return clause_with(*choice, who, tense, modal, wish);
}

Clause Grammar::clause_with(const Verb& verb, const NounPhrase& who, Tense tense, Modal modal, const Wish& wish) {
  Clause c;
  c.verb = &verb;
  c.subject = who;
  c.tense = tense;
  c.modal = modal;
  choose_polarity(c, wish);
  make_past_visible(c, wish.question);
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
  const bool gives = is(*c.verb, "give");
  if (random_.chance(gives && c.gap == Gap::none ? 45 : 35)) {
    if (std::optional<NounPhrase> p = human_pronoun(c, wish, false)) {
      if (gives && c.gap == Gap::object) return;  // "the book that he gave me" stays out, so does "to me"
      // "gives her bread" could be read as the bread of hers.
      if (!c.object.empty() && c.object[0].determiner == Determiner::bare) {
        c.object[0].determiner = Determiner::some;
      }
      c.recipient.push_back(*p);
      return;
    }
  }
  const Agreement owner = agreement(c.subject);
  switch (weighted({40, 30, 30})) {
    case 0: c.recipient.push_back(named()); break;
    case 1: c.recipient.push_back(kin(true, &owner)); break;
    default: c.recipient.push_back(human(&owner));
  }
}

void Grammar::add_adjuncts(Clause& c, const Wish& wish) {
  using namespace place_class;
  const int percent = wish.detail == 2 ? 55 : wish.detail == 1 ? 22 : 6;
  const bool goes = is(*c.verb, "go");
  if (c.verb->for_whom && random_.chance(percent / 2)) {
    const Agreement owner = agreement(c.subject);
    c.adjuncts.push_back({Preposition::for_, random_.chance(40) ? named() : kin(false, &owner)});
  } else if (!goes && c.verb->with_whom && random_.chance(percent / 2)) {
    const Agreement owner = agreement(c.subject);
    std::optional<NounPhrase> p;
    Wish alone = wish;
    alone.follows = true;  // no "them"
    if (random_.chance(35)) p = human_pronoun(c, alone, false);
    c.adjuncts.push_back({Preposition::with, p ? *p : random_.chance(50) ? named() : kin(true, &owner)});
  }
  const Mask wanted = c.verb->places;
  const bool arrives = is(*c.verb, "arrive");
  const bool place_needed = goes || (arrives && (c.tense == Tense::present || random_.chance(50)));
  if (!wanted || !(place_needed || random_.chance(percent))) return;
  if (wanted & home && random_.chance(30)) {
    c.adjuncts.push_back({Preposition::home, {}});
    return;
  }
  std::vector<const Noun*> choices;
  for (const Noun& noun : nouns()) {
    if (noun.places & wanted & ~home && !used(&noun)) choices.push_back(&noun);
  }
  if (choices.empty()) {
    if (goes) c.adjuncts.push_back({Preposition::to, place(noun("market"))});
    return;
  }
  const Noun& spot = *any_of(choices);
  Preposition preposition = spot.places & in ? Preposition::in : Preposition::at;
  if (goes) {
    preposition = Preposition::to;
  } else if (spot.places & near && !is(*c.verb, "arrive") && random_.chance(20)) {
    preposition = Preposition::near;
  }
  c.adjuncts.push_back({preposition, place(spot)});
  if (goes && c.verb->with_whom && random_.chance(percent / 2)) {
    const Agreement owner = agreement(c.subject);
    c.adjuncts.push_back({Preposition::with, random_.chance(50) ? named() : kin(true, &owner)});
  }
}

void Grammar::add_time(Clause& c, const Wish& wish) {
  const bool state = !(c.verb->tenses & (tense_class::past | tense_class::future)) && !is(*c.verb, "be");
  if (state) return;
  const bool negative = c.polarity != Polarity::affirmative;
  const bool momentary = is(*c.verb, "find") || is(*c.verb, "be") || is(*c.verb, "arrive");
  if (c.tense == Tense::present && c.modal == Modal::none && !negative && !momentary && random_.chance(13)) {
    c.frequency = random_.chance(60) ? Frequency::often : Frequency::always;
    return;
  }
  if (c.polarity == Polarity::never) return;
  const int percent = wish.detail == 2 ? 45 : wish.detail == 1 ? 22 : 7;
  if (!random_.chance(percent)) return;
  Mask mask = 0;
  if (c.modal != Modal::none) {
    mask = tense_class::future;
  } else if (c.tense == Tense::past) {
    mask = tense_class::past;
  } else if (c.tense == Tense::future) {
    mask = tense_class::future;
  } else if (c.tense == Tense::progressive) {
    mask = tense_class::progressive;
  } else if (c.tense == Tense::present && !momentary && !negative) {
    mask = tense_class::present;
  }
  std::vector<const TimePhrase*> choices;
  for (const TimePhrase& phrase : time_phrases()) {
    if (phrase.tenses & mask) choices.push_back(&phrase);
  }
  if (choices.empty()) return;
  c.time = any_of(choices);
  c.time_first = !wish.embedded && !wish.follows && !wish.question && c.tense != Tense::progressive &&
                 random_.chance(30);
}

// To be: hungry, red, in the garden.
Clause Grammar::state(const Wish& wish) {
  Clause c;
  c.verb = &verb("be");
  const bool thing = wish.subject == nullptr && !wish.embedded && random_.chance(30);
  c.subject = wish.subject != nullptr ? *wish.subject : thing ? thing_subject() : subject(wish);
  if (wish.tense) {
    c.tense = *wish.tense;
  } else {
    static constexpr Tense kTenses[] = {Tense::present, Tense::past, Tense::future};
    c.tense = kTenses[wish.world  ? static_cast<int>(*wish.world)
                      : thing     ? weighted({75, 25, 0})
                                  : weighted({58, 28, 14})];
  }
  if (random_.chance(22) && !wish.affirmative) c.polarity = Polarity::negative;
  if (thing) {
    if (c.tense == Tense::future) c.tense = Tense::present;
    do {
      add_adjective(c.subject, 100);
      c.adjective = c.subject.adjective;
    } while (std::string_view(c.adjective->english) == "new");  // which as a predicate would be "neuf"
    c.subject.adjective = nullptr;
    return c;
  }
  if (random_.chance(18)) {
    std::vector<const Noun*> choices;
    for (const Noun& noun : nouns()) {
      if (noun.places & (place_class::at | place_class::in) && !used(&noun)) choices.push_back(&noun);
    }
    if (random_.chance(25) || choices.empty()) {
      c.adjuncts.push_back({Preposition::home, {}});
    } else {
      const Noun& spot = *any_of(choices);
      c.adjuncts.push_back({spot.places & place_class::in ? Preposition::in : Preposition::at, place(spot)});
    }
  } else {
    c.adjective = mood_adjective(c.subject);
  }
  if (c.tense == Tense::present) {
    if (!wish.question && c.adjective != nullptr && c.polarity == Polarity::affirmative && random_.chance(14)) {
      c.frequency = random_.chance(60) ? Frequency::often : Frequency::always;
    }
  } else if (c.adjective == nullptr || !c.adjective->with_avoir) {
    add_time(c, wish);
  }
  return c;
}

// Cars do not stand in kitchens.
bool Grammar::fits_inside(const Noun& what, const Noun& spot) const {
  if (!(spot.places & place_class::in)) return false;
  const std::string_view name = what.english;
  if (name == "car" || name == "house") return false;
  if (std::string_view(spot.english) != "kitchen") return true;
  return what.classes & noun_class::person || name == "cat" || name == "dog" || name == "flower";
}

// There is a cat in the garden.
Clause Grammar::existence(const Wish& wish) {
  Clause c;
  c.verb = &verb("there be");
  c.tense = random_.chance(35) ? Tense::past : Tense::present;
  if (!wish.question && random_.chance(22)) c.polarity = Polarity::negative;
  NounPhrase what;
  what.noun = pick_noun(c.verb->objects, noun_class::family | noun_class::name | noun_class::ride);
  using D = Determiner;
  if (c.polarity == Polarity::negative || wish.question) {
    what.determiner = random_.chance(55) ? D::a : D::some;
  } else {
    static constexpr D kSome[] = {D::a, D::two, D::three, D::many, D::some};
    what.determiner = kSome[weighted({50, 15, 10, 13, 12})];
  }
  what.plural = what.determiner != D::a;
  add_adjective(what, 18);
  if (what.determiner == D::a && c.polarity == Polarity::affirmative && !wish.question && wish.detail > 0 &&
      what.noun->classes & noun_class::person && random_.chance(15)) {
    add_subject_relative(what);
  }
  c.object.push_back(what);
  std::vector<const Noun*> choices;
  for (const Noun& noun : nouns()) {
    if (noun.places & place_class::near || fits_inside(*what.noun, noun)) choices.push_back(&noun);
    if (fits_inside(*what.noun, noun)) choices.insert(choices.end(), 2, &noun);
  }
  const Noun& spot = *any_of(choices);
  const bool inside = fits_inside(*what.noun, spot) && (!(spot.places & place_class::near) || random_.chance(75));
  c.adjuncts.push_back({inside ? Preposition::in : Preposition::near, place(spot)});
  return c;
}

// The cat sleeps in the garden; this dog ate the cake.
Clause Grammar::animal_clause(const Wish& wish) {
  NounPhrase who;
  who.noun = pick_noun(noun_class::animal);
  who.plural = random_.chance(35);
  if (random_.chance(30)) {
    const bool bird = std::string_view(who.noun->english) == "bird";
    if (bird) {
      who.determiner = Determiner::the;
    } else {
      set_owner(who, nullptr);
    }
  } else {
    who.determiner = who.plural ? (random_.chance(70) ? Determiner::the : Determiner::two)
                                : (random_.chance(70) ? Determiner::the : Determiner::a);
  }
  add_adjective(who, 22);
  static constexpr Tense kTenses[] = {Tense::present, Tense::past, Tense::future, Tense::progressive,
                                      Tense::past_progressive};
  Wish simple = wish;
  simple.detail = 0;
  if (random_.chance(22)) {
    simple.subject = &who;
    Clause c = state(simple);
    return c;
  }
  Tense tense = kTenses[weighted({38, 30, 14, 9, 9})];
  if (wish.world == World::past) tense = Tense::past;
  if (random_.chance(45)) {
    Clause c = clause_with(verb("sleep"), who, tense, Modal::none, simple);
    c.adjuncts.clear();
    if (random_.chance(60)) {
      const bool inside = std::string_view(who.noun->english) == "cat" || std::string_view(who.noun->english) == "dog";
      c.adjuncts.push_back({Preposition::in, place(noun(inside && random_.chance(60) ? "kitchen" : "garden"))});
    }
    return c;
  }
  const bool eats = random_.chance(70);
  Clause c;
  c.verb = &verb(eats ? "eat" : "drink");
  if (!eats && tense_bit(tense, Modal::none) == tense_class::progressive) tense = Tense::present;
  c.subject = who;
  c.tense = tense;
  choose_polarity(c, simple);
  NounPhrase meal;
  if (!eats) {
    meal.noun = &noun("water");
  } else {
    static const char* const kTreats[] = {"bread", "apple", "meat", "cheese", "cake"};
    const std::string_view name = who.noun->english;
    meal.noun = &noun(kTreats[name == "horse" ? random_.below(2) : name == "bird" ? 0 : 2 + random_.below(3)]);
  }
  const bool mass = meal.noun->mass;
  static constexpr Determiner kMeal[] = {Determiner::the, Determiner::this_, Determiner::bare, Determiner::some,
                                         Determiner::my};
  meal.determiner = kMeal[weighted({40, 5, mass ? 35 : 0, mass ? 12 : 0, eats ? 15 : 0})];
  meal.plural = !mass && std::string_view(meal.noun->english) == "apple" && random_.chance(50);
  if (meal.determiner == Determiner::my) set_owner(meal, nullptr);
  c.object.push_back(meal);
  add_time(c, simple);
  return c;
}

}  // namespace translator::corpus
