// Every starter fails with the diagnosis that its list names, every solution passes; the same for the labs,
// whose own tests decide. One program holds them all (zoo.py); the way of a learner, with the compiler, is
// gone once.

#include <fmt/core.h>
#include <gradus/error.h>
#include <gradus/numeric.h>
#include <gradus/ops.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "../about.h"
#include "../quick_doctest.h"
#include "learner.h"
#include "lesson/builder.h"
#include "lesson/course.h"

namespace fs = std::filesystem;
using lens::Course, lens::Unit;

namespace {

const std::string kZoo = LENS_ZOO, kTogether = LENS_TOGETHER;

size_t lines_of_code(const std::string& text) {
  std::istringstream in(text);
  size_t n = 0;
  for (std::string line; std::getline(in, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 110);
    ++n;
  }
  return n;
}

}  // namespace

TEST_CASE("chapters: every starter fails with its diagnosis, every solution passes") {
  Course course("lesson");
  REQUIRE(course.units().size() == 19);
  CHECK(course.units()[0].number == 0);
  CHECK(course.units()[18].number == 18);
  for (const Unit& unit : course.units()) {
    CAPTURE(unit.name);
    const std::string program = (lens::parts(unit).empty() ? kZoo : kTogether) + " lessons/" + unit.name;
    Ran starter = run(program + "/starter");
    CHECK_MESSAGE((starter.code == 1 || starter.code == 2), starter.out);
    CHECK_MESSAGE(starter.says("✗ " + unit.diagnosis), starter.out);
    Ran solution = run(program + "/solution");
    CHECK_MESSAGE(solution.code == 0, solution.out);
    CHECK(
        solution.says(unit.number == 12 || unit.number == 18 ? "✓ the gradients agree" : "✓ right: agrees"));
    CHECK(!solution.says("✗"));
  }
}

TEST_CASE("chapters: no solution passes with one of its += as =, and where nothing else is wrong it is named") {
  int programs = 0, named = 0;
  Course course("lesson");
  for (const Unit& unit : course.units())
    for (int k = 0; k < 20; ++k, ++programs) {
      std::string name = unit.name + "/set-" + std::to_string(k);
      CAPTURE(name);
      Ran r = run(kZoo + " lessons/" + name);
      if (r.code == 99) break;  // there are no more
      CHECK_MESSAGE(r.code == 1, r.out);
      CHECK_MESSAGE(r.says("✗ "), r.out);
      named += r.says("✗ overwritten in ");
      if (name != "01-chain-rule/set-0") continue;
      CHECK_MESSAGE(r.says("✗ overwritten in x\n"), r.out);
      CHECK_MESSAGE(r.says("The backward of swish sets (=) the gradient of x, so what other uses of x"), r.out);
    }
  CHECK(programs >= 18);
  CHECK(named >= 8);
}

TEST_CASE("chapters: what people write into the holes is named, and what is right passes") {
  std::string table = lens::read_text(LENS_MISTAKES);
  for (size_t at; (at = table.find("\\\n")) != std::string::npos;) table.erase(at, 2);
  std::istringstream lines(table);
  int programs = 0, wrong = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    Ran r = run(kZoo + " mistakes/" + std::to_string(programs++));
    std::string expected = line.substr(line.rfind(" | ") + 3), said;
    CAPTURE(line);
    wrong += expected[0] != '!';
    for (char c : r.out)  // on one line
      if (char d = c == '\n' ? ' ' : c; d != ' ' || said.empty() || said.back() != ' ') said += d;
    CHECK_MESSAGE(r.code == (expected[0] == '!' ? 0 : 1), r.out);
    CHECK_MESSAGE(said.find(expected[0] == '!' ? "✓ right" : expected) != std::string::npos, r.out);
  }
  CHECK(wrong >= 80);
}

TEST_CASE("chapters are short, have one hole to three, and starters differ from solutions in holes alone") {
  Course course("lesson");
  for (const Unit& unit : course.units()) {
    CAPTURE(unit.name);
    CHECK(unit.title.size() > 5);
    CHECK(lens::read_text(unit.folder / "hint.md").size() > 20);
    std::string files[2] = {lens::source(unit, false), lens::source(unit, true)};
    for (std::string& text : files) {
      CHECK(lines_of_code(text) <= (unit.number == 18 ? 170 : 70));
      for (const char* word : {"ANSWER", "#else", "#endif"}) CHECK(text.find(word) == std::string::npos);
      int holes = 0;
      for (size_t open; (open = text.find("---- your turn")) != std::string::npos; ++holes) {
        size_t close = text.find("---- end ----", open);
        REQUIRE(close != std::string::npos);
        text.erase(open, close - open);
      }
      CHECK(holes == (unit.number == 0 ? 3 : unit.number == 14 ? 2 : 1));
    }
    CHECK(files[0] == files[1]);
  }
}

