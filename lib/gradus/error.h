#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace gradus {

/// What every misuse of the library throws. The text is `[op] rule in words: what was given`.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws Error("[where] what").
[[noreturn]] void fail(std::string_view where, std::string_view what);

}  // namespace gradus
