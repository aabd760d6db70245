// Any JSON beside the schemas of traces and of logs: the check ends and says where; and the document stays the
// same when it goes through text.

#include <nlohmann/json.hpp>

#include "fuzz.h"
#include <common/json_text.h>
#include "page/schema.h"

using namespace fuzzing;

namespace {

using lens::json;

const char* const kCheck =
    R"({"format":"gradus-lens-trace","version":1,"kind":"check","checks":[{"title":"x","ok":true,"kind":"",)"
    R"("sentence":"",)"
    R"("where":"","tensors":[{"name":"in","shape":[1],"words":[],"yours":[0.5],"expected":[null],)"
    R"("expected_title":"expected","error":"nan","tolerance":0.5}]}]})";

}  // namespace

FUZZ_TARGET(trace,
            {kCheck, R"({"event":"end","finished":true,"step":38,"seconds":1})",
             R"({"format":"gradus-lens-trace","version":1,"kind":"explain","source":["a"],"steps":[]})",
             R"({"format":"gradus-lens-trace","version":1,"kind":"graph","nodes":[{"op":"x"}],"edges":[]})",
             R"({"format":"gradus-lens-trace","version":1,"kind":"flow","curves":[[1,"inf",null,1e308]]})",
             "[[[]]]", "\"\\ud83d\\ude00\""}) {
  json document = json_text::parse_or_discarded(input);
  if (document.is_discarded()) return false;
  std::string text = json_text::dump(document);
  json again = json_text::parse(text);
  must(json_text::dump(again) == text, "JSON is written as it is read");
  must(again == document, "JSON is read as it was");  // and so breaks a schema wherever it did
  bool fits = false;
  for (const json* schema : {&lens::trace_schema(), &lens::run_log_schema()}) {
    std::vector<std::string> found = lens::problems(document, *schema);
    for (const std::string& what : found) must_be_a_message(what);
    fits = fits || found.empty();
  }
  return fits;
}
