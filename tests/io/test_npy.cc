// Files of NumPy, read and written: against files that NumPy wrote (tests/io/numpy/make.py), and where
// python3 has NumPy, against the real thing.

#include <cmath>
#include <cstdlib>

#include <gradus/io/npy.h>

#include "../quick_doctest.h"
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
  NamedTensors data = load_npz(stored("data.npz"));
  REQUIRE(data.size() == 2);
  CHECK(data[0].first == "x");
  check_equal(data[0].second, pattern(DType::f32));
  CHECK(data[1].first == "ids");
  check_equal(data[1].second, Tensor::from_ids({5}, {0, 1, 2, 3, 4}));
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

TEST_CASE("archives come back as they were") {
  scratch::Directory scratch;
  std::string path = scratch.file("a.npz");
  save_npz(path,
           {{"x", pattern(DType::f32)}, {"übung", pattern(DType::f64)}, {"none", Tensor({0}, DType::i32)}});
  NamedTensors back = load_npz(path);
  REQUIRE(back.size() == 3);
  check_equal(back[0].second, pattern(DType::f32));
  CHECK(back[1].first == "übung");
  check_equal(back[1].second, pattern(DType::f64));
  check_equal(back[2].second, Tensor({0}, DType::i32));
  save_npz(path, {});
  CHECK(load_npz(path).empty());
}

TEST_CASE("what cannot be read is named") {
  auto error = [](const std::string& name) {
    return scratch::error_of(
        [&] { name.ends_with("z") ? (void)load_npz(stored(name)) : (void)load_npy(stored(name)); });
  };
  auto npy = [](const std::string& name) { return "[npy] " + stored(name) + ": "; };
  CHECK(error("objects.npy") == npy("objects.npy") + "holds Python objects, not numbers");
  CHECK(error("records.npy") == npy("records.npy") + "holds records with fields, not plain numbers");
  CHECK(error("complex.npy") == npy("complex.npy") + "has numbers of type \"<c16\", which is not known here");
  CHECK(error("huge_int.npy") == npy("huge_int.npy") + "holds a whole number that does not fit into 32 bits");
  CHECK(error("nowhere.npy") == npy("nowhere.npy") + "cannot be opened: No such file or directory");
  CHECK(error("make.py") == npy("make.py") + "is no npy file");
  CHECK(error("compressed.npz") == "[npz] " + stored("compressed.npz") +
                                       ": entry \"x.npy\" is compressed: write it with numpy.savez, not "
                                       "savez_compressed");
  scratch::Directory scratch;
  CHECK(scratch::error_of([&] {
          save_npz(scratch.file("b.npz"), {{"x", Tensor::ones({1})}, {"x", Tensor::ones({1})}});
        }) == "[npz] " + scratch.file("b.npz") + ": names must be given, and once each: \"x\"");
  CHECK(scratch::error_of([&] { save_npy(scratch.file("b.npy"), {}); }) ==
        "[npy] " + scratch.file("b.npy") + ": an undefined tensor cannot be written");
}

TEST_CASE("a file cut off or changed anywhere is refused or read, and never more than that") {
  scratch::Directory scratch;
  std::string npy = scratch::read(stored("f4.npy")), npz = scratch::read(stored("data.npz"));
  auto refused = [&](const std::string& name, const std::string& bytes) {
    scratch::write(scratch.file(name), bytes);
    return scratch::error_of([&] {
             name.ends_with("z") ? (void)load_npz(scratch.file(name)) : (void)load_npy(scratch.file(name));
           }) != "no error";
  };
  for (size_t n = 0; n < npy.size(); ++n) CHECK(refused("cut.npy", npy.substr(0, n)));
  for (size_t n = 0; n < npz.size(); n += 3) CHECK(refused("cut.npz", npz.substr(0, n)));
  for (size_t i = 0; i < 128; ++i)
    for (char c : {'\0', '9', '(', '\xFF'}) {
      std::string bytes = npy;
      bytes[i] = c;
      refused("changed.npy", bytes);  // must not crash; a space may be changed with impunity
    }
  // In the archive some fields stand twice and others do not matter; what is read is what was written.
  NamedTensors whole = load_npz(stored("data.npz"));
  size_t noticed = 0;
  for (size_t i = 0; i < npz.size(); ++i) {
    std::string bytes = npz;
    bytes[i] = static_cast<char>(~bytes[i]);
    if (refused("changed.npz", bytes)) {
      ++noticed;
      continue;
    }
    CAPTURE(i);
    NamedTensors back = load_npz(scratch.file("changed.npz"));
    REQUIRE(back.size() == 2);
    for (size_t k = 0; k < 2; ++k) check_equal(back[k].second, whole[k].second);
  }
  CHECK(noticed > npz.size() / 2);
  std::string data = npz;
  data[npz.find("NUMPY") + 130] ^= 1;  // a bit of a number
  CHECK(refused("bit.npz", data));
}

TEST_CASE("NumPy reads what is written here, and the other way round") {
  if (std::system("python3 -c 'import numpy' >/dev/null 2>&1") != 0) {
    MESSAGE("python3 has no NumPy here: only the stored files were compared");
    return;
  }
  scratch::Directory scratch;
  save_npz(scratch.file("ours.npz"), {{"x", pattern(DType::f32)}, {"übung", Tensor::from_ids({2}, {7, -7})}});
  std::string program =
      "import numpy as np\n"
      "d = dict(np.load('" +
      scratch.file("ours.npz") +
      "'))\n"
      "assert list(d) == ['x', 'übung'], list(d)\n"
      "assert d['x'].dtype == 'f4' and (d['x'] == np.arange(24).reshape(2, 3, 4) * 0.5 - 3).all()\n"
      "assert d['übung'].dtype == 'i4' and d['übung'].tolist() == [7, -7]\n"
      "np.savez('" +
      scratch.file("theirs.npz") + "', **{k: np.asfortranarray(v) for k, v in d.items()})\n";
  scratch::write(scratch.file("check.py"), program);
  REQUIRE(std::system(("python3 '" + scratch.file("check.py") + "'").c_str()) == 0);
  NamedTensors back = load_npz(scratch.file("theirs.npz"));
  REQUIRE(back.size() == 2);
  check_equal(back[0].second, pattern(DType::f32));
  CHECK(back[1].first == "übung");
  check_equal(back[1].second, Tensor::from_ids({2}, {7, -7}));
}
