// Forms of comparison that let an error pass, kept out of all sources. A reader finds them in the text; what it
// finds and what it leaves alone is tested below.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gradus/tensor.h>

#include "../about.h"
#include "../read.h"

namespace fs = std::filesystem;

namespace {

// Comments as blanks, so that lines keep their numbers. Texts in quotes stay: none of them looks like what is
// sought.
std::string without_comments(std::string text) {
  for (size_t at = 0; (at = text.find("//", at)) != std::string::npos;)
    for (; at < text.size() && text[at] != '\n'; ++at) text[at] = ' ';
  return text;
}

// Those of more than 112 characters; bytes that go on with one do not count.
std::vector<int> wide_lines(const std::string& source) {
  std::vector<int> found;
  int number = 1, columns = 0;
  for (char c : source + "\n") {
    if (c != '\n') {
      columns += (c & 0xC0) != 0x80;
      continue;
    }
    if (columns > 112) found.push_back(number);
    ++number;
    columns = 0;
  }
  return found;
}

// The text with no blanks in it.
std::string packed(std::string_view text) {
  std::string out;
  for (char c : text)
    if (!std::isspace(static_cast<unsigned char>(c))) out += c;
  return out;
}

bool has_any(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* w) { return text.find(w) != std::string::npos; });
}

bool part_of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// What a call's opening bracket at `open` holds, split at its outer commas; a list in braces counts as its own
// parts.
std::vector<std::string> arguments_at(const std::string& text, size_t open) {
  std::vector<std::string> out(1);
  int depth = 0;
  size_t at = open;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    depth += c == '(' || c == '[' || c == '{';
    depth -= c == ')' || c == ']' || c == '}';
    if (depth == 0) break;
    if (at == open) continue;
    if (c == ',' && depth == 1) out.emplace_back();
    else out.back() += c;
  }
  for (std::string& part : out) part = packed(part);
  if (out.size() == 1 && out[0].starts_with("{")) return arguments_at(out[0], 0);
  return out;
}

// Whether a statement so far, without blanks, gives `name` what comes next, at once or as one side of a `? :`.
bool assigns(const std::string& statement, const std::string& name) {
  if (name.empty()) return false;
  if (statement.ends_with(name + "=")) return true;
  for (size_t at = statement.find(name + "="); at != std::string::npos;
       at = statement.find(name + "=", at + 1)) {
    const size_t after = at + name.size() + 1;
    const bool whole = at == 0 || !part_of_a_name(statement[at - 1]);
    const bool one_side = statement.ends_with("?") || statement.ends_with(":");
    if (whole && one_side && statement[after] != '=' && statement.find('?', after) != std::string::npos)
      return true;
  }
  return false;
}

