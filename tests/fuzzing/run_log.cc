// A training's directory as `lens report` reads it: train.log and config.json (behind a line "---
// config.json"), made into text and the data of a page, which nothing ends.

#include <gradus/error.h>
#include <common/error.h>
#include <common/utf8.h>

#include <sstream>

#include "fuzz.h"
#include "page/output.h"
#include "report/report.h"

using namespace fuzzing;

namespace {

const char* const kStart =
    R"({"event":"start","version":2,"pairs":600,"epochs":2,"max_minutes":0,"batch_size":32,"lr":0.01,)"
    R"("recipe":{"--optimizer":"adam","--schedule":"linear"},"seed":42,"threads":1,"parameters":1234,)"
    R"("layers":[{"name":"a.weight","shape":[2,3]},{"name":"b","shape":[4]}]})";
const char* const kValidation =
    R"({"event":"validation","epoch":1,"step":19,"seconds":0.5,"lr":0.01,"train_loss":2.5,"valid_loss":"nan",)"
    R"("perplexity":"inf","bleu":12.5,"exact_match":0.25,"sentences":60,"tokens_per_s":100,"grad_norm":1.5,)"
    R"("skipped_steps":0,"best":true,"attention_entropy":null,)"
    R"("norms":{"step":18,"gradient":[0.5,0],"weight":[1,2],"update":[0.001,"nan"]},)"
    R"("probe":{"source":"he sings","reference":null,"output":"il","source_words":["he","</s>"],)"
    R"("target_words":["il"],)"
    R"("weights":[[0.25,0.75]]},)"
    R"("worst":[{"source":"a b","reference":"c","output":"d <script>","loss":3.5,"tokens":2}],)"
    R"("samples":[{"source":"he","reference":"il","output":"il"}]})";
const char* const kResume =
    R"({"event":"resume","version":2,"epoch":0,"step":5,"seconds":0.5,"epochs":2,"max_minutes":0,)"
    R"("threads":1,"layers":[]})";
const char* const kEnd = R"({"event":"end","finished":true,"step":38,"seconds":1})";

std::string log(const std::vector<std::string>& events) {
  std::string out;
  for (const std::string& e : events) out += e + "\n";
  return out;
}

}  // namespace

FUZZ_TARGET(
    run_log,
    {log({kStart, kValidation, kEnd}), log({kStart, kValidation, kResume, kValidation}),
     log({kStart, kValidation}) +
         "{\"event\":\"val\n--- config.json\n{\"model\":\"gru\",\"network\":{\"cell\":\"gru\"}}",
     log({R"({"event":"validation","step":1,"valid_loss":2,"samples":[{"source":"a","output":"b"}]})"}),
     log({kStart}) +
         "--- config.json\n{\"model\":\"transformer\",\"network\":{\"d_model\":8,\"num_heads\":2}}"}) {
  auto files = sections(input);
  std::istringstream log(files[0].second), config(files.back().second);
  return accepts<gradus::Error, translator::InputError>([&] {
    lens::json run = lens::read_run("model", log, files.size() > 1 ? &config : nullptr);
    std::string text = lens::report_text(run, {.width = 80});
    must(!translator::utf8::first_invalid_byte(text), "a report is UTF-8");
    for (char32_t c : translator::utf8::decode(text))
      must(c == '\n' || !translator::utf8::is_control(c), "a report has no control character");
    must(lens::as_script(run).find('<') == std::string::npos, "no word of a log ends the page's data");
  });
}
