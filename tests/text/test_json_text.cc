// JSON from anywhere: what is too much is refused before it is read, and what is told acts on no terminal.

#include <common/json_text.h>

#include "../quick_doctest.h"

TEST_CASE("json: values within each other and names are counted, but not those in texts") {
  auto refused = [](const std::string& text) {
    CHECK_THROWS_AS(json_text::parse(text), nlohmann::ordered_json::parse_error);
    return json_text::parse_or_discarded(text).is_discarded();
  };
  const std::string open(101, '['), close(101, ']');
  CHECK(refused(open + close));
  CHECK(json_text::parse(open.substr(1) + close.substr(1)).size() == 1);
  CHECK(json_text::parse("[\"\\\"" + open + "\"]").at(0) == "\"" + open);
  std::string names = "\"n\":0";
  for (int i = 1; i < 50001; ++i) names += ",\"n\":0";
  CHECK(refused("{" + names + "}"));
}

TEST_CASE("json: what acts on a terminal is spelt out") {
  CHECK(json_text::dump("\x1b\x7f\u0080\u009b\u009f\u00a0\u00e9") ==
        "\"\\u001b\\u007f\\u0080\\u009b\\u009f\u00a0\u00e9\"");
  CHECK(json_text::dump("\u2027\u2028\u202e\u202f\u2065\u2066\u2069\u206a\u00e2") ==
        "\"\u2027\\u2028\\u202e\u202f\u2065\\u2066\\u2069\u206a\u00e2\"");
}
