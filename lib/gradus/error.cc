#include <gradus/error.h>

#include <algorithm>
#include <type_traits>

namespace gradus {
namespace {

thread_local constinit Caller place{};

std::string file_and_line(const Caller& caller) {
  std::string_view file = caller.file_name();
  if (size_t slash = file.find_last_of("/\\"); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return std::string(file).append(":").append(std::to_string(caller.line()));
}

template <class E>
[[noreturn]] void raise(std::string_view where, std::string_view what, std::string_view hint) {
  std::string text = "[";
  text.append(where).append("] ").append(what);
  const size_t at = text.size();
  std::string line = to_string(place);
  // Where a NaN was made is told in any case, for it is looked for from there.
  if (std::is_same_v<E, NotFinite> && place.line() > 0) line = file_and_line(place);
  if (!line.empty()) text.append(" (").append(line).append(")");
  const size_t size = text.size() - at;
  if (!hint.empty()) text.append("; hint: ").append(hint);
  std::replace(text.begin(), text.end(), '\0', '?');  // what() ends at a NUL, and a name in a file may have one
  throw E(text, at, size);
}

}  // namespace

void fail(std::string_view where, std::string_view what, std::string_view hint) {
  raise<Error>(where, what, hint);
}

void fail(const Caller& caller, std::string_view where, std::string_view what, std::string_view hint) {
  At at(caller);
  fail(where, what, hint);
}

void fail_not_finite(std::string_view where, std::string_view what) { raise<NotFinite>(where, what, {}); }

std::string to_string(const Caller& caller) {
  if (caller.line() == 0) return "";
  std::string_view file = caller.file_name();
  // Not the user's: libstdc++ and libc++ alike, and this library, in its tree or installed.
  for (const char* not_theirs : {"/include/c++/", "lib/gradus/", "nn/gradus/nn/", "include/gradus/"})
    if (file.find(not_theirs) != file.npos) return "";
  return file_and_line(caller);
}

Caller At::current() { return place; }

bool At::enter(const Caller& caller) {
  if (place.line() > 0) return false;
  place = caller;
  return true;
}

void At::leave() { place = Caller(); }

}  // namespace gradus
