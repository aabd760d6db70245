// Bytes as text: what the functions of utf8.h promise of any of them, valid or not.

#include <common/utf8.h>

#include "fuzz.h"

using namespace fuzzing;
namespace utf8 = translator::utf8;

namespace {

bool valid(const std::string& text) { return !utf8::first_invalid_byte(text); }

void holds_for_any_bytes(std::string_view input, int width) {
  std::u32string points = utf8::decode_lossy(input);
  std::string clean = utf8::encode(points);
  must(valid(clean), "what is encoded is UTF-8");
  must(utf8::decode(clean) == points, "what is encoded is decoded the same");
  must(utf8::nfc(utf8::nfc(input)) == utf8::nfc(input), "composing twice changes nothing");
  must(valid(utf8::capitalize(input)), "letters of another case are UTF-8");
  std::string shown = utf8::printable(input);
  must(valid(shown), "what is printable is UTF-8");
  for (char32_t c : utf8::decode(shown))
    must(!utf8::is_control(c), "what is printable has no control character");
  must(utf8::display_width(input) >= 0, "a width is not negative");
  utf8::width_is_certain(input);
  must(utf8::display_width(utf8::fit(input, width)) <= width, "what is cut to a width fits");
  must(valid(utf8::fit(clean, width)), "what is cut to a width is UTF-8");
  std::string together;
  for (const std::string& cluster : utf8::graphemes(input)) {
    must(!cluster.empty() && valid(cluster), "a grapheme is some UTF-8");
    together += cluster;
  }
  must(together == clean, "graphemes make up the text");
  utf8::wrapped(std::string(input), width, 2);
}

}  // namespace

FUZZ_TARGET(text, {"\x0aHello, World", "\x05naïve café e\u0301", "\x03नमस्ते दुनिया",
                   "\x07\U0001F469\u200D\U0001F4BB x", "\x04\xFF\xFE\x80 \xC0\xAF", "\x09\x1B[31m red\a",
                   "\x08 가각힣 ß İ ǆ", "\x06\u202Eright\u2066"}) {
  Choices choices(input);
  int width = choices.upto(80);
  std::string_view text = choices.rest();
  holds_for_any_bytes(text, width);
  bool accepted = valid(std::string(text));
  must(accepted == utf8::describe_invalid_byte(text).empty(), "what is invalid is described");
  try {
    std::u32string points = utf8::decode(text);
    must(accepted && utf8::encode(points) == text, "valid text comes back from its code points");
  } catch (const std::invalid_argument& e) {
    must_be_a_message(e.what());
    must(!accepted, "valid text is decoded");
  }
  return accepted;
}