TEST_CASE("labs: every broken program is refused with its diagnosis, every mended one accepted") {
  Course course("lab");
  REQUIRE(course.units().size() >= 10);
  for (const Unit& unit : course.units()) {
    CAPTURE(unit.name);
    Ran broken = run(kZoo + " labs/" + unit.name + "/broken/verify");
    CHECK_MESSAGE(broken.code > 0, broken.out);
    CHECK(broken.code < 99);
    CHECK_MESSAGE(broken.says("✗ " + unit.diagnosis), broken.out);
    Ran fixed = run(kZoo + " labs/" + unit.name + "/fixed/verify");
    CHECK_MESSAGE(fixed.code == 0, fixed.out);
    // Their own programs run, whatever they show.
    CHECK(run(kZoo + " labs/" + unit.name + "/broken").code < 99);
    CHECK(run(kZoo + " labs/" + unit.name + "/fixed").code == 0);
    CHECK(lens::read_text(unit.folder / "hint.md").size() > 20);
    // What it was, how it shows in a training, which test to keep.
    CHECK(lens::read_text(unit.folder / "after.txt").size() > 200);
  }
}

TEST_CASE("chapter 0: the check goes from hole to hole, and the numbers of its example are the engine's") {
  Scratch s;
  const Course course("lesson");
  const Unit& unit = course.find("0");
  std::string file = lens::source(unit, false), answer = lens::source(unit, true);
  const char *turn = "---- your turn", *end = "---- end ----";
  auto fill = [&, from = size_t{0}, of = size_t{0}]() mutable {  // the next hole
    from = file.find(turn, from + 1), of = answer.find(turn, of + 1);
    std::string right = answer.substr(of, answer.find(end, of) - of);
    file.replace(from, file.find(end, from) - from, right);
    s.write("gradus-lessons/00-forward.cc", file);
    return s.lens("lesson 0 -q");
  };
  CHECK(s.lens("lesson 0 -q").says("✗ state ignored"));
  Ran first = fill();
  CHECK_MESSAGE(first.code == 1, first.out);
  CHECK(first.says("✓ right: agrees"));
  CHECK_MESSAGE(first.says("✗ one annotation for all"), first.out);
  Ran second = fill();
  CHECK_MESSAGE(second.code == 1, second.out);
  CHECK_MESSAGE(second.says("✗ weights ignored"), second.out);
  Ran third = fill();
  CHECK_MESSAGE(third.code == 0, third.out);
  CHECK(third.says("● chapter 0 done. Next: " + kLens + " lesson 1"));

  using namespace gradus;
  const std::string text = lens::read_text(unit.folder / "text.md");
  Tensor state = Tensor::from({3}, {5, 1, 20}, DType::f64);
  Tensor h = Tensor::from({4, 3}, {3, 12, 45, 59, 2, 5, 1, 43, 5, 4, 3, 45.3}, DType::f64);
  Tensor e = sum(Var(state) * Var(h), 1).value(), alpha = softmax(Var(e)).value();
  auto vector = [](double a, double b, double c) {
    return fmt::format("({:.3f}, {:.3f}, {:>6.3f})", a, b, c);
  };
  double c[3] = {};
  for (int64_t j = 0; j < 4; ++j) {
    double x[3];
    for (int64_t d = 0; d < 3; ++d) c[d] += x[d] = alpha.at(j) * h.at(3 * j + d);
    std::string row =
        fmt::format("   {:.0f}     {:.4f}      {}\n", e.at(j), alpha.at(j), vector(x[0], x[1], x[2]));
    CHECK_MESSAGE(text.find(row) != std::string::npos, row);
  }
  CHECK(text.find(vector(c[0], c[1], c[2])) != std::string::npos);
}

