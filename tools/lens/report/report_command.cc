#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include <common/error.h>
#include <gradus/error.h>
#include <common/tell.h>
#include <common/terminal.h>

#include "commands.h"
#include "report.h"

namespace lens {

int report(const ReportOptions& o) {
  json run = read_run(o.run);
  std::filesystem::path out = o.out;
  std::string stem = o.out == "-" ? "report" : out.stem().string();
  int64_t number = 0;
  bool possible = true;
  int code = 0;  // 1: a gradient differs, or a sentence could not be explained
  for (const json& w : last_worst(run)) {
    std::string source = w.value("source", ""), reference = w.value("reference", "");
    std::string page = fmt::format("{}-worst-{}.html", stem, ++number);
    json one = {{"source", source}, {"reference", reference}, {"page", nullptr},
                {"command", explain_command(o.run, source, reference, page)}};
    if (o.explain && possible) {
      try {
        ExplainOptions sentence;
        sentence.model = o.run;
        sentence.source = source;
        sentence.target = reference;
        sentence.out = (out.parent_path() / page).string();
        // A long sentence's page is large: fewer units of each vector keep it readable.
        if (std::count(source.begin(), source.end(), ' ') >= 12) sentence.units = 12;
        code = std::max(code, explain(sentence));
        one["page"] = page;
      } catch (const translator::InputError& e) {  // too long a sentence: others may not be
        run["notes"].push_back(
            fmt::format("Sentence {} of the worst could not be explained: {}", number, e.what()));
        code = 1;
        translator::tell("lens: {}\n", e.what());
      } catch (const gradus::Error& e) {  // no attention: no sentence can be explained
        possible = false;
        run["notes"].push_back(std::string("The worst sentences could not be explained: ") + reason(e));
        code = 1;
        translator::tell("lens: {}\n", reason(e));
      }
    }
    run["explained"].push_back(one);
  }
  if (o.text) {
    fmt::print("{}", report_text(run, translator::terminal_style(1)));
    return code;
  }
  const size_t validations = run["validations"].size();
  write_page(o.out, "report", run, fmt::format("{} validation{}", validations, validations == 1 ? "" : "s"));
  return code;
}

}  // namespace lens
