#include <fmt/core.h>
#include <gradus/error.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include <common/program.h>

#include "../commands.h"
#include "builder.h"
#include "course.h"
#include "scratch.h"

namespace lens {
namespace fs = std::filesystem;
namespace {

using translator::program;

// What a learner's folder and a course have in common for chapters and labs.
class Desk {
 public:
  Desk(const char* kind, const CourseOptions& o)
      : options_(o), course_(kind), work_(o.folder), style_(style_of_stdout()) {}

  const Course& course() const { return course_; }

 protected:
  void say(const std::string& text, Tone tone, const char* end = "\n") const {
    fmt::print("{}{}", toned(text, tone, style_), end);
  }

  void show(const Unit& unit, const char* file, const char* end = "") const {
    // Commands that stand on lines of their own can be pasted, wherever the program lies.
    const std::string command = "\n    lens ";
    std::string text = read_text(unit.folder / file);
    for (size_t at = 0; (at = text.find(command, at)) != text.npos; at += command.size())
      text.replace(at, command.size(), "\n    " + program() + " ");
    fmt::print("{}{}", render(text, style_), end);
  }

  // All units, and how to go on.
  void list(const char* title, const char* usage) const {
    say(title, Tone::strong, "\n\n");
    fmt::print("{}", listed(course_, work_, style_));
    fmt::print(fmt::runtime(usage), program());
  }

  // --reset, --hint and --solution; false when none was asked for.
  bool looked(const Unit& unit) const {
    if (options_.reset) {
      fs::path kept = work_.reset(unit);
      fmt::print("{} is as it was handed out{}\n", work_.file(unit).string(),
                 kept.empty() ? "." : fmt::format("; yours is kept as {}.", kept.string()));
      return true;
    }
    if (options_.hint) show(unit, "hint.md");
    if (options_.solution) fmt::print("{}", source(unit, true));
    return options_.hint || options_.solution;
  }

  void say_file(const std::string& label, const Unit& unit, bool fresh) const {
    fmt::print("{}{}{}\n\n", toned(label, Tone::quiet, style_), work_.file(unit).string(),
               fresh ? toned("  (new)", Tone::quiet, style_) : "");
  }

  // A trial of a file, without what decides. What is put together of other chapters trains with them.
  Trial trial(const Unit& unit, const fs::path& file) const {
    return {.source = file,
            .seconds = options_.time_limit,
            .coloured = style_.color != translator::Color::none,
            .optimised = !parts(unit).empty()};
  }

  // Each of these units, or of all, must fail as the list says when it is handed out, and its answer pass.
  int verify(std::vector<const Unit*> units,
             const std::function<Judged(const Unit&, const fs::path&, std::string*)>& judged) const {
    int failures = 0;
    if (units.empty())
      for (const Unit& unit : course_.units()) units.push_back(&unit);
    for (const Unit* unit : units)
      for (bool answer : {false, true}) {
        Scratch scratch;
        const fs::path file = scratch.file("unit.cc");
        std::ofstream(file) << source(*unit, answer);
        for (const std::string& part : parts(*unit))
          std::ofstream(scratch.file(part + ".cc")) << source(course_.find(part), true);
        std::string output;
        const Judged result = judged(*unit, file, &output);
        bool said = output.find("✗ " + unit->diagnosis) != std::string::npos;
        bool good = answer ? result.passed : !result.passed && result.why.empty() && said;
        failures += !good;
        fmt::print("  {} {:<22} {:<9} {}\n", toned(good ? "✓" : "✗", good ? Tone::good : Tone::bad, style_),
                   unit->name, answer ? "solution" : "starter",
                   !answer ? (good ? "fails: " : "should fail: ") + unit->diagnosis
                   : good  ? "passes"
                           : "does not pass");
        if (!good) fmt::print("{}\n", output + result.why);
        std::fflush(stdout);
      }
    return failures != 0;
  }

  const CourseOptions& options_;
  Course course_;
  Workplace work_;
  PictureStyle style_;
};

volatile sig_atomic_t stopped = 0;

// Single keys without echo, while it lives; Ctrl-C and a kill end the watching in good order.
class Keys {
 public:
  Keys() : is_terminal_(isatty(0) == 1) {
    struct sigaction action = {};
    action.sa_handler = [](int) {
      stopped = 1;
      end_child();
    };
    for (int s : {SIGINT, SIGTERM, SIGHUP}) sigaction(s, &action, nullptr);
    if (!is_terminal_ || tcgetattr(0, &before_) != 0) return;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(0, TCSANOW, &raw);
  }
  ~Keys() {
    if (is_terminal_) tcsetattr(0, TCSANOW, &before_);
  }
  Keys(const Keys&) = delete;

  bool is_terminal() const { return is_terminal_; }
  // The key pressed within 0.2 s, or 0.
  char wait() const {
    pollfd in{0, POLLIN, 0};
    char key = 0;
    if (poll(&in, is_terminal_ ? 1 : 0, 200) > 0 && read(0, &key, 1) == 0) stopped = 1;
    return key;
  }

