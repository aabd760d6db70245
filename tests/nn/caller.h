#pragma once

// An Error's place must be the line of the call that is at fault.

#include <string>
#include <string_view>

#include "../check.h"

namespace gradus::testing {

inline std::string text_of(const Code& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "(no error)";
}

/// " (test_x.cc:12)"; `file` is __FILE__.
inline std::string place(const char* file, int line) {
  std::string name = file;
  return " (" + name.substr(name.find_last_of('/') + 1) + ":" + std::to_string(line) + ")";
}

/// `text` with the place put where it belongs: at the end, or before the hint.
inline std::string with_place(std::string text, const std::string& place) {
  return text.insert(std::min(text.find("; hint: "), text.size()), place);
}

inline void check_place(const std::string& error_text, const char* file, int line, const char* call) {
  report({doctest::assertType::DT_CHECK, file, line, call},
         error_text.find(place(file, line)) != std::string::npos, {&error_text, &printed<std::string>});
}
inline void check_text(const std::string& error_text, const std::string& expected, const char* file, int line,
                       const char* call) {
  conclude(Decompose{{doctest::assertType::DT_CHECK, file, line, call}} << error_text == expected);
}
inline void check_error(const std::string& error_text, std::string_view expected, const char* file, int line,
                        const char* call) {
  std::string whole = with_place(std::string(expected), place(file, line));
  conclude(Decompose{{doctest::assertType::DT_CHECK, file, line, call}} << error_text == whole);
}

}  // namespace gradus::testing

// The call stands on one line; the error must name it.
#define CHECK_NAMES_THIS_LINE(...)                                              \
  do {                                                                          \
    std::string error_text = "(no error)";                                      \
    try {                                                                       \
      static_cast<void>(__VA_ARGS__);                                           \
    } catch (const gradus::Error& e) {                                          \
      error_text = e.what();                                                    \
    }                                                                           \
    gradus::testing::check_place(error_text, __FILE__, __LINE__, #__VA_ARGS__); \
  } while (false)

// The same, and this is its text without the place.
#define CHECK_ERROR(expected, ...)                                                        \
  do {                                                                                    \
    std::string error_text = "(no error)";                                                \
    try {                                                                                 \
      static_cast<void>(__VA_ARGS__);                                                     \
    } catch (const gradus::Error& e) {                                                    \
      error_text = e.what();                                                              \
    }                                                                                     \
    gradus::testing::check_error(error_text, expected, __FILE__, __LINE__, #__VA_ARGS__); \
  } while (false)

// The whole text, of what cannot know the line: accessors, virtual functions, files.
#define CHECK_TEXT(expected, ...)                                                                          \
  do {                                                                                                     \
    std::string error_text = gradus::testing::text_of([&] { static_cast<void>(__VA_ARGS__); });            \
    gradus::testing::check_text(error_text, expected, __FILE__, __LINE__, #__VA_ARGS__);                   \
  } while (false)
// An Error at all, of what says elsewhere which.
#define CHECK_REFUSES(...) CHECK_THROWS_AS(static_cast<void>(__VA_ARGS__), gradus::Error)
