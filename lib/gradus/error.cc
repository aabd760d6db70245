#include <gradus/error.h>

namespace gradus {

void fail(std::string_view where, std::string_view what) {
  std::string text = "[";
  text.append(where).append("] ").append(what);
  throw Error(text);
}

}  // namespace gradus
