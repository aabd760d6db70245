#include <translator/corpus/lexicon.h>

namespace translator::corpus {
namespace {

constexpr Gender M = Gender::masculine;
constexpr Gender F = Gender::feminine;

Mask describe(std::initializer_list<const char*> words) {
  Mask mask = 0;
  for (const char* word : words) mask |= Mask{1} << adjective_index(adjective(word));
  return mask;
}

std::vector<Noun> make_nouns() {
  using namespace noun_class;
  namespace at_place = place_class;
  const Mask pet = animal | thing | sight | taste | ware;
  const Mask dish = food | ware | taste;
  std::vector<Noun> all = {
      // people
      {"boy", "boys", "garçon", "garçons", M, false, person,
       describe({"young", "small", "tired", "sad", "sick"})},
      {"girl", "girls", "fille", "filles", F, false, person,
       describe({"young", "small", "beautiful", "tired", "sad", "sick"}), 0, "girl's"},
      {"man", "men", "homme", "hommes", M, false, person, describe({"young", "old", "tired", "sad", "sick"})},
      {"woman", "women", "femme", "femmes", F, false, person,
       describe({"young", "old", "beautiful", "tired", "sad", "sick"})},
      {"child", "children", "enfant", "enfants", M, false, person,
       describe({"young", "small", "tired", "sad", "sick"}), 0, "child's", "children's"},
      {"teacher", "teachers", "professeur", "professeurs", M, false, person,
       describe({"young", "old", "new"}), 0, "teacher's"},
      {"doctor", "doctors", "médecin", "médecins", M, false, person, describe({"young", "old", "new"}), 0,
       "doctor's"},
      {"brother", "brothers", "frère", "frères", M, false, person | family, 0},
      {"sister", "sisters", "sœur", "sœurs", F, false, person | family},
      {"mother", nullptr, "mère", nullptr, F, false, person | family},
      {"father", nullptr, "père", nullptr, M, false, person | family},
      {"paul", nullptr, "paul", nullptr, M, false, person | name, 0, 0, "paul's"},
      {"marc", nullptr, "marc", nullptr, M, false, person | name, 0, 0, "marc's"},
      {"marie", nullptr, "marie", nullptr, F, false, person | name, 0, 0, "marie's"},
      {"anna", nullptr, "anna", nullptr, F, false, person | name, 0, 0, "anna's"},
      // animals
      {"dog", "dogs", "chien", "chiens", M, false, pet | lost,
       describe({"big", "small", "old", "white", "sick"})},
      {"cat", "cats", "chat", "chats", M, false, pet | lost,
       describe({"big", "small", "old", "white", "sick"})},
      {"bird", "birds", "oiseau", "oiseaux", M, false, pet, describe({"small", "beautiful", "white"})},
      {"horse", "horses", "cheval", "chevaux", M, false, pet,
       describe({"big", "small", "beautiful", "old", "white"})},
      // food and drink
      {"apple", "apples", "pomme", "pommes", F, false, dish | gift,
       describe({"red", "big", "small", "good"})},
      {"orange", "oranges", "orange", "oranges", F, false, dish | gift, describe({"big", "small", "good"})},
      {"egg", "eggs", "œuf", "œufs", M, false, dish, describe({"big", "small", "white"})},
      {"cake", "cakes", "gâteau", "gâteaux", M, false, dish | gift,
       describe({"big", "small", "good", "beautiful"})},
      {"bread", nullptr, "pain", nullptr, M, true, dish | gift, describe({"good"})},
      {"cheese", nullptr, "fromage", nullptr, M, true, dish, describe({"good"})},
      {"meat", nullptr, "viande", nullptr, F, true, dish, describe({"good", "cold"})},
      {"soup", nullptr, "soupe", nullptr, F, true, food | taste, describe({"good", "hot", "cold"})},
      {"rice", nullptr, "riz", nullptr, M, true, dish, describe({"good"})},
      {"water", nullptr, "eau", nullptr, F, true, drink | taste, describe({"hot", "cold"})},
      {"milk", nullptr, "lait", nullptr, M, true, drink | ware | taste, describe({"hot", "cold"})},
      {"tea", nullptr, "thé", nullptr, M, true, drink | ware | taste, describe({"good", "hot", "cold"})},
      {"coffee", nullptr, "café", nullptr, M, true, drink | ware | taste, describe({"good", "hot", "cold"})},
      {"beer", nullptr, "bière", nullptr, F, true, drink | ware | taste, describe({"good", "cold"})},
      {"wine", nullptr, "vin", nullptr, M, true, drink | ware | taste, describe({"good", "red", "white"})},
      // what one reads, sees and hears
      {"book", "books", "livre", "livres", M, false, reading | thing | lost | gift | ware | taste,
       describe({"good", "old", "new", "interesting", "red"})},
      {"letter", "letters", "lettre", "lettres", F, false, reading | lost | gift,
       describe({"old", "beautiful", "interesting"})},
      {"newspaper", "newspapers", "journal", "journaux", M, false, reading | lost | ware,
       describe({"old", "new", "interesting"})},
      {"story", "stories", "histoire", "histoires", F, false, reading | sound | taste,
       describe({"good", "old", "new", "beautiful", "interesting"})},
      {"song", "songs", "chanson", "chansons", F, false, sound | taste,
       describe({"good", "old", "new", "beautiful"})},
      {"music", nullptr, "musique", nullptr, F, true, sound | taste, describe({"good", "beautiful"})},
      // things
      {"car", "cars", "voiture", "voitures", F, false, thing | sight | ware | taste,
       describe({"big", "small", "old", "new", "beautiful", "red", "white"})},
      {"house", "houses", "maison", "maisons", F, false, thing | sight | ware,
       describe({"big", "small", "old", "new", "beautiful", "white"})},
      {"key", "keys", "clé", "clés", F, false, lost | gift, describe({"small", "old", "new"})},
      {"hat", "hats", "chapeau", "chapeaux", M, false, thing | lost | gift | ware | taste,
       describe({"big", "small", "old", "new", "beautiful", "red", "white"})},
      {"flower", "flowers", "fleur", "fleurs", F, false, sight | lost | gift | ware | taste,
       describe({"big", "small", "beautiful", "red", "white"})},
      {"computer", "computers", "ordinateur", "ordinateurs", M, false, thing | ware,
       describe({"old", "new"})},
      {"bicycle", "bicycles", "vélo", "vélos", M, false, thing | sight | lost | ware,
       describe({"small", "old", "new", "beautiful", "red", "white"})},
      {"dress", "dresses", "robe", "robes", F, false, thing | gift | ware | taste,
       describe({"old", "new", "beautiful", "red", "white"})},
      {"tree", "trees", "arbre", "arbres", M, false, sight, describe({"big", "old", "beautiful"})},
      {"money", nullptr, "argent", nullptr, M, true, lost | gift},
      {"bus", nullptr, "bus", nullptr, M, false, ride | sight},
      {"train", nullptr, "train", nullptr, M, false, ride | sight},
  };
  // places, with what one does there
  const auto add_place = [&all](const char* english, const char* french, Gender gender, Mask uses) {
    all.push_back({english, nullptr, french, nullptr, gender, false, place, 0, uses});
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
