#include <fcntl.h>
#include <fmt/core.h>
#include <gradus/error.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>

#include "../commands.h"
#include "../program.h"
#include "builder.h"
#include "commands.h"
#include "course.h"

namespace lens {
namespace fs = std::filesystem;
namespace {

volatile sig_atomic_t stopped = 0;

// Single keys without echo, while it lives; Ctrl-C and a kill end the watching in good order.
class Keys {
 public:
  Keys() : is_terminal_(isatty(0) == 1) {
    struct sigaction action = {};
    action.sa_handler = [](int) { stopped = 1; };
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

class Lessons {
 public:
  explicit Lessons(const CourseOptions& o)
      : options_(o), course_("lesson"), work_(o.folder), style_(style_of_stdout()) {}

  int list() const {
    fmt::print("{}\n\n", toned("Twelve chapters: you write the backward, the check names the mistake",
                               Tone::strong, style_));
    fmt::print("{}", listed(course_, work_, style_));
    fmt::print(
        "\n  {0} lesson N            text, file, result\n"
        "  {0} lesson N --watch    the same again whenever you save\n"
        "  {0} lesson N --hint     or --solution; --reset hands the file out anew\n\n"
        "  ● passed  ◐ begun  ○ open. Chapter 9 is what the others lead to.\n",
        program());
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
    if (options_.reset) {
      fs::path kept = work_.reset(unit, unit.folder / course_.start);
      fmt::print("{} is as it was handed out{}\n", work_.file(unit).string(),
                 kept.empty() ? "." : fmt::format("; yours is kept as {}.", kept.string()));
      return 0;
    }
    if (options_.hint || options_.solution) return look(unit);
    bool fresh = work_.hand_out(unit, unit.folder / course_.start);
    if (options_.watch) return watch(unit);
    if (!options_.quiet) {
      fmt::print("{}", heading(unit));
      fmt::print("{}\n", render(read_text(unit.folder / "text.md"), style_));
    }
    fmt::print("{}{}\n\n", toned("Your file: ", Tone::quiet, style_),
               work_.file(unit).string() + (fresh ? toned("  (new)", Tone::quiet, style_) : ""));
    int code = attempt(unit);
    std::string number = std::to_string(unit.number);
    if (code != 0)
      fmt::print(
          "{}\n",
          toned(fmt::format("Edit the file, then: {} lesson {} --quiet. Or --watch, --hint, --solution.",
                            program(), number),
                Tone::quiet, style_));
    return code;
  }

  // Every starter must fail as the list says, every solution pass.
  int verify(const std::vector<const Unit*>& units) const {
    int failures = 0;
    for (const Unit* unit : units)
      for (bool start : {true, false}) {
        std::string output;
        Trial trial;
        trial.source = unit->folder / (start ? course_.start : course_.answer);
        trial.seconds = options_.time_limit;
        Judged judged = judge(trial, &output);
        bool said = output.find("✗ " + unit->diagnosis) != std::string::npos;
        bool good = start ? judged.built && !judged.passed && judged.why.empty() && said : judged.passed;
        output += judged.why;
        failures += !good;
        fmt::print("  {} {:<22} {:<9} {}\n", toned(good ? "✓" : "✗", good ? Tone::good : Tone::bad, style_),
                   unit->name, start ? "starter" : "solution",
                   start  ? (good ? "fails: " : "should fail: ") + unit->diagnosis
                   : good ? "passes"
                          : "does not pass");
        if (!good) fmt::print("{}\n", output);
        std::fflush(stdout);
      }
    return failures != 0;
  }

  const Course& course() const { return course_; }

 private:
  std::string heading(const Unit& unit) const {
    std::string map;
    for (const Unit& u : course_.units())
      map += u.number == unit.number ? toned("◉", Tone::code, style_)
             : work_.passed(u)       ? toned("●", Tone::good, style_)
                                     : toned("○", Tone::quiet, style_);
    return fmt::format(
        "{}  {}\n\n", map,
        toned(fmt::format("chapter {} of {}", unit.number, course_.units().size()), Tone::quiet, style_));
  }

  int look(const Unit& unit) const {
    if (options_.hint) fmt::print("{}", render(read_text(unit.folder / "hint.md"), style_));
    if (options_.solution) fmt::print("{}", read_text(unit.folder / course_.answer));
    return 0;
  }

  int attempt(const Unit& unit) const {
    Trial trial;
    trial.source = work_.file(unit);
    trial.seconds = options_.time_limit;
    trial.coloured = style_.color != translator::Color::none;
    Judged judged = judge(trial);
    if (!judged.built) judged.why = "it does not compile: see above";
    if (!judged.why.empty()) fmt::print("{}\n\n", toned("✗ " + judged.why, Tone::bad, style_));
    if (!judged.passed) return 1;
    work_.remember(unit);
    if (fs::exists(unit.folder / "after.md"))
      fmt::print("{}\n", render(read_text(unit.folder / "after.md"), style_));
    bool last = unit.number == static_cast<int>(course_.units().size());
    fmt::print("{}\n", toned(fmt::format("● chapter {} done. {}", unit.number,
                                         last ? fmt::format("That was the last one: {} lab", program())
                                              : fmt::format("Next: {} lesson {}", program(), unit.number + 1)),
                             Tone::good, style_));
    return 0;
  }

  int watch(const Unit& first) const {
    Keys keys;
    const Unit* unit = &first;
    bool text = !options_.quiet;
    for (;;) {
      work_.hand_out(*unit, unit->folder / course_.start);
      auto saved = fs::last_write_time(work_.file(*unit));
      if (style_.color != translator::Color::none) fmt::print("\x1b[2J\x1b[H");
      fmt::print("{}", heading(*unit));
      if (text) fmt::print("{}\n", render(read_text(unit->folder / "text.md"), style_));
      fmt::print("{}{}\n\n", toned("Your file: ", Tone::quiet, style_), work_.file(*unit).string());
      bool passed = attempt(*unit) == 0;
      bool more = passed && unit->number < static_cast<int>(course_.units().size());
      fmt::print("\n{}\n",
                 toned(fmt::format("watching the file{}", !keys.is_terminal() ? ""
                                                          : more              ? "   n next  t text  q quit"
                                                                 : "   t text  h hint  s solution  q quit"),
                       Tone::quiet, style_));
      std::fflush(stdout);
      text = false;
      for (bool waiting = true; waiting;) {
        char key = keys.wait();
        if (stopped || key == 'q') return passed ? 0 : 1;
        if (key == 'h') fmt::print("\n{}", render(read_text(unit->folder / "hint.md"), style_));
        if (key == 's') fmt::print("\n{}", read_text(unit->folder / course_.answer));
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

  const CourseOptions& options_;
  Course course_;
  Workplace work_;
  PictureStyle style_;
};

}  // namespace

int lesson_command(const CourseOptions& options) {
  Lessons lessons(options);
  bool verify = !options.what.empty() && options.what[0] == "verify";
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
  if (units.empty())
    for (const Unit& unit : lessons.course().units()) units.push_back(&unit);
  return lessons.verify(units);
}

}  // namespace lens
