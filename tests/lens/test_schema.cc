#include <common/error.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "../about.h"
#include "../quick_doctest.h"
#include "../scratch.h"
#include "../show_json.h"
#include "check/check_log.h"
#include "check/check_page.h"
#include "commands.h"
#include <common/json_text.h>
#include "page/schema.h"
#include "subjects.h"

using lens::json;

namespace {

json explained(const lens::test::Small& s = {}) {
  lens::Subject subject = lens::test::subject(s);
  lens::Dissection d = subject.dissect();
  return lens::to_json(subject, d, lens::trace_sentence(d), {});
}

}  // namespace

TEST_CASE("traces of every kind of model follow the schema") {
  for (lens::test::Small s : {lens::test::Small{},
                              {.attention = "dot"},
                              {.attention = "multihead"},
                              {.attention = "uniform"},
                              {.attention = "general", .cell = "lstm"},
                              {.cell = "gru-bahdanau", .bidirectional = false},
                              {.layer_norm = true}}) {
    CAPTURE(s.attention);
    json trace = explained(s);
    CHECK(lens::test::fault_of(trace) == "");
    CHECK(json_text::parse(json_text::dump(trace)) == trace);
  }
}

// So that an attention of one's own is described by its form, whatever its name.
TEST_CASE("a trace says whether keys have a matrix, and what scores are multiplied by") {
  auto model = [](const std::string& attention) { return explained({.attention = attention})["model"]; };
  for (const char* attention : {"bahdanau", "concat", "general", "multihead"})
    CHECK(model(attention)["key_weight"] == true);
  for (const char* attention : {"concat-identity", "dot", "scaled-dot", "location"})
    CHECK(model(attention)["key_weight"] == false);
  for (const char* attention : {"bahdanau", "dot", "general", "location"})
    CHECK(model(attention)["scale"] == 1);
  const json scaled = model("scaled-dot");
  CHECK(scaled["scale"].get<double>() == about(1 / std::sqrt(scaled["annotation_size"].get<double>()), 1e-9));
}

TEST_CASE("so do logs of checks") {
  scratch::Directory directory;
  auto path = directory.path() / "checks.log";
  setenv("LENS_CHECK_LOG", path.c_str(), 1);
  gradus::Tensor x = gradus::Tensor::from({1, 2}, {0.5, -2}, gradus::DType::f64);
  lens::CheckLog right("a \"quoted\" </script>\n");
  right.add("x", x, x, "numeric", {"w\u00f6rd"}, 0, 1e-6);
  right.write();
  lens::CheckLog wrong("b");
  wrong.add("x", gradus::Tensor::from({2}, {INFINITY, NAN}, gradus::DType::f64),
            gradus::Tensor::from({2}, {1, NAN}, gradus::DType::f64), "numeric", {}, NAN, 1e-6);
  wrong.fail("sign", "It has the wrong sign.", "x");
  wrong.write();
  unsetenv("LENS_CHECK_LOG");
  right.write();  // without the variable nothing is written
  json log = lens::read_check_log(path.string());
  CHECK(lens::test::fault_of(log) == "");
  REQUIRE(log["checks"].size() == 2);
  CHECK(log["checks"][0]["title"] == "a \"quoted\" </script>\n");
  CHECK(log["checks"][0]["ok"] == true);
  const json& t = log["checks"][1]["tensors"][0];
  CHECK(t["yours"] == json{"inf", "nan"});
  CHECK(t["expected"] == json{1, nullptr});  // not computed
  CHECK(log["checks"][1]["ok"] == false);
  CHECK(lens::check_page(path.string(), directory.file("wrong.html")) == 1);
  CHECK_THROWS_WITH(lens::read_check_log("/nowhere"),
                    doctest::Contains("/nowhere cannot be read; hint: LENS_CHECK_LOG=/nowhere"));
  CHECK_THROWS_WITH(lens::read_check_log("/"), "/: is a directory");
}

TEST_CASE("a log of checks is held to the schema: file, line and field are named") {
  scratch::Directory directory;
  std::string path = directory.file("mine.log");
  const std::string good =
      R"({"title":"a","ok":true,"kind":"","sentence":"","where":"","tensors":[{"name":"x","shape":[1,2],)"
      R"("words":[],"yours":[1,"nan"],"expected":[1,null],"expected_title":"numeric","error":0,)"
      R"("tolerance":1e-6}]})";
  auto error = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    std::ofstream(path) << good << '\n' << bad << '\n';
    try {
      (void)lens::read_check_log(path);
    } catch (const translator::InputError& e) {
      std::string text = e.what(), begin = path + ":2: this is not what a check logs";
      CHECK_MESSAGE(text.starts_with(begin), text);
      return text.substr(std::min(text.size(), begin.size()));
    }
    return std::string("taken");
  };
  CHECK(error("[1,2]", "[2,1]") == "taken");
  CHECK(error("[1,2]", R"(["<img src=x onerror=alert(1)>",2])") ==
        ": tensors[0].shape[0]: must be integer, is string");
  CHECK(error("[1,2]", "[1,3]") == ": tensors[0].yours: 2 numbers do not make the shape [1,3]");
  CHECK(error("[1,2]", "[4503599627370497,4503599627370496]").find("do not make the shape") !=
        std::string::npos);
  CHECK(error("[1,2]", "[-1,-2]") == ": tensors[0].shape[0]: must be at least 0, is -1");
  CHECK(error("[1,2]", "[0,9007199254740991,2]").find("do not make") != std::string::npos);
  CHECK(error("[1,2]", "[1e300]") == ": tensors[0].shape[0]: must be integer, is number");
  CHECK(error("\"error\":0", "\"error\":\"0\"").find("tensors[0].error") != std::string::npos);
  CHECK(error("1e-6", "1e999") == "");  // no JSON at all
  CHECK(error("\"title\":\"a\",", "") == ": document: lacks \"title\"");
  CHECK(error("\"a\"", "\"\xff\"") == "");
  CHECK(error("[1,2]", std::string(200000, '[') + std::string(200000, ']')) ==
        "");  // deep enough for any stack
}

