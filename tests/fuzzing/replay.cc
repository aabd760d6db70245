// Every seed of every fuzz target, and every input that once broke one (regressions/TARGET), in an ordinary
// build.

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>

#include "../quick_doctest.h"
#include "fuzz.h"

using fuzzing::Target;

namespace {

namespace fs = std::filesystem;

// "" or what is wrong. A target that hangs ends the program by SIGALRM.
std::string complaint(const Target& target, const std::string& input, bool& accepted) {
  alarm(120);
  std::string out;
  try {
    accepted = target.run(input);
  } catch (const std::exception& e) {
    out = e.what();
  } catch (...) {
    out = "something that is no exception was thrown";
  }
  alarm(0);
  return out;
}

std::vector<fs::path> kept(const Target& target) {
  std::vector<fs::path> out;
  fs::path directory = fs::path(FUZZ_REGRESSIONS) / target.name;
  if (fs::is_directory(directory))
    for (const auto& entry : fs::directory_iterator(directory)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("fuzz targets take their seeds, and at least one of them is accepted") {
  REQUIRE(fuzzing::targets().size() > 0);
  for (const Target& target : fuzzing::targets()) {
    int number = 0, accepted = 0;
    for (const std::string& seed : target.seeds()) {
      std::string which = "seed " + std::to_string(number++) + " of " + target.name;
      INFO(which);
      bool yes = false;
      CHECK(complaint(target, seed, yes) == "");
      accepted += yes;
    }
    INFO(target.name);
    CHECK(accepted > 0);
  }
}

TEST_CASE("fuzz targets take nothing at all") {
  for (const Target& target : fuzzing::targets()) {
    INFO(target.name);
    bool ignored = false;
    CHECK(complaint(target, "", ignored) == "");
  }
}

TEST_CASE("inputs that once broke a target do so no more") {
  size_t inputs = 0;
  for (const Target& target : fuzzing::targets())
    for (const fs::path& file : kept(target)) {
      INFO(file.string());
      bool ignored = false;
      CHECK(complaint(target, fuzzing::read_file(file.string()), ignored) == "");
      ++inputs;
    }
  // Each directory is that of a target, so that none is forgotten when a target gets another name.
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(FUZZ_REGRESSIONS))
    files += entry.is_regular_file();
  CHECK(inputs == files);
}

TEST_CASE("a rule that is broken, and an exception that is not allowed, are found") {
  Target broken{"broken", [](std::string_view) { return fuzzing::must(false, "x"), true; }, nullptr};
  Target thrown{
      "thrown",
      [](std::string_view) -> bool {
        return fuzzing::accepts<std::range_error>([] { throw std::out_of_range("vector::_M_range_check"); });
      },
      nullptr};
  Target unsaid{
      "unsaid",
      [](std::string_view) -> bool {
        return fuzzing::accepts<std::out_of_range>([] { throw std::out_of_range("vector::_M_range_check"); });
      },
      nullptr};
  bool accepted = true;
  CHECK(complaint(broken, "", accepted) == "a rule is broken: x");
  CHECK(complaint(thrown, "", accepted) == "vector::_M_range_check");
  CHECK(complaint(unsaid, "", accepted) ==
        "a rule is broken: an error is no exception of the standard library: vector::_M_range_check");
}
