#include "program.h"

#include <string_view>

namespace lens {
namespace {

std::string called = "lens";

}  // namespace

const std::string& program() { return called; }

void called_as(const char* argv0) {
  const std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+";
  const std::string name = argv0 ? argv0 : "";
  if (name.find('/') == std::string::npos) return;
  called = name.find_first_not_of(plain) == std::string::npos ? name : shell_quoted(name);
}

std::string shell_quoted(const std::string& word) {
  std::string s = "'";
  for (char c : word) s += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return s + "'";
}

}  // namespace lens
