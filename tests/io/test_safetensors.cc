#include <filesystem>
#include <cmath>
#include <limits>

#include <gradus/io/safetensors.h>

#include "../quick_doctest.h"
#include "scratch.h"

using namespace gradus;
using scratch::error_of;

namespace {

Tensor loaded(const std::string& path, const std::string& name) {
  for (auto& [n, tensor] : load_safetensors(path).tensors)
    if (n == name) return tensor;
  return {};
}

}  // namespace

TEST_CASE("what is saved is loaded: names, order, shapes, types, numbers, metadata") {
  scratch::Directory dir;
  std::string path = dir.file("model.safetensors");
  SafetensorsFile file;
  file.metadata = {{"epoch", "3"}, {"quote \"\\\n", "\u00e9\u20ac"}};
  file.tensors = {{"encoder.weight", Tensor::from({2, 3}, {1.5, -2, 3e-8, 0, 1e30, -0.0})},
                  {"a \"quoted\" \\ name\n\u00e9", Tensor::from({}, {7})},
                  {"empty", Tensor({0, 4}, DType::f32)},
                  {"b", Tensor::from_ids({3}, {1, -2, 2147483647})},
                  {"mask", Tensor::from({5}, {1, 0, 1, 1, 0}, DType::u8)}};
  save_safetensors(path, file);
  SafetensorsFile back = load_safetensors(path);
  CHECK(back.metadata == file.metadata);
  REQUIRE(back.tensors.size() == file.tensors.size());
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    CHECK(back.tensors[i].first == file.tensors[i].first);
    CHECK(back.tensors[i].second.shape() == file.tensors[i].second.shape());
    CHECK(back.tensors[i].second.dtype() == file.tensors[i].second.dtype());
    CHECK(back.tensors[i].second.to_vector() == file.tensors[i].second.to_vector());
  }
  CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST_CASE("NaN and infinities keep their bits; doubles come first and the numbers are aligned") {
  scratch::Directory dir;
  std::string path = dir.file("model.safetensors");
  double inf = std::numeric_limits<double>::infinity();
  save_safetensors(path, {{{"bytes", Tensor::from({3}, {1, 2, 3}, DType::u8)},
                           {"f", Tensor::from({3}, {1, inf, std::nan("")})},
                           {"d", Tensor::from({2}, {-inf, 0.1}, DType::f64)}},
                          {}});
  SafetensorsFile back = load_safetensors(path);
  CHECK(back.tensors[0].first == "d");
  CHECK(back.tensors[1].first == "f");
  CHECK(back.tensors[2].first == "bytes");
  CHECK(back.tensors[0].second.at(0) == -inf);
  CHECK(back.tensors[0].second.at(1) == 0.1);
  CHECK(back.tensors[1].second.at(1) == inf);
  CHECK(std::isnan(back.tensors[1].second.at(2)));
  CHECK(static_cast<unsigned char>(scratch::read(path)[0]) % 8 == 0);
}

TEST_CASE("a file without tensors") {
  scratch::Directory dir;
  save_safetensors(dir.file("none"), {});
  CHECK(load_safetensors(dir.file("none")).tensors.empty());
}

TEST_CASE("half precision and 64-bit ids are converted") {
  scratch::Directory dir;
  std::string path = dir.file("other");
  std::string header = R"({"h":{"dtype":"F16","shape":[7],"data_offsets":[0,14]},)"
                       R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[14,18]},)"
                       R"("i":{"dtype":"I64","shape":[2],"data_offsets":[18,34]}})";
  // 1, -2, 65504, the smallest subnormal 2^-24, -0, infinity, 1/3 rounded;  1, -3.140625;  -5, 2^31 - 1
  std::string data(
      "\x00\x3c\x00\xc0\xff\x7b\x01\x00\x00\x80\x00\x7c\x55\x35"
      "\x80\x3f\x49\xc0",
      18);
  data += std::string("\xfb\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x00\x00\x00", 16);
  scratch::write(path, scratch::assemble(header, data));
  CHECK(loaded(path, "h").dtype() == DType::f32);
  CHECK(loaded(path, "h").to_vector() == std::vector<double>{1, -2, 65504, 0x1p-24, -0.0,
                                                             std::numeric_limits<double>::infinity(),
                                                             0x1.554p-2});
  CHECK(std::signbit(loaded(path, "h").at(4)));
  CHECK(loaded(path, "b").to_vector() == std::vector<double>{1, -3.140625});
  CHECK(loaded(path, "i").dtype() == DType::i32);
  CHECK(loaded(path, "i").to_vector() == std::vector<double>{-5, 2147483647});

  scratch::write(path, scratch::assemble(R"({"i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})",
                                         std::string("\x00\x00\x00\x80\x00\x00\x00\x00", 8)));
  CHECK(error_of([&] { load_safetensors(path); }) ==
        "[safetensors] " + path + ": tensor \"i\": 2147483648 does not fit in 32 bits");
}