 private:
  bool is_terminal_;
  termios before_ = {};
};

class Lessons : public Desk {
 public:
  explicit Lessons(const CourseOptions& o) : Desk("lesson", o) {}

  int list() const {
    Desk::list("Eighteen chapters: you write the backward, the check names the mistake",
               "\n  {0} lesson N            text, file, result\n"
               "  {0} lesson N --watch    the same again whenever you save\n"
               "  {0} lesson N --hint     or --solution; --reset hands the file out anew\n\n"
               "  ● passed  ◐ begun  ○ open. 1 to 12 lead to a translator with attention (9), 13 to 18\n"
               "  to a Transformer; 0 is for those to whom attention is new: its forward pass.\n");
    const Unit* next = first_open();
    if (next) fmt::print("  Your next step: {} lesson {} --watch\n", program(), next->number);
    return 0;
  }

  /// Where to go on; nullptr when all chapters have passed.
  const Unit* first_open() const {
    for (const Unit& unit : course_.units())
      if (!work_.passed(unit)) return &unit;
    return nullptr;
  }

  int chapter(const Unit& unit) const {
    if (looked(unit)) return 0;
    bool fresh = work_.hand_out(unit);
    if (options_.watch) return watch(unit);
    if (!options_.quiet) {
      fmt::print("{}", heading(unit));
      show(unit, "text.md", "\n");
    }
    say_file("Your file: ", unit, fresh);
    if (says_what_is_open(unit)) return 1;
    int code = attempt(unit);
    if (code != 0)
      say(fmt::format("Edit the file, then: {} lesson {} --quiet. Or --watch, --hint, --solution.", program(),
                      unit.number),
          Tone::quiet);
    return code;
  }

  int verify(const std::vector<const Unit*>& units) const {
    return Desk::verify(units, [&](const Unit& unit, const fs::path& file, std::string* output) {
      return judge(trial(unit, file), output);
    });
  }

 private:
  bool is_last(const Unit& unit) const { return unit.number == course_.units().back().number; }

  std::string heading(const Unit& unit) const {
    std::string map;
    for (const Unit& u : course_.units())
      map += u.number == unit.number ? toned("◉", Tone::code, style_)
             : work_.passed(u)       ? toned("●", Tone::good, style_)
                                     : toned("○", Tone::quiet, style_);
    return fmt::format("{}  {}\n\n", map,
                       toned(fmt::format("chapter {} of {}", unit.number, course_.units().back().number),
                             Tone::quiet, style_));
  }

  // True, with a line for each, when chapters that this one is put together of have not passed yet.
  bool says_what_is_open(const Unit& unit) const {
    std::vector<const Unit*> open;
    for (const std::string& part : parts(unit))
      if (const Unit& u = course_.find(part); !work_.passed(u) || !work_.begun(u)) open.push_back(&u);
    if (open.empty()) return false;
    say(fmt::format("✗ chapter {} is made of your own files, and these have not passed or are gone:",
                    unit.number),
        Tone::bad);
    for (const Unit* u : open)
      fmt::print("    {}  {}: {} lesson {}\n", u->number, u->title, program(), u->number);
    fmt::print("\n");
    return true;
  }

  int attempt(const Unit& unit) const {
    Judged judged = judge(trial(unit, work_.file(unit)));
    if (!judged.why.empty()) say("✗ " + judged.why, Tone::bad, "\n\n");
    if (!judged.passed) return 1;
    work_.remember(unit);
    if (fs::exists(unit.folder / "after.md")) show(unit, "after.md", "\n");
    say(fmt::format("● chapter {} done. {}", unit.number,
                    is_last(unit) ? fmt::format("That was the last one: {} lab", program())
                                  : fmt::format("Next: {} lesson {}", program(), unit.number + 1)),
        Tone::good);
    return 0;
  }

  int watch(const Unit& first) const {
    Keys keys;
    const Unit* unit = &first;
    bool text = !options_.quiet;
    for (;;) {
      work_.hand_out(*unit);
      auto saved = fs::last_write_time(work_.file(*unit));
      if (style_.color != translator::Color::none) fmt::print("\x1b[2J\x1b[H");
      fmt::print("{}", heading(*unit));
      if (text) show(*unit, "text.md", "\n");
      say_file("Your file: ", *unit, false);
      bool passed = !says_what_is_open(*unit) && attempt(*unit) == 0, more = passed && !is_last(*unit);
      const char* known_keys = !keys.is_terminal() ? ""
                               : more              ? "   n next  t text  q quit"
                                                   : "   t text  h hint  s solution  q quit";
      fmt::print("\n");
      say(std::string("watching the file") + known_keys, Tone::quiet);
      std::fflush(stdout);
      text = false;
      for (bool waiting = true; waiting;) {
        char key = keys.wait();
        if (stopped || key == 'q') return passed ? 0 : 1;
        if (key == 'h' || key == 's') fmt::print("\n");
        if (key == 'h') show(*unit, "hint.md");
        if (key == 's') fmt::print("{}", source(*unit, true));
        if (key == 't') text = true, waiting = false;
        if (key == 'n' && more) {
          unit = &course_.find(std::to_string(unit->number + 1));
          text = true, waiting = false;
        }
        std::fflush(stdout);
        std::error_code gone;  // editors replace files: for a moment there may be none
        auto now = fs::last_write_time(work_.file(*unit), gone);
        if (!gone && now != saved) waiting = false;
      }
    }
  }
};

class Labs : public Desk {
 public:
  explicit Labs(const CourseOptions& o) : Desk("lab", o) {}

