#include <translator/corpus/corpus.h>
#include <translator/corpus/sentence.h>
#include <translator/text/detokenizer.h>

#include "../quick_doctest.h"

// One sentence and more of every construction, built by hand and realised.
using namespace translator;
using namespace translator::corpus;

namespace {

using D = Determiner;
using P = Pronoun;

NounPhrase np(const char* word, D determiner, bool plural = false, const char* quality = nullptr) {
  NounPhrase phrase;
  phrase.noun = &noun(word);
  phrase.determiner = determiner;
  phrase.plural = plural;
  if (quality != nullptr) phrase.adjective = &adjective(quality);
  return phrase;
}

NounPhrase name(const char* word) { return np(word, D::none); }

NounPhrase of(NounPhrase owner, NounPhrase phrase) {
  phrase.determiner = D::whose;
  phrase.possessor.push_back(owner);
  return phrase;
}

NounPhrase both(NounPhrase first, const NounPhrase& second) {
  first.second.push_back(second);
  return first;
}

NounPhrase it(P pronoun, Gender gender = Gender::masculine) {
  NounPhrase phrase;
  phrase.pronoun = pronoun;
  phrase.gender = gender;
  return phrase;
}

constexpr Gender kFeminine = Gender::feminine;

struct Say {
  Clause c;
  Say(NounPhrase subject, const char* word) {
    c.subject = subject;
    c.verb = &verb(word);
  }
  Say& in(Tense tense) {
    c.tense = tense;
    return *this;
  }
  Say& not_() {
    c.polarity = Polarity::negative;
    return *this;
  }
  Say& never() {
    c.polarity = Polarity::never;
    return *this;
  }
  Say& often() {
    c.frequency = Frequency::often;
    return *this;
  }
  Say& want() {
    c.modal = Modal::want;
    return *this;
  }
  Say& can() {
    c.modal = Modal::can;
    return *this;
  }
  Say& what(NounPhrase object) {
    c.object = {object};
    return *this;
  }
  Say& whom(NounPhrase recipient) {
    c.recipient = {recipient};
    return *this;
  }
  Say& how(const char* word) {
    c.adjective = &adjective(word);
    return *this;
  }
  Say& where(Preposition p, NounPhrase place = {}) {
    c.adjuncts.push_back({p, place});
    return *this;
  }
  Say& when(const char* time, bool first = false) {
    c.time = &time_phrase(time);
    c.time_first = first;
    return *this;
  }
  Say& that(Say inner) {
    c.that = {inner.c};
    return *this;
  }
  Say& silent() {
    c.subject_said = false;
    return *this;
  }
  Say& missing(Gap gap, const NounPhrase& head) {
    c.gap = gap;
    c.head = agreement(head);
    return *this;
  }
};

NounPhrase who(NounPhrase head, Say inner) {
  head.relative.push_back(inner.missing(Gap::subject, head).c);
  return head;
}

NounPhrase which(NounPhrase head, Say inner) {
  head.relative.push_back(inner.missing(Gap::object, head).c);
  return head;
}

Sentence one(Say clause, Mood mood = Mood::statement) {
  Sentence s;
  s.mood = mood;
  s.parts.push_back({Join::none, false, clause.c});
  return s;
}

Sentence two(Say first, Join join, Say second, bool comma = false, Join lead = Join::none) {
  Sentence s;
  s.parts.push_back({lead, false, first.c});
  s.parts.push_back({join, comma, second.c});
  return s;
}

void check(const Sentence& sentence, const std::string& english, const std::string& french) {
  const SentencePair r = realise(sentence);
  CHECK(detokenize(r.source) == english);
  CHECK(detokenize(r.target, Typography::french) == french);
}

const Tense kPast = Tense::past, kFuture = Tense::future;

}  // namespace

TEST_CASE("articles") {
  check(one(Say(it(P::he), "eat").what(np("apple", D::a))), "he eats an apple.", "il mange une pomme.");
  check(one(Say(it(P::i), "eat").what(np("apple", D::bare, true))), "i eat apples.", "je mange des pommes.");
  check(one(Say(it(P::she), "drink").what(np("water", D::bare))), "she drinks water.", "elle boit de l'eau.");
  check(one(Say(it(P::we), "buy").what(np("bread", D::some))), "we buy some bread.",
        "nous achetons du pain.");
  check(one(Say(it(P::they), "eat").what(np("meat", D::bare, false, "good"))), "they eat good meat.",
        "ils mangent de la bonne viande.");
  check(one(Say(name("paul"), "have").what(np("egg", D::many, true))), "paul has many eggs.",
        "paul a beaucoup d'œufs.");
  check(one(Say(np("child", D::bare, true), "like").what(np("cake", D::bare, true))), "children like cakes.",
        "les enfants aiment les gâteaux.");
  check(one(Say(name("anna"), "have").what(np("flower", D::bare, true, "beautiful"))),
        "anna has beautiful flowers.", "anna a de belles fleurs.");
  check(one(Say(np("man", D::the), "see").what(np("bird", D::the, false, "beautiful"))),
        "the man sees the beautiful bird.", "l'homme voit le bel oiseau.");
  check(one(Say(np("man", D::this_, false, "old"), "sleep")), "this old man sleeps.", "ce vieil homme dort.");
  check(one(Say(np("man", D::this_), "sleep")), "this man sleeps.", "cet homme dort.");
  check(one(Say(it(P::she), "want").what(np("computer", D::a, false, "new"))), "she wants a new computer.",
        "elle veut un nouvel ordinateur.");
  check(one(Say(it(P::i), "eat").what(np("orange", D::my))), "i eat my orange.", "je mange mon orange.");
  check(one(Say(it(P::she), "see").what(of(np("teacher", D::the), np("car", D::none, false, "red")))),
        "she sees the teacher's red car.", "elle voit la voiture rouge du professeur.");
  check(one(Say(it(P::she), "find").what(of(name("anna"), np("key", D::none, true)))),
        "she finds anna's keys.", "elle trouve les clés d'anna.");
  check(one(Say(it(P::she), "find").what(of(np("child", D::the, true), np("hat", D::none, true, "white")))),
        "she finds the children's white hats.", "elle trouve les chapeaux blancs des enfants.");
}

