#include <translator/corpus/grammar.h>

namespace translator::corpus {

void Grammar::start() {
  used_.clear();
  times_.clear();
}

// Two clauses; a comma stands before "but", and behind a first one that begins with when or if.
Sentence Grammar::joined(Join lead, Clause first, Join link, Clause second) {
  const bool comma = link == Join::but || link == Join::none;
  return {.parts = {{.join = lead, .clause = std::move(first)},
                    {.join = link, .comma = comma, .clause = std::move(second)}}};
}

Sentence Grammar::sentence() {
  start();
  Sentence s;
  switch (weighted({40, 16, 10, 13, 6, 4, 2, 4, 13})) {
    case 0: s = simple(); break;
    case 1: s = question(); break;
    case 2: s = two_clauses(1); break;
    case 3: s = take_up(1); break;
    case 4: s = reason(1); break;
    case 5: s = random_.chance(50) ? moment(1) : whenever(1); break;
    case 6: s = condition(1); break;
    case 7: s = opinion(1); break;
    default: s = long_sentence();
  }
  s.stop = random_.chance(65);
  return s;
}

Sentence Grammar::simple() {
  switch (weighted({70, 14, 7, 9})) {
    case 0: return {.parts = {{.clause = clause({})}}};
    case 1: return {.parts = {{.clause = state({})}}};
    case 2: return {.parts = {{.clause = existence({})}}};
    default: return {.parts = {{.clause = animal_clause({})}}};
  }
}

Sentence Grammar::question() {
  const Wish wish{.question = true};
  const size_t kind = weighted({36, 9, 5, 16, 6, 10, 7, 7, 4});
  static constexpr Mood kMoods[] = {Mood::yes_no, Mood::yes_no, Mood::yes_no, Mood::what, Mood::whom,
                                    Mood::who,    Mood::where,  Mood::when,   Mood::why};
  const Mood mood = kMoods[kind];
  if (kind == 1) return {.mood = mood, .parts = {{.clause = state(wish)}}};
  if (kind == 2) return {.mood = mood, .parts = {{.clause = existence(wish)}}};
  if (mood == Mood::who) {  // who ate the cake ?
    NounPhrase anybody;
    Clause c = clause({.subject = &anybody});
    c.gap = Gap::subject;
    c.time_first = false;
    return {.mood = mood, .parts = {{.clause = c}}};
  }
  for (;;) {
    Clause c = clause(wish);
    const bool negative = c.polarity != Polarity::affirmative;
    if (mood == Mood::what || mood == Mood::whom) {
      const bool people = mood == Mood::whom;
      const Mask wanted = people ? noun_class::person : ~noun_class::person;
      if (negative || c.object.empty() || !(c.verb->objects & wanted) || c.verb->is("have")) continue;
      if (!people && (c.verb->particle != nullptr || c.verb->is("know"))) continue;
      if (c.verb->to_whom && c.recipient[0].pronoun != Pronoun::none) continue;
      c.object.clear();
      c.gap = Gap::object;
    } else if (mood == Mood::where) {
      if (negative || !c.verb->places || c.verb->is_one_of({"arrive", "talk"})) continue;
      c.adjuncts.clear();
      c.frequency = Frequency::none;
    } else if (mood == Mood::when) {
      const bool event = c.tense == Tense::past || c.tense == Tense::future || c.modal == Modal::want;
      if (negative || !event) continue;
      c.time = nullptr;
    } else if (mood == Mood::yes_no && negative) {
      continue;  // "doesn't he eat ?" only with why
    } else if (mood == Mood::why &&
               (c.verb->is_one_of({"arrive", "find", "see"}) || (!negative && random_.chance(75)))) {
      continue;
    }
    return {.mood = mood, .parts = {{.clause = c}}};
  }
}

// Another clause in the same world, about the same person or another one.
Clause Grammar::next_clause(const Clause& previous, int detail, int same_subject_percent) {
  Wish next{.world = world(previous), .follows = true, .detail = detail};
  NounPhrase again;
  if (random_.chance(same_subject_percent) && previous.subject.noun != nullptr &&
      is_person(previous.subject) && previous.tense != Tense::progressive &&
      previous.tense != Tense::past_progressive && previous.subject.determiner != Determiner::bare) {
    again = pronoun_for(previous.subject);
    next.subject = &again;
  }
  return random_.chance(14) ? state(next) : random_.chance(5) ? animal_clause(next) : clause(next);
}

Sentence Grammar::two_clauses(int detail) {
  const Wish wish{.detail = detail};
  Clause first = random_.chance(12) ? state(wish) : random_.chance(8) ? animal_clause(wish) : clause(wish);
  const bool but = random_.chance(45);
  const bool was_negative = first.polarity != Polarity::affirmative;
  Clause second;
  for (int tries = 0; tries < 8; ++tries) {
    second = next_clause(first, detail, 30);
    const bool negative = second.polarity != Polarity::affirmative;
    // "but" likes contrast: one of the two is denied.
    if (but ? negative != was_negative : !negative || was_negative) break;
  }
  return joined(Join::none, std::move(first), but ? Join::but : Join::and_, std::move(second));
}

// What people do when they are hungry, tired, happy ...
bool Grammar::follows_from(const Clause& mood, const Clause& action) {
  const Verb& verb = *action.verb;
  if (mood.adjective == nullptr || mood.polarity != Polarity::affirmative) return !verb.is("arrive");
  const std::string_view state = mood.adjective->english;
  const bool done = action.polarity == Polarity::affirmative;
  if (!done)
    return state != "happy" && verb.is_one_of({"work", "sing", "read", "go", "talk", "listen", "leave"});
  if (state == "hungry") {
    return verb.is("eat") || (verb.is("buy") && !action.object.empty() && action.object[0].noun != nullptr &&
                              action.object[0].noun->classes & noun_class::food);
  }
  if (state == "thirsty") return verb.is("drink");
  if (state == "tired") return verb.is_one_of({"sleep", "leave", "drink", "read"});
  if (state == "happy") return verb.is_one_of({"sing", "work", "talk", "read", "listen"});
  if (state == "sad") return verb.is_one_of({"listen", "talk", "read", "eat", "sing", "leave", "go"});
  return verb.is_one_of({"sleep", "drink", "leave", "read"});
}

// "when he is tired , he sleeps".
Sentence Grammar::whenever(int detail) {
  Clause first;
  do {
    start();
    first = state({.tense = Tense::present, .affirmative = true, .detail = 0});
  } while (first.adjective == nullptr || first.frequency != Frequency::none || !is_person(first.subject));
  const NounPhrase who = pronoun_for(first.subject);
  const Wish next{.subject = &who, .tense = Tense::present, .follows = true, .detail = detail};
  Clause second;
  do {
    second = clause(next);
  } while (second.polarity == Polarity::never || !follows_from(first, second));
  second.time = nullptr;
  return joined(Join::when, std::move(first), Join::none, std::move(second));
}

// "paul was reading when his sister arrived".
Sentence Grammar::moment(int detail) {
  Clause first;
  do {
    start();
    first = random_.chance(75)
                ? clause({.tense = Tense::past_progressive, .affirmative = true, .detail = detail})
                : state({.tense = Tense::past, .detail = 0});
  } while (!is_person(first.subject));
  first.time = nullptr;
  const Wish next{.tense = Tense::past, .follows = true, .affirmative = true, .detail = 0};
  NounPhrase who;
  do {
    who = subject(next);
  } while (who.pronoun == Pronoun::i || who.pronoun == Pronoun::we || who.determiner == Determiner::many);
  Clause second =
      clause_with(verb(random_.chance(65) ? "arrive" : "leave"), who, Tense::past, Modal::none, next);
  second.time_first = false;
  if (random_.chance(40)) return joined(Join::when, std::move(second), Join::none, std::move(first));
  return joined(Join::none, std::move(first), Join::when, std::move(second));
}

// "if she is hungry , she will eat an apple".
Sentence Grammar::condition(int detail) {
  Clause first;
  do {
    start();
    const Wish wish{.tense = Tense::present, .detail = 0};
    first = random_.chance(55) ? state(wish) : clause(wish);
  } while (first.frequency != Frequency::none || first.polarity == Polarity::never || first.verb->generic ||
           !is_person(first.subject) || first.subject.determiner == Determiner::bare ||
           first.verb->is_one_of({"see", "have", "know", "arrive"}));
  first.time_first = false;
  first.time = nullptr;
  Wish wish{.tense = Tense::future, .follows = true, .detail = detail};
  const NounPhrase again = pronoun_for(first.subject);
  if (random_.chance(85)) wish.subject = &again;
  Clause second;
  do {
    second = clause(wish);
  } while (second.verb->is_one_of({"find", "arrive"}) || second.verb == first.verb ||
           (wish.subject != nullptr && !follows_from(first, second)));
  return joined(Join::if_, std::move(first), Join::none, std::move(second));
}

// "she thinks that paul will eat the cake".
Sentence Grammar::opinion(int detail) {
  const bool think = random_.chance(50);
  Clause outer{.subject = subject({.detail = 0}), .verb = &verb(think ? "think that" : "know that")};
  Wish inside{.embedded = true, .follows = true, .detail = detail};
  inside.tense = draw<Tense>({{Tense::past, 42}, {Tense::future, 40}, {Tense::present, 18}});
  NounPhrase again;
  if (think && inside.tense == Tense::future && random_.chance(50)) {
    again = pronoun_for(outer.subject);
    inside.subject = &again;
  }
  const auto speaks = [](const NounPhrase& who) {
    return who.pronoun == Pronoun::i || who.pronoun == Pronoun::we;
  };
  Clause inner;
  do {
    const bool be = inside.subject == nullptr && random_.chance(inside.tense == Tense::present ? 70 : 15);
    inner = be ? state(inside) : clause(inside);
  } while (inside.subject == nullptr && speaks(outer.subject) &&
           speaks(inner.subject));  // "we know that i ..."
  outer.that.push_back(std::move(inner));
  return {.parts = {{.clause = std::move(outer)}}};
}

// Two to four clauses with all that can hang on them.
Sentence Grammar::long_sentence() {
  Sentence s;
  switch (weighted({34, 12, 14, 6, 6, 10, 18})) {
    case 0: s = two_clauses(2); break;
    case 1: s = take_up(2); break;
    case 2: s = reason(2); break;
    case 3: s = moment(2); break;
    case 4: s = whenever(2); break;
    case 5: s = condition(2); break;
    default: s = opinion(2);
  }
  for (int more = random_.chance(88) ? (random_.chance(8) ? 2 : 1) : 0; more > 0; --more) {
    const Part& last = s.parts.back();
    const Clause& heard = last.clause.that.empty() ? last.clause : last.clause.that[0];
    const bool but = last.join != Join::but && heard.polarity == Polarity::affirmative && random_.chance(40);
    Clause next = next_clause(heard, 2, 0);
    for (int i = 0; but && i < 6 && next.polarity == Polarity::affirmative; ++i)
      next = next_clause(heard, 2, 0);
    s.parts.push_back({.join = but ? Join::but : Join::and_, .comma = true, .clause = std::move(next)});
  }
  return s;
}

}  // namespace translator::corpus
