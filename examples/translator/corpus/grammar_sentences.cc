#include <translator/corpus/grammar.h>

namespace translator::corpus {
namespace {

bool is(const Verb& verb, std::string_view english) { return english == verb.english; }

bool one_of(const Verb& verb, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    if (is(verb, word)) return true;
  }
  return false;
}

bool is_person(const NounPhrase& phrase) {
  return phrase.noun == nullptr || phrase.noun->classes & noun_class::person;
}

// An object that "it" or "them" may take up: a noun that is there, neither denied nor things in general.
bool may_be_taken_up(const Clause& c) {
  if (c.object.empty() || c.polarity != Polarity::affirmative || c.verb->generic) return false;
  const NounPhrase& o = c.object[0];
  return o.noun != nullptr && !(o.noun->classes & noun_class::ride);
}

}  // namespace

void Grammar::append(Sentence& sentence, Join join, Clause clause, bool comma) {
  sentence.parts.push_back({join, comma, std::move(clause)});
}

Sentence Grammar::sentence() {
  used_.clear();
  Sentence s;
  switch (weighted({43, 16, 10, 9, 6, 3, 2, 4, 14})) {
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
  Sentence s;
  switch (weighted({70, 14, 7, 9})) {
    case 0: append(s, Join::none, clause({}), false); break;
    case 1: append(s, Join::none, state({}), false); break;
    case 2: append(s, Join::none, existence({}), false); break;
    default: append(s, Join::none, animal_clause({}), false);
  }
  return s;
}

Sentence Grammar::question() {
  Sentence s;
  Wish wish{.question = true};
  const int kind = weighted({36, 9, 5, 16, 6, 10, 7, 7, 4});
  static constexpr Mood kMoods[] = {Mood::yes_no, Mood::yes_no, Mood::yes_no, Mood::what, Mood::whom,
                                    Mood::who, Mood::where, Mood::when, Mood::why};
  s.mood = kMoods[kind];
  if (kind == 1 || kind == 2) {
    append(s, Join::none, kind == 1 ? state(wish) : existence(wish), false);
    return s;
  }
  if (s.mood == Mood::who) {  // who ate the cake ?
    NounPhrase anybody;
    Clause c = clause({.subject = &anybody});
    c.gap = Gap::subject;
    c.time_first = false;
    append(s, Join::none, c, false);
    return s;
  }
  for (;;) {
    Clause c = clause(wish);
    const bool negative = c.polarity != Polarity::affirmative;
    if (s.mood == Mood::what || s.mood == Mood::whom) {
      const bool people = s.mood == Mood::whom;
      const Mask wanted = people ? noun_class::person : ~noun_class::person;
      if (negative || c.object.empty() || !(c.verb->objects & wanted) || is_possession(*c.verb)) continue;
      if (!people && (c.verb->particle != nullptr || is(*c.verb, "know"))) continue;
      if (c.verb->to_whom && c.recipient[0].pronoun != Pronoun::none) continue;
      c.object.clear();
      c.gap = Gap::object;
    } else if (s.mood == Mood::where) {
      if (negative || !c.verb->places || one_of(*c.verb, {"arrive", "talk"})) continue;
      c.adjuncts.clear();
      c.frequency = Frequency::none;
    } else if (s.mood == Mood::when) {
      const bool event = c.tense == Tense::past || c.tense == Tense::future || c.modal == Modal::want;
      if (negative || !event) continue;
      c.time = nullptr;
    } else if (s.mood == Mood::yes_no && negative) {
      continue;  // "doesn't he eat ?" only with why
    } else if (s.mood == Mood::why && (is(*c.verb, "arrive") || (!negative && random_.chance(75)))) {
      continue;
    }
    append(s, Join::none, c, false);
    return s;
  }
}

// Another clause in the same world, about the same person or another one.
Clause Grammar::next_clause(const Clause& previous, int detail, int same_subject_percent) {
  Wish next{.world = world(previous), .follows = true, .detail = detail};
  NounPhrase again;
  if (random_.chance(same_subject_percent) && previous.subject.noun != nullptr && is_person(previous.subject) &&
      previous.tense != Tense::progressive && previous.tense != Tense::past_progressive &&
      previous.subject.determiner != Determiner::bare) {
    again = pronoun_for(previous.subject);
    next.subject = &again;
  }
  return random_.chance(14) ? state(next) : random_.chance(5) ? animal_clause(next) : clause(next);
}

Sentence Grammar::two_clauses(int detail) {
  Sentence s;
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
  append(s, Join::none, std::move(first), false);
  append(s, but ? Join::but : Join::and_, std::move(second), but);
  return s;
}

// "... and eats it", "... but he won't read them": the second verb takes up the object of the first.
std::optional<Clause> Grammar::follow_up(const Clause& first, bool same_subject_omitted) {
  if (is_person(first.object[0])) return meet_again(first, same_subject_omitted);
  const Noun& noun = *first.object[0].noun;
  const NounPhrase who = first.subject.noun != nullptr ? pronoun_for(first.subject) : first.subject;
  struct Choice { const Verb* verb; Tense tense; Modal modal; };
  std::vector<Choice> choices;
  const World when = world(first);
  const bool gone = one_of(*first.verb, {"give", "eat", "drink"});  // one can only like it, or not
  for (const Verb& verb : verbs()) {
    if (&verb == first.verb || !(verb.objects & noun.classes) || verb.kind != VerbKind::ordinary) continue;
    if (is(verb, "buy") && is(*first.verb, "have")) continue;
    if (one_of(verb, {"have", "find", "see", "want"}) || (gone && !verb.generic)) continue;
    const auto offer = [&](Tense tense, Modal modal, int times) {
      if (!allowed(verb, first.subject, tense, modal)) return;
      choices.insert(choices.end(), static_cast<size_t>(times), Choice{&verb, tense, modal});
    };
    if (verb.generic) {
      if (!same_subject_omitted && first.modal == Modal::none && when != World::future) offer(Tense::present, Modal::none, 2);
      continue;
    }
    const int weight = one_of(verb, {"eat", "drink", "read"}) ? 3 : 1;
    if (first.modal != Modal::none) {
      offer(Tense::future, Modal::none, weight);
    } else if (when == World::past) {
      offer(Tense::past, Modal::none, 3 * weight);
      if (!same_subject_omitted) offer(Tense::future, Modal::none, weight);
      if (!gone) offer(Tense::present, random_.chance(60) ? Modal::want : Modal::can, weight);
    } else if (when == World::now) {
      offer(Tense::present, Modal::none, weight);
      offer(Tense::present, random_.chance(60) ? Modal::want : Modal::can, weight);
    } else {
      offer(Tense::future, Modal::none, weight);
    }
  }
  if (choices.empty()) return std::nullopt;
  const Choice choice = any_of(choices);
  Clause c;
  c.verb = choice.verb;
  c.tense = choice.tense;
  c.modal = choice.modal;
  c.subject = same_subject_omitted ? first.subject : who;
  c.subject_said = !same_subject_omitted;
  c.object.push_back(pronoun_for(first.object[0]));
  if (!past_is_visible(c, false)) return std::nullopt;
  if (c.verb->to_whom) add_recipient(c, {.follows = true});  // "gave it to him": le lui a donné
  return c;
}

// "saw the girls and talked to them".
std::optional<Clause> Grammar::meet_again(const Clause& first, bool same_subject_omitted) {
  if (is(*first.verb, "have")) return std::nullopt;
  static const char* const kVerbs[] = {"listen", "wait", "see", "talk"};
  const Verb& next = verb(kVerbs[random_.below(4)]);
  if (&next == first.verb) return std::nullopt;
  Clause c;
  c.verb = &next;
  c.tense = first.modal == Modal::none ? first.tense : Tense::future;
  if (!(next.tenses & tense_class::progressive)) {
    if (c.tense == Tense::progressive) c.tense = Tense::present;
    if (c.tense == Tense::past_progressive) c.tense = Tense::past;
  }
  c.subject = first.subject;
  if (!same_subject_omitted && first.subject.noun != nullptr) c.subject = pronoun_for(first.subject);
  c.subject_said = !same_subject_omitted;
  (next.to_whom ? c.recipient : c.object).push_back(pronoun_for(first.object[0]));
  return c;
}

// "... and it is red", "... but it is old".
std::optional<Clause> Grammar::remark(const Clause& first) {
  if (is_person(first.object[0])) return std::nullopt;
  NounPhrase thing = first.object[0];
  if (!thing.noun->adjectives) return std::nullopt;
  thing.adjective = nullptr;
  add_adjective(thing, 100);
  if (thing.adjective == first.object[0].adjective || std::string_view(thing.adjective->english) == "new") {
    return std::nullopt;
  }
  Clause c;
  c.verb = &verb("be");
  c.adjective = thing.adjective;
  c.subject = pronoun_for(thing);
  c.tense = world(first) == World::past ? Tense::past : Tense::present;
  return c;
}

Sentence Grammar::take_up(int detail) {
  for (;;) {
    used_.clear();
    Wish wish{.affirmative = true, .no_object_pronoun = true, .detail = detail};
    static const char* const kVerbs[] = {"buy", "find", "see", "have", "give", "want"};
    const int kind = weighted({34, 17, 9, 10, 8, 6, 16});
    const NounPhrase who = subject(wish);
    wish.subject = &who;
    Tense tense = kind == 3 || kind == 5 ? Tense::present : weighted({25, 75}) == 0 ? Tense::present : Tense::past;
    if (kind < 3 && random_.chance(15)) tense = Tense::future;
    Clause first = kind == 6 ? clause(wish) : clause_with(verb(kVerbs[kind]), who, tense, Modal::none, wish);
    if (!may_be_taken_up(first)) continue;
    Sentence s;
    if (random_.chance(22)) {
      std::optional<Clause> second = remark(first);
      if (!second || first.object[0].determiner == Determiner::bare || world(first) == World::future) continue;
      const std::string_view word = second->adjective->english;
      const bool but = word == "old" || word == "cold" || (word == "small" && random_.chance(70));
      append(s, Join::none, std::move(first), false);
      append(s, but ? Join::but : Join::and_, std::move(*second), but);
      return s;
    }
    const bool omitted = first.modal == Modal::none && first.tense != Tense::progressive &&
                         first.tense != Tense::past_progressive && random_.chance(50);
    std::optional<Clause> second = follow_up(first, omitted);
    if (!second) continue;
    Join join = omitted || random_.chance(55) ? Join::and_ : Join::but;
    if (second->verb->generic) {  // buys oranges because he likes them; bought one but hates it
      const bool hate = is(*second->verb, "hate");
      join = !hate && world(first) == World::now && random_.chance(70) ? Join::because : Join::but;
      if (join == Join::but && !hate) second->polarity = Polarity::negative;
    } else if (join == Join::but) {
      second->polarity = Polarity::negative;
    }
    if (omitted && !first.time_first) first.time = nullptr;
    if (omitted) first.frequency = Frequency::none;
    append(s, Join::none, std::move(first), false);
    append(s, join, std::move(*second), join == Join::but);
    return s;
  }
}

// Why somebody does it or does not: because he is hungry. No verb if the lexicon knows no reason.
Clause Grammar::because_of(const Clause& first) {
  Clause c;
  c.subject = first.subject.noun != nullptr ? pronoun_for(first.subject) : first.subject;
  std::vector<const char*> states;
  const bool denied = first.polarity != Polarity::affirmative;
  const Verb& verb = *first.verb;
  const bool possible = !(denied && first.modal == Modal::want);
  if (is(verb, "eat")) {
    states = {"hungry"};
  } else if (is(verb, "drink")) {
    states = {"thirsty"};
  } else if (denied && possible && one_of(verb, {"work", "go", "sing", "read", "talk", "listen", "sleep", "leave"})) {
    states = {"tired", "sick", "sad"};
    if (is(verb, "sleep")) states = {"hungry", "thirsty", "sick"};
  } else if (!denied && is(verb, "sing")) {
    states = {"happy"};
  } else if (!denied && one_of(verb, {"sleep", "leave"})) {
    states = {"tired", "sick"};
  } else if (!denied && is(verb, "go") && std::string_view(first.adjuncts[0].phrase.noun->english) == "hospital") {
    states = {"sick"};
  } else if (!denied && is(verb, "go") && std::string_view(first.adjuncts[0].phrase.noun->english) == "restaurant") {
    states = {"hungry", "thirsty"};
  }
  const Agreement a = agreement(c.subject);
  std::vector<const Adjective*> choices;
  for (const char* word : states) {
    if (adjective(word).epicene() || (a.person != 0 && a.person != 2)) choices.push_back(&adjective(word));
  }
  if (choices.empty()) return c;
  c.verb = &corpus::verb("be");
  c.adjective = any_of(choices);
  c.tense = world(first) == World::past ? Tense::past : Tense::present;
  if (denied && c.adjective->with_avoir && !is(verb, "sleep")) c.polarity = Polarity::negative;
  return c;
}

Sentence Grammar::reason(int detail) {
  for (;;) {
    used_.clear();
    Clause first = clause({.detail = detail});
    if (first.subject.determiner == Determiner::bare || first.polarity == Polarity::never) continue;
    // Now, not as a habit.
    const bool active = first.tense == Tense::present && first.modal == Modal::none && first.verb->gerund != nullptr;
    if (active && first.time == nullptr && first.frequency == Frequency::none && random_.chance(60)) {
      first.tense = Tense::progressive;
    }
    Clause second = because_of(first);
    if (second.verb == nullptr) {  // because it is good
      if (!may_be_taken_up(first) || first.object[0].determiner == Determiner::bare) continue;
      if (!one_of(*first.verb, {"buy", "read", "want", "listen"})) continue;
      std::optional<Clause> praise = remark(first);
      if (!praise) continue;
      const std::string_view word = praise->adjective->english;
      if (word == "old" || (is(*first.verb, "read") && word == "red")) continue;
      second = *praise;
    }
    Sentence s;
    append(s, Join::none, std::move(first), false);
    append(s, Join::because, std::move(second), false);
    return s;
  }
}

// "when he is tired , he sleeps".
Sentence Grammar::whenever(int detail) {
  Sentence s;
  Clause first;
  do {
    used_.clear();
    first = state({.tense = Tense::present, .affirmative = true, .detail = 0});
  } while (first.adjective == nullptr || first.frequency != Frequency::none || !is_person(first.subject));
  const NounPhrase who = pronoun_for(first.subject);
  const Wish next{.subject = &who, .tense = Tense::present, .follows = true, .detail = detail};
  Clause second;
  do {
    second = clause(next);
  } while (second.polarity == Polarity::never || !(second.verb->tenses & tense_class::past) ||
           one_of(*second.verb, {"find", "see", "arrive"}));
  second.time = nullptr;
  append(s, Join::when, std::move(first), false);
  append(s, Join::none, std::move(second), true);
  return s;
}

// "paul was reading when his sister arrived".
Sentence Grammar::moment(int detail) {
  Sentence s;
  Clause first = random_.chance(75) ? clause({.tense = Tense::past_progressive, .affirmative = true, .detail = detail})
                                    : state({.tense = Tense::past, .detail = 0});
  first.time = nullptr;
  const Wish next{.tense = Tense::past, .follows = true, .affirmative = true, .detail = 0};
  NounPhrase who;
  do {
    who = subject(next);
  } while (who.pronoun == Pronoun::i || who.pronoun == Pronoun::we || who.determiner == Determiner::many);
  Clause second = clause_with(verb(random_.chance(65) ? "arrive" : "leave"), who, Tense::past, Modal::none, next);
  second.time_first = false;
  const bool fronted = random_.chance(40);
  if (fronted) std::swap(first, second);
  append(s, fronted ? Join::when : Join::none, std::move(first), false);
  append(s, fronted ? Join::none : Join::when, std::move(second), fronted);
  return s;
}

// "if she is hungry , she will eat an apple".
Sentence Grammar::condition(int detail) {
  Sentence s;
  Clause first;
  do {
    used_.clear();
    const Wish wish{.tense = Tense::present, .detail = 0};
    first = random_.chance(55) ? state(wish) : clause(wish);
  } while (first.frequency != Frequency::none || first.polarity == Polarity::never || first.verb->generic ||
           !is_person(first.subject) || first.subject.determiner == Determiner::bare ||
           one_of(*first.verb, {"see", "have", "know", "arrive"}));
  first.time_first = false;
  first.time = nullptr;
  Wish wish{.tense = Tense::future, .follows = true, .detail = detail};
  const NounPhrase again = first.subject.noun != nullptr ? pronoun_for(first.subject) : first.subject;
  if (random_.chance(85)) wish.subject = &again;
  Clause second;
  do {
    second = clause(wish);
  } while (one_of(*second.verb, {"find", "arrive"}) || second.verb == first.verb);
  append(s, Join::if_, std::move(first), false);
  append(s, Join::none, std::move(second), true);
  return s;
}

// "she thinks that paul will eat the cake".
Sentence Grammar::opinion(int detail) {
  Sentence s;
  Clause outer;
  const bool think = random_.chance(50);
  outer.subject = subject({.detail = 0});
  outer.verb = &verb(think ? "think that" : "know that");
  const Agreement who = agreement(outer.subject);
  Wish inside{.embedded = true, .follows = true, .detail = detail, .antecedent = &who};
  static constexpr Tense kTenses[] = {Tense::past, Tense::future, Tense::present};
  const int when = weighted({42, 40, 18});
  inside.tense = kTenses[when];
  NounPhrase again;
  if (think && inside.tense == Tense::future && random_.chance(50)) {
    again = pronoun_for(outer.subject);
    inside.subject = &again;
  }
  const auto speaks = [](const NounPhrase& who) { return who.pronoun == Pronoun::i || who.pronoun == Pronoun::we; };
  Clause inner;
  do {
    const bool be = inside.subject == nullptr && random_.chance(when == 2 ? 70 : 15);
    inner = be ? state(inside) : clause(inside);
  } while (inside.subject == nullptr && speaks(outer.subject) && speaks(inner.subject));  // "we know that i ..."
  outer.that.push_back(std::move(inner));
  append(s, Join::none, std::move(outer), false);
  return s;
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
  for (int more = random_.chance(88) ? (random_.chance(18) ? 2 : 1) : 0; more > 0; --more) {
    const Part& last = s.parts.back();
    const Clause& heard = last.clause.that.empty() ? last.clause : last.clause.that[0];
    const bool but = last.join != Join::but && heard.polarity == Polarity::affirmative && random_.chance(40);
    Clause next = next_clause(heard, 2, 0);
    for (int i = 0; but && i < 6 && next.polarity == Polarity::affirmative; ++i) next = next_clause(heard, 2, 0);
    append(s, but ? Join::but : Join::and_, std::move(next), true);
  }
  return s;
}

}  // namespace translator::corpus
