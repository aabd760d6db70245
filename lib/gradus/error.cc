#include <gradus/error.h>

namespace gradus {
namespace {

thread_local constinit Caller place{};

std::string error_text(std::string_view where, std::string_view what, std::string_view hint) {
  std::string text = "[";
  text.append(where).append("] ").append(what);
  if (place.line() > 0) text.append(" (").append(to_string(place)).append(")");
  if (!hint.empty()) text.append("; hint: ").append(hint);
  return text;
}

}  // namespace

void fail(std::string_view where, std::string_view what, std::string_view hint) {
  throw Error(error_text(where, what, hint));
}

void fail_not_finite(std::string_view where, std::string_view what) {
  throw NotFinite(error_text(where, what, {}));
}

std::string to_string(const Caller& caller) {
  if (caller.line() == 0) return "";
  std::string_view file = caller.file_name();
  if (size_t slash = file.find_last_of("/\\"); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return std::string(file).append(":").append(std::to_string(caller.line()));
}

Caller At::current() { return place; }

bool At::enter(const Caller& caller) {
  if (place.line() > 0) return false;
  place = caller;
  return true;
}

void At::leave() { place = Caller(); }

}  // namespace gradus
