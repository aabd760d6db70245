#include <translator/corpus/grammar.h>

// What is: moods and colours, places, il y a; and what animals do.
namespace translator::corpus {

const Adjective* Grammar::mood_adjective(const NounPhrase& subject) {
  const Agreement who = agreement(subject);
  const bool beast = subject.noun != nullptr && subject.noun->classes & noun_class::animal;
  static const std::vector<const Adjective*> kAll = {&adjective("tired"),  &adjective("happy"),
                                                     &adjective("sad"),    &adjective("sick"),
                                                     &adjective("hungry"), &adjective("thirsty")};
  for (;;) {
    const Adjective* choice = any_of(kAll);
    const std::string_view word = choice->english;
    if (beast && (word == "sad" || word == "happy")) continue;
    if (choice->epicene() || (who.person != 0 && who.person != 2)) return choice;
  }
}

// To be: hungry, red, in the garden.
Clause Grammar::state(const Wish& wish) {
  Clause c{.verb = &verb("be")};
  const bool thing = wish.subject == nullptr && !wish.embedded && random_.chance(30);
  c.subject = wish.subject != nullptr ? *wish.subject : thing ? thing_subject() : subject(wish);
  if (wish.tense) {
    c.tense = *wish.tense;
  } else {
    static constexpr Tense kTenses[] = {Tense::present, Tense::past, Tense::future};
    c.tense = kTenses[wish.world ? static_cast<size_t>(*wish.world)
                      : thing    ? weighted({75, 25, 0})
                                 : weighted({58, 28, 14})];
  }
  if (random_.chance(22) && !wish.affirmative && !wish.question) c.polarity = Polarity::negative;
  if (c.polarity == Polarity::negative && c.subject.relative.empty()) make_definite(c.subject);
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
    const auto choices = those(nouns(), [&](const Noun& noun) {
      return noun.places & (place_class::at | place_class::in) && !used(&noun);
    });
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
    if (!wish.question && c.adjective != nullptr && c.polarity == Polarity::affirmative &&
        random_.chance(14)) {
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
  if (!spot.is("kitchen")) return true;
  return what.classes & noun_class::person || name == "cat" || name == "dog" || name == "flower";
}

// There is a cat in the garden.
Clause Grammar::existence(const Wish& wish) {
  Clause c{.verb = &verb("there be"), .tense = random_.chance(35) ? Tense::past : Tense::present};
  if (!wish.question && random_.chance(22)) c.polarity = Polarity::negative;
  const Mask without = noun_class::family | noun_class::name | noun_class::ride;
  NounPhrase what{.noun = pick_noun(c.verb->objects, without)};
  if (c.polarity == Polarity::negative || wish.question) {
    what.determiner = random_.chance(55) ? D::a : D::some;
  } else {
    what.determiner = draw<D>({{D::a, 50}, {D::two, 15}, {D::three, 10}, {D::many, 13}, {D::some, 12}});
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
  const bool inside =
      fits_inside(*what.noun, spot) && (!(spot.places & place_class::near) || random_.chance(75));
  c.adjuncts.push_back({inside ? Preposition::in : Preposition::near, place(spot)});
  return c;
}

// The cat sleeps in the garden; this dog ate the cake.
Clause Grammar::animal_clause(const Wish& wish) {
  NounPhrase who{.noun = pick_noun(noun_class::animal), .plural = random_.chance(35), .determiner = D::the};
  if (!random_.chance(30)) {
    if (!random_.chance(70)) who.determiner = who.plural ? D::two : D::a;
  } else if (!who.noun->is("bird")) {
    set_owner(who, std::nullopt);
  }
  add_adjective(who, 22);
  Wish simple = wish;
  simple.detail = 0;
  if (random_.chance(22)) {
    simple.subject = &who;
    return state(simple);
  }
  Tense tense = draw<Tense>({{Tense::present, 38},
                             {Tense::past, 30},
                             {Tense::future, 14},
                             {Tense::progressive, 9},
                             {Tense::past_progressive, 9}});
  if (wish.world == World::past) tense = random_.chance(80) ? Tense::past : Tense::past_progressive;
  if (wish.world == World::now) tense = random_.chance(75) ? Tense::present : Tense::progressive;
  if (wish.world == World::future) tense = Tense::future;
  if (random_.chance(45)) {
    Clause c = clause_with(verb("sleep"), who, tense, Modal::none, simple);
    c.adjuncts.clear();
    if (random_.chance(60)) {
      const bool inside = who.noun->is("cat") || who.noun->is("dog");
      c.adjuncts.push_back(
          {Preposition::in, place(noun(inside && random_.chance(60) ? "kitchen" : "garden"))});
    }
    return c;
  }
  const bool eats = random_.chance(70);
  if (!eats && tense == Tense::progressive) tense = Tense::present;
  if (!eats && tense == Tense::past_progressive) tense = Tense::past;
  Clause c{.subject = who, .verb = &verb(eats ? "eat" : "drink"), .tense = tense};
  choose_polarity(c, simple);
  if (c.polarity != Polarity::affirmative) make_definite(c.subject);
  NounPhrase meal;
  if (!eats) {
    meal.noun = &noun("water");
  } else {
    static const char* const kTreats[] = {"bread", "apple", "meat", "cheese", "cake"};
    const std::string_view name = who.noun->english;
    meal.noun = &noun(kTreats[name == "horse"  ? random_.below(2)
                              : name == "bird" ? 0
                                               : 2 + random_.below(3)]);
  }
  const bool uncounted = meal.noun->classes & noun_class::mass;
  meal.determiner = draw<D>({{D::the, 40},
                             {D::this_, 5},
                             {D::bare, uncounted ? 35 : 0},
                             {D::some, uncounted ? 12 : 0},
                             {D::my, eats ? 15 : 0}});
  meal.plural = !uncounted && meal.noun->is("apple") && random_.chance(50);
  if (meal.determiner == D::my) set_owner(meal, std::nullopt);
  c.object.push_back(meal);
  add_time(c, simple);
  return c;
}

}  // namespace translator::corpus
