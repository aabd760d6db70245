#pragma once

// What the fuzz targets share. A target is a function of a text; libfuzzer.cc hands it inputs from clang's
// libFuzzer, replay.cc those that are kept, in an ordinary build of any compiler. It is wrong when it
// crashes, when anything but the exceptions it names gets out, or when `must` finds that a rule is broken.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// For what belongs to a target, not to what it attacks, and takes long under sanitizers.
#ifdef __clang__
#define FUZZ_UNWATCHED __attribute__((no_sanitize("coverage", "address", "undefined")))
#else
#define FUZZ_UNWATCHED
#endif

namespace fuzzing {

/// A rule that an input broke.
class Broken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// @throws Broken
[[noreturn]] void broken(std::string_view rule, std::string_view about);
/// A rule must hold, and otherwise is said. What it was about may be told by a function, which is called only
/// then: a target runs some ten thousand times a second.
inline void must(bool holds, std::string_view rule) {
  if (!holds) broken(rule, "");
}
template <class About>
  requires std::is_invocable_v<About>
void must(bool holds, std::string_view rule, const About& about) {
  if (!holds) broken(rule, about());
}

/// What a parser says about bad input: a sentence of its own, not the standard library's. @throws Broken
void must_be_a_message(std::string_view text);
/// What a program says of it: besides that, text that a terminal can only show. @throws Broken
void must_be_printable(std::string_view text);

/// Runs `parse`; false when it refuses by one of the exceptions named. Any other is a finding.
template <class F>
bool accepts(F&& parse) {
  parse();
  return true;
}
template <class Allowed, class... More, class F>
bool accepts(F&& parse) {
  try {
    return accepts<More...>(parse);
  } catch (const Allowed& e) {
    must_be_a_message(e.what());
    if constexpr (requires { e.message(); }) must_be_a_message(e.message());
    return false;
  }
}

/// Input cut into what a target wants: first some choices, a byte each, then text. After the end come zeros.
class Choices {
 public:
  explicit Choices(std::string_view input) : left_(input) {}
  /// 0 to most.
  int upto(int most) {
    if (left_.empty()) return 0;
    int byte = static_cast<unsigned char>(left_[0]);
    left_.remove_prefix(1);
    return byte % (most + 1);
  }
  bool yes() { return upto(1) == 1; }
  std::string_view rest() const { return left_; }

 private:
  std::string_view left_;
};

/// Text between lines "--- NAME": what a directory holds, in one input that people can read. What stands before
/// the first of them has no name.
std::vector<std::pair<std::string, std::string>> sections(std::string_view input);
std::vector<std::string> lines(std::string_view text);

/// A file without a place on any disk, which can be opened by its name again and again.
class MemoryFile {
 public:
  MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  /// The file with these bytes: its path.
  const std::string& with(std::string_view bytes);

 private:
  int file_;
  std::string path_;
};

/// A directory in memory, removed at the end of the program.
const std::string& scratch_directory();
std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view bytes);

/// One target. It says whether the input was accepted, so that seeds which nothing accepts any more are
/// noticed.
struct Target {
  std::string name;
  bool (*run)(std::string_view input);
  std::vector<std::string> (*seeds)();
};

/// Those of the program, by name.
std::vector<Target>& targets();

struct Registered {
  explicit Registered(Target target) { targets().push_back(std::move(target)); }
};

}  // namespace fuzzing

/// FUZZ_TARGET(npy, {seeds...}) { ... return accepted; } with `input`, a std::string_view.
#define FUZZ_TARGET(name, ...)                                                    \
  static bool fuzz_##name(std::string_view input);                                \
  static const fuzzing::Registered registered_##name{                             \
      {#name, fuzz_##name, [] { return std::vector<std::string> __VA_ARGS__; }}}; \
  static bool fuzz_##name(std::string_view input)
