#define DOCTEST_CONFIG_IMPLEMENT
#include "quick_doctest.h"

#include <cstdlib>
#include <cstring>

namespace gradus::testing {

template <>
doctest::String printed<const char*>(const void* value) {
  const char* text = *static_cast<const char* const*>(value);
  return text ? doctest::String(text) : doctest::toString(nullptr);
}

namespace {

Verdict report(const Assertion& a, bool holds, const Shown& left, const char* op, const Shown* right) {
  if (a.type & doctest::assertType::is_false) holds = !holds;
  doctest::String seen;
  if (!holds || doctest::getContextOptions()->success) {
    seen = left.print(left.value);
    if (right) seen = seen + op + right->print(right->value);
  }
  return {doctest::detail::decomp_assert(a.type, a.file, a.line, a.text, {holds, seen})};
}

}  // namespace

Verdict report(const Assertion& a, bool holds, const Shown& value) {
  return report(a, holds, value, "", nullptr);
}
Verdict report(const Assertion& a, bool holds, const Shown& left, const char* op, const Shown& right) {
  return report(a, holds, left, op, &right);
}

Captured::Captured(const char* name, const Shown& value) : name_(name), value_(value) {}
Captured::~Captured() {
  if (need_to_destroy) destroy();
}
void Captured::stringify(std::ostream* out) const { *out << name_ << " := " << value_.print(value_.value); }

}  // namespace gradus::testing

// With --forget-coretype the program forgets OPENBLAS_CORETYPE, after OpenBLAS has read it: started with
// OPENBLAS_CORETYPE=Prescott it stands where it would on a CPU that OpenBLAS does not know.
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--forget-coretype") == 0) unsetenv("OPENBLAS_CORETYPE");
  }
  return doctest::Context(argc, argv).run();
}
