#pragma once

#include <translator/text/subwords.h>

#include "skip.h"

namespace gradus::testing {

/// Whether this build has no SentencePiece; the case is then skipped: `if (no_pieces()) return;`.
inline bool no_pieces() {
  if (translator::Subwords::available()) return false;
  skipped("this build has no SentencePiece");
  return true;
}

}  // namespace gradus::testing