TEST_CASE("negation") {
  check(one(Say(it(P::he), "eat").not_().what(np("apple", D::bare, true))), "he doesn't eat apples.",
        "il ne mange pas de pommes.");
  check(one(Say(it(P::he), "like").not_().what(np("orange", D::bare, true))), "he doesn't like oranges.",
        "il n'aime pas les oranges.");
  check(one(Say(it(P::i), "have").not_().what(np("computer", D::a))), "i don't have a computer.",
        "je n'ai pas d'ordinateur.");
  check(one(Say(it(P::they), "drink").in(kPast).not_().what(np("water", D::some))),
        "they didn't drink any water.", "ils n'ont pas bu d'eau.");
  check(one(Say(it(P::we), "eat").in(kFuture).not_().what(np("meat", D::the))), "we won't eat the meat.",
        "nous ne mangerons pas la viande.");
  check(one(Say(it(P::he), "drink").never().what(np("tea", D::bare))), "he never drinks tea.",
        "il ne boit jamais de thé.");
  check(one(Say(it(P::i), "be").not_().how("hungry")), "i am not hungry.", "je n'ai pas faim.");
  check(one(Say({}, "there be").not_().what(np("bird", D::a)).where(Preposition::in, np("garden", D::the))),
        "there isn't a bird in the garden.", "il n'y a pas d'oiseau dans le jardin.");
}

TEST_CASE("tenses and agreement") {
  check(one(Say(np("girl", D::the, true), "go")
                .in(kPast)
                .where(Preposition::to, np("market", D::the))
                .when("yesterday")),
        "the girls went to the market yesterday.", "les filles sont allées au marché hier.");
  check(one(Say(name("marie"), "leave").in(kPast).when("this morning", true)), "this morning, marie left.",
        "ce matin, marie est partie.");
  check(one(Say(both(name("marie"), name("paul")), "arrive").in(kPast)), "marie and paul arrived.",
        "marie et paul sont arrivés.");
  check(one(Say(it(P::i), "go").in(kFuture).where(Preposition::to, np("hospital", D::the)).when("tomorrow")),
        "i will go to the hospital tomorrow.", "j'irai à l'hôpital demain.");
  check(one(Say(it(P::we), "read").in(Tense::past_progressive).what(np("newspaper", D::the, true))),
        "we were reading the newspapers.", "nous lisions les journaux.");
  check(one(Say(np("cat", D::the), "sleep").in(Tense::progressive).when("now")), "the cat is sleeping now.",
        "le chat dort maintenant.");
  check(one(Say(np("sister", D::his, true), "be").in(kPast).how("happy")), "his sisters were happy.",
        "ses sœurs étaient heureuses.");
  check(one(Say(it(P::she), "drink").often().what(np("coffee", D::bare))), "she often drinks coffee.",
        "elle boit souvent du café.");
  check(one(Say(np("horse", D::two, true), "be").how("white")), "two horses are white.",
        "deux chevaux sont blancs.");
}

