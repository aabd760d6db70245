// A learner's file that does not compile: the first error in it is shown, and the usual cause said.

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "../quick_doctest.h"
#include "../scratch.h"
#include "lesson/builder.h"
#include "lesson/compile_error.h"
#include "lesson/course.h"
#include "run.h"

using lens::first_error;

TEST_CASE("compile errors: the first in the learner's file, what shows it, and how many more") {
  const std::string gcc =
      "In file included from /tmp/x/program.cc:4:\n"
      "\x1b[01m\x1b[Kmine/05.cc:\x1b[m\x1b[K In lambda function:\n"
      "\x1b[01m\x1b[Kmine/05.cc:22:33:\x1b[m\x1b[K \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kno match for "
      "'operator*' (operand types are 'lens::Row' and 'lens::Row')\n"
      "   22 |         dx[n] += dy_[n] * y_[n];\n"
      "      |                  ~~~~~~ ^ ~~~~~\n"
      "In file included from /gradus/ops.h:3,\n"
      "/gradus/arithmetic.h:20:5: note: candidate: 'Var gradus::operator*(const Var&, double)'\n"
      "   20 | Var operator*(const Var& a, double b);\n"
      "mine/05.cc:23:1: error: expected ';'\n";
  std::string said = first_error(gcc, "mine/05.cc");
  CHECK(said.find("dy_[n] * y_[n]") != std::string::npos);
  CHECK(said.find("candidate") == std::string::npos);
  CHECK(said.find("In lambda") == std::string::npos);
  CHECK(said.find("(1 more, most of them because of this one)") != std::string::npos);
  CHECK(said.find("m[i] of a matrix is a whole row; a number is m[i][k]") != std::string::npos);
  CHECK(first_error(gcc, "other.cc").empty());
  CHECK(first_error("/usr/bin/ld: undefined reference to `attention'\n", "mine/05.cc").empty());
  CHECK(first_error("mine/05.cc:1:2: warning: unused variable 'x'\n", "mine/05.cc").empty());
  CHECK(first_error("", "mine/05.cc").empty());
  for (const char* error : {"‘learners_main’ was not declared in this scope",
                            "use of undeclared identifier 'learners_main'"})
    CHECK(first_error("/tmp/x/program.cc:8:32: error: " + std::string(error) + "\n", "mine/05.cc")
              .starts_with("mine/05.cc has no main() any more: --reset"));
}

TEST_CASE("compile errors: usual causes in the words of both compilers, and none where it is none of them") {
  auto cause = [](const std::string& error) {
    std::string said = first_error("a.cc:1:2: error: " + error + "\n", "a.cc");
    return said.substr(said.find('\n') + 1);
  };
  for (const char* error :
       {"too few arguments to function 'double lens::dot(const lens::Row&, const lens::Row&, const Index&)'",
        "no matching function for call to 'dot'"})
    CHECK(cause(error).find("dot takes two rows and how many") != std::string::npos);
  for (const char* error : {"invalid types 'double[int]' for array subscript",
                            "subscripted value is not an array, pointer, or vector"})
    CHECK(cause(error).find("one index too many") != std::string::npos);
  for (const char* error : {"no match for 'operator[]' (operand types are 'const gradus::Var' and 'int')",
                            "type 'const gradus::Var' does not provide a subscript operator"})
    CHECK(cause(error).find("Its numbers are in x_") != std::string::npos);
  for (const char* error : {"cannot convert 'gradus::Var' to 'double' in initialization"})
    CHECK(cause(error).find("numbers are wanted") != std::string::npos);
  for (const char* error : {"'slop' was not declared in this scope; did you mean 'slope'?",
                            "use of undeclared identifier 'slop'"})
    CHECK(cause(error).find("spelled as above") != std::string::npos);
  CHECK(cause("expected ';' before 'dx'").find("end of the line before") != std::string::npos);
  CHECK(cause("return-statement with a value, in function returning 'void'").empty());
}

TEST_CASE("compile errors: as a learner meets them") {
  scratch::Directory directory{std::filesystem::temp_directory_path()};
  const std::string lens = "cd " + directory.path().string() + " && " + LENS + " lesson ";
  const std::string right = "dx[i] += dy_[i] * x_[i] * slope * w_[i];";
  std::string text = lens::source(lens::Course("lesson").find("1"), true);
  size_t at = text.find(right);
  REQUIRE(at != std::string::npos);
  std::filesystem::create_directories(directory.path() / "gradus-lessons");
  auto with = [&](const std::string& line) {
    std::string changed = text;
    std::ofstream(directory.path() / "gradus-lessons/01-chain-rule.cc")
        << changed.replace(at, right.size(), line);
    Ran r = run(lens + "1 -q");
    CHECK_MESSAGE(r.code == 1, r.out);
    CHECK_MESSAGE(r.says("gradus-lessons/01-chain-rule.cc:23:"), r.out);  // by the name that it is known by
    CHECK(!r.says("/gradus-lessons"));
    CHECK_MESSAGE(std::count(r.out.begin(), r.out.end(), '\n') < 16, r.out);
    CHECK(r.says("✗ it does not compile"));
    return r;
  };
  Ran twice = with("dx[0][i] += dy_[i];");
  CHECK_MESSAGE(twice.says("A vector has one: x[i]; a matrix two: m[i][k]."), twice.out);
  Ran var = with("dx[i] += dy_[i] * x[i] * slope * w[i];");
  CHECK_MESSAGE(var.says("Its numbers are in x_"), var.out);
  CHECK_MESSAGE(var.says("(1 more, most of them because of this one)"), var.out);
  Ran whole = with("dx[i] += dy * x_[i];");
  CHECK_MESSAGE(whole.says("a whole tensor of the engine"), whole.out);
  CHECK_MESSAGE(with("dx[i] += dy_[i]").says("may be missing there"), "a semicolon");
}

TEST_CASE("the first error of a compiler: messages of any length") {
  const std::string head = "mine/05.cc:3:2: error: ", letters(200000, 'x');
  CHECK(first_error(head + letters + "\n    3 | code\n", "mine/05.cc").starts_with(head + "xxx"));
  std::string lines = head + "static assertion failed\n";
  for (int i = 0; i < 5000; ++i) lines += "    a line of what the compiler shows of the code\n";
  CHECK(first_error(lines, "mine/05.cc").starts_with(head));
}
