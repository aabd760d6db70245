#include "program.h"

namespace translator {
namespace {

std::string called;

}  // namespace

const std::string& program() { return called; }

void called_as(const std::string& argv0) { called = shell_word(argv0); }

std::string shell_word(const std::string& word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:=";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string s = "'";
  for (char c : word) s += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return s + "'";
}

}  // namespace translator