// The lines of a running maximum that a NaN does not move: `worst = std::max(worst, std::abs(a - b))`, whatever
// the names, and the same in a return. Where the statement asks isfinite() first, it is none.
std::vector<int> lost_nan(const std::string& source) {
  const std::string text = without_comments(source);
  std::vector<int> lines;
  for (std::string_view call : {"max(", "fmax(", "fmaxf("})
    for (size_t at = text.find(call); at != std::string::npos; at = text.find(call, at + 1)) {
      if (at > 0 && part_of_a_name(text[at - 1])) continue;
      const size_t open = at + call.size() - 1;
      const std::vector<std::string> arguments = arguments_at(text, open);
      size_t begin = text.find_last_of(";{}", at);
      begin = begin == std::string::npos ? 0 : begin + 1;
      std::string statement = packed(std::string_view(text).substr(begin, at - begin));
      if (statement.ends_with("std::")) statement.resize(statement.size() - 5);
      std::string rest;
      for (size_t i = 1; i < arguments.size(); ++i) rest += arguments[i] + ",";
      const bool runs = assigns(statement, arguments[0]) ||
                        has_any(arguments[0], {"worst", "error", "residual", "largest"});
      const bool of_errors = has_any(rest, {"abs(", "rror", "iff", "worst", "residual", "largest", "doubt"});
      if (runs && of_errors && statement.find("isfinite") == std::string::npos)
        lines.push_back(1 +
                        static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n')));
    }
  std::sort(lines.begin(), lines.end());
  return lines;
}

// The lines in which a form stands that has a better one in these tests.
std::vector<int> lines_with(const std::string& source, std::string_view form) {
  const std::string text = without_comments(source);
  std::vector<int> lines;
  for (size_t at = text.find(form); at != std::string::npos; at = text.find(form, at + 1))
    if (at == 0 || !part_of_a_name(text[at - 1]))
      lines.push_back(1 +
                      static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n')));
  return lines;
}

// All sources, and what is found in each: "tests/a.cc:12".
template <class Find>
std::vector<std::string> everywhere(const Find& find, size_t& files) {
  std::vector<std::string> out;
  const fs::path root = GRADUS_SOURCE_ROOT;
  files = 0;
  for (const char* folder : {"lib", "nn", "examples", "tests", "tools"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const fs::path& path = entry.path();
      if ((path.extension() != ".cc" && path.extension() != ".h") || path.filename() == "test_forms.cc")
        continue;
      ++files;
      for (int line : find(read_whole(path)))
        out.push_back(fs::relative(path, root).generic_string() + ":" + std::to_string(line));
    }
  return out;
}

}  // namespace

TEST_CASE("no running maximum of errors loses a NaN") {
  size_t files = 0;
  for (const std::string& place : everywhere(lost_nan, files))
    FAIL_CHECK(place << ": std::max(worst, NaN) is worst: take gradus::worse, from gradus/tensor.h");
  CHECK(files > 500);
}

TEST_CASE("nothing is compared with doctest's Approx, and no case is skipped without being counted") {
  size_t files = 0;
  auto find = [&](std::string_view form) {
    return everywhere([&](const std::string& source) { return lines_with(source, form); }, files);
  };
  for (const std::string& place : find("doctest::Approx"))
    FAIL_CHECK(place << ": of 0.0001 it allows 12 % by default: take about(), from tests/about.h");
  for (const char* form : {"MESSAGE(\"skipped", "available()) return;", "\"/dev/full\")) return;"})
    for (const std::string& place : find(form))
      FAIL_CHECK(place << ": nobody counts that: take skipped(), from tests/skip.h");
  CHECK(files > 500);
  CHECK(lines_with("x\ny == doctest::Approx(1)", "doctest::Approx") == std::vector<int>{2});
  CHECK(lines_with("// doctest::Approx\nx", "doctest::Approx").empty());
  CHECK(lines_with("if (!Subwords::available()) return;", "available()) return;") == std::vector<int>{1});
}

TEST_CASE("who joins includes what later versions of fmt join with") {
  size_t files = 0;
  auto joins = [](const std::string& source) {
    return source.find("#include <fmt/ranges.h>") == source.npos ? lines_with(source, "fmt::join(")
                                                                 : std::vector<int>{};
  };
  for (const std::string& place : everywhere(joins, files))
    FAIL_CHECK(place << ": fmt::join is in fmt/ranges.h from fmt 11 on");
  CHECK(files > 500);
  CHECK(joins("fmt::join(words, \" \")") == std::vector<int>{1});
}

TEST_CASE("no line of code is wider than 112 columns") {
  size_t files = 0;
  for (const std::string& place : everywhere(wide_lines, files)) FAIL_CHECK(place << ": is to be wrapped");
  CHECK(files > 500);
  CHECK(wide_lines(std::string(112, 'x') + "\n" + std::string(113, 'x')) == std::vector<int>{2});
  std::string accents;
  for (int i = 0; i < 112; ++i) accents += "\xC3\xA9";
  CHECK(wide_lines(accents).empty());
  CHECK(wide_lines(accents + "x") == std::vector<int>{1});
}

TEST_CASE("nothing is recognised by its C++ type that could say what it is") {
  size_t files = 0;
  auto outside_tests = [&](std::string_view form) {
    std::vector<std::string> found =
        everywhere([&](const std::string& source) { return lines_with(source, form); }, files);
    std::erase_if(found, [](const std::string& place) { return place.starts_with("tests/"); });
    return found;
  };
  std::vector<std::string> casts = outside_tests("dynamic_cast"), names = outside_tests("typeid");
  CHECK(files > 500);
  CHECK(!casts.empty());
  CHECK(casts.size() <= 10);  // each with its reason beside it
  for (const std::string& place : names)  // what names layers in a table
    CHECK(place.starts_with("nn/gradus/nn/module.h:"));
}

TEST_CASE("the bounds of about() are relative, and hold for NaN and infinity") {
  const double infinity = HUGE_VAL;
  CHECK(1.0000005 == about(1));
  CHECK(1.000002 != about(1));
  CHECK(1.000001e-4 != about(1e-4, 1e-7));
  CHECK(0.99e-4 != about(1e-4));
  CHECK(0.0 == about(0));
  CHECK(1e-300 != about(0));
  CHECK(1e-9 == about(0, 0, 1e-8));
  CHECK(std::nan("") != about(1, 10, 10));
  CHECK(infinity != about(infinity));
  CHECK(1.0 != about(std::nan("")));
}

TEST_CASE("worse keeps a NaN, wherever it comes") {
  using gradus::worse;
  const double nan = std::nan("");
  CHECK(worse(1, 2) == 2);
  CHECK(worse(2, 1) == 2);
  CHECK(worse(0, HUGE_VAL) == HUGE_VAL);
  CHECK(std::isnan(worse(0, nan)));
  CHECK(std::isnan(worse(nan, 3)));
  CHECK(std::isnan(worse(worse(nan, HUGE_VAL), 3)));
}

TEST_CASE("the reader of running maxima") {
  CHECK(lost_nan("worst = std::max(worst, std::abs(a - b));") == std::vector<int>{1});
  CHECK(lost_nan("\n x.worst =\n    std::max(x.worst, std::fabs(f(a, b) - c) / d);") == std::vector<int>{3});
  CHECK(lost_nan("d = std::max(d, max_abs_difference(a[i], b[i]));") == std::vector<int>{1});
  CHECK(lost_nan("{ m = fmax(m, fabs(x)); }\nm = std::fmax(m, error);") == std::vector<int>{1, 2});
  CHECK(lost_nan("return std::max(worst, max_abs_difference(a, b));") == std::vector<int>{1});
  CHECK(lost_nan("double apart = std::max({a.error, b.error});") == std::vector<int>{1});
  CHECK(lost_nan("worst = std::max({worst, std::abs(a)});") == std::vector<int>{1});
  CHECK(lost_nan("m = each ? std::max(m, std::abs(v)) : m + std::abs(v);") == std::vector<int>{1});
  CHECK(lost_nan("for (double v : all)\n m = a == b ? 0 : std::max(m, std::abs(v));") == std::vector<int>{2});
  CHECK(lost_nan("y = m == 0 ? std::max(m, std::abs(v)) : 1;").empty());
  CHECK(lost_nan("worst = worse(worst, std::abs(a - b));").empty());
  CHECK(lost_nan("error = std::abs(a - b) / std::max(1.0, std::abs(b));").empty());
  CHECK(lost_nan("if (std::isfinite(x)) m = std::max(m, std::abs(x));").empty());
  CHECK(lost_nan("width = std::max(width, name.size());").empty());
  CHECK(lost_nan("// worst = std::max(worst, std::abs(a));\nint x;").empty());
  CHECK(lost_nan("y = softmax(y, {.largest = 3});").empty());
}
