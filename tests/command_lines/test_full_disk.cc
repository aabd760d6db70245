// What programs make of an output that takes nothing.

#include <filesystem>
#include <string>

#include "../cli/program.h"
#include "../quick_doctest.h"
#include "../skip.h"

using namespace cli;

TEST_CASE("translate names standard output where it cannot be written") {
  if (!std::filesystem::exists("/dev/full")) return gradus::testing::skipped("no /dev/full here");
  std::string many;
  for (int i = 0; i < 600; ++i) many += "she eats apples\n";  // more than a buffer holds
  write_file("many.txt", many);
  const Result r = shell("\"$T\" translate " + trained_model() + " < many.txt > /dev/full");
  CHECK(r.code == 1);
  CHECK(r.err == "translator: standard output cannot be written: No space left on device\n");
}

TEST_CASE("lens check goes on where nobody hears that there is no page") {
  if (!std::filesystem::exists("/dev/full")) return gradus::testing::skipped("no /dev/full here");
  CHECK(shell(LENS " check --html > /dev/null 2> /dev/full").code == 0);
}
