// Chapters 13 to 18: the numbers of the texts are the engine's, and 18 is put together of the learner's own
// files.

#include <fmt/core.h>
#include <gradus/numeric.h>
#include <gradus/ops.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "../quick_doctest.h"
#include "../scratch.h"
#include "lesson/course.h"
#include "run.h"

namespace fs = std::filesystem;
using lens::Course;

namespace {

const std::string kZooOfLoops = LENS_ZOO, kLearner = LENS;

std::string text_of_chapter(const char* which) {
  static const Course course("lesson");
  return lens::read_text(course.find(which).folder / "text.md");
}

}  // namespace

TEST_CASE("chapters 13 and 17: the tables of their texts are what the programs print") {
  for (const char* name : {"13-scaled-dot", "17-residual"}) {
    const std::string text = text_of_chapter(std::string(name).substr(0, 2).c_str());
    std::istringstream printed(run(kZooOfLoops + " lessons/" + name + "/solution").out);
    int rows = 0;
    bool behind = false;
    for (std::string line; std::getline(printed, line);) {
      if (behind && line.starts_with("    ")) {
        CHECK_MESSAGE(text.find(line + '\n') != std::string::npos, line);
        ++rows;
      }
      behind = behind || line.find("✓ right") != std::string::npos;
    }
    CHECK(rows == 5);
  }
}

TEST_CASE("chapters 13 and 16: the numbers of their examples are the engine's") {
  using namespace gradus;
  const std::string scaled = text_of_chapter("13"), norm = text_of_chapter("16");
  Var e = Tensor::from({3}, {8, 0, -8}, DType::f64);
  for (double root : {1., 8.}) {
    Tensor alpha = softmax(e / root).value();
    std::string row = fmt::format("alpha  {:.4f}  {:.4f}  {:.4f}\n", alpha.at(0), alpha.at(1), alpha.at(2));
    CHECK_MESSAGE(scaled.find(row) != std::string::npos, row);
    std::string slope = fmt::format("{:.4f}", alpha.at(0) * (1 - alpha.at(0)));
    CHECK_MESSAGE(scaled.find(slope) != std::string::npos, slope);
  }
  auto row = [](std::vector<double> v) { return Tensor::from({1, 3}, v, DType::f64); };
  Tensor one = Tensor::ones({3}, DType::f64), zero = Tensor::zeros({3}, DType::f64), g = row({3, 0, 0});
  Var x = variable(row({1, 2, 6}));
  Var y = layer_norm(x, one, zero);
  double along = mean(Var(g) * y).item(), sigma = std::sqrt(14. / 3);
  Tensor xhat = y.value(), dx = backward(sum(y * Var(g)))[x];
  CHECK(norm.find(fmt::format("sigma = {:.3f}", sigma)) != std::string::npos);
  std::string three = fmt::format("xhat = ({:.3f}, {:.3f}, {:.3f})", xhat.at(0), xhat.at(1), xhat.at(2));
  CHECK_MESSAGE(norm.find(three) != std::string::npos, three);
  for (int64_t d = 0; d < 3; ++d) {
    double second = -xhat.at(d) * along, both = g.at(d) - 1 + second;
    CHECK(std::abs(dx.at(d) - both / sigma) < 1e-5);
    for (double v : {std::abs(second), both, dx.at(d)})
      CHECK_MESSAGE(norm.find(fmt::format("{:.3f}", v)) != std::string::npos, v);
  }
}

TEST_CASE("chapter 18 is put together of the learner's files, and says which have not passed yet") {
  scratch::Directory directory{fs::temp_directory_path()};
  const fs::path work = directory.path() / "gradus-lessons";
  const Course course("lesson");
  auto lens = [&](const std::string& arguments) {
    return run("cd " + directory.path().string() + " && " + kLearner + " " + arguments);
  };
  Ran none = lens("lesson 18");
  CHECK(none.code == 1);
  CHECK(none.says("A tiny GPT"));
  CHECK(none.says(
      "✗ chapter 18 is made of your own files, and these have not passed or are gone:\n    13  Scaled"));
  CHECK(none.says("    17  Residual connections and depth: " + kLearner + " lesson 17\n"));
  CHECK(!none.says("Edit the file"));
  std::ofstream passed(work / "passed.txt");
  for (const char* part : {"13", "14", "15", "16", "17"}) {
    const lens::Unit& unit = course.find(part);
    std::ofstream(work / (unit.name + ".cc")) << lens::source(unit, true);
    if (unit.number != 14) passed << unit.name << std::endl;
  }
  Ran one = lens("lesson 18 -q");
  CHECK(one.code == 1);
  CHECK_MESSAGE(one.says("passed or are gone:\n    14  Many heads: " + kLearner + " lesson 14\n\n"), one.out);
  passed << "14-heads" << std::endl;
  // One that has passed, and is gone.
  const fs::path first = work / "13-scaled-dot.cc", away = work / "away";
  fs::rename(first, away);
  CHECK(lens("lesson 18 -q").says("passed or are gone:\n    13  Scaled"));
  fs::rename(away, first);
  // A mistake in the learner's chapter 16 is found in chapter 18: it is that file which is compiled.
  std::string slipped = lens::source(course.find("16"), true);
  size_t at = slipped.find(" - mean - ");
  REQUIRE(at != std::string::npos);
  std::ofstream(work / "16-layer-norm.cc") << slipped.replace(at, 10, " - 0 * mean - ");
  Ran begun = lens("lesson 18 -q");
  CHECK(begun.code == 1);
  CHECK_MESSAGE(begun.says("✗ letter.weight"), begun.out);
  CHECK(begun.says("  step   0   loss 3."));
}
