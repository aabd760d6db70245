#pragma once

// doctest, with the assertions that tests use by the thousand in a form that is quick to compile. doctest makes
// a handful of functions for every pair of types that is compared, for every length of a string literal among
// them, and a class for every CAPTURE. Here there is one function for every comparison of two types, one that
// prints for every type, and the rest is compiled once, in main.cc. What is checked and printed is the same.

#include <doctest/doctest.h>

#include <ostream>
#include <type_traits>

namespace gradus::testing {

/// Prints the T at `value`; text as text, also when it is a const char*.
template <class T>
doctest::String printed(const void* value) {
  return doctest::toString(*static_cast<const T*>(value));
}
template <>
doctest::String printed<const char*>(const void* value);

/// A value and how to print it, for as long as the value lives.
struct Shown {
  const void* value;
  doctest::String (*print)(const void*);
};

/// One assertion: which, where and as written.
struct Assertion {
  doctest::assertType::Enum type;
  const char* file;
  int line;
  const char* text;
};

/// Whether an assertion holds. No bool: CHECK(a == b && c), which would check no more than a == b, is not to
/// compile.
struct Verdict {
  bool holds;
};

/// Reports the assertion to doctest with what was seen; throws where doctest does.
Verdict report(const Assertion& a, bool holds, const Shown& value);
Verdict report(const Assertion& a, bool holds, const Shown& left, const char* op, const Shown& right);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wconversion"  // CHECK(y == 1), where y is a float

/// The left side of a comparison, or all of the assertion when none follows.
template <class L>
struct Left {
  const Assertion& assertion;
  const L& value;

  // A literal counts as a const char*, whatever its length: what is no template is preferred.
#define GRADUS_COMPARISON(op, text)                                                                         \
  template <class R>                                                                                        \
  Verdict operator op(const R& right) const {                                                               \
    return report(assertion, value op right, {&value, &printed<L>}, text, {&right, &printed<R>});           \
  }                                                                                                         \
  Verdict operator op(const char* right) const {                                                            \
    return report(assertion, value op right, {&value, &printed<L>}, text, {&right, &printed<const char*>}); \
  }
  GRADUS_COMPARISON(==, " == ")
  GRADUS_COMPARISON(!=, " != ")
  GRADUS_COMPARISON(<, " <  ")
  GRADUS_COMPARISON(>, " >  ")
  GRADUS_COMPARISON(<=, " <= ")
  GRADUS_COMPARISON(>=, " >= ")
#undef GRADUS_COMPARISON
};

#pragma GCC diagnostic pop

/// Takes the left side off the expression that follows it.
struct Decompose {
  Assertion assertion;

  template <class L>
  Left<L> operator<<(const L& left) const {
    return {assertion, left};
  }
  Left<const char*> operator<<(const char* const& left) const { return {assertion, left}; }
};

inline bool conclude(Verdict compared) { return compared.holds; }
template <class L>
bool conclude(const Left<L>& left) {
  return report(left.assertion, static_cast<bool>(left.value), {&left.value, &printed<L>}).holds;
}

/// Prints "name := value" with every failure while it lives. Refers to the value.
class Captured : public doctest::detail::ContextScopeBase {
 public:
  template <class T>
  [[gnu::always_inline]] Captured(const char* name, const T& value)
      : Captured(name, Shown{&value, &printed<T>}) {}
  Captured(const char* name, const Shown& value);
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() override;
  void stringify(std::ostream* out) const override;

 private:
  const char* name_;
  Shown value_;
};

}  // namespace gradus::testing

#define GRADUS_ASSERT(type, ...)                                                                \
  gradus::testing::conclude(                                                                    \
      gradus::testing::Decompose{{doctest::assertType::type, __FILE__, __LINE__, #__VA_ARGS__}} \
      << __VA_ARGS__)
// The reference keeps a temporary alive.
#define GRADUS_CAPTURE(value, captured, ...) \
  auto&& value = __VA_ARGS__;                \
  gradus::testing::Captured captured(#__VA_ARGS__, value)

#undef CHECK
#undef CHECK_FALSE
#undef REQUIRE
#undef REQUIRE_FALSE
#undef CAPTURE
#define CHECK(...) GRADUS_ASSERT(DT_CHECK, __VA_ARGS__)
#define CHECK_FALSE(...) GRADUS_ASSERT(DT_CHECK_FALSE, __VA_ARGS__)
#define REQUIRE(...) GRADUS_ASSERT(DT_REQUIRE, __VA_ARGS__)
#define REQUIRE_FALSE(...) GRADUS_ASSERT(DT_REQUIRE_FALSE, __VA_ARGS__)
#define CAPTURE(...) \
  GRADUS_CAPTURE(DOCTEST_ANONYMOUS(captured_value_), DOCTEST_ANONYMOUS(captured_), __VA_ARGS__)
