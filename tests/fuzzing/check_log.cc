// What LENS_CHECK_LOG holds, as `lens check --from` reads it, made into a page. What is accepted follows
// the schema.

#include <gradus/error.h>
#include <translator/text/error.h>

#include "check_page.h"
#include "fuzz.h"
#include "pages.h"
#include "schema.h"

using namespace fuzzing;

namespace {

const char* const kRight =
    R"({"title":"x","ok":true,"kind":"","sentence":"","where":"","tensors":[{"name":"in",)"
    R"("shape":[1,2],"words":["a","b"],)"
    R"("yours":[0.5,"nan"],"expected":[0.5,null],"expected_title":"numeric","error":0,"tolerance":1e-06}]})";
const char* const kWrong =
    R"({"title":"y </script>","ok":false,"kind":"sign","sentence":"The sign.","where":"in","tensors":[]})";

}  // namespace

FUZZ_TARGET(check_log, {std::string(kRight) + "\n", std::string(kRight) + "\n" + kWrong + "\n",
                        "{\"title\":1,\"tensors\":[]}\n"}) {
  static MemoryFile file;
  static const size_t scripts = scripts_in(lens::assemble_page("check", lens::json::object()));
  return accepts<gradus::Error, translator::InputError>([&] {
    lens::json log = lens::read_check_log(file.with(input));
    std::vector<std::string> wrong = lens::problems(log, lens::trace_schema());
    must(wrong.empty(), "a log that is accepted follows the schema: " + (wrong.empty() ? "" : wrong[0]));
    must(scripts_in(lens::assemble_page("check", log)) == scripts, "a page has no scripts but its own");
  });
}
