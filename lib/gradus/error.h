#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gradus {

/// What every misuse of the library throws. The text is `[op] rule in words: what was given (file.cc:line)`, with the
/// line of the user's call where one is known.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A NaN or an infinity where CheckFinite looked for one.
class NotFinite : public Error {
 public:
  using Error::Error;
};

/// Throws Error("[where] what (file.cc:line)"), the line being At::current(), left out when there is none. A hint
/// follows as "; hint: 512 = 2 x 256: bidirectional?".
[[noreturn]] void fail(std::string_view where, std::string_view what, std::string_view hint = {});
[[noreturn]] void fail_not_finite(std::string_view where, std::string_view what);

/// The place in the user's code that an op was called from. A function that cannot take an Input takes a last argument
/// `Caller caller = Caller::current()`.
using Caller = std::source_location;

/// "decoder.cc:88", without folders; "" for no place.
std::string to_string(const Caller& caller);

/// Within its lifetime, on this thread, errors and recorded nodes name this place. The outermost one wins: ops that an op
/// or a module is made of report the call of that op or module. The first line of every public op:
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
