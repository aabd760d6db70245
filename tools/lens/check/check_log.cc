#include "check_log.h"

#include <fmt/core.h>
#include <gradus/error.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <lens/verdict.h>

namespace lens {
namespace {

int checks_made = 0, checks_failed = 0;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else out += c;
  }
  return out + '"';
}

// NaN is what was not computed, or what it is.
std::string number(double x, const char* nan) {
  if (std::isnan(x)) return nan;
  if (std::isinf(x)) return x > 0 ? "\"inf\"" : "\"-inf\"";
  return fmt::format("{:.9g}", x);
}

std::string numbers(const gradus::Tensor& t, const char* nan) {
  std::string out = "[";
  for (int64_t i = 0; i < t.numel(); ++i) out += (i ? "," : "") + number(t.at(i), nan);
  return out + ']';
}

}  // namespace

void CheckLog::add(const std::string& name, const gradus::Tensor& yours, const gradus::Tensor& expected,
                   const char* expected_title, const std::vector<std::string>& words, double error,
                   double tolerance, double floor) {
  std::string shape, labels;
  for (int64_t n : yours.shape()) shape += (shape.empty() ? "" : ",") + std::to_string(n);
  for (const std::string& word : words) labels += (labels.empty() ? "" : ",") + quoted(word);
  tensors_ += fmt::format(
      R"({}{{"name":{},"shape":[{}],"words":[{}],"yours":{},"expected":{},)"
      R"("expected_title":{},"error":{},"tolerance":{},"floor":{}}})",
      tensors_.empty() ? "" : ",", quoted(name), shape, labels, numbers(yours, "\"nan\""),
      numbers(expected, "null"), quoted(expected_title), number(error, "\"nan\""), tolerance, floor);
}

void CheckLog::fail(const std::string& kind, const std::string& sentence, const std::string& where) {
  kind_ = kind;
  sentence_ = sentence;
  where_ = where;
}

void CheckLog::write() const {
  count_check(kind_.empty());
  const char* path = std::getenv("LENS_CHECK_LOG");
  if (!path || !*path) return;
  std::string line =
      fmt::format(R"({{"title":{},"ok":{},"kind":{},"sentence":{},"where":{},"tensors":[{}]}})", quoted(title_),
                  kind_.empty(), quoted(kind_), quoted(sentence_), quoted(where_), tensors_) +
      "\n";
  std::FILE* file = std::fopen(path, "ab");
  bool written = file && std::fwrite(line.data(), 1, line.size(), file) == line.size();
  if (file && std::fclose(file) != 0) written = false;
  if (!written)
    gradus::fail("lens", fmt::format("{} (LENS_CHECK_LOG) cannot be written: {}", path, std::strerror(errno)));
}

void count_check(bool passed) {
  ++checks_made;
  checks_failed += !passed;
}

int tell(int code) {
  std::fflush(stdout);  // whatever comes now
  const char* where = std::getenv("LENS_VERDICT");
  const char* path = where ? std::strchr(where, ' ') : nullptr;
  if (!path) return code;
  if (std::FILE* file = std::fopen(path + 1, "w")) {
    std::fprintf(file, "%s %d %d %d\n", std::string(where, path).c_str(), code, checks_made, checks_failed);
    std::fclose(file);
  }
  return code;
}

}  // namespace lens