TEST_CASE("the old file is replaced, and stays where the new one cannot be written") {
  scratch::Directory dir;
  std::string path = dir.file("model.safetensors"), at = "[safetensors] " + path + ": ";
  save_safetensors(path, {{{"w", Tensor::full({1000}, 1)}}, {}});
  save_safetensors(path, {{{"w", Tensor::full({10}, 2)}}, {}});
  CHECK(loaded(path, "w").numel() == 10);

  scratch::write(path + ".tmp", "left behind by a crash, and longer than the file that is written now: " +
                                    std::string(500, 'x'));
  save_safetensors(path, {{{"w", Tensor::full({2}, 3)}}, {}});
  CHECK(loaded(path, "w").to_vector() == std::vector<double>{3, 3});

  // A link stays one, and what is no file what it is.
  std::filesystem::create_symlink(path, dir.file("link"));
  save_safetensors(dir.file("link"), {{{"w", Tensor::full({1}, 4)}}, {}});
  CHECK(std::filesystem::is_symlink(dir.file("link")));
  CHECK(loaded(path, "w").to_vector() == std::vector<double>{4});
  CHECK(error_of([&] { save_safetensors("/dev/null", {}); }) ==
        "[safetensors] /dev/null: cannot be replaced: no file");
  save_safetensors(path, {{{"w", Tensor::full({2}, 3)}}, {}});

  Tensor t = Tensor::zeros({1});
  CHECK(error_of([&] { save_safetensors(path, {{{"a", t}, {"a", t}}, {}}); }) ==
        at + "tensor \"a\" occurs twice");
  CHECK(error_of([&] { save_safetensors(path, {{{"a", Tensor()}}, {}}); }) ==
        at + "tensor \"a\" is undefined");
  CHECK(error_of([&] { save_safetensors(path, {{{"__metadata__", t}}, {}}); }) ==
        at + "\"__metadata__\" cannot be a tensor's name");
  CHECK(error_of([&] { save_safetensors(path, {{{"\xff", t}}, {}}); }) ==
        at + "a tensor's name is not valid UTF-8");
  CHECK(error_of([&] { save_safetensors(path, {{}, {{"k", "\xff"}}}); }) ==
        at + "the metadata is not valid UTF-8");
  CHECK(error_of([&] { save_safetensors(path, {{}, {{"\xff", "v"}}}); }) ==
        at + "the metadata is not valid UTF-8");
  CHECK(loaded(path, "w").to_vector() == std::vector<double>{3, 3});

  std::string nowhere = dir.file("no/such/model");
  CHECK(error_of([&] { save_safetensors(nowhere, {}); }) ==
        "[safetensors] " + nowhere + ": cannot be written: No such file or directory");
  std::string directory = dir.file("directory");
  std::filesystem::create_directory(directory);
  CHECK(error_of([&] { save_safetensors(directory, {}); }) ==
        "[safetensors] " + directory + ": cannot be replaced: Is a directory");
  CHECK_FALSE(std::filesystem::exists(directory + ".tmp"));
}

TEST_CASE("the numbers are aligned, however long the names are") {
  scratch::Directory dir;
  for (size_t n = 1; n <= 8; ++n) {
    save_safetensors(dir.file("aligned"), {{{std::string(n, 'x'), Tensor::zeros({1})}}, {}});
    CHECK(static_cast<unsigned char>(scratch::read(dir.file("aligned"))[0]) % 8 == 0);
  }
}
