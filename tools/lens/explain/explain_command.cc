#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <common/tell.h>
#include <common/terminal.h>

#include "commands.h"
#include "explain.h"
#include <common/json_text.h>

namespace lens {

std::string own_model() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  // Beside the program where it was installed, wherever that was moved; in the source tree; where it should
  // have gone.
  fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  fs::path moved = program.parent_path() / fs::path(LENS_DATA).lexically_relative(LENS_BIN) / "model";
  for (const fs::path& place : {moved, fs::path(LENS_MODEL), fs::path(LENS_DATA) / "model"})
    if (fs::exists(place / "config.json", ignored)) return place.lexically_normal().string();
  gradus::fail("lens", "its own model is gone; name another one (translator train makes them)");
}

void take_words(SentenceOptions& o, const std::vector<std::string>& words) {
  std::error_code ignored;
  if (words.size() == 2) {
    o.model = words[0];
    o.source = words[1];
  } else if (words.size() == 1) {
    (std::filesystem::is_directory(words[0], ignored) ? o.model : o.source) = words[0];
  }
}

Subject subject_of(const SentenceOptions& o) {
  if (!o.model.empty()) return make_subject(o.model, o.source, o.target);
  return make_subject(translator::Model::load(own_model()), "the small model", o.source, o.target);
}

int verdict(const std::string& what, double worst, double allowed) {
  if (worst < allowed) return 0;
  translator::tell("lens: {} by {:.1e}: less than {:.0e} is allowed\n", what, worst, allowed);
  return 1;
}

int explain(const ExplainOptions& o) {
  auto started = std::chrono::steady_clock::now();
  Subject subject = subject_of(o);
  Dissection d = subject.dissect();
  if (o.step > static_cast<int>(subject.target.size()))
    throw UsageError(
        fmt::format("--step {}: the target has {} words, </s> included", o.step, subject.target.size()));
  SentenceTrace trace = trace_sentence(d, o.step - 1);
  auto code = [&] { return verdict("a gradient and finite differences differ", trace.worst()); };
  if (o.text) {
    translator::TerminalStyle style = translator::terminal_style(1);
    fmt::print("{}",
               explain_text(subject, d, trace, style.width, style.color != translator::Color::none));
    return code();
  }
  ExplainJson options{
      .digits = o.json ? 17 : 6, .packed = !o.json, .units = o.units, .what_if = !o.json, .paths = o.json};
  json data = to_json(subject, d, trace, options);
  if (o.json) {
    write_file(o.out, json_text::dump(data) + "\n");
    return code();
  }
  std::string page = assemble_page("explain", data);
  write_file(o.out, page);
  if (o.out == "-") return code();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  translator::tell(
      "{}: {} source words, {} target words, {} numbers checked by finite differences, worst relative error "
      "{:.1e}; "
      "{:.1f} s, {} KB\n",
      o.out, subject.source.size(), subject.target.size(), trace.checks.size(), trace.worst(), seconds,
      page.size() / 1000);
  return code();
}

}  // namespace lens