  int list() const {
    Desk::list("Programs with something wrong in them: find it with the tools",
               "\n  {0} lab N           what is the matter, and the file to mend\n"
               "  {0} lab verify N    is it right now?\n"
               "  {0} lab N --hint    or --solution; --reset hands the file out anew\n\n"
               "  ● solved  ◐ begun  ○ open\n");
    return 0;
  }

  int present(const Unit& unit) const {
    if (looked(unit)) return 0;
    bool fresh = work_.hand_out(unit);
    if (!options_.quiet) show(unit, "text.md", "\n");
    say_file("The file: ", unit, fresh);
    Scratch scratch;
    fs::path binary = scratch.file("program");
    if (!build_program(work_.file(unit), binary, style_.color != translator::Color::none)) {
      say("✗ it does not compile: see above", Tone::bad);
      return 1;
    }
    std::string why =
        why_ended(run_program({binary.string()}, nullptr, options_.time_limit), options_.time_limit);
    if (!why.empty()) say("✗ " + why, Tone::bad);
    say(fmt::format("Mend the file, then: {} lab verify {}", program(), unit.number), Tone::quiet);
    return why.empty() ? 0 : 1;
  }

  int verify(const Unit& unit) const {
    if (!fs::exists(work_.file(unit)))
      throw UsageError(fmt::format("{} is not there: {} lab {} hands it out", work_.file(unit).string(),
                                   program(), unit.number));
    say("The lab's own tests, which are not in your file:", Tone::quiet, "\n\n");
    Judged judged = verdict(unit, work_.file(unit), nullptr);
    if (judged.passed) {
      work_.remember(unit);
      say(fmt::format("● lab {} is solved.", unit.number), Tone::good, "\n\n");
      show(unit, "after.txt");
      return 0;
    }
    if (!judged.why.empty()) say("✗ " + judged.why, Tone::bad);
    say("✗ not yet", Tone::bad);
    return 1;
  }

  int verify_all() const {
    return Desk::verify({}, [&](auto&&... what) { return verdict(what...); });
  }

 private:
  // Builds the learner's functions together with the lab's own tests, which decide.
  Judged verdict(const Unit& unit, const fs::path& file, std::string* output) const {
    Trial tests = trial(unit, file);
    tests.before = "#include <gradus/nn/module.h>\n#include \"" + (unit.folder / "verify.cc").string() + "\"";
    tests.then = "verify() == 0 ? 0 : 1";
    tests.must_check = false;
    return judge(tests, output);
  }
};

}  // namespace

int lesson_command(const CourseOptions& options) {
  Lessons lessons(options);
  bool verify = !options.what.empty() && options.what[0] == "verify";
  if (!options.what.empty() && !verify) lessons.course().find(options.what[0]);
  if (!verify && options.what.size() > 1)
    throw UsageError(fmt::format("one chapter at a time: {} lesson {}", program(), options.what[0]));
  if (!verify && options.what.empty()) {
    bool looks_at_one = options.watch || options.hint || options.solution || options.quiet;
    if (options.reset) throw UsageError("--reset wants the number of a chapter");
    const Unit* next = lessons.first_open();
    return looks_at_one && next ? lessons.chapter(*next) : lessons.list();
  }
  if (!verify) return lessons.chapter(lessons.course().find(options.what[0]));
  std::vector<const Unit*> units;
  for (size_t i = 1; i < options.what.size(); ++i) units.push_back(&lessons.course().find(options.what[i]));
  return lessons.verify(units);
}

int lab_command(const CourseOptions& options) {
  Labs labs(options);
  bool verify = !options.what.empty() && options.what[0] == "verify";
  if (!options.what.empty() && !verify) labs.course().find(options.what[0]);
  if (options.what.size() > (verify ? 2 : 1))
    throw UsageError(fmt::format("one lab at a time: {} lab {}", program(), options.what[0]));
  if (options.what.empty()) {
    if (options.hint || options.solution || options.reset)
      throw UsageError(fmt::format("which lab? {} lab N --hint, --solution or --reset", program()));
    return labs.list();
  }
  if (!verify) return labs.present(labs.course().find(options.what[0]));
  return options.what.size() > 1 ? labs.verify(labs.course().find(options.what[1])) : labs.verify_all();
}

}  // namespace lens
