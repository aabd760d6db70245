// What LENS_CHECK_LOG holds, as `lens check --from` reads it, made into a page. What is accepted follows
// the schema.

#include <gradus/error.h>
#include <common/error.h>

#include <sstream>

#include "check/check_page.h"
#include "fuzz.h"
#include "page/schema.h"

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
  return accepts<gradus::Error, translator::InputError>([&] {
    std::istringstream file{std::string(input)};
    lens::json log = lens::read_check_log(file, "log");
    std::vector<std::string> wrong = lens::problems(log, lens::trace_schema());
    must(wrong.empty(), "a log that is accepted follows the schema", [&] { return wrong[0]; });
    must(lens::as_script(log).find('<') == std::string::npos, "no word of a log ends the page's data");
  });
}
