#pragma once

#include <optional>
#include <string>
#include <vector>

#include <translator/doctor/examine.h>
#include <translator/doctor/outlook.h>

namespace translator::doctor {

/// A line that is no pair.
struct BadLine {
  int64_t line;
  std::string reason;
};

/// A pair that a model believes less than others.
struct Doubted {
  size_t pair;
  double perplexity;  ///< of its target's tokens
};

/// All that is told of a file of pairs.
struct Report {
  std::string name;
  int64_t lines = 0, blank = 0;
  const std::vector<SentencePair>& pairs;
  const std::vector<BadLine>& bad;
  const Examination& examination;
  std::vector<Doubted> doubted = {};  ///< least believed first
  std::optional<Outlook> outlook = {};

  int64_t left_out() const;  ///< lines that are worth leaving out, bad ones among them
  /// For a terminal of so many columns; what the file says is made printable.
  std::string text(int width) const;
  /// One object; every finding has all its lines.
  std::string json() const;
};

/// Lines of a file as they stand, and which stay; what is left out with its number and reason.
struct Cleaned {
  std::string kept, rejected;  ///< rejected: line number, reason, line, with tabs between
};
/// @param lines One of the file, or two of two files: these are put together with a tab.
Cleaned clean(const Report& report, const std::vector<std::string_view>& texts);

}  // namespace translator::doctor
