// Files of NumPy, read and written: against files that NumPy wrote (tests/io/numpy/make.py), and where
// python3 has NumPy, against the real thing.

#include <cmath>
#include <cstdlib>

#include <gradus/io/npy.h>

#include "../quick_doctest.h"
#include "../skip.h"
#include "scratch.h"

using namespace gradus;

namespace {

std::string stored(const std::string& name) { return std::string(NUMPY_FILES "/") + name; }

// 0.5 i - 3 in [2, 3, 4], as NumPy converts it.
Tensor pattern(DType dtype) {
  Tensor t({2, 3, 4}, dtype);
  for (int64_t i = 0; i < 24; ++i) {
    double x = 0.5 * static_cast<double>(i) - 3;
    t.set(i, dtype == DType::i32 ? std::trunc(x) : x);
  }
  return t;
}

void check_equal(const Tensor& a, const Tensor& b) {
  CHECK(a.dtype() == b.dtype());
  CHECK(a.shape() == b.shape());
  CHECK(a.to_vector() == b.to_vector());
}

}  // namespace

TEST_CASE("arrays that NumPy wrote") {
  check_equal(load_npy(stored("f4.npy")), pattern(DType::f32));
  check_equal(load_npy(stored("f8.npy")), pattern(DType::f64));
  check_equal(load_npy(stored("i4.npy")), pattern(DType::i32));
  check_equal(load_npy(stored("i8.npy")), pattern(DType::i32));
  check_equal(load_npy(stored("i2.npy")), pattern(DType::i32));
  check_equal(load_npy(stored("f2.npy")), pattern(DType::f32));
  check_equal(load_npy(stored("big_endian.npy")), pattern(DType::f32));
  check_equal(load_npy(stored("fortran.npy")), pattern(DType::f32));
  check_equal(load_npy(stored("bool.npy")), Tensor::from({3}, {1, 0, 1}, DType::u8));
  check_equal(load_npy(stored("scalar.npy")), Tensor::scalar(2.5, DType::f64));
  check_equal(load_npy(stored("empty.npy")), Tensor({0, 3}, DType::f32));
}

TEST_CASE("arrays are written as NumPy writes them, byte for byte") {
  scratch::Directory scratch;
  for (const char* name : {"f4.npy", "f8.npy", "i4.npy", "u1.npy", "scalar.npy", "empty.npy", "long.npy"}) {
    CAPTURE(name);
    save_npy(scratch.file(name), load_npy(stored(name)));
    CHECK(scratch::read(scratch.file(name)) == scratch::read(stored(name)));
    CHECK_FALSE(std::filesystem::exists(scratch.file(name) + ".tmp"));
  }
}

TEST_CASE("what cannot be read is named") {
  auto error = [](const std::string& name) { return scratch::error_of([&] { load_npy(stored(name)); }); };
  auto npy = [](const std::string& name) { return "[npy] " + stored(name) + ": "; };
  CHECK(error("objects.npy") == npy("objects.npy") + "holds Python objects, not numbers");
  CHECK(error("records.npy") == npy("records.npy") + "holds records with fields, not plain numbers");
  CHECK(error("complex.npy") == npy("complex.npy") + "has numbers of type \"<c16\", which is not known here");
  CHECK(error("huge_int.npy") == npy("huge_int.npy") + "holds a whole number that does not fit into 32 bits");
  CHECK(error("nowhere.npy") == npy("nowhere.npy") + "cannot be opened: No such file or directory");
  CHECK(error(".") == npy(".") + "cannot be read: is it a directory?");
  CHECK(error("make.py") == npy("make.py") + "is no npy file");
  scratch::Directory scratch;
  scratch::write(scratch.file("format.npy"), "\x93NUMPY\xC8" + std::string(100, '\0'));
  CHECK(scratch::error_of([&] { load_npy(scratch.file("format.npy")); }) ==
        "[npy] " + scratch.file("format.npy") + ": has npy format 200, only 1 to 3 are known");
  CHECK(scratch::error_of([&] { save_npy(scratch.file("b.npy"), {}); }) ==
        "[npy] " + scratch.file("b.npy") + ": an undefined tensor cannot be written");
}

TEST_CASE("a file cut off or changed anywhere is refused or read, and never more than that") {
  scratch::Directory scratch;
  std::string npy = scratch::read(stored("f4.npy"));
  auto refused = [&](const std::string& name, const std::string& bytes) {
    scratch::write(scratch.file(name), bytes);
    return scratch::error_of([&] { load_npy(scratch.file(name)); }) != "(no error)";
  };
  for (size_t n = 0; n < npy.size(); ++n) CHECK(refused("cut.npy", npy.substr(0, n)));
  for (size_t i = 0; i < 128; ++i)
    for (char c : {'\0', '9', '(', '\xFF'}) {
      std::string bytes = npy;
      bytes[i] = c;
      refused("changed.npy", bytes);  // must not crash; a space may be changed with impunity
    }
}

