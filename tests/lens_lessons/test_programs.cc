// Programs of learners as lens runs them: judged by their tests, ended in time, gone in the end; and what was
// passed is kept.

#include <fmt/core.h>
#include <gradus/error.h>

#include <filesystem>

#include "../quick_doctest.h"
#include "learner.h"
#include "lesson/builder.h"
#include "lesson/course.h"

namespace fs = std::filesystem;
using lens::Course;
using lens::Unit;

TEST_CASE("a lab is judged by its tests, not by what the program says") {
  Scratch s;
  Ran shown = s.lens("lab 1");
  CHECK_MESSAGE(shown.code == 0, shown.out);
  Course course("lab");
  const Unit& unit = course.units()[0];
  std::string file = "gradus-labs/" + unit.name + ".cc";
  Ran refused = s.lens("lab verify 1");
  CHECK(refused.code == 1);
  CHECK_MESSAGE(refused.says("✗ " + unit.diagnosis), refused.out);
  std::string text = s.read(file);
  s.write(file, "#include <cstdlib>\nint main() { std::abort(); }\n");
  CHECK(s.lens("lab 1").code == 1);
  // A main() that claims success changes nothing.
  text = text.substr(0, text.find("int main()")) +
         "int main() { return lens::expect(true, \"right\", \"\"); }\n";
  s.write(file, text);
  CHECK(s.lens("lab verify 1").code == 1);
  s.write(file, s.lens("lab 1 --solution").out);
  Ran accepted = s.lens("lab verify 1");
  CHECK_MESSAGE(accepted.code == 0, accepted.out);
  CHECK(accepted.says("● lab 1 is solved.\n\n  The backward took only the diagonal of the softmax"));
  CHECK(s.lens("lab").says("●  1"));
  CHECK(s.lens("lab verify 2").says("is not there: " + kLens + " lab 2 hands it out"));
  CHECK(s.lens("lab 1 --reset").says("yours is kept as gradus-labs/01-diagonal-softmax.old-1.cc"));
  CHECK(s.lens("lab verify 1").code == 1);
  CHECK(s.lens("lab 99").code == 2);
}

TEST_CASE("a program that only says that it is right, or ends before it was checked, has not passed") {
  Scratch s;
  s.lens("lesson 2 --hint");
  const Course lessons("lesson"), labs("lab");
  std::string starter = lens::source(lessons.find("2"), false),
              solution = lens::source(lessons.find("2"), true),
              broken = lens::source(labs.find("1"), false);
  fs::create_directories(s.path / "gradus-lessons");
  fs::create_directories(s.path / "gradus-labs");
  const std::string includes =
      "#include <csignal>\n#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <fstream>\n"
      "#include <unistd.h>\n";
  struct Cheat {
    const char *what, *code, *said;
  };
  for (const Cheat& c : {
           Cheat{"exit", "static int done = (std::puts(\"● right\"), std::exit(0), 0);",
                 "ended (exit status 0) before the check was over"},
           Cheat{"_Exit", "static int done = (std::_Exit(0), 0);",
                 "ended (exit status 0) before the check was over"},
           Cheat{"abort", "static int done = (std::signal(SIGABRT, [](int) { _exit(0); }), std::abort(), 0);",
                 "ended (exit status 0) before the check was over"},
           Cheat{"signal", "static int done = (std::raise(SIGKILL), 0);",
                 "ended by signal 9 (Killed)"},
           Cheat{"another word",
                 "static int done = [] {\n"
                 "  std::ofstream(std::strchr(std::getenv(\"LENS_VERDICT\"), ' ') + 1) << \"word 0 1 0\\n\";\n"
                 "  _exit(0);\n"
                 "  return 0;\n"
                 "}();",
                 "ended (exit status 0) before the check was over"},
           Cheat{"destructor", "struct Last { ~Last() { _exit(0); } } last;", "✗"},
       }) {
    CAPTURE(c.what);
    s.write("gradus-lessons/02-linear.cc", includes + c.code + "\n" + starter);
    Ran r = s.lens("lesson 2 -q");
    CHECK_MESSAGE(r.code == 1, r.out);
    CHECK_MESSAGE(r.says(c.said), r.out);
    CHECK(!r.says("chapter 2 done"));
    s.write("gradus-labs/01-diagonal-softmax.cc", includes + c.code + "\n" + broken);
    r = s.lens("lab verify 1");
    CHECK_MESSAGE(r.code == 1, r.out);
    CHECK_MESSAGE(r.says(c.said), r.out);
    CHECK(!r.says("is solved"));
  }
  // In the middle of the check, from the function that is checked.
  std::string inside = starter;
  size_t hole = inside.find('{', inside.find("linear_layer("));
  REQUIRE(hole != std::string::npos);
  inside.insert(hole + 1, " std::exit(0);");
  s.write("gradus-lessons/02-linear.cc", includes + inside);
  CHECK(s.lens("lesson 2 -q").says("before the check was over"));
  // A main() that is right without looking.
  s.write("gradus-lessons/02-linear.cc",
          solution.substr(0, solution.find("int main()")) + "int main() { return 0; }\n");
  Ran r = s.lens("lesson 2 -q");
  CHECK(r.code == 1);
  CHECK_MESSAGE(r.says("main() checks nothing any more"), r.out);
  // And one that looks away.
  std::string away = starter;
  size_t call = away.find("return lens::check");
  REQUIRE(call != std::string::npos);
  away.replace(call, 6, "return 0 *");
  s.write("gradus-lessons/02-linear.cc", away);
  r = s.lens("lesson 2 -q");
  CHECK_MESSAGE(r.code == 1, r.out);
  CHECK(s.lens("lesson").says("◐  2"));
  CHECK(fs::exists(s.path / "gradus-lessons/passed.txt") == false);
}

