#include <translator/corpus/lexicon.h>

#include <translator/text/tokenizer.h>

namespace translator::corpus {
namespace {

constexpr Gender M = Gender::masculine;
constexpr Gender F = Gender::feminine;

Mask describe(std::string_view words) {
  Mask mask = 0;
  for (const std::string& word : split_tokens(words)) mask |= Mask{1} << adjective_index(adjective(word));
  return mask;
}

std::vector<Noun> make_nouns() {
  using namespace noun_class;
  namespace at_place = place_class;
  const Mask pet = animal | thing | sight | taste | ware;
  const Mask dish = food | ware | taste;
  std::vector<Noun> all = {
      // people
      {"boy", "boys", "garçon", "garçons", M, person, describe("young small tired sad sick")},
      {"girl", "girls", "fille", "filles", F, person | owns,
       describe("young small beautiful tired sad sick")},
      {"man", "men", "homme", "hommes", M, person, describe("young old tired sad sick")},
      {"woman", "women", "femme", "femmes", F, person, describe("young old beautiful tired sad sick")},
      {"child", "children", "enfant", "enfants", M, person | owns, describe("young small tired sad sick")},
      {"teacher", "teachers", "professeur", "professeurs", M, person | owns, describe("young old new")},
      {"doctor", "doctors", "médecin", "médecins", M, person | owns, describe("young old new")},
      {"brother", "brothers", "frère", "frères", M, person | family},
      {"sister", "sisters", "sœur", "sœurs", F, person | family},
      {"mother", nullptr, "mère", nullptr, F, person | family},
      {"father", nullptr, "père", nullptr, M, person | family},
      {"paul", nullptr, "paul", nullptr, M, person | name | owns},
      {"marc", nullptr, "marc", nullptr, M, person | name | owns},
      {"marie", nullptr, "marie", nullptr, F, person | name | owns},
      {"anna", nullptr, "anna", nullptr, F, person | name | owns},
      // animals
      {"dog", "dogs", "chien", "chiens", M, pet | lost, describe("big small old white sick")},
      {"cat", "cats", "chat", "chats", M, pet | lost, describe("big small old white sick")},
      {"bird", "birds", "oiseau", "oiseaux", M, pet, describe("small beautiful white")},
      {"horse", "horses", "cheval", "chevaux", M, pet, describe("big small beautiful old white")},
      // food and drink
      {"apple", "apples", "pomme", "pommes", F, dish | gift, describe("red big small good")},
      {"orange", "oranges", "orange", "oranges", F, dish | gift, describe("big small good")},
      {"egg", "eggs", "œuf", "œufs", M, dish, describe("big small white")},
      {"cake", "cakes", "gâteau", "gâteaux", M, dish | gift, describe("big small good beautiful")},
      {"bread", nullptr, "pain", nullptr, M, dish | gift | mass, describe("good")},
      {"cheese", nullptr, "fromage", nullptr, M, dish | mass, describe("good")},
      {"meat", nullptr, "viande", nullptr, F, dish | mass, describe("good cold")},
      {"soup", nullptr, "soupe", nullptr, F, food | taste | mass, describe("good hot cold")},
      {"rice", nullptr, "riz", nullptr, M, dish | mass, describe("good")},
      {"water", nullptr, "eau", nullptr, F, drink | taste | mass, describe("hot cold")},
      {"milk", nullptr, "lait", nullptr, M, drink | ware | taste | mass, describe("hot cold")},
      {"tea", nullptr, "thé", nullptr, M, drink | ware | taste | mass, describe("good hot cold")},
      {"coffee", nullptr, "café", nullptr, M, drink | ware | taste | mass, describe("good hot cold")},
      {"beer", nullptr, "bière", nullptr, F, drink | ware | taste | mass, describe("good cold")},
      {"wine", nullptr, "vin", nullptr, M, drink | ware | taste | mass, describe("good red white")},
      // what one reads, sees and hears
      {"book", "books", "livre", "livres", M, reading | thing | lost | gift | ware | taste,
       describe("good old new interesting red")},
      {"letter", "letters", "lettre", "lettres", F, reading | lost | gift,
       describe("old beautiful interesting")},
      {"newspaper", "newspapers", "journal", "journaux", M, reading | lost | ware,
       describe("old new interesting")},
      {"story", "stories", "histoire", "histoires", F, reading | sound | taste,
       describe("good old new beautiful interesting")},
      {"song", "songs", "chanson", "chansons", F, sound | taste, describe("good old new beautiful")},
      {"music", nullptr, "musique", nullptr, F, sound | taste | mass, describe("good beautiful")},
      // things
      {"car", "cars", "voiture", "voitures", F, thing | sight | ware | taste,
       describe("big small old new beautiful red white")},
      {"house", "houses", "maison", "maisons", F, thing | sight | ware,
       describe("big small old new beautiful white")},
      {"key", "keys", "clé", "clés", F, lost | gift, describe("small old new")},
      {"hat", "hats", "chapeau", "chapeaux", M, thing | lost | gift | ware | taste,
       describe("big small old new beautiful red white")},
      {"flower", "flowers", "fleur", "fleurs", F, sight | lost | gift | ware | taste,
       describe("big small beautiful red white")},
      {"computer", "computers", "ordinateur", "ordinateurs", M, thing | ware, describe("old new")},
      {"bicycle", "bicycles", "vélo", "vélos", M, thing | sight | lost | ware,
       describe("small old new beautiful red white")},
      {"dress", "dresses", "robe", "robes", F, thing | gift | ware | taste,
       describe("old new beautiful red white")},
      {"tree", "trees", "arbre", "arbres", M, sight, describe("big old beautiful")},
      {"money", nullptr, "argent", nullptr, M, lost | gift | mass},
      {"bus", nullptr, "bus", nullptr, M, ride | sight},
      {"train", nullptr, "train", nullptr, M, ride | sight},
  };
  // places, with what one does there
  const auto add_place = [&all](const char* english, const char* french, Gender gender, Mask uses) {
    all.push_back({english, nullptr, french, nullptr, gender, place, 0, uses});
  };
  using namespace at_place;
  add_place("market", "marché", M, at_place::at | to | near | shop | work | meet);
  add_place("school", "école", F, at_place::at | to | near | meal | calm | work | meet);
  add_place("station", "gare", F, at_place::at | to | near | work | meet | stop);
  add_place("beach", "plage", F, at_place::at | to | near | meal | calm | meet | bed);
  add_place("restaurant", "restaurant", M, at_place::at | to | near | meal | work | meet | stop);
  add_place("library", "bibliothèque", F, at_place::at | to | near | calm | work | meet | stop);
  add_place("hospital", "hôpital", M, at_place::at | to | near | work | stop | heal);
  add_place("office", "bureau", M, at_place::at | to | calm | work | stop);
  add_place("park", "parc", M, at_place::in | to | near | meal | calm | meet | bed);
  add_place("garden", "jardin", M, at_place::in | near | meal | calm | work | meet | bed);
  add_place("kitchen", "cuisine", F, at_place::in | meal | calm | work | bed);
  return all;
}

}  // namespace

const std::vector<Noun>& nouns() {
  static const std::vector<Noun> kNouns = make_nouns();
  return kNouns;
}

}  // namespace translator::corpus
