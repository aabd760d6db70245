#include <fmt/core.h>

#include <cstdio>

#include "../commands.h"
#include "../program.h"
#include "builder.h"
#include "commands.h"
#include "course.h"
#include "scratch.h"

namespace lens {
namespace fs = std::filesystem;
namespace {

class Labs {
 public:
  explicit Labs(const CourseOptions& o)
      : options_(o), course_("lab"), work_(o.folder), style_(style_of_stdout()) {}

  int list() const {
    fmt::print("{}\n\n",
               toned("Programs with something wrong in them: find it with the tools", Tone::strong, style_));
    fmt::print("{}", listed(course_, work_, style_));
    fmt::print(
        "\n  {0} lab N           what is the matter, and the file to mend\n"
        "  {0} lab verify N    is it right now?\n"
        "  {0} lab N --hint    or --solution; --reset hands the file out anew\n\n"
        "  ● solved  ◐ begun  ○ open\n",
        program());
    return 0;
  }

  int show(const Unit& unit) const {
    if (options_.reset) {
      fs::path kept = work_.reset(unit, unit.folder / course_.start);
      fmt::print("{} is as it was handed out{}\n", work_.file(unit).string(),
                 kept.empty() ? "." : fmt::format("; yours is kept as {}.", kept.string()));
      return 0;
    }
    if (options_.hint) fmt::print("{}", render(read_text(unit.folder / "hint.md"), style_));
    if (options_.solution) fmt::print("{}", read_text(unit.folder / course_.answer));
    if (options_.hint || options_.solution) return 0;
    bool fresh = work_.hand_out(unit, unit.folder / course_.start);
    if (!options_.quiet) fmt::print("{}\n", render(read_text(unit.folder / "text.md"), style_));
    fmt::print("{}{}\n\n", toned("The file: ", Tone::quiet, style_),
               work_.file(unit).string() + (fresh ? toned("  (new)", Tone::quiet, style_) : ""));
    Scratch scratch;
    fs::path program = scratch.file("program");
    if (!build_program(work_.file(unit), program, style_.color != translator::Color::none)) {
      fmt::print("{}\n", toned("✗ it does not compile: see above", Tone::bad, style_));
      return 1;
    }
    std::string why =
        why_ended(run_program({program.string()}, nullptr, options_.time_limit), options_.time_limit);
    if (!why.empty()) fmt::print("{}\n", toned("✗ " + why, Tone::bad, style_));
    fmt::print("{}\n", toned(fmt::format("Mend the file, then: {} lab verify {}", lens::program(), unit.number),
                             Tone::quiet, style_));
    return 0;
  }

  int verify(const Unit& unit) const {
    if (!fs::exists(work_.file(unit)))
      throw UsageError(fmt::format("{} is not there: {} lab {} hands it out", work_.file(unit).string(),
                                   program(), unit.number));
    int code = verdict(unit, work_.file(unit), nullptr);
    if (code == 0) {
      work_.remember(unit);
      fmt::print("{}\n", toned(fmt::format("● lab {} is solved.", unit.number), Tone::good, style_));
    } else {
      fmt::print("{}\n", toned("✗ not yet", Tone::bad, style_));
    }
    return code;
  }

  // Every broken program must be refused as the list says, every mended one accepted.
  int verify_all() const {
    int failures = 0;
    for (const Unit& unit : course_.units())
      for (bool start : {true, false}) {
        std::string output;
        int code = verdict(unit, unit.folder / (start ? course_.start : course_.answer), &output);
        bool good = start ? code == 1 && output.find("✗ " + unit.diagnosis) != std::string::npos : code == 0;
        failures += !good;
        fmt::print("  {} {:<22} {:<7} {}\n", toned(good ? "✓" : "✗", good ? Tone::good : Tone::bad, style_),
                   unit.name, start ? "broken" : "fixed", start ? "refused: " + unit.diagnosis : "accepted");
        if (!good) fmt::print("{}\n", output);
        std::fflush(stdout);
      }
    return failures != 0;
  }

  const Course& course() const { return course_; }

 private:
  // Builds the learner's functions together with the lab's own tests, which decide. 0 right, 1 wrong.
  int verdict(const Unit& unit, const fs::path& source, std::string* output) const {
    Trial trial;
    trial.source = source;
    trial.before = "#include <gradus/nn/module.h>\n#include \"" + (unit.folder / "verify.cc").string() + "\"";
    trial.then = "verify() == 0 ? 0 : 1";
    trial.must_check = false;
    trial.seconds = options_.time_limit;
    trial.coloured = style_.color != translator::Color::none;
    Judged judged = judge(trial, output);
    if (!judged.built) judged.why = "it does not compile: see above";
    if (!judged.why.empty()) fmt::print("{}\n", toned("✗ " + judged.why, Tone::bad, style_));
    return judged.passed ? 0 : 1;
  }

  const CourseOptions& options_;
  Course course_;
  Workplace work_;
  PictureStyle style_;
};

}  // namespace

int lab_command(const CourseOptions& options) {
  Labs labs(options);
  bool verify = !options.what.empty() && options.what[0] == "verify";
  if (options.what.size() > (verify ? 2 : 1))
    throw UsageError(fmt::format("one lab at a time: {} lab {}", program(), options.what[0]));
  if (options.what.empty()) {
    if (options.hint || options.solution || options.reset)
      throw UsageError(fmt::format("which lab? {} lab N --hint, --solution or --reset", program()));
    return labs.list();
  }
  if (!verify) return labs.show(labs.course().find(options.what[0]));
  return options.what.size() > 1 ? labs.verify(labs.course().find(options.what[1])) : labs.verify_all();
}

}  // namespace lens
