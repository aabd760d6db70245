// A system that gives fewer threads than were asked for.

#include "../quick_doctest.h"
#include "../skip.h"
#include "program.h"

using namespace cli;

TEST_CASE("fewer threads than asked for: one line, and the command goes on with what there are") {
  if (!gradus::testing::memory_can_be_limited()) return;
  // 256 stacks of 8 MB do not fit into 1.2 GB of addresses.
  Result r = shell("ulimit -s 8192; ulimit -v 1200000; \"$T\" translate nothing --threads 256");
  INFO(r.err);
  CHECK(r.signal == 0);
  CHECK(r.code == 1);
  CHECK(r.says(" of 256 threads could be started\n"));
  CHECK(r.says("nothing: no such model directory"));
  CHECK(count(r.err, "\n") == 2);
  CHECK_FALSE(shell("\"$T\" translate nothing --threads 2").says("could be started"));
}
