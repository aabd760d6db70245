#include <translator/corpus/grammar.h>

#include <algorithm>
#include <numeric>

namespace translator::corpus {
namespace {

using namespace noun_class;

NounPhrase pronoun(Pronoun p, Gender gender = Gender::masculine) { return {.pronoun = p, .gender = gender}; }

}  // namespace

bool is_person(const NounPhrase& phrase) {
  return phrase.noun == nullptr || phrase.noun->classes & noun_class::person;
}

NounPhrase pronoun_for(const NounPhrase& antecedent) {
  if (antecedent.pronoun != Pronoun::none) return pronoun(antecedent.pronoun, antecedent.gender);
  const Agreement a = agreement(antecedent);
  if (a.plural) return pronoun(Pronoun::they, a.gender);
  if (!(antecedent.noun->classes & person)) return pronoun(Pronoun::it, a.gender);
  return pronoun(a.gender == Gender::feminine ? Pronoun::she : Pronoun::he, a.gender);
}

size_t Grammar::weighted(const std::vector<int>& weights) {
  int at = random_.below(std::accumulate(weights.begin(), weights.end(), 0));
  size_t index = 0;
  while ((at -= weights[index]) >= 0) ++index;
  return index;
}

bool Grammar::used(const Noun* noun) const {
  return std::find(used_.begin(), used_.end(), noun) != used_.end();
}

// Any unused noun of one of the classes; a used one only if there is no other.
const Noun* Grammar::pick_noun(Mask classes, Mask without) {
  const auto fits = [&](const Noun& noun) { return noun.classes & classes && !(noun.classes & without); };
  std::vector<const Noun*> choices =
      those(nouns(), [&](const Noun& noun) { return fits(noun) && !used(&noun); });
  if (choices.empty()) choices = those(nouns(), fits);
  used_.push_back(any_of(choices));
  return used_.back();
}

NounPhrase Grammar::named() { return {.noun = pick_noun(noun_class::name)}; }

// Whose: mostly the subject's own, sometimes anybody's.
Determiner Grammar::owner_determiner(const std::optional<Agreement>& owner) {
  if (owner && random_.chance(75)) {
    switch (owner->person) {
      case 0: return Determiner::my;
      case 2: return Determiner::our;
      case 3: return Determiner::their;
      default: return owner->gender == Gender::feminine ? Determiner::her : Determiner::his;
    }
  }
  static constexpr Determiner kOwners[] = {Determiner::my, Determiner::his, Determiner::her, Determiner::our,
                                           Determiner::their};
  return kOwners[random_.below(5)];
}

void Grammar::set_owner(NounPhrase& phrase, const std::optional<Agreement>& owner) {
  if (!random_.chance(22)) {
    phrase.determiner = owner_determiner(owner);
    return;
  }
  phrase.determiner = Determiner::whose;
  NounPhrase who;
  do {
    who = {.noun = pick_noun(person, family)};
    if (who.noun->is("child") && random_.chance(50)) who.plural = true;
  } while (!(who.noun->classes & noun_class::owns));
  if (!(who.noun->classes & noun_class::name)) who.determiner = Determiner::the;
  phrase.possessor.push_back(who);
}

NounPhrase Grammar::kin(bool plural_allowed, const std::optional<Agreement>& owner) {
  NounPhrase phrase{.noun = pick_noun(family)};
  phrase.plural = plural_allowed && phrase.noun->english_plural != nullptr && random_.chance(25);
  set_owner(phrase, owner);
  return phrase;
}

// A person named by a noun: the boy, two women, this doctor, her teacher.
NounPhrase Grammar::human(const std::optional<Agreement>& owner) {
  NounPhrase phrase{.noun = pick_noun(person, family | noun_class::name), .plural = random_.chance(35)};
  if ((phrase.noun->is("teacher") || phrase.noun->is("doctor")) && random_.chance(20)) {
    set_owner(phrase, owner);
  } else if (phrase.plural) {
    phrase.determiner =
        draw<D>({{D::the, 60}, {D::this_, 14}, {D::two, 7}, {D::three, 6}, {D::many, 6}, {D::some, 7}});
  } else {
    phrase.determiner = draw<D>({{D::the, 66}, {D::this_, 14}, {D::a, 20}});
  }
  add_adjective(phrase, 15);
  return phrase;
}

NounPhrase Grammar::place(const Noun& noun) {
  used_.push_back(&noun);
  return {.noun = &noun, .determiner = D::the};
}

void Grammar::add_adjective(NounPhrase& phrase, int percent) {
  if (!phrase.noun->adjectives) return;
  // More before vowels, or bel, nouvel and vieil would be too rare to learn.
  const bool special =
      !phrase.plural && phrase.noun->gender == Gender::masculine && starts_with_vowel(phrase.noun->french);
  if (!random_.chance(special ? 2 * percent : percent)) return;
  phrase.adjective = any_of(those(adjectives(), [&](const Adjective& adjective) {
    return phrase.noun->adjectives >> adjective_index(adjective) & 1;
  }));
}

// Where "a boy didn't ..." or "did many boys ...?" would sound odd.
void Grammar::make_definite(NounPhrase& phrase) {
  const D d = phrase.determiner;
  if (d == D::a || d == D::some || d == D::two || d == D::three || d == D::many) {
    phrase.determiner = random_.chance(70) ? D::the : D::this_;
  }
}

NounPhrase Grammar::pair_of_subjects() {
  const size_t kind = weighted({50, 30, 20});
  const Mask classes = kind == 0 ? noun_class::name : kind == 1 ? family : person;
  const Mask without = kind == 2 ? family | noun_class::name : 0;
  NounPhrase first{.noun = pick_noun(classes, without)}, second;
  // Two women often enough that "elles" and "sont parties" are learnt from pairs as well.
  const bool women = first.noun->gender == Gender::feminine && random_.chance(40);
  do {
    second.noun = pick_noun(classes, without);
  } while (women && second.noun->gender != Gender::feminine);
  if (kind != 0) {
    first.determiner = kind == 1 ? owner_determiner(std::nullopt) : Determiner::the;
    second.determiner = first.determiner;
  }
  first.second.push_back(second);
  return first;
}

NounPhrase Grammar::subject(const Wish& wish) {
  switch (weighted({wish.question ? 0 : 12, 10, 10, 11, 9, 13, 13, 24, 5})) {
    case 0: return pronoun(Pronoun::i);
    case 1: return pronoun(Pronoun::he);
    case 2: return pronoun(Pronoun::she, Gender::feminine);
    case 3: return pronoun(Pronoun::we);
    case 4:
      if (!wish.embedded && !wish.follows) return pronoun(Pronoun::they);
      if (wish.antecedent && wish.antecedent->person == 3) {
        return pronoun(Pronoun::they, wish.antecedent->gender);
      }
      return named();
    case 5: return named();
    case 6: return kin(true, std::nullopt);
    case 7: {
      NounPhrase phrase = human(std::nullopt);
      const Determiner d = phrase.determiner;
      if (d == Determiner::some || (wish.question && phrase.plural && d != Determiner::the))
        make_definite(phrase);
      const bool open = phrase.determiner == Determiner::the || phrase.determiner == Determiner::a;
      const int percent = wish.detail == 2 ? 35 : wish.detail == 1 ? 10 : 0;
      if (open && phrase.adjective == nullptr && !wish.embedded && random_.chance(percent)) {
        add_subject_relative(phrase);
      }
      return phrase;
    }
    default: return pair_of_subjects();
  }
}

// The red car, my house, this tea: the subject of "is".
NounPhrase Grammar::thing_subject() {
  NounPhrase phrase;
  do {
    phrase.noun = pick_noun(animal | food | drink | reading | sound | thing | lost, noun_class::person);
  } while (!phrase.noun->adjectives);
  phrase.plural = phrase.noun->english_plural != nullptr && random_.chance(35);
  switch (weighted({50, 18, 32})) {
    case 0: phrase.determiner = Determiner::the; break;
    case 1: phrase.determiner = Determiner::this_; break;
    default: set_owner(phrase, std::nullopt);
  }
  return phrase;
}

// "the boy who eats the apple": a clause about the phrase without its subject.
void Grammar::add_subject_relative(NounPhrase& phrase) {
  NounPhrase head = phrase;
  Wish wish{.subject = &head, .embedded = true, .detail = 0};
  wish.no_object_pronoun = random_.chance(80);
  wish.tense = draw<Tense>({{Tense::present, 48}, {Tense::past, 48}, {Tense::progressive, 4}});
  Clause inner = wish.tense != Tense::progressive && random_.chance(20) ? state(wish) : clause(wish);
  inner.gap = Gap::subject;
  inner.head = agreement(head);
  phrase.relative.push_back(std::move(inner));
}

// "the book that paul bought": a clause that lacks its object, the phrase.
void Grammar::add_object_relative(NounPhrase& phrase, const Clause& outer, const Wish& wish) {
  const bool event = outer.tense == Tense::past || outer.tense == Tense::past_progressive;
  Tense tense = event || random_.chance(60) ? Tense::past : Tense::present;
  if (!event && random_.chance(10)) tense = Tense::future;
  const auto choices = those(verbs(), [&](const Verb& verb) {
    if (&verb == outer.verb || !(verb.objects & phrase.noun->classes)) return false;
    if (verb.is_one_of({"eat", "drink"}) && !outer.verb->generic) return false;  // it would be gone
    return allowed(verb, NounPhrase{}, tense, Modal::none);
  });
  if (choices.empty()) return;
  Clause inner{.verb = any_of(choices), .tense = tense};
  const Wish simple{
      .embedded = true, .question = wish.question, .detail = 0, .antecedent = agreement(outer.subject)};
  inner.subject = subject(simple);
  make_past_visible(inner, false);
  inner.gap = Gap::object;
  inner.head = agreement(phrase);
  if (inner.verb->to_whom) add_recipient(inner, simple);
  phrase.relative.push_back(std::move(inner));
}

// A pronoun for a person as object: me, him, her, us, them. In the passé composé a direct one must show its
// gender, which "me" and "us" do not.
std::optional<NounPhrase> Grammar::human_pronoun(const Clause& clause, const Wish& wish, bool direct) {
  const Agreement who = agreement(clause.subject);
  const bool gender_shows = direct && clause.tense == Tense::past;
  const size_t kind = weighted({24, 24, 18, 17, 17});
  switch (kind) {
    case 0: return pronoun(Pronoun::he);
    case 1: return pronoun(Pronoun::she, Gender::feminine);
    case 2:
    case 3:
      if (gender_shows || who.person == 0 || who.person == 2) return std::nullopt;
      return pronoun(kind == 2 ? Pronoun::i : Pronoun::we);
    default:
      if (wish.embedded || wish.follows || who.person == 3) return std::nullopt;
      return pronoun(Pronoun::they);
  }
}

NounPhrase Grammar::object(const Verb& verb, const Clause& clause, const Wish& wish) {
  const bool negative = clause.polarity != Polarity::affirmative;
  const Agreement owner = agreement(clause.subject);
  const bool people = verb.objects & person;
  const bool possessing = verb.is("have");  // also "a sister"
  if (people && !possessing && !wish.no_object_pronoun && random_.chance(30)) {
    if (std::optional<NounPhrase> p = human_pronoun(clause, wish, true)) return *p;
  }
  Mask classes = verb.objects;
  if (people && !possessing && random_.chance(45)) {  // names and family are few words of many sentences
    if (random_.chance(45)) return named();
    if (random_.chance(55)) return kin(true, owner);
    classes = person;
  }
  NounPhrase phrase;
  do {
    phrase.noun = pick_noun(classes, possessing ? 0 : family | noun_class::name);
  } while (possessing && phrase.noun->classes & family && phrase.noun->english_plural == nullptr);
  const Noun& noun = *phrase.noun;
  const bool countable = !(noun.classes & mass) && noun.english_plural != nullptr;
  const bool human = noun.classes & person;
  D choice;
  if (noun.classes & family) {  // has a brother, two sisters
    choice = negative ? D::a : draw<D>({{D::a, 50}, {D::two, 30}, {D::three, 20}});
  } else if (noun.classes & mass) {
    static constexpr D kMass[] = {D::bare, D::some, D::the, D::my, D::this_};
    choice = verb.generic ? kMass[weighted({75, 0, 8, 10, 7})]
             : negative   ? kMass[weighted({50, 14, 20, 12, 4})]
                          : kMass[weighted({38, 22, 22, 12, 6})];
  } else if (!countable) {
    choice = draw<D>({{D::the, 70}, {D::a, negative ? 0 : 15}, {D::this_, 15}});
  } else if (verb.generic) {
    choice = draw<D>({{D::bare, 68}, {D::the, 10}, {D::this_, 9}, {D::my, 13}});
  } else if (negative) {
    const bool single = verb.single_denied && clause.modal == Modal::none;
    choice = human ? draw<D>({{D::the, 32}, {D::this_, 10}})
                   : draw<D>({{D::the, 32},
                              {D::bare, 20},
                              {D::some, 11},
                              {D::a, single ? 16 : 0},
                              {D::this_, 10},
                              {D::my, 14}});
  } else {
    choice = draw<D>({{D::the, 26},
                      {D::a, 27},
                      {D::bare, human ? 0 : 10},
                      {D::some, 7},
                      {D::two, 4},
                      {D::three, 3},
                      {D::many, 4},
                      {D::this_, 7},
                      {D::my, human ? 0 : 12}});
  }
  if (choice == D::my && verb.is("buy")) choice = D::the;
  phrase.determiner = choice;
  const bool one = choice == D::a, several = choice == D::two || choice == D::three || choice == D::many;
  if (several || (countable && (choice == D::bare || choice == D::some))) {
    phrase.plural = true;
  } else if (!one && countable) {
    phrase.plural = random_.chance(32);
  }
  if (choice == D::my) set_owner(phrase, owner);
  if (!(noun.classes & family)) add_adjective(phrase, wish.detail == 0 ? 10 : 17);
  const int percent = wish.detail == 2 ? 42 : wish.detail == 1 ? 12 : 0;
  const bool open =
      choice == D::the || (choice == D::a && !negative) || (choice == D::this_ && phrase.plural);
  if (open && !verb.to_whom && !wish.embedded && random_.chance(percent)) {
    if (human && random_.chance(50)) {
      add_subject_relative(phrase);
    } else {
      add_object_relative(phrase, clause, wish);
    }
  }
  return phrase;
}

}  // namespace translator::corpus
