#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <common/weights.h>

namespace translator {

/// "This target word comes from that source word", both counted from 0.
struct Link {
  int32_t source = 0;
  int32_t target = 0;
  auto operator<=>(const Link&) const = default;
};
using Links = std::vector<Link>;

/// What people say the links of a sentence pair are (Och and Ney 2003): the sure ones, and those that would
/// be all right too. A sure link is possible without being repeated in `possible`.
struct GoldAlignment {
  Links sure = {};
  /// beyond the sure ones
  Links possible = {};
  bool operator==(const GoldAlignment&) const = default;
};

/// Moses links, `0-0 1-2 3?4`: source, then target; `-` is sure, `?` only possible. Sorted, repeated links
/// once. Nothing when the text is anything else; an empty text is a pair without links.
std::optional<GoldAlignment> parse_moses(std::string_view text);

/// The sure links as `0-0 1-2`, then the possible ones as `3?4`.
std::string format_moses(const GoldAlignment& alignment);
std::string format_moses(const Links& links);

/// Source and target exchanged.
GoldAlignment swapped(GoldAlignment alignment);

/// True when every link lies within the two lengths.
bool fits(const GoldAlignment& alignment, int64_t source_length, int64_t target_length);

/// One link a target word: to the source word with the largest weight, the first of equals. Only the first
/// `target_length` rows count (the row that predicts </s> is no word); a row whose largest weight lies at or
/// beyond column `source_length` (on </s> or padding), or is not above 0, gives no link. Negative lengths
/// stand for all rows or columns.
Links links_from_attention(const Weights& weights, int64_t source_length = -1, int64_t target_length = -1);

struct AlignmentOptions {
  /// Leave system links out whose target word has no gold link at all: an argmax must point somewhere, also
  /// for a word that comes from nowhere (`les` in `n'aime pas les pommes`).
  bool ignore_unaligned_targets = false;
};

/// Counts over any number of sentence pairs.
struct AlignmentScore {
  /// |A|
  int64_t system = 0;
  /// |S|
  int64_t sure = 0;
  /// |A and S|
  int64_t sure_hits = 0;
  /// |A and P|, P the sure and the possible links
  int64_t possible_hits = 0;

  void add(const Links& system_links, const GoldAlignment& gold, const AlignmentOptions& options = {});

  /// 1 - (|A and S| + |A and P|) / (|A| + |S|), lower is better (Och and Ney 2003, section 6); 0 where there
  /// is neither a system link nor a sure one.
  double error_rate() const;
};

}  // namespace translator