TEST_CASE("exit status: what differs, and what is no number, is 1") {
  CHECK(lens::verdict("a", 0) == 0);
  CHECK(lens::verdict("a", 9e-7) == 0);
  CHECK(lens::verdict("a", 1e-6) == 1);
  CHECK(lens::verdict("a", NAN) == 1);
  CHECK(lens::verdict("a", INFINITY) == 1);
  CHECK(lens::verdict("a", 1e-9, 1e-10) == 1);
}

TEST_CASE("the schema finds what is wrong") {
  json good = explained();
  REQUIRE(lens::problems(good, lens::trace_schema()).empty());
  auto broken = [&](auto&& change) {
    json bad = good;
    change(bad);
    return lens::problems(bad, lens::trace_schema()).size();
  };
  CHECK(broken([](json& t) { t["version"] = 2; }) > 0);
  CHECK(broken([](json& t) { t.erase("steps"); }) > 0);
  CHECK(broken([](json& t) { t["steps"][0].erase("loss"); }) > 0);
  CHECK(broken([](json& t) { t["steps"][0]["loss"] = nullptr; }) >
        0);  // how nlohmann_json would write NaN by itself
  CHECK(broken([](json& t) { t["steps"][0]["heads"][0]["scores"][0] = "NaN"; }) > 0);
  CHECK(broken([](json& t) { t["steps"][0]["checks"][0].erase(5); }) > 0);
  CHECK(broken([](json& t) { t["steps"][0]["more"] = 1; }) > 0);
  CHECK(broken([](json& t) { t["kind"] = "explained"; }) > 0);
  CHECK(broken([](json& t) { t["source"][1] = 3; }) > 0);
  CHECK(broken([](json& t) { t["steps"][0]["stations"]["c"]["value"] = 0; }) > 0);
  CHECK(broken([](json& t) { t["steps"][0]["loss"] = "nan"; }) == 0);
  CHECK(broken([](json& t) { t["steps"][0]["stations"]["c"]["gradient"] = nullptr; }) == 0);
}

TEST_CASE("the validator says where and what, and refuses rules that it does not know") {
  json schema = json_text::parse(R"({"type": "object", "required": ["a"], "properties": {
    "a": {"type": "array", "items": {"type": ["number", "null"], "minimum": 1}, "maxItems": 2}},
    "additionalProperties": false})");
  auto first = [&](const char* text) {
    auto found = lens::problems(json_text::parse(text), schema);
    return found.empty() ? std::string() : found[0];
  };
  CHECK(first(R"({"a": [1, null]})") == "");
  CHECK(first(R"({"a": [1, "x"]})") == "a[1]: must be number or null, is string");
  CHECK(first(R"({"a": [0]})") == "a[0]: must be at least 1, is 0");
  CHECK(first(R"({"a": [1, 2, 3]})") == "a: has too many entries: 3, at most 2");
  CHECK(first(R"({"b": 1})") == "document: lacks \"a\"");
  CHECK(first(R"({"a": [], "b": 1})") == "document: has an unknown \"b\"");
  CHECK(first("[]") == "document: must be object, is array");
  CHECK_THROWS_WITH(lens::problems(json(1), json_text::parse(R"({"pattern": "x"})")),
                    "[schema] unknown rule \"pattern\"");
}

TEST_CASE("JSON spells out what acts on a terminal, and means the same") {
  const std::string text = "a\x1b\x7f\xC2\x9B\xC2\xA0\xC3\xA9";
  CHECK(json_text::dump(text) == "\"a\\u001b\\u007f\\u009b\xC2\xA0\xC3\xA9\"");
  CHECK(json_text::parse(json_text::dump(text)) == text);
}

TEST_CASE("numbers: what is not finite is text, what was not computed null") {
  lens::Numbers all, short_ones{4};
  CHECK(all(std::nan("")) == "nan");
  CHECK(all(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(all(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(all(0.1).get<double>() == 0.1);
  CHECK(all(gradus::Tensor()).is_null());
  CHECK(all.grid(gradus::Tensor(), 4).is_null());
  CHECK(json_text::dump(short_ones(1.0 / 3)) == "0.3333");
  CHECK(json_text::dump(short_ones(0)) == "0");
  CHECK(json_text::dump(short_ones(-2.0)) == "-2");
  gradus::Tensor x = gradus::Tensor::from({2, 3}, {1, 2, 3, 4, 5, 6}, gradus::DType::f64);
  CHECK(json_text::dump(short_ones.grid(x, 2)) == R"({"shape":[2,3],"shown":2,"values":[1,2,4,5]})");
  CHECK(lens::base64_f32(gradus::Tensor::from({2}, {1, -2.5}, gradus::DType::f64)) == "AACAPwAAIMA=");
  CHECK(lens::base64_f32(gradus::Tensor::from({1}, {1}, gradus::DType::f64)) == "AACAPw==");
}
