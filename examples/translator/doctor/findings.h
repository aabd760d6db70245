#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace translator::doctor {

/// What can be wrong with a pair; docs/doctor.md tells how each is found. In the order in which they give the
/// reason that a pair is left out: the first one counts.
enum class Kind {
  /// no tab, not UTF-8, a side without a word
  unreadable,
  /// in a stretch of lines whose targets stand some lines further up or down
  shifted,
  /// source and target are the same, or nearly
  copy,
  /// a side in the other side's language, or in neither's; another script
  language,
  /// control characters, broken encoding, no letters, repetitions
  odd,
  /// `train` leaves it out
  too_long,
  /// a tag, an entity, a placeholder that the other side has not
  markup,
  /// each side has a number that the other has not
  numbers,
  /// one side all in capitals
  casing,
  /// one side too short for the other
  length,
  /// the sides do not translate each other
  pairing,
  /// the source or the target is in the validation or test data
  overlap,
  /// the pair was there before
  duplicate,
  /// one word away from a source of the validation or test data
  near_overlap,
  /// a spelling that NFC changes, which reading undoes
  normalisation,
  /// both sides all in capitals; begins small where nearly all begin with a capital
  capitals,
};
constexpr int kKinds = static_cast<int>(Kind::capitals) + 1;

/// What people and JSON call it.
struct KindName {
  /// in JSON and in the file of what is left out
  const char* name;
  /// what is the matter with such pairs
  const char* says;
  /// false: worth knowing, but the pair is kept
  bool leaves_out;
};
const KindName& name_of(Kind kind);

/// What was found of one pair.
struct Finding {
  Kind kind;
  /// its number among those read
  size_t pair;
  /// "the same as line 17"
  std::string detail = {};
};
using Findings = std::vector<Finding>;

/// Target i + shift belongs to source i, first <= i <= last.
struct ShiftedBlock {
  /// numbers of pairs
  size_t first, last;
  int64_t shift;
};

}  // namespace translator::doctor
