#include "compile_error.h"

#include <fmt/core.h>

#include <regex>

#include <common/split.h>

namespace lens {
namespace {

std::string without_colours(const std::string& line) {
  static const std::regex escape("\x1b\\[[0-9;]*[mK]");
  return std::regex_replace(line, escape, "");
}

// Patterns of an error and the code that it shows, of g++ and clang++, and what is behind them. A quote is one
// to three bytes.
struct Cause {
  const char *pattern, *text;
};
const Cause kCauses[] = {
    {"few arguments.*\\bdot\\(|\\bdot\\(.*few arguments|no matching function for call to .{1,3}dot",
     "dot takes two rows and how many of their numbers to take: dot(a, b, N)."},
    {"invalid types .{1,3}double\\[|subscripted value is not an array|double.*subscript",
     "That is a number already, with one index too many. A vector has one: x[i]; a matrix two: m[i][k]."},
    {"operator\\[\\]|subscript operator",
     "x is a value of the engine, without an index. Its numbers are in x_, where the file has one: x_[i]."},
    {"lens::Row|lens::Rows",
     "m[i] of a matrix is a whole row; a number is m[i][k]. A vector has one index: x[i]."},
    {"gradus::Var|gradus::Tensor",
     "That is a whole tensor of the engine (x, dy), and numbers are wanted: those are in x_ and dy_, with an "
     "index."},
    {"not declared|undeclared identifier",
     "Is it spelled as above? A name is known below the line that declares it, and inside its braces. The "
     "numbers of x are x_."},
    {"expected .{0,3};|expected .{0,3}\\)|expected .{0,3}\\}|expected (primary-)?expression",
     "Look at the end of the line before, too: a ;, a ) or a } may be missing there."}};

constexpr size_t kLongest = 4000;  // of a line and of a message: std::regex recurses for each character

std::string cause_of(const std::string& error) {
  for (const Cause& c : kCauses)
    if (std::regex_search(error, std::regex(c.pattern))) return c.text;
  return "";
}

}  // namespace

std::string first_error(const std::string& messages, const std::string& file) {
  // "file:22:5: error: ..." begins a message; what follows up to the next one shows it.
  static const std::regex begins("^([^ ][^:]*):[0-9]+:[0-9]+: (fatal error|error|warning|note): .*");
  std::string shown, plain;
  int errors = 0;
  bool taking = false, no_main = false;
  for (std::string line : translator::split(messages, '\n')) {
    if (line.size() > kLongest) line.resize(kLongest);
    const std::string text = without_colours(line);
    std::smatch parts;
    const bool start = std::regex_match(text, parts, begins);
    if (start || text.find(": In ") != std::string::npos || text.starts_with("In file included"))
      taking = false;
    if (start && parts[2].str().ends_with("error")) {
      ++errors;
      taking = shown.empty() && parts[1] == file;
      no_main = no_main || std::regex_search(text, std::regex("learners_main.*not decl|undecl.*learners_main"));
    }
    if (!taking) continue;
    shown += line + '\n';
    if (plain.size() < kLongest) plain += text + ' ';
  }
  if (shown.empty() && no_main)
    return file + " has no main() any more: --reset hands the file out anew, and keeps yours beside it.\n";
  if (shown.empty()) return "";
  if (errors > 1) shown += fmt::format("({} more, most of them because of this one)\n", errors - 1);
  const std::string cause = cause_of(plain);
  return cause.empty() ? shown : shown + "\n" + cause + "\n";
}

}  // namespace lens
