#pragma once

#include <optional>
#include <string>
#include <vector>

#include <translator/commands/doctor_outlook.h>
#include <translator/doctor/examine.h>

namespace translator::doctor {

/// A line that is no pair.
struct BadLine {
  int64_t line;
  std::string reason;
};

/// A pair that a model believes less than others.
struct Doubted {
  size_t pair;
  /// of its target's tokens
  double perplexity;
};

/// All that is told of a file of pairs.
struct Report {
  std::string name;
  int64_t lines = 0, blank = 0;
  const std::vector<SentencePair>& pairs;
  const std::vector<BadLine>& bad;
  const Examination& examination;
  /// least believed first
  std::vector<Doubted> doubted = {};
  std::optional<Outlook> outlook = {};

  /// lines that are worth leaving out, bad ones among them
  int64_t left_out() const;
  /// For a terminal of so many columns; what the file says is made printable.
  std::string text(int width) const;
  /// One object; every finding has all its lines.
  std::string json() const;
};

/// Lines of a file as they stand, and which stay; what is left out with its number and reason.
struct Cleaned {
  /// rejected: line number, reason, line, with tabs between
  std::string kept, rejected;
};
/// @param lines One of the file, or two of two files: these are put together with a tab.
Cleaned clean(const Report& report, const std::vector<std::string_view>& texts);

}  // namespace translator::doctor
