// Pages are one file that asks for nothing.

#include <cmath>
#include <filesystem>

#include "../read.h"
#include "../show_json.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include <common/json_text.h>
#include "subjects.h"

using lens::json;
using lens::test::count;

namespace {

std::string explain_page() {
  lens::Subject subject = lens::test::subject();
  lens::Dissection d = subject.dissect();
  return lens::assemble_page("explain", lens::to_json(subject, d, lens::trace_sentence(d), {.digits = 8}));
}

// Whatever would make a browser ask for something.
void check_self_contained(const std::string& page) {
  for (const char* bad :
       {"http:", "https:", "src=", "src =", "@import", "url(//", "fetch(", "XMLHttpRequest", "import(",
        "<link rel=\"stylesheet", "WebSocket", "sendBeacon", "<base", "<iframe", "{{"}) {
    CAPTURE(std::string(bad));
    CHECK(count(page, bad) == 0);
  }
  // The only address is the empty icon, so that browsers do not ask for one.
  CHECK(count(page, "href=") == 1);
  CHECK(count(page, "href=\"data:,\"") == 1);
}

}  // namespace

TEST_CASE("the explain page holds everything itself") {
  std::string page = explain_page();
  check_self_contained(page);
  CHECK(page.size() < 2'000'000);
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(count(page, "<script") == 2);
  CHECK(count(page, "</script>") == 2);
}

TEST_CASE("so does the flow page") {
  std::string page = lens::assemble_page(
      "flow", lens::flow_json({lens::flow_fresh(lens::flow_config("gru", false), 5, {.seeds = 1})}, {}, 0));
  check_self_contained(page);
  CHECK(count(page, "<script") == 2);
}

TEST_CASE("and the graph page") {
  lens::Subject subject = lens::test::subject();
  check_self_contained(lens::assemble_page(
      "graph", lens::graph_json(subject, lens::trace_step(subject.dissect(), 1), 1, 0, 5)));
}

TEST_CASE("no word can leave the data") {
  std::string page = lens::assemble_page("explain", {{"word", "</script><!--<script>"}});
  CHECK(count(page, "</script>") == 2);
  CHECK(count(page, "<!--") == 0);
  CHECK(page.find(R"("\u003c/script>\u003c!--\u003cscript>")") != std::string::npos);
  CHECK(json_text::parse(R"({"word": "\u003c/script>"})")["word"] == "</script>");
}

TEST_CASE("a page's policy names its script and its sheet, and forbids all else") {
  for (const char* name : {"ablate", "check", "explain", "flow", "graph", "report", "serve"}) {
    CAPTURE(std::string(name));
    std::string page = lens::assemble_page(name, json::object());
    size_t begin = page.find("<meta http-equiv=\"Content-Security-Policy\" content=\"");
    REQUIRE(begin != std::string::npos);
    std::string policy = page.substr(begin, page.find('>', begin) - begin);
    for (const char* rule : {"default-src 'none'", "script-src 'sha256-", "style-src 'sha256-",
                             "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"})
      CHECK_MESSAGE(count(policy, rule) == 1, rule);
    CHECK(count(policy, "unsafe") == 0);
    CHECK(count(policy, "connect-src 'self'") == (name == std::string("serve")));  // its own server alone
    CHECK(begin < page.find("<style"));  // what comes before it is not held to it
    CHECK(count(page, "<style") == 1);
    CHECK(count(page, " style=\"") == 0);
  }
}

TEST_CASE("text becomes markup in one function") {
  namespace fs = std::filesystem;
  size_t files = 0, places = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(LENS_SOURCE_ROOT) / "tools")) {
    if (entry.path().extension() != ".js" && entry.path().extension() != ".html") continue;
    ++files;
    const std::string text = read_whole(entry.path());
    CAPTURE(entry.path().string());
    places += count(text, "innerHTML");
    for (const char* bad : {"outerHTML", "insertAdjacentHTML", "document.write", "createContextualFragment",
                            "DOMParser", "srcdoc", "eval(", "new Function", " style=\""})
      CHECK_MESSAGE(count(text, bad) == 0, bad);
  }
  CHECK(files > 15);
  CHECK(places == 1);
}

TEST_CASE("packed numbers keep their leading bytes, and what is not a number") {
  auto packed = [](double x, int bytes) {
    return lens::packed(gradus::Tensor::from({1}, {x}, gradus::DType::f64), bytes);
  };
  CHECK(packed(1, 3) == "P/AA");   // 3f f0 00
  CHECK(packed(-2, 3) == "wAAA");  // c0 00 00
  CHECK(packed(1 + 1.0 / 8192, 3) == "P/AB");  // half of the last bit: up
  CHECK(packed(1 + 1.0 / 16384, 3) == "P/AA");
  CHECK(packed(INFINITY, 3) == "f/AA");
  CHECK(packed(NAN, 3) == "f/gA");
  CHECK(packed(0, 3) == "AAAA");
  lens::json grid = lens::Numbers{.bytes = 3}.grid(
      gradus::Tensor::from({2, 2}, {1, 9, -2, 9}, gradus::DType::f64), 1);
  CHECK(grid == lens::json{{"shape", {2, 2}}, {"shown", 1}, {"bytes", 3}, {"base64", "P/AAwAAA"}});
}

TEST_CASE("an error's reason does not name the program a second time") {
  auto reason = [](const char* where) {
    try {
      gradus::fail(where, "it is so", "another way");
    } catch (const gradus::Error& e) {
      return lens::reason(e);
    }
    return std::string();
  };
  CHECK(reason("lens") == "it is so; hint: another way");
  CHECK(reason("softmax") == "[softmax] it is so; hint: another way");
}

TEST_CASE("missing page files are named") {
  CHECK_THROWS_WITH(lens::page_file("no.html"), "[lens] there is no page file no.html");
  CHECK(lens::page_file("trace.schema.json").size() > 1000);
}

TEST_CASE("the tests that the derivation names are there") {
  namespace fs = std::filesystem;
  std::string doc = read_whole(LENS_SOURCE_ROOT "/docs/backprop-through-attention.md"), tests;
  for (const auto& entry : fs::directory_iterator(fs::path(LENS_SOURCE_ROOT) / "tests/lens"))
    if (entry.path().extension() == ".cc") tests += read_whole(entry.path());
  size_t named = 0;
  for (size_t at = doc.find("Test: \""); at != std::string::npos;
       at = doc.find("Test: \"", at + 1), ++named) {
    size_t begin = at + 7;
    std::string name = doc.substr(begin, doc.find('"', begin) - begin);
    CAPTURE(name);
    CHECK(tests.find("TEST_CASE(\"" + name + "\")") != std::string::npos);
  }
  CHECK(named >= 8);
}