TEST_CASE("a learner's way through chapter 5") {
  Scratch s;
  Ran list = s.lens("lesson");
  CHECK(list.code == 0);
  CHECK(list.says("○  5  Softmax"));

  Ran first = s.lens("lesson 5");
  CHECK_MESSAGE(first.code == 1, first.out);
  CHECK(first.says("gradus-lessons/05-softmax.cc  (new)"));
  CHECK(first.says("outputs that compete"));
  CHECK(first.says("✗ softmax diagonal"));
  CHECK(s.lens("lesson").says("◐  5  Softmax"));

  // The work is never overwritten, and an error of the compiler is told.
  s.write("gradus-lessons/05-softmax.cc", "int main() { return nonsense; }\n");
  Ran broken = s.lens("lesson 5 --quiet");
  CHECK(broken.code == 1);
  CHECK(broken.says("nonsense"));
  CHECK(broken.says("it does not compile"));
  CHECK(!broken.says("outputs that compete"));
  CHECK(s.read("gradus-lessons/05-softmax.cc") == "int main() { return nonsense; }\n");

  Ran solution = s.lens("lesson 5 --solution");
  CHECK(solution.code == 0);
  s.write("gradus-lessons/05-softmax.cc", solution.out);
  Ran right = s.lens("lesson 05-softmax -q");
  CHECK_MESSAGE(right.code == 0, right.out);
  CHECK(right.says("● chapter 5 done. Next: " + kLens + " lesson 6"));  // as it was called: it can be pasted
  CHECK(s.lens("lesson").says("●  5  Softmax"));
  CHECK(s.lens("lesson 5 --hint").says("is the average"));

  Ran none = s.lens("lesson 19");
  CHECK(none.code == 2);
  CHECK(none.says("lens: there is no lesson 19: they go from 0 to 18"));
  CHECK(s.lens("lesson 1 2").code == 2);

  // Where to go on, and starting a chapter over.
  CHECK(s.lens("lesson").says("Your next step: " + kLens + " lesson 0 --watch"));
  CHECK(s.lens("lesson --hint").says("The score is sum of s * h_j"));
  Ran reset = s.lens("lesson 5 --reset");
  CHECK(reset.code == 0);
  CHECK(reset.says("yours is kept as gradus-lessons/05-softmax.old-1.cc"));
  CHECK(s.read("gradus-lessons/05-softmax.old-1.cc") == solution.out);
  CHECK(s.read("gradus-lessons/05-softmax.cc") ==
        lens::source(Course("lesson").find("5"), false));
  CHECK(s.lens("lesson").says("◐  5  Softmax"));
  CHECK(s.lens("lesson 5 --reset").says("yours is kept as gradus-lessons/05-softmax.old-2.cc"));
  CHECK(s.read("gradus-lessons/05-softmax.old-1.cc") == solution.out);
  CHECK(s.lens("lesson --reset").code == 2);
}

TEST_CASE("without a compiler the message says what to do") {
  Scratch s;
  Ran r = run("cd " + s.path.string() + " && CXX=no-such-compiler " + kLens + " lesson 2 -q");
  CHECK(r.code == 1);
  CHECK_MESSAGE(r.says("there is no compiler no-such-compiler"), r.out);
  CHECK(r.says("CXX=clang++"));
}

TEST_CASE("texts fit 80 columns, and each chapter has one picture") {
  auto columns = [](const std::string& line) {
    return std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
  };
  for (const char* kind : {"lesson", "lab"}) {
    Course course(kind);
    for (const Unit& unit : course.units()) {
      CAPTURE(unit.name);
      int fences = 0;
      for (const char* file : {"text.md", "hint.md", "after.md", "after.txt"}) {
        if (!fs::exists(unit.folder / file)) continue;
        std::string text = lens::read_text(unit.folder / file);
        for (size_t at = 0; (at = text.find("```\n", at)) != std::string::npos; ++at) ++fences;
        std::istringstream lines(lens::render(text, {.width = 80}));
        for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(columns(line) <= 80, line);
      }
      if (course.kind == "lesson") CHECK(fences == 2);
    }
  }
}

TEST_CASE("chapter 9: the numbers of its example are what the engine computes") {
  using namespace gradus;
  std::string text = lens::read_text(fs::path(LENS_FOLDER) / "lessons/09-attention/text.md");
  const char* words[] = {"he", "likes", "apples"};
  Tensor alpha = Tensor::from({3}, {0.5, 0.3, 0.2}, DType::f64);
  Tensor h = Tensor::from({3, 2}, {1, 0, 0, 2, 2, 1}, DType::f64), g = Tensor::from({2}, {1, -2}, DType::f64);
  Var e = variable(map(alpha, [](auto v) { return std::log(v); }));
  auto mix = [&](const Var& scores) { return matmul(reshape(softmax(scores), {1, 3}), Var(h)); };
  auto loss = [&](const Var& scores) { return sum(mix(scores) * Var(g)); };
  Tensor delta = backward(loss(e))[e], c = mix(e).value();
  CHECK(text.find(fmt::format("mix c     ({:.1f}, {:.1f})   1.0        {:.1f}", c.at(0), c.at(1),
                              loss(e).item())) != std::string::npos);
  for (int64_t j = 0; j < 3; ++j) {
    double gh = h.at(2 * j) - 2 * h.at(2 * j + 1), beats = gh - loss(e).item();
    CHECK(delta.at(j) == about(alpha.at(j) * beats, 1e-12));
    std::string row = fmt::format(
        "    {:<10}({:2.0f},{:2.0f})      {:.1f}        {:2.0f}          {:4.1f}           {:5.2f}\n",
        words[j], h.at(2 * j), h.at(2 * j + 1), alpha.at(j), gh, beats, delta.at(j));
    CHECK_MESSAGE(text.find(row) != std::string::npos, row);
    CHECK(text.find(fmt::format("{:<6} {:+.2f}\n", words[j], -delta.at(j))) != std::string::npos);
  }
  Tensor raised = e.value().clone();
  raised.set(1, raised.at(1) + 0.1);
  Tensor after = softmax(Var(raised)).value(), moved = mix(raised).value();
  for (double v : {after.at(0), after.at(1), after.at(2), moved.at(0), moved.at(1), loss(raised).item(),
                   loss(e).item() - loss(raised).item()})
    CHECK_MESSAGE(text.find(fmt::format("{:.3f}", v)) != std::string::npos, v);
}

