// One target under clang's libFuzzer. With --seeds=DIRECTORY its seeds are written there, and nothing else
// is done.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fuzz.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (fuzzing::targets().size() != 1) {
    std::fprintf(stderr, "a program has one target\n");
    std::exit(1);
  }
  constexpr std::string_view kSeeds = "--seeds=";
  for (int i = 1; i < *argc; ++i) {
    std::string_view argument = (*argv)[i];
    if (!argument.starts_with(kSeeds)) continue;
    int number = 0;
    for (const std::string& seed : fuzzing::targets()[0].seeds())
      fuzzing::write_file(std::string(argument.substr(kSeeds.size())) + "/seed-" + std::to_string(number++),
                          seed);
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzzing::targets()[0].run({reinterpret_cast<const char*>(data), size});
  return 0;
}
