#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gradus {

/// What every misuse of the library throws. The text is `[op] rule in words: what was given (file.cc:line)`,
/// with the line of the user's call where one is known.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  /// `text` has the place, as " (file.cc:line)", at position `at`.
  Error(const std::string& text, size_t at, size_t size) : std::runtime_error(text), at_(at), size_(size) {}
  /// The text without the place: what a program says to people who did not write it.
  std::string message() const { return std::string(what()).erase(at_, size_); }

 private:
  size_t at_ = 0, size_ = 0;
};

/// A NaN or an infinity where CheckFinite looked for one.
class NotFinite : public Error {
 public:
  using Error::Error;
};

/// Throws Error("[where] what (file.cc:line)"), the line being At::current(), left out when there is none. A
/// hint follows as "; hint: 512 = 2 x 256: bidirectional?".
[[noreturn]] void fail(std::string_view where, std::string_view what, std::string_view hint = {});
[[noreturn]] void fail_not_finite(std::string_view where, std::string_view what);

/// The place in the user's code that an op was called from. An Input or an RngInput carries it; the few
/// functions that take neither, but are called by users with sizes and lists that may be wrong, have a last
/// argument `Caller caller = Caller::current()`.
using Caller = std::source_location;

/// The same with the caller's line, unless an At is in force: for small functions, whose cost an At would be.
[[noreturn]] void fail(const Caller& caller, std::string_view where, std::string_view what,
                       std::string_view hint = {});

/// "decoder.cc:88", without folders. "" if there is no place, or if it is not in the user's code: in Gradus, or
/// in the standard library, from where std::make_unique and emplace_back call the constructor.
std::string to_string(const Caller& caller);

/// Within its lifetime, on this thread, errors and recorded nodes name this place. The outermost one wins: ops
/// that an op or a module is made of report the call of that op or module. The first line of every public op:
///   Var swish(const Input& x) { At at(x.caller()); ...
class At {
 public:
  explicit At(const Caller& caller) : mine_(enter(caller)) {}
  ~At() {
    if (mine_) leave();
  }
  At(const At&) = delete;
  At& operator=(const At&) = delete;
  /// The place in force; its line() is 0 when there is none.
  static Caller current();

 private:
  static bool enter(const Caller& caller);
  static void leave();
  bool mine_;
};

}  // namespace gradus
