#include <translator/doctor/findings.h>

#include <array>

namespace translator::doctor {

const KindName& name_of(Kind kind) {
  static const std::array<KindName, kKinds> kNames = {{
      {"unreadable", "a line that is no pair", true},
      {"shifted", "the targets stand some lines further up or down", true},
      {"copy", "the target is the source", true},
      {"language", "a side that looks like another language", true},
      {"odd", "a side that is no sentence", true},
      {"too-long", "more words than train takes (--max-length)", true},
      {"markup", "markup on one side only", true},
      {"numbers", "each side has a number that the other has not", true},
      {"casing", "one side in capitals, the other not", true},
      {"length", "one side too short for the other", true},
      {"pairing", "the sides do not translate each other", true},
      {"overlap", "a side is in the validation or test data", true},
      {"duplicate", "the pair was there before", true},
      {"near-overlap", "one word away from a source of the validation or test data", false},
      {"normalisation", "characters are spelt in parts (not NFC); reading puts them together", false},
      {"capitals", "all in capitals, or beginning small, unlike the rest", false},
  }};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace translator::doctor
