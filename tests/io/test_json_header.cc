#include <gradus/io/json_header.h>

#include "../quick_doctest.h"

using gradus::io::Header;
using gradus::io::parse_header;
using gradus::io::valid_utf8;
using gradus::io::write_header;

namespace {

std::string problem(const std::string& text) {
  try {
    parse_header(text);
  } catch (const std::string& what) {
    return what;
  }
  return "none";
}

std::string json_problem(const std::string& text) {
  std::string what = problem(text), start = "the header is not valid JSON: expected ";
  return what.substr(0, start.size()) == start ? what.substr(start.size()) : "other: " + what;
}

std::string entry(const std::string& fields) { return "{\"w\":{" + fields + "}}"; }

const char* const kOffsets = R"("data_offsets":[0,8])";

}  // namespace

TEST_CASE("a header is read whatever its white space and the order of its fields") {
  Header h = parse_header(
      " {\n \"w\" : { \"shape\":[ 2 ,1 ] ,\t\"data_offsets\" :[0,8],\"dtype\":\"F32\" } ,"
      "\"__metadata__\":{ \"a\" : \"b\", \"c\":\"\" } }  \r\n");
  REQUIRE(h.tensors.size() == 1);
  CHECK(h.tensors[0].name == "w");
  CHECK(h.tensors[0].dtype == "F32");
  CHECK(h.tensors[0].shape == std::vector<int64_t>{2, 1});
  CHECK(h.tensors[0].begin == 0);
  CHECK(h.tensors[0].end == 8);
  CHECK(h.metadata == std::map<std::string, std::string>{{"a", "b"}, {"c", ""}});
  CHECK(parse_header("{}").tensors.empty());
  CHECK(parse_header("{\"__metadata__\":{}}").metadata.empty());
}

TEST_CASE("escapes in names") {
  Header h = parse_header(
      R"({"\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud83d\ude00":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})");
  CHECK(h.tensors[0].name == "\"\\/\b\f\n\r\tA\u00e9\u20ac\U0001F600");
  for (const std::string& name :
       {std::string("plain"), h.tensors[0].name, std::string("\0\x01\x1f", 3), std::string()}) {
    h.tensors[0].name = name;
    CHECK(parse_header(write_header(h)).tensors[0].name == name);
  }
}

TEST_CASE("what is not JSON is refused, with the place") {
  CHECK(json_problem("") == "'{' at byte 0");
  CHECK(json_problem("[]") == "'{' at byte 0");
  CHECK(json_problem("{") == "a string at byte 1");
  CHECK(json_problem("{}{}") == "the end at byte 2");
  CHECK(json_problem("{,}") == "a string at byte 1");
  CHECK(json_problem("{\"w\"}") == "':' at byte 4");
  CHECK(json_problem("{\"w\":null}") == "'{' at byte 5");
  CHECK(json_problem("{\"w") == "'\"' at byte 3");
  CHECK(json_problem("{\"w\n\"") == "no control character in a string at byte 3");
  CHECK(json_problem("{\"\\x\"") == "an escape at byte 3");
  CHECK(json_problem("{\"\\u12g4\"") == "a hexadecimal digit at byte 6");
  CHECK(json_problem("{\"\\ud800\"") == "a low surrogate at byte 8");
  CHECK(json_problem("{\"\\ud800\\u0041\"") == "a low surrogate before at byte 14");
  CHECK(json_problem("{\"\\udc00\"") == "a high surrogate before at byte 8");
  CHECK(json_problem("{\"\\") == "an escape at byte 3");
  CHECK(json_problem("{\"__metadata__\":{\"a\":1}}") == "a string at byte 21");
  CHECK(json_problem("{\"__metadata__\":{\"a\":\"b\",}}") == "a string at byte 25");
  CHECK(json_problem(entry("\"dtype\":\"F32\",")) == "a string at byte 20");
  CHECK(json_problem(entry("\"shape\":[1,]")) == "a whole number that is not negative at byte 17");
  CHECK(json_problem(entry("\"shape\":[1 2]")) == "',' or ']' at byte 17");
  CHECK(json_problem(entry("\"shape\":[-1]")) == "a whole number that is not negative at byte 15");
  CHECK(json_problem(entry("\"shape\":[1.5]")) == "a whole number that is not negative at byte 15");
  CHECK(json_problem(entry("\"shape\":[1e3]")) == "a whole number that is not negative at byte 15");
  CHECK(json_problem(entry("\"shape\":[01]")) == "a whole number that is not negative at byte 15");
  CHECK(json_problem(entry("\"shape\":[true]")) == "a whole number that is not negative at byte 15");
  CHECK(json_problem(entry("\"shape\":[9223372036854775808]")) == "a number below 2^63 at byte 15");
  CHECK(problem(entry("\"shape\":[9223372036854775807],\"dtype\":\"U8\"," + std::string(kOffsets))) ==
        "none");
  CHECK(problem("{\"\xff\":1}") == "the header is not valid UTF-8");
}

TEST_CASE("nesting does not exhaust the stack") {
  std::string deep(5'000'000, '[');
  CHECK(json_problem("{\"w\":" + deep) == "'{' at byte 5");
  CHECK(json_problem(entry("\"shape\":" + deep)) == "a whole number that is not negative at byte 15");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"dtype\":";
  CHECK(json_problem("{\"w\":" + objects) == "a string at byte 14");
}

TEST_CASE("fields that are missing, strange or given twice") {
  CHECK(problem(entry("")) == "tensor \"w\": dtype is missing");
  CHECK(problem(entry("\"dtype\":\"F32\"")) == "tensor \"w\": shape is missing");
  CHECK(problem(entry("\"dtype\":\"F32\",\"shape\":[]")) == "tensor \"w\": data_offsets is missing");
  CHECK(problem(entry("\"dtype\":\"F32\",\"dtype\":\"F32\"")) == "tensor \"w\": dtype occurs twice");
  CHECK(problem(entry("\"color\":\"red\"")) == "tensor \"w\": unknown field \"color\"");
  CHECK(problem(entry("\"data_offsets\":[0]")) == "tensor \"w\": data_offsets must be two numbers: 1 given");
  CHECK(problem("{\"__metadata__\":{},\"__metadata__\":{}}") == "__metadata__ occurs twice");
  CHECK(problem("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}") == "the metadata \"a\" occurs twice");
  std::string w = "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}";
  CHECK(problem("{" + w + "," + w + "}") == "tensor \"w\" occurs twice");
}

TEST_CASE("UTF-8 is checked") {
  CHECK(valid_utf8("abc \u00e9 \u20ac \U0001F600 \U0010FFFF"));
  CHECK_FALSE(valid_utf8("\x80"));
  CHECK_FALSE(valid_utf8("\xc3"));              // cut short
  CHECK_FALSE(valid_utf8("\xc0\xaf"));          // overlong
  CHECK_FALSE(valid_utf8("\xe0\x80\xaf"));      // overlong
  CHECK_FALSE(valid_utf8("\xed\xa0\x80"));      // surrogate
  CHECK_FALSE(valid_utf8("\xf4\x90\x80\x80"));  // beyond U+10FFFF
  CHECK_FALSE(valid_utf8("\xf8\x88\x80\x80\x80"));
}
