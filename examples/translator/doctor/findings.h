#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace translator::doctor {

/// What can be wrong with a pair; docs/doctor.md tells how each is found. In the order in which they give the
/// reason that a pair is left out: the first one counts.
enum class Kind {
  unreadable,     ///< no tab, not UTF-8, a side without a word
  shifted,        ///< in a stretch of lines whose targets stand some lines further up or down
  copy,           ///< source and target are the same, or nearly
  language,       ///< a side in the other side's language, or in neither's; another script
  odd,            ///< control characters, broken encoding, no letters, repetitions
  too_long,       ///< `train` leaves it out
  markup,         ///< a tag, an entity, a placeholder that the other side has not
  numbers,        ///< each side has a number that the other has not
  casing,         ///< one side all in capitals
  length,         ///< one side too short for the other
  pairing,        ///< the sides do not translate each other
  overlap,        ///< the source or the target is in the validation or test data
  duplicate,      ///< the pair was there before
  near_overlap,   ///< one word away from a source of the validation or test data
  normalisation,  ///< a spelling that NFC changes, which reading undoes
  capitals,       ///< both sides all in capitals; begins small where nearly all begin with a capital
};
constexpr int kKinds = static_cast<int>(Kind::capitals) + 1;

/// What people and JSON call it.
struct KindName {
  const char* name;  ///< in JSON and in the file of what is left out
  const char* says;  ///< what is the matter with such pairs
  bool leaves_out;   ///< false: worth knowing, but the pair is kept
};
const KindName& name_of(Kind kind);

/// What was found of one pair.
struct Finding {
  Kind kind;
  size_t pair;              ///< its number among those read
  std::string detail = {};  ///< "the same as line 17"
};
using Findings = std::vector<Finding>;

/// Target i + shift belongs to source i, first <= i <= last.
struct ShiftedBlock {
  size_t first, last;  ///< numbers of pairs
  int64_t shift;
};

}  // namespace translator::doctor
