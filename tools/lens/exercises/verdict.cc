#include <lens/verdict.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace lens {
namespace {

int checks_made = 0, checks_failed = 0;

}  // namespace

void count_check(bool passed) {
  ++checks_made;
  checks_failed += !passed;
}

int tell(int code) {
  std::fflush(stdout);  // whatever comes now
  const char* where = std::getenv("LENS_VERDICT");
  const char* path = where ? std::strchr(where, ' ') : nullptr;
  if (!path) return code;
  if (std::FILE* file = std::fopen(path + 1, "w")) {
    std::fprintf(file, "%s %d %d %d\n", std::string(where, path).c_str(), code, checks_made, checks_failed);
    std::fclose(file);
  }
  return code;
}

}  // namespace lens
