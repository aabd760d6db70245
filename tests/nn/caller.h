#pragma once

// An Error's place must be the line of the call that is at fault.

#include <string>

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

}  // namespace gradus::testing

// The call stands on one line; the error must name it.
#define CHECK_NAMES_THIS_LINE(...)                                                                  \
  do {                                                                                              \
    std::string error_text = gradus::testing::text_of([&] { static_cast<void>(__VA_ARGS__); });     \
    CHECK_MESSAGE(error_text.find(gradus::testing::place(__FILE__, __LINE__)) != std::string::npos, \
                  #__VA_ARGS__ << ": " << error_text);                                              \
  } while (false)

// The same, and this is its text without the place.
#define CHECK_ERROR(expected, ...)                                                                          \
  do {                                                                                                      \
    std::string error_text = gradus::testing::text_of([&] { static_cast<void>(__VA_ARGS__); });             \
    CHECK(error_text == gradus::testing::with_place(expected, gradus::testing::place(__FILE__, __LINE__))); \
  } while (false)
