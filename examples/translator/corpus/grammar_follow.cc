#include <translator/corpus/grammar.h>

#include <algorithm>
#include <iterator>

// Second clauses that take up the first: pronouns for its object, reasons.
namespace translator::corpus {
namespace {

// An object that "it" or "them" may take up: a noun that is there, neither denied nor things in general.
bool may_be_taken_up(const Clause& c) {
  if (c.object.empty() || c.polarity != Polarity::affirmative || c.verb->generic) return false;
  const NounPhrase& o = c.object[0];
  return o.noun != nullptr && !(o.noun->classes & noun_class::ride);
}

bool owned(const NounPhrase& phrase) {
  return phrase.determiner >= Determiner::my && phrase.determiner <= Determiner::their;
}

}  // namespace

// "... and eats it", "... but he won't read them": the second verb takes up the object of the first.
std::optional<Clause> Grammar::follow_up(const Clause& first, bool same_subject_omitted) {
  if (is_person(first.object[0])) return meet_again(first, same_subject_omitted);
  const Noun& noun = *first.object[0].noun;
  std::vector<Clause> choices;
  const World when = world(first);
  const bool gone = first.verb->is_one_of({"give", "eat", "drink"});  // one can only like it, or not
  for (const Verb& verb : verbs()) {
    if (&verb == first.verb || !(verb.objects & noun.classes) || verb.kind != VerbKind::ordinary) continue;
    if (verb.is("buy") && (first.verb->is_one_of({"have", "give"}) || owned(first.object[0]))) continue;
    if (verb.is_one_of({"have", "find", "see", "want"}) || (gone && !verb.generic)) continue;
    const auto offer = [&](Tense tense, Modal modal, size_t times) {
      if (!allowed(verb, first.subject, tense, modal)) return;
      choices.insert(choices.end(), times, Clause{.verb = &verb, .tense = tense, .modal = modal});
    };
    if (verb.generic) {
      if (!same_subject_omitted && first.modal == Modal::none && when != World::future)
        offer(Tense::present, Modal::none, 2);
      continue;
    }
    const size_t weight = verb.is_one_of({"eat", "drink", "read"}) ? 3 : 1;
    if (first.modal != Modal::none || when == World::future) {
      offer(Tense::future, Modal::none, weight);
    } else if (when == World::past) {
      offer(Tense::past, Modal::none, 3 * weight);
      if (!same_subject_omitted) offer(Tense::future, Modal::none, weight);
      if (!gone) offer(Tense::present, random_.chance(60) ? Modal::want : Modal::can, weight);
    } else {
      offer(Tense::present, Modal::none, weight);
      offer(Tense::present, first.verb->is("want") || random_.chance(40) ? Modal::can : Modal::want, weight);
    }
  }
  if (choices.empty()) return std::nullopt;
  Clause c = any_of(choices);
  c.subject = same_subject_omitted ? first.subject : pronoun_for(first.subject);
  c.subject_said = !same_subject_omitted;
  c.object.push_back(pronoun_for(first.object[0]));
  if (!past_is_visible(c, false)) return std::nullopt;
  if (c.verb->to_whom) add_recipient(c, {.follows = true});  // "gave it to him": le lui a donné
  return c;
}

// "saw the girls and talked to them".
std::optional<Clause> Grammar::meet_again(const Clause& first, bool same_subject_omitted) {
  if (first.verb->is("have")) return std::nullopt;
  static const char* const kVerbs[] = {"listen", "wait", "see", "talk"};
  const Verb& next = verb(kVerbs[random_.below(4)]);
  if (&next == first.verb) return std::nullopt;
  Clause c{.subject = same_subject_omitted ? first.subject : pronoun_for(first.subject),
           .subject_said = !same_subject_omitted,
           .verb = &next,
           .tense = first.modal == Modal::none ? first.tense : Tense::future};
  if (!(next.tenses & tense_class::progressive)) {
    if (c.tense == Tense::progressive) c.tense = Tense::present;
    if (c.tense == Tense::past_progressive) c.tense = Tense::past;
  }
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
  const std::string_view word = thing.adjective->english;
  // "new" would be "neuf"; "they were sick" could be the girls as well as the dogs they bought.
  if (thing.adjective == first.object[0].adjective || word == "new" || word == "sick") return std::nullopt;
  return Clause{.subject = pronoun_for(thing),
                .verb = &verb("be"),
                .tense = world(first) == World::past ? Tense::past : Tense::present,
                .adjective = thing.adjective};
}

Sentence Grammar::take_up(int detail) {
  for (;;) {
    start();
    Wish wish{.affirmative = true, .no_object_pronoun = true, .detail = detail};
    static const char* const kVerbs[] = {"buy", "find", "see", "have", "give", "want"};
    const size_t kind = weighted({34, 17, 9, 10, 8, 6, 16});
    const NounPhrase who = subject(wish);
    wish.subject = &who;
    Tense tense = kind == 3 || kind == 5    ? Tense::present
                  : weighted({25, 75}) == 0 ? Tense::present
                                            : Tense::past;
    if (kind < 3 && random_.chance(15)) tense = Tense::future;
    Clause first = kind == 6 ? clause(wish) : clause_with(verb(kVerbs[kind]), who, tense, Modal::none, wish);
    if (!may_be_taken_up(first)) continue;
    if (random_.chance(22)) {
      std::optional<Clause> second = remark(first);
      if (!second || first.object[0].determiner == Determiner::bare || world(first) == World::future)
        continue;
      const std::string_view word = second->adjective->english;
      const bool but = word == "old" || word == "cold" || (word == "small" && random_.chance(70));
      return joined(Join::none, std::move(first), but ? Join::but : Join::and_, std::move(*second));
    }
    const bool omitted = first.modal == Modal::none && first.tense != Tense::progressive &&
                         first.tense != Tense::past_progressive && random_.chance(50);
    std::optional<Clause> second = follow_up(first, omitted);
    if (!second) continue;
    Join join = omitted || random_.chance(55) ? Join::and_ : Join::but;
    if (second->verb->generic) {  // buys oranges because he likes them; bought one but hates it
      const bool hate = second->verb->is("hate");
      join = !hate && world(first) == World::now && random_.chance(70) ? Join::because : Join::but;
      if (join == Join::but && !hate) second->polarity = Polarity::negative;
    } else if (join == Join::but) {
      second->polarity = Polarity::negative;
    }
    if (omitted && !first.time_first) first.time = nullptr;
    if (omitted) first.frequency = Frequency::none;
    return joined(Join::none, std::move(first), join, std::move(*second));
  }
}

// Why somebody does it or does not: because he is hungry. No verb if the lexicon knows no reason.
Clause Grammar::because_of(const Clause& first) {
  Clause c{.subject = pronoun_for(first.subject)};
  std::vector<const char*> states;
  const bool denied = first.polarity != Polarity::affirmative;
  const Verb& verb = *first.verb;
  const bool possible = !(denied && first.modal == Modal::want);
  if (verb.is("eat")) {
    states = {"hungry"};
  } else if (verb.is("drink")) {
    states = {"thirsty"};
  } else if (denied && possible &&
             verb.is_one_of({"work", "go", "sing", "read", "talk", "listen", "sleep", "leave"})) {
    states = {"tired", "sick", "sad"};
    if (verb.is("sleep")) states = {"hungry", "thirsty", "sick"};
  } else if (!denied && verb.is("sing")) {
    states = {"happy"};
  } else if (!denied && verb.is_one_of({"sleep", "leave"})) {
    states = {"tired", "sick"};
  } else if (!denied && verb.is("go") && first.adjuncts[0].phrase.noun->is("hospital")) {
    states = {"sick"};
  } else if (!denied && verb.is("go") && first.adjuncts[0].phrase.noun->is("restaurant")) {
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
  if (denied && c.adjective->with_avoir && !verb.is("sleep")) c.polarity = Polarity::negative;
  return c;
}

Sentence Grammar::reason(int detail) {
  for (;;) {
    start();
    Clause first = clause({.detail = detail});
    if (first.subject.determiner == Determiner::bare || first.polarity == Polarity::never) continue;
    // Now, not as a habit.
    const bool active =
        first.tense == Tense::present && first.modal == Modal::none && first.verb->gerund != nullptr;
    if (active && first.time == nullptr && first.frequency == Frequency::none && random_.chance(60)) {
      first.tense = Tense::progressive;
    }
    Clause second = because_of(first);
    if (second.verb == nullptr) {  // because it is good
      if (!may_be_taken_up(first) || first.object[0].determiner == Determiner::bare) continue;
      if (!first.verb->is_one_of({"buy", "read", "want", "listen"})) continue;
      std::optional<Clause> praise = remark(first);
      if (!praise) continue;
      static constexpr std::string_view kReasons[] = {"good", "beautiful", "interesting", "small", "big"};
      const auto reason = std::find(std::begin(kReasons), std::end(kReasons), praise->adjective->english);
      if (reason == std::end(kReasons)) continue;
      second = *praise;
    }
    return joined(Join::none, std::move(first), Join::because, std::move(second));
  }
}

}  // namespace translator::corpus
