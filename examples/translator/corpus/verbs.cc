#include <translator/corpus/lexicon.h>

namespace translator::corpus {
namespace {

std::vector<Verb> make_verbs() {
  using namespace tense_class;
  namespace c = noun_class;
  namespace p = place_class;
  const Conjugation none = {{nullptr, nullptr, nullptr, nullptr}};
  const Mask anybody = c::person | c::animal;
  return {
      // activities
      {"eat", "eats", "ate", "eating", nullptr,
       {{"mange", "mange", "mangeons", "mangent"}}, {{"mangeais", "mangeait", "mangions", "mangeaient"}},
       "manger", "manger", "mangé", false, active | progressive, c::food, false, false, false,
       p::meal | p::home, true, false},
      {"drink", "drinks", "drank", nullptr, nullptr,
       {{"bois", "boit", "buvons", "boivent"}}, none,
       "boire", "boir", "bu", false, active, c::drink, true, false, false, p::meal | p::home, true, false},
      {"buy", "buys", "bought", nullptr, nullptr,
       {{"achète", "achète", "achetons", "achètent"}}, none,
       "acheter", "achèter", "acheté", false, active, c::ware, true, false, false, p::shop, false, true,
       VerbKind::ordinary, true},
      {"see", "sees", "saw", nullptr, nullptr,
       {{"vois", "voit", "voyons", "voient"}}, none,
       "voir", "verr", "vu", false, active, anybody | c::sight, true, false, false, p::meet, false, false,
       VerbKind::ordinary, true},
      {"read", "reads", "read", "reading", nullptr,
       {{"lis", "lit", "lisons", "lisent"}}, {{"lisais", "lisait", "lisions", "lisaient"}},
       "lire", "lir", "lu", false, active | progressive, c::reading, true, false, false,
       p::calm | p::home, false, false},
      {"find", "finds", "found", nullptr, nullptr,
       {{"trouve", "trouve", "trouvons", "trouvent"}}, none,
       "trouver", "trouver", "trouvé", false, active, c::lost, true, false, false, p::meet, false, false,
       VerbKind::ordinary, true},
      {"give", "gives", "gave", nullptr, nullptr,
       {{"donne", "donne", "donnons", "donnent"}}, none,
       "donner", "donner", "donné", false, active, c::gift, true, false, true, 0, false, false},
      {"talk", "talks", "talked", nullptr, nullptr,
       {{"parle", "parle", "parlons", "parlent"}}, none,
       "parler", "parler", "parlé", false, active, 0, false, false, true, p::meet | p::home, false, false},
      {"listen", "listens", "listened", nullptr, "to",
       {{"écoute", "écoute", "écoutons", "écoutent"}}, none,
       "écouter", "écouter", "écouté", false, active, c::sound | c::person, true, false, false,
       p::calm | p::home, false, false},
      {"wait", "waits", "waited", nullptr, "for",
       {{"attends", "attend", "attendons", "attendent"}}, none,
       "attendre", "attendr", "attendu", false, active, c::ride | c::person, true, false, false,
       p::stop, true, false},
      {"sing", "sings", "sang", nullptr, nullptr,
       {{"chante", "chante", "chantons", "chantent"}}, none,
       "chanter", "chanter", "chanté", false, active, 0, false, false, false,
       p::calm | p::home, true, true},
      {"sleep", "sleeps", "slept", "sleeping", nullptr,
       {{"dors", "dort", "dormons", "dorment"}}, {{"dormais", "dormait", "dormions", "dormaient"}},
       "dormir", "dormir", "dormi", false, active | progressive, 0, false, false, false,
       p::bed | p::home, false, false},
      {"work", "works", "worked", "working", nullptr,
       {{"travaille", "travaille", "travaillons", "travaillent"}},
       {{"travaillais", "travaillait", "travaillions", "travaillaient"}},
       "travailler", "travailler", "travaillé", false, active | progressive, 0, false, false, false,
       p::work | p::home, true, true},
      // with être: the participle agrees with the subject
      {"go", "goes", "went", nullptr, nullptr,
       {{"vais", "va", "allons", "vont"}}, none,
       "aller", "ir", "allé", true, active, 0, false, false, false, p::to, true, false},
      {"arrive", "arrives", "arrived", nullptr, nullptr,
       {{"arrive", "arrive", "arrivons", "arrivent"}}, none,
       "arriver", "arriver", "arrivé", true, present | past | future, 0, false, false, false,
       p::stop, true, false},
      {"leave", "leaves", "left", nullptr, nullptr,
       {{"pars", "part", "partons", "partent"}}, none,
       "partir", "partir", "parti", true, active, 0, false, false, false, 0, true, false},
      // states: only in the present, where English and French agree
      {"like", "likes", nullptr, nullptr, nullptr,
       {{"aime", "aime", "aimons", "aiment"}}, none,
       nullptr, nullptr, "aimé", false, present, c::taste, true, true, false, 0, false, false},
      {"hate", "hates", nullptr, nullptr, nullptr,
       {{"déteste", "déteste", "détestons", "détestent"}}, none,
       nullptr, nullptr, "détesté", false, present, c::taste, true, true, false, 0, false, false},
      {"want", "wants", nullptr, nullptr, nullptr,
       vouloir(), none,
       nullptr, nullptr, nullptr, false, present, c::ware, true, false, false, 0, false, false,
       VerbKind::ordinary, true},
      {"have", "has", nullptr, nullptr, nullptr,
       avoir().present, none,
       nullptr, nullptr, nullptr, false, present, c::thing | c::family | c::lost, true, false, false,
       0, false, false, VerbKind::ordinary, true},
      {"know", "knows", nullptr, nullptr, nullptr,
       {{"connais", "connaît", "connaissons", "connaissent"}}, none,
       nullptr, nullptr, nullptr, false, present, c::person, true, false, false, 0, false, false},
          {"know that", nullptr, nullptr, nullptr, nullptr,
       {{"sais", "sait", "savons", "savent"}}, none,
       nullptr, nullptr, nullptr, false, 0, 0, false, false, false, 0, false, false, VerbKind::know_that},
      {"think that", nullptr, nullptr, nullptr, nullptr,
       {{"pense", "pense", "pensons", "pensent"}}, none,
       nullptr, nullptr, nullptr, false, 0, 0, false, false, false, 0, false, false, VerbKind::think_that},
      {"be", nullptr, nullptr, nullptr, nullptr,
       etre().present, etre().imperfect,
       nullptr, nullptr, nullptr, false, 0, 0, false, false, false, p::home, false, false, VerbKind::be},
      {"there be", nullptr, nullptr, nullptr, nullptr,
       avoir().present, avoir().imperfect,
       nullptr, nullptr, nullptr, false, 0, anybody | c::sight, false, false, false,
       p::in | p::near, false, false, VerbKind::there_be},
  };
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> kVerbs = make_verbs();
  return kVerbs;
}

}  // namespace translator::corpus
