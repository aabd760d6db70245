#include <translator/corpus/lexicon.h>

namespace translator::corpus {
namespace {

std::vector<Verb> make_verbs() {
  using namespace tense_class;
  namespace c = noun_class;
  namespace p = place_class;
  const Mask anybody = c::person | c::animal;
  return {
      // activities
      {.english = "eat", .third = "eats", .past = "ate", .gerund = "eating",
       .present = {{"mange", "mange", "mangeons", "mangent"}},
       .imperfect = {{"mangeais", "mangeait", "mangions", "mangeaient"}}, .infinitive = "manger",
       .future_stem = "manger", .participle = "mangé", .tenses = active | progressive, .objects = c::food,
       .places = p::meal | p::home, .with_whom = true},
      {.english = "drink", .third = "drinks", .past = "drank",
       .present = {{"bois", "boit", "buvons", "boivent"}}, .infinitive = "boire", .future_stem = "boir",
       .participle = "bu", .tenses = active, .objects = c::drink, .needs_object = true,
       .places = p::meal | p::home, .with_whom = true},
      {.english = "buy", .third = "buys", .past = "bought",
       .present = {{"achète", "achète", "achetons", "achètent"}}, .infinitive = "acheter",
       .future_stem = "achèter", .participle = "acheté", .tenses = active, .objects = c::ware,
       .needs_object = true, .places = p::shop, .for_whom = true, .single_denied = true},
      {.english = "see", .third = "sees", .past = "saw", .present = {{"vois", "voit", "voyons", "voient"}},
       .infinitive = "voir", .future_stem = "verr", .participle = "vu", .tenses = active,
       .objects = anybody | c::sight, .needs_object = true, .places = p::meet, .single_denied = true},
      {.english = "read", .third = "reads", .past = "read", .gerund = "reading",
       .present = {{"lis", "lit", "lisons", "lisent"}},
       .imperfect = {{"lisais", "lisait", "lisions", "lisaient"}}, .infinitive = "lire", .future_stem = "lir",
       .participle = "lu", .tenses = active | progressive, .objects = c::reading, .needs_object = true,
       .places = p::calm | p::home},
      {.english = "find", .third = "finds", .past = "found",
       .present = {{"trouve", "trouve", "trouvons", "trouvent"}}, .infinitive = "trouver",
       .future_stem = "trouver", .participle = "trouvé", .tenses = active, .objects = c::lost,
       .needs_object = true, .places = p::meet, .single_denied = true},
      {.english = "give", .third = "gives", .past = "gave",
       .present = {{"donne", "donne", "donnons", "donnent"}}, .infinitive = "donner", .future_stem = "donner",
       .participle = "donné", .tenses = active, .objects = c::gift, .needs_object = true, .to_whom = true},
      {.english = "talk", .third = "talks", .past = "talked",
       .present = {{"parle", "parle", "parlons", "parlent"}}, .infinitive = "parler", .future_stem = "parler",
       .participle = "parlé", .tenses = active, .to_whom = true, .places = p::meet | p::home},
      {.english = "listen", .third = "listens", .past = "listened", .particle = "to",
       .present = {{"écoute", "écoute", "écoutons", "écoutent"}}, .infinitive = "écouter",
       .future_stem = "écouter", .participle = "écouté", .tenses = active, .objects = c::sound | c::person,
       .needs_object = true, .places = p::calm | p::home},
      {.english = "wait", .third = "waits", .past = "waited", .particle = "for",
       .present = {{"attends", "attend", "attendons", "attendent"}}, .infinitive = "attendre",
       .future_stem = "attendr", .participle = "attendu", .tenses = active, .objects = c::ride | c::person,
       .needs_object = true, .places = p::stop, .with_whom = true},
      {.english = "sing", .third = "sings", .past = "sang",
       .present = {{"chante", "chante", "chantons", "chantent"}}, .infinitive = "chanter",
       .future_stem = "chanter", .participle = "chanté", .tenses = active, .places = p::calm | p::home,
       .with_whom = true, .for_whom = true},
      {.english = "sleep", .third = "sleeps", .past = "slept", .gerund = "sleeping",
       .present = {{"dors", "dort", "dormons", "dorment"}},
       .imperfect = {{"dormais", "dormait", "dormions", "dormaient"}}, .infinitive = "dormir",
       .future_stem = "dormir", .participle = "dormi", .tenses = active | progressive,
       .places = p::bed | p::home},
      {.english = "work", .third = "works", .past = "worked", .gerund = "working",
       .present = {{"travaille", "travaille", "travaillons", "travaillent"}},
       .imperfect = {{"travaillais", "travaillait", "travaillions", "travaillaient"}},
       .infinitive = "travailler", .future_stem = "travailler", .participle = "travaillé",
       .tenses = active | progressive, .places = p::work | p::home, .with_whom = true, .for_whom = true},
      // with être: the participle agrees with the subject
      {.english = "go", .third = "goes", .past = "went", .present = {{"vais", "va", "allons", "vont"}},
       .infinitive = "aller", .future_stem = "ir", .participle = "allé", .with_etre = true, .tenses = active,
       .places = p::to, .with_whom = true},
      {.english = "arrive", .third = "arrives", .past = "arrived",
       .present = {{"arrive", "arrive", "arrivons", "arrivent"}}, .infinitive = "arriver",
       .future_stem = "arriver", .participle = "arrivé", .with_etre = true, .tenses = present | past | future,
       .places = p::stop, .with_whom = true},
      {.english = "leave", .third = "leaves", .past = "left",
       .present = {{"pars", "part", "partons", "partent"}}, .infinitive = "partir", .future_stem = "partir",
       .participle = "parti", .with_etre = true, .tenses = active, .with_whom = true},
      // states: only in the present, where English and French agree
      {.english = "like", .third = "likes", .present = {{"aime", "aime", "aimons", "aiment"}},
       .participle = "aimé", .tenses = present, .objects = c::taste, .needs_object = true, .generic = true},
      {.english = "hate", .third = "hates", .present = {{"déteste", "déteste", "détestons", "détestent"}},
       .participle = "détesté", .tenses = present, .objects = c::taste, .needs_object = true,
       .generic = true},
      {.english = "want", .third = "wants", .present = kVouloir, .tenses = present, .objects = c::ware,
       .needs_object = true, .single_denied = true},
      {.english = "have", .third = "has", .present = kAvoir.present, .tenses = present,
       .objects = c::thing | c::family | c::lost, .needs_object = true, .single_denied = true},
      {.english = "know", .third = "knows", .present = {{"connais", "connaît", "connaissons", "connaissent"}},
       .tenses = present, .objects = c::person, .needs_object = true},
      {.english = "know that", .present = {{"sais", "sait", "savons", "savent"}},
       .kind = VerbKind::know_that},
      {.english = "think that", .present = {{"pense", "pense", "pensons", "pensent"}},
       .kind = VerbKind::think_that},
      {.english = "be", .present = kEtre.present, .imperfect = kEtre.imperfect, .places = p::home,
       .kind = VerbKind::be},
      {.english = "there be", .present = kAvoir.present, .imperfect = kAvoir.imperfect,
       .objects = anybody | c::sight, .places = p::in | p::near, .kind = VerbKind::there_be},
  };
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> kVerbs = make_verbs();
  return kVerbs;
}

}  // namespace translator::corpus
