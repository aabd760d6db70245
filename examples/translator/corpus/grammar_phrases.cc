#include <translator/corpus/grammar.h>

#include <algorithm>
#include <string_view>

namespace translator::corpus {
namespace {

using namespace noun_class;

bool has_job(const Noun* noun) { return noun->is("teacher") || noun->is("doctor"); }

NounPhrase pronoun(Pronoun p, Gender gender = Gender::masculine) {
  NounPhrase phrase;
  phrase.pronoun = p;
  phrase.gender = gender;
  return phrase;
}

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

int Grammar::weighted(std::initializer_list<int> weights) {
  int sum = 0;
  for (int w : weights) sum += w;
  int at = random_.below(sum), index = 0;
  for (int w : weights) {
    if (at < w) return index;
    at -= w;
    ++index;
  }
  return index - 1;
}

bool Grammar::used(const Noun* noun) const {
  return std::find(used_.begin(), used_.end(), noun) != used_.end();
}

// Any unused noun of one of the classes; a used one only if there is no other.
const Noun* Grammar::pick_noun(Mask classes, Mask without) {
  constexpr int kMost = 128;
  const Noun* fresh[kMost];
  const Noun* all[kMost];
  int fresh_count = 0, count = 0;
  for (const Noun& noun : nouns()) {
    if (!(noun.classes & classes) || (noun.classes & without) || count == kMost) continue;
    all[count++] = &noun;
    if (!used(&noun)) fresh[fresh_count++] = &noun;
  }
  const Noun* noun = fresh_count > 0 ? fresh[random_.below(fresh_count)] : all[random_.below(count)];
  used_.push_back(noun);
  return noun;
}

NounPhrase Grammar::named() {
  NounPhrase phrase;
  phrase.noun = pick_noun(noun_class::name);
  return phrase;
}

// Whose: mostly the subject's own, sometimes anybody's.
Determiner Grammar::owner_determiner(const Agreement* owner) {
  if (owner != nullptr && random_.chance(75)) {
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

void Grammar::set_owner(NounPhrase& phrase, const Agreement* owner) {
  if (!random_.chance(22)) {
    phrase.determiner = owner_determiner(owner);
    return;
  }
  phrase.determiner = Determiner::whose;
  NounPhrase who;
  do {
    who = NounPhrase{};
    who.noun = pick_noun(person, family);
    if (who.noun->is("child") && random_.chance(50)) who.plural = true;
  } while (!(who.noun->classes & noun_class::owner));
  if (!(who.noun->classes & noun_class::name)) who.determiner = Determiner::the;
  phrase.possessor.push_back(who);
}

NounPhrase Grammar::kin(bool plural_allowed, const Agreement* owner) {
  NounPhrase phrase;
  phrase.noun = pick_noun(family);
  phrase.plural = plural_allowed && phrase.noun->english_plural != nullptr && random_.chance(25);
  set_owner(phrase, owner);
  return phrase;
}

// A person named by a noun: the boy, two women, this doctor, her teacher.
NounPhrase Grammar::human(const Agreement* owner, bool plural_allowed) {
  NounPhrase phrase;
  phrase.noun = pick_noun(person, family | noun_class::name);
  phrase.plural = plural_allowed && random_.chance(35);
  if (has_job(phrase.noun) && random_.chance(20)) {
    set_owner(phrase, owner);
  } else if (phrase.plural) {
    static constexpr Determiner kMany[] = {Determiner::the,   Determiner::this_, Determiner::two,
                                           Determiner::three, Determiner::many,  Determiner::some};
    phrase.determiner = kMany[weighted({60, 14, 7, 6, 6, 7})];
  } else {
    static constexpr Determiner kOne[] = {Determiner::the, Determiner::this_, Determiner::a};
    phrase.determiner = kOne[weighted({66, 14, 20})];
  }
  add_adjective(phrase, 15);
  return phrase;
}

NounPhrase Grammar::place(const Noun& noun) {
  NounPhrase phrase;
  phrase.noun = &noun;
  phrase.determiner = Determiner::the;
  used_.push_back(&noun);
  return phrase;
}

void Grammar::add_adjective(NounPhrase& phrase, int percent) {
  if (!phrase.noun->adjectives) return;
  // More before vowels, or bel, nouvel and vieil would be too rare to learn.
  const bool special =
      !phrase.plural && phrase.noun->gender == Gender::masculine && starts_with_vowel(phrase.noun->french);
  if (!random_.chance(special ? 2 * percent : percent)) return;
  std::vector<const Adjective*> choices;
  for (const Adjective& adjective : adjectives()) {
    if (phrase.noun->adjectives >> adjective_index(adjective) & 1) choices.push_back(&adjective);
  }
  phrase.adjective = any_of(choices);
}

// Where "a boy didn't ..." or "did many boys ...?" would sound odd.
void Grammar::make_definite(NounPhrase& phrase) {
  switch (phrase.determiner) {
    case Determiner::a:
    case Determiner::some:
    case Determiner::two:
    case Determiner::three:
    case Determiner::many:
      phrase.determiner = random_.chance(70) ? Determiner::the : Determiner::this_;
      break;
    default: break;
  }
}

NounPhrase Grammar::pair_of_subjects() {
  NounPhrase first, second;
  const int kind = weighted({50, 30, 20});
  const Mask classes = kind == 0 ? noun_class::name : kind == 1 ? family : person;
  const Mask without = kind == 2 ? family | noun_class::name : 0;
  first.noun = pick_noun(classes, without);
  // Two women often enough that "elles" and "sont parties" are learnt from pairs as well.
  const bool women = first.noun->gender == Gender::feminine && random_.chance(40);
  do {
    second.noun = pick_noun(classes, without);
  } while (women && second.noun->gender != Gender::feminine);
  if (kind != 0) {
    first.determiner = kind == 1 ? owner_determiner(nullptr) : Determiner::the;
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
      if (wish.antecedent != nullptr && wish.antecedent->person == 3) {
        return pronoun(Pronoun::they, wish.antecedent->gender);
      }
      return named();
    case 5: return named();
    case 6: return kin(true, nullptr);
    case 7: {
      NounPhrase phrase = human(nullptr);
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
    default: set_owner(phrase, nullptr);
  }
  return phrase;
}

// "the boy who eats the apple": a clause about the phrase without its subject.
void Grammar::add_subject_relative(NounPhrase& phrase) {
  NounPhrase head = phrase;
  Wish wish{.subject = &head, .embedded = true, .detail = 0};
  wish.no_object_pronoun = random_.chance(80);
  static constexpr Tense kTenses[] = {Tense::present, Tense::past, Tense::progressive};
  wish.tense = kTenses[weighted({48, 48, 4})];
  Clause inner = wish.tense != Tense::progressive && random_.chance(20) ? state(wish) : clause(wish);
  inner.gap = Gap::subject;
  inner.head = agreement(head);
  phrase.relative.push_back(std::move(inner));
}

// "the book that paul bought": a clause that lacks its object, the phrase.
void Grammar::add_object_relative(NounPhrase& phrase, const Clause& outer, const Wish& wish) {
  const Agreement antecedent = agreement(outer.subject);
  const bool event = outer.tense == Tense::past || outer.tense == Tense::past_progressive;
  std::vector<const Verb*> choices;
  Tense tense = event || random_.chance(60) ? Tense::past : Tense::present;
  if (!event && random_.chance(10)) tense = Tense::future;
  for (const Verb& verb : verbs()) {
    if (&verb == outer.verb || !(verb.objects & phrase.noun->classes)) continue;
    if (verb.is_one_of({"eat", "drink"}) && !outer.verb->generic) continue;  // it would be gone
    if (allowed(verb, NounPhrase{}, tense, Modal::none)) choices.push_back(&verb);
  }
  if (choices.empty()) return;
  Clause inner;
  inner.verb = any_of(choices);
  inner.tense = tense;
  Wish simple{.embedded = true, .detail = 0, .antecedent = &antecedent};
  simple.question = wish.question;
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
  switch (weighted({24, 24, 18, 17, 17})) {
    case 0: return pronoun(Pronoun::he);
    case 1: return pronoun(Pronoun::she, Gender::feminine);
    case 2:
      if (gender_shows || who.person == 0 || who.person == 2) return std::nullopt;
      return pronoun(Pronoun::i);
    case 3:
      if (gender_shows || who.person == 0 || who.person == 2) return std::nullopt;
      return pronoun(Pronoun::we);
    default:
      if (wish.embedded || wish.follows || who.person == 3) return std::nullopt;
      return pronoun(Pronoun::they);
  }
}

NounPhrase Grammar::object(const Verb& verb, const Clause& clause, const Wish& wish) {
  const bool negative = clause.polarity != Polarity::affirmative;
  const Agreement owner = agreement(clause.subject);
  const bool people = verb.objects & person;
  const bool possessing = is_possession(verb);
  if (people && !possessing && !wish.no_object_pronoun && random_.chance(30)) {
    if (std::optional<NounPhrase> p = human_pronoun(clause, wish, true)) return *p;
  }
  Mask classes = verb.objects;
  if (people && !possessing && random_.chance(45)) {  // names and family are few words of many sentences
    if (random_.chance(45)) return named();
    if (random_.chance(55)) return kin(true, &owner);
    classes = person;
  }
  NounPhrase phrase;
  do {
    phrase.noun = pick_noun(classes, possessing ? 0 : family | noun_class::name);
  } while (possessing && phrase.noun->classes & family && phrase.noun->english_plural == nullptr);
  const Noun& noun = *phrase.noun;
  const bool countable = !(noun.classes & mass) && noun.english_plural != nullptr;
  const bool human = noun.classes & person;
  using D = Determiner;
  D choice = D::the;
  if (noun.classes & family) {  // has a brother, two sisters
    static constexpr D kKin[] = {D::a, D::two, D::three};
    choice = negative ? D::a : kKin[weighted({50, 30, 20})];
  } else if (noun.classes & mass) {
    static constexpr D kMass[] = {D::bare, D::some, D::the, D::my, D::this_};
    choice = verb.generic ? kMass[weighted({75, 0, 8, 10, 7})]
             : negative   ? kMass[weighted({50, 14, 20, 12, 4})]
                          : kMass[weighted({38, 22, 22, 12, 6})];
  } else if (!countable) {
    static constexpr D kRide[] = {D::the, D::a, D::this_};
    choice = kRide[weighted({70, negative ? 0 : 15, 15})];
  } else if (verb.generic) {
    static constexpr D kGeneric[] = {D::bare, D::the, D::this_, D::my};
    choice = kGeneric[weighted({68, 10, 9, 13})];
  } else if (negative) {
    static constexpr D kNegative[] = {D::the, D::bare, D::some, D::a, D::this_, D::my};
    const bool single = verb.single_denied && clause.modal == Modal::none;
    choice = kNegative[weighted(
        {32, human ? 0 : 20, human ? 0 : 11, single && !human ? 16 : 0, 10, human ? 0 : 14})];
  } else {
    static constexpr D kCount[] = {D::the,   D::a,    D::bare,  D::some, D::two,
                                   D::three, D::many, D::this_, D::my};
    choice = kCount[weighted({26, 27, human ? 0 : 10, 7, 4, 3, 4, 7, human ? 0 : 12})];
  }
  if (choice == D::my && verb.is("buy")) choice = D::the;
  phrase.determiner = choice;
  const bool one = choice == D::a, several = choice == D::two || choice == D::three || choice == D::many;
  if (several || (countable && (choice == D::bare || choice == D::some))) {
    phrase.plural = true;
  } else if (!one && countable) {
    phrase.plural = random_.chance(32);
  }
  if (choice == D::my) set_owner(phrase, &owner);
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
