// The bytes of a .npy file. What is read is written and read again the same.

#include <gradus/error.h>
#include <gradus/io/npy_format.h>

#include "fuzz.h"
#include "tensors.h"

using namespace fuzzing;

FUZZ_TARGET(npy,
            {npy_file("<f4", "(2, 3)", 24), npy_file("<f8", "()", 8), npy_file(">i2", "(3,)", 6, 2),
             npy_file("<f2", "(2, 1, 2)", 8, 3), npy_file("|b1", "(0, 5)", 0), npy_file("<u8", "(1,)", 8),
             npy_file("|i1", "(2, 2)", 4), npy_file(">f4", "(1, 1, 1, 1, 1, 1)", 4)}) {
  auto complain = [](const std::string& what) { gradus::fail("npy", what); };
  gradus::Tensor read;
  if (!accepts<gradus::Error>([&] { read = gradus::io::npy_tensor(input, complain); })) return false;
  must(same(read, gradus::io::npy_tensor(gradus::io::npy_bytes(read, complain), complain)),
       "an array is read as it was written");
  return true;
}