TEST_CASE("object pronouns") {
  const NounPhrase them = it(P::they, kFeminine);
  check(two(Say(it(P::he), "buy").in(kPast).what(np("apple", D::bare, true)), Join::and_,
            Say(it(P::he), "eat").in(kPast).silent().what(them)),
        "he bought apples and ate them.", "il a acheté des pommes et les a mangées.");
  check(two(Say(it(P::she), "find").in(kPast).what(np("letter", D::a)), Join::but,
            Say(it(P::she), "read").in(kPast).not_().what(it(P::it, kFeminine)), true),
        "she found a letter, but she didn't read it.", "elle a trouvé une lettre, mais elle ne l'a pas lue.");
  check(one(Say(it(P::she), "see").in(kPast).what(it(P::she))), "she saw her.", "elle l'a vue.");
  check(one(Say(it(P::they), "wait").not_().what(it(P::i))), "they don't wait for me.",
        "ils ne m'attendent pas.");
  check(one(Say(it(P::i), "talk").in(kPast).whom(it(P::he))), "i talked to him.", "je lui ai parlé.");
  check(one(Say(it(P::i), "talk").whom(np("boy", D::the, true))), "i talk to the boys.",
        "je parle aux garçons.");
  check(one(Say(it(P::he), "give").in(kPast).what(np("book", D::a)).whom(it(P::they))),
        "he gave them a book.", "il leur a donné un livre.");
  check(one(Say(it(P::he), "give").in(kPast).not_().what(it(P::it, kFeminine)).whom(it(P::she))),
        "he didn't give it to her.", "il ne la lui a pas donnée.");
  check(one(Say(it(P::she), "want").what(np("cake", D::this_))), "she wants this cake.",
        "elle veut ce gâteau.");
  check(one(Say(it(P::she), "eat").want().not_().what(it(P::it))), "she doesn't want to eat it.",
        "elle ne veut pas le manger.");
  check(one(Say(name("marc"), "sing").can().not_()), "marc can't sing.", "marc ne peut pas chanter.");
}

TEST_CASE("questions") {
  check(one(Say(it(P::he), "like").what(np("tea", D::bare)), Mood::yes_no), "does he like tea?",
        "est-ce qu'il aime le thé ?");
  check(one(Say(it(P::they), "eat").in(kPast).missing(Gap::object, {}), Mood::what), "what did they eat?",
        "qu'est-ce qu'ils ont mangé ?");
  check(one(Say(name("anna"), "work").not_(), Mood::why), "why doesn't anna work?",
        "pourquoi est-ce qu'anna ne travaille pas ?");
  check(one(Say(it(P::she), "leave").in(kFuture), Mood::when), "when will she leave?",
        "quand est-ce qu'elle partira ?");
  check(one(Say(np("girl", D::the), "buy").in(kPast).what(np("dress", D::the)), Mood::where),
        "where did the girl buy the dress?", "où est-ce que la fille a acheté la robe ?");
  check(one(Say(it(P::he), "know").missing(Gap::object, {}), Mood::whom), "who does he know?",
        "qui est-ce qu'il connaît ?");
  check(one(Say({}, "leave").in(kPast).missing(Gap::subject, {}), Mood::who), "who left?", "qui est parti ?");
  check(one(Say({}, "there be").what(np("cat", D::a)).where(Preposition::near, np("school", D::the)),
            Mood::yes_no),
        "is there a cat near the school?", "est-ce qu'il y a un chat près de l'école ?");
}

TEST_CASE("more than one clause") {
  check(two(Say(it(P::he), "eat").in(kPast).what(np("bread", D::the)), Join::because,
            Say(it(P::he), "be").in(kPast).how("hungry")),
        "he ate the bread because he was hungry.", "il a mangé le pain parce qu'il avait faim.");
  check(two(Say(it(P::he), "be").how("sick"), Join::none, Say(it(P::he), "work").in(kFuture).not_(), true,
            Join::if_),
        "if he is sick, he won't work.", "s'il est malade, il ne travaillera pas.");
  check(two(Say(it(P::she), "be").how("tired"), Join::none, Say(it(P::she), "sleep").where(Preposition::home),
            true, Join::when),
        "when she is tired, she sleeps at home.", "quand elle est fatiguée, elle dort à la maison.");
  check(one(Say(it(P::we), "think that")
                .that(Say(np("doctor", D::the), "leave").in(kFuture).when("next week"))),
        "we think that the doctor will leave next week.",
        "nous pensons que le médecin partira la semaine prochaine.");
  check(one(Say(it(P::he), "know that").that(Say(it(P::i), "like").what(np("music", D::bare)))),
        "he knows that i like music.", "il sait que j'aime la musique.");
  check(one(Say(who(np("woman", D::the, true), Say(np("woman", D::the, true), "arrive").in(kPast)), "listen")
                .what(name("marc"))),
        "the women who arrived listen to marc.", "les femmes qui sont arrivées écoutent marc.");
  check(one(Say(it(P::i), "eat")
                .in(kPast)
                .what(which(np("orange", D::the, true), Say(it(P::he), "buy").in(kPast)))),
        "i ate the oranges that he bought.", "j'ai mangé les oranges qu'il a achetées.");
  check(two(Say(np("girl", D::the, true), "sleep"), Join::and_,
            Say(it(P::they, kFeminine), "be").how("sick").not_()),
        "the girls sleep and they aren't sick.", "les filles dorment et elles ne sont pas malades.");
  check(one(Say(it(P::i), "know").what(of(name("paul"), np("sister", D::none)))), "i know paul's sister.",
        "je connais la sœur de paul.");
}

TEST_CASE("an before every vowel that words of the lexicon begin with") {
  check(one(Say(it(P::she), "see").what(np("man", D::a, false, "old"))), "she sees an old man.",
        "elle voit un vieil homme.");
  check(one(Say(it(P::she), "eat").what(np("egg", D::a))), "she eats an egg.", "elle mange un œuf.");
}