TEST_CASE("what was passed is kept in a file that is replaced whole, or stays as it was with an error") {
  Scratch s;
  const fs::path passed = s.path / "passed.txt";
  const lens::Workplace work(s.path);
  lens::Unit one, two;
  one.name = "01-one", two.name = "02-two";
  for (const lens::Unit& unit : {one, two, one}) work.remember(unit);
  CHECK(lens::read_text(passed) == "01-one\n02-two\n");
  work.forget(one);
  CHECK(lens::read_text(passed) == "02-two\n");
  CHECK_FALSE(fs::exists(passed.string() + ".tmp"));
  fs::create_directory(passed.string() + ".tmp");  // where the new one would be written
  CHECK_THROWS_AS(work.remember(one), gradus::Error);
  CHECK_THROWS_AS(work.forget(two), gradus::Error);
  CHECK(work.passed(two));
  CHECK_FALSE(work.passed(one));
}

TEST_CASE("the list names the files that are there, of what has passed, too") {
  Scratch s;
  fs::create_directories(s.path / "gradus-lessons");
  s.write("gradus-lessons/passed.txt", "03-bias\n");
  Ran r = s.lens("lesson");
  CHECK_MESSAGE(r.says("●  3  Broadcasting"), r.out);
  CHECK_FALSE(r.says("03-bias.cc"));
  s.write("gradus-lessons/03-bias.cc", "");
  CHECK(s.lens("lesson").says("03-bias.cc"));
}

TEST_CASE("a program that does not end, or takes all memory, is ended with a word") {
  Scratch s;
  s.lens("lesson 2 --hint");
  fs::create_directories(s.path / "gradus-lessons");
  std::string starter = lens::source(Course("lesson").find("2"), false);
  s.write("gradus-lessons/02-linear.cc", "#include <unistd.h>\nstatic int done = (pause(), 0);\n" + starter);
  Ran r = s.lens("lesson 2 -q --time-limit 1");
  CHECK(r.code == 1);
  CHECK_MESSAGE(r.says("after 1 second the program had not ended, and was ended"), r.out);
  CHECK(s.lens("lesson 2 -q --time-limit 0").code == 2);
  lens::Ended late = lens::run_program({"sleep", "100"}, nullptr, 1);
  CHECK(late.late);
  CHECK(late.code == 128 + 9);
  lens::Ended soon = lens::run_program({"sh", "-c", "echo out; exit 3"}, nullptr, 100);
  CHECK(soon.code == 3);
  CHECK(!soon.late);
  CHECK(lens::why_ended({.code = 128 + 9, .greedy = true}, 1).find("GB of memory") != std::string::npos);
  // One that writes and writes does not fill ours.
  std::string output;
  CHECK(lens::run_program({"yes"}, &output, 1).late);
  CHECK(output.size() >= 10'000'000);
  CHECK(output.size() < 11'000'000);
  output.clear();
  CHECK(lens::run_program({"sh", "-c", "echo one; sleep 0.1; echo two"}, &output, 100).code == 0);
  CHECK(output == "one\ntwo\n");
}

TEST_CASE("scratch folders are private, and gone in the end, however it comes") {
  Scratch s;
  fs::create_directories(s.path / "tmp");
  auto left = [&] {
    std::string names;
    for (const auto& entry : fs::directory_iterator(s.path / "tmp"))
      names += entry.path().filename().string() + " ";
    return names;
  };
  std::string here = "cd " + s.path.string() + "; export TMPDIR=" + s.path.string() + "/tmp; ";
  CHECK(run(here + kLens + " lesson 2 -q --out page.html").code == 1);
  CHECK(fs::exists(s.path / "page.html"));
  CHECK(left() == "");
  // While it runs: nobody else may look in, and there is no name that others could have made before.
  s.write("gradus-lessons/02-linear.cc", "#include <unistd.h>\nint main() { pause(); }\n");
  for (const char* signal : {"INT", "TERM", "HUP"}) {
    CAPTURE(signal);
    Ran r =
        run(here + "env --default-signal " + kLens + " lesson 2 -q --out page.html > said.txt & watcher=$!; " +
            "for i in $(seq 600); do ls tmp/*/program > /dev/null 2>&1 && ps -o comm= --ppid $watcher | grep "
            "-q program && break; sleep 0.1; done; "
            "stat -c %a tmp/*; kill -" +
            signal +
            " $watcher; wait $watcher; echo ended $?; "
            "sleep 0.2; pgrep -f '" +
            s.path.string() + "/tm[p]/gradus-lens' || echo nobody is left");
    CHECK_MESSAGE(r.says("700\n"), r.out);
    CHECK_MESSAGE(!r.says("ended 0"), r.out);
    CHECK_MESSAGE(r.says("nobody is left"), r.out);
    CHECK_MESSAGE(left() == "", left());
  }
}