TEST_CASE("every type of number and both orders of bytes, each number at its place") {
  scratch::Directory scratch;
  // Three numbers as they stand in a file, the lowest byte first; `turned` when it is the highest.
  auto read = [&](const std::string& descr, const std::vector<uint64_t>& bits, bool turned) {
    std::string data, header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (3,), }\n";
    size_t bytes = static_cast<size_t>(descr.back() - '0');
    for (uint64_t b : bits)
      for (size_t i = 0; i < bytes; ++i)
        data += static_cast<char>(b >> (8 * (turned ? bytes - 1 - i : i)) & 0xFF);
    std::string file = std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0';
    scratch::write(scratch.file("made.npy"), file + header + data);
    return load_npy(scratch.file("made.npy"));
  };
  struct Kind {
    const char* name;
    std::vector<uint64_t> bits;
    DType dtype;
    testing::Numbers numbers;
  };
  const uint64_t one = ~uint64_t{0};
  const std::vector<Kind> kinds = {
      {"f4", {0x3FA00000, 0xC0400000, 0x00000000}, DType::f32, {1.25, -3, 0}},
      {"f8", {0x3FF4000000000000, 0xC008000000000000, 0}, DType::f64, {1.25, -3, 0}},
      {"f2", {0x3D00, 0xC200, 0x0001}, DType::f32, {1.25, -3, 0x1p-24}},
      {"i1", {5, 0x80, 0xFF}, DType::i32, {5, -128, -1}},
      {"u1", {5, 0x80, 0xFF}, DType::u8, {5, 128, 255}},
      {"b1", {1, 0, 1}, DType::u8, {1, 0, 1}},
      {"i2", {0x0102, 0x8000, 0xFFFF}, DType::i32, {258, -32768, -1}},
      {"u2", {0x0102, 0x8000, 0xFFFF}, DType::i32, {258, 32768, 65535}},
      {"i4", {0x01020304, 0x80000000, 0xFFFFFFFF}, DType::i32, {16909060, -2147483648.0, -1}},
      {"u4", {0x01020304, 7, 0x7FFFFFFF}, DType::i32, {16909060, 7, 2147483647}},
      {"i8", {0x01020304, one - 0x7FFFFFFF, one}, DType::i32, {16909060, -2147483648.0, -1}},
      {"u8", {0x01020304, 7, 0x7FFFFFFF}, DType::i32, {16909060, 7, 2147483647}}};
  for (const Kind& kind : kinds)
    for (char order : {'<', '>'}) {
      CAPTURE(kind.name);
      CAPTURE(order);
      Tensor t = read(order + std::string(kind.name), kind.bits, order == '>');
      CHECK(t.dtype() == kind.dtype);
      CHECK(t.to_vector() == kind.numbers);
    }
  auto refused = [&](const char* descr, uint64_t bits, const std::string& why = "does not fit into 32 bits") {
    std::string error = scratch::error_of([&] { read(descr, {1, bits, 1}, false); });
    CAPTURE(error);
    CHECK(testing::contains(error, why));
  };
  refused("!f4", 1, "has numbers of type \"!f4\", which is not known here");
  refused("<u4", 0x80000000);
  refused("<i8", 0x80000000);
  refused("<i8", one - 0x80000000);
  refused("<u8", 0x80000000);
  refused("<u8", one);
}

TEST_CASE("NumPy reads what is written here, and the other way round") {
  if (std::system("python3 -c 'import numpy' >/dev/null 2>&1") != 0)
    return gradus::testing::skipped("python3 has no NumPy here: only the stored files were compared");
  scratch::Directory scratch;
  save_npy(scratch.file("x.npy"), pattern(DType::f32));
  save_npy(scratch.file("ids.npy"), Tensor::from_ids({2}, {7, -7}));
  std::string program =
      "import os\n"
      "import numpy as np\n"
      "os.chdir(os.path.dirname(os.path.abspath(__file__)))\n"
      "x, ids = np.load('x.npy'), np.load('ids.npy')\n"
      "assert x.dtype == 'f4' and (x == np.arange(24).reshape(2, 3, 4) * 0.5 - 3).all()\n"
      "assert ids.dtype == 'i4' and ids.tolist() == [7, -7]\n"
      "np.save('theirs.npy', np.asfortranarray(x))\n"
      "np.save('their_ids.npy', ids)\n";
  scratch::write(scratch.file("check.py"), program);
  REQUIRE(std::system(("PYTHONOPTIMIZE= python3 '" + scratch.file("check.py") + "'").c_str()) == 0);
  check_equal(load_npy(scratch.file("theirs.npy")), pattern(DType::f32));
  check_equal(load_npy(scratch.file("their_ids.npy")), Tensor::from_ids({2}, {7, -7}));
}

TEST_CASE("a size beyond 64 bits, and a header of version 2 that has no length") {
  scratch::Directory scratch;
  auto error = [&](const std::string& version, const std::string& rest) {
    scratch::write(scratch.file("wrong.npy"), "\x93NUMPY" + version + rest);
    return scratch::error_of([&] { load_npy(scratch.file("wrong.npy")); });
  };
  // 2^64 + 1, and one number.
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551617,), }";
  CHECK(error({'\x01', '\0'}, std::string{static_cast<char>(header.size()), '\0'} + header + "four")
            .find("has a damaged header") != std::string::npos);
  CHECK(error({'\x02', '\0'}, {'\0', '\0'}).ends_with("ends within its header"));
}