TEST_CASE("watching: a saved file is built and checked again") {
  Scratch s;
  s.lens("lesson 2 --hint");
  s.write("solution.cc", lens::source(Course("lesson").find("2"), true));
  Ran r = run("cd " + s.path.string() + " && { " + kLens +
              " lesson 2 --watch -q > watched.txt < /dev/null & } ; watcher=$!; " +
              "for i in $(seq 300); do grep -q 'watching' watched.txt 2>/dev/null && break; sleep 0.1; done; "
              "sleep 0.05; " +
              "cp solution.cc gradus-lessons/02-linear.cc; " +
              "for i in $(seq 300); do grep -q 'chapter 2 done' watched.txt && break; sleep 0.1; done; " +
              "kill $watcher; wait $watcher; echo ended $?; cat watched.txt");
  CHECK_MESSAGE(r.says("✗ not connected"), r.out);
  CHECK_MESSAGE(r.says("● chapter 2 done"), r.out);
  CHECK(r.says("ended 0"));
}

TEST_CASE("docs/lessons.md: the listing compiles and passes, the chapters and labs are as many as it says") {
  Scratch s;
  std::string page = lens::read_text(fs::path(LENS_FOLDER) / "../../docs/lessons.md");
  size_t open = page.find("```cpp\n"), close = page.find("```", open + 6);
  REQUIRE(close != std::string::npos);
  std::string listing = page.substr(open + 7, close - open - 7);
  size_t main = listing.find("int main()");
  std::string own =
      "#include <gradus/ops.h>\n"
      "using namespace gradus;\n"
      "Tensor query = Tensor::full({1, 2}, 0.5), annotations = Tensor::from({3, 2}, {1, 2, 3, 4, 5, -6});\n"
      "Var my_attention(const Var& q, const Var& h) { return matmul(softmax(linear(q, h)), h); }\n";
  s.write("mine.cc", listing.substr(0, main) + own + listing.substr(main));
  REQUIRE(lens::build_program(s.path / "mine.cc", s.path / "mine", false));
  Ran r = run((s.path / "mine").string());
  CHECK_MESSAGE(r.code == 0, r.out);
  CHECK(r.says("my attention\n"));
  CHECK(r.says("✓ annotations [3, 2]  largest relative error"));
  CHECK(page.find("eighteen chapters") != std::string::npos);
  CHECK(page.find("sixteen programs") != std::string::npos);
  CHECK(Course("lab").units().size() == 16);
}

TEST_CASE("a folder that cannot be made is named") {
  Ran r = run(kLens + " lesson 1 -q --folder /dev/null/x");
  CHECK(r.code == 1);
  CHECK(r.says("lens: /dev/null/x cannot be made: Not a directory\n"));
}

TEST_CASE("lens check: all registered operations agree with finite differences") {
  Ran list = run(kLens + " check");
  CHECK(list.code == 0);
  CHECK(list.says("softmax"));
  Ran one = run(kLens + " check softmax");
  CHECK(one.code == 0);
  CHECK(one.says("✓ softmax: masked: worst "));
  CHECK(one.says("6 cases, 0 wrong: relative errors of gradients beside finite differences\n"));
  CHECK(std::count(one.out.begin(), one.out.end(), '\n') < 12);  // a line each
  Ran all = run(kLens + " check --all");
  CHECK_MESSAGE(all.code == 0, all.out.substr(0, 2000));
  CHECK(all.says(" cases, 0 wrong"));
  CHECK(run(kLens + " check softmax --reference").code == 0);
  Ran of_none = run(kLens + " check --reference");
  CHECK(of_none.code == 2);
  CHECK(of_none.says("lens: --reference wants the name of an operation, or --all"));
  Ran none = run(kLens + " check softmax sofmax");
  CHECK(none.code == 2);
  CHECK_FALSE(none.says("✓"));  // refused before anything is checked
  CHECK(none.says("lens: there is no operation sofmax: " + kLens + " check lists them; hint: softmax?"));
}
