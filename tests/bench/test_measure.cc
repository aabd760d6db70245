#include <measure.h>

#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "../about.h"
#include "../quick_doctest.h"
#include "../scratch.h"
#include "../skip.h"

using namespace bench;

TEST_CASE("median and quantile of numbers in any order") {
  CHECK(median({3}) == 3);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({4, 1, 3, 2}) == about(2.5));
  std::vector<double> eleven = {10, 0, 9, 1, 8, 2, 7, 3, 6, 4, 5};
  CHECK(quantile(eleven, 0.1) == 1);
  CHECK(quantile(eleven, 0.9) == 9);
  CHECK(quantile({7}, 0.1) == 7);
  CHECK(quantile({7}, 0.9) == 7);
}

TEST_CASE("exponent finds the power that numbers grow with") {
  std::vector<double> x = {1, 2, 4, 8, 16};
  for (double power : {-1.0, 0.0, 0.5, 1.0, 2.0}) {
    std::vector<double> y;
    for (double v : x) y.push_back(3 * std::pow(v, power));
    CHECK(exponent(x, y) == about(power));
  }
  // Least squares: log2 y = 0, 1, 0 over log2 x = 0, 1, 2 has slope 0, and 0, 0, 3 has 1.5.
  CHECK(exponent({1, 2, 4}, {1, 2, 1}) == about(0.0));
  CHECK(exponent({1, 2, 4}, {1, 1, 8}) == about(1.5));
}

TEST_CASE("a stopwatch laps, memory and faults are counted, a process of its own ends with its code") {
  Stopwatch watch;
  CHECK(watch.lap() >= 0);
  CHECK(peak_rss_mb() > 1);
  CHECK(page_faults() > 0);
  int code = 7;
  CHECK(in_own_process([&] { return code; }) == 7);
  CHECK(in_own_process([] { return std::raise(SIGKILL); }) == 1);
}

TEST_CASE("where one configuration fails the exit status says so, however the next one ends") {
  scratch::Directory directory;
  auto trained = [](const std::string& options) {
    return std::system((BENCH " train --size toy --losses 1 " + options + " > /dev/null 2>&1").c_str());
  };
  const std::string weights = directory.file("weights");
  CHECK(trained("--variant luong --save " + weights) == 0);
  const int both = trained("--variant all --load " + weights);  // bahdanau's are others
  CHECK(WEXITSTATUS(both) == 1);
}

TEST_CASE("operations that there are none of end with status 1") {
  CHECK(WEXITSTATUS(std::system(BENCH " ops no-such-operation > /dev/null 2>&1")) == 1);
}

TEST_CASE("a process of its own whose output is lost does not end with 0") {
  if (!std::ifstream("/dev/full")) return gradus::testing::skipped("no /dev/full here");
  const auto says = [] { return std::freopen("/dev/full", "w", stdout) && std::puts("lost") >= 0 ? 0 : 7; };
  CHECK(in_own_process(says) == 1);
}

TEST_CASE("rounded to so many digits behind the point") {
  CHECK(rounded(2.71828, 1) == about(2.7, 1e-12));
  CHECK(rounded(2.71828, 2) == about(2.72, 1e-12));
}
