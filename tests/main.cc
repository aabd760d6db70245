#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

// With --forget-coretype the program forgets OPENBLAS_CORETYPE, after OpenBLAS has read it: started with
// OPENBLAS_CORETYPE=Prescott it stands where it would on a CPU that OpenBLAS does not know.
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--forget-coretype") == 0) unsetenv("OPENBLAS_CORETYPE");
  }
  return doctest::Context(argc, argv).run();
}
