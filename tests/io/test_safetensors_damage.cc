#include <sys/stat.h>

#include <gradus/io/safetensors.h>

#include "../quick_doctest.h"
#include "scratch.h"

using namespace gradus;

namespace {

// What load_safetensors says about these bytes, without the file's name.
std::string complaint(const std::string& bytes) {
  scratch::Directory dir;
  std::string path = dir.file("model.safetensors"), start = "[safetensors] " + path + ": ";
  scratch::write(path, bytes);
  std::string text = scratch::error_of([&] { load_safetensors(path); });
  return text.substr(0, start.size()) == start ? text.substr(start.size()) : "unnamed: " + text;
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape, int begin,
                   int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

std::string file(const std::string& tensors, size_t data_bytes) {
  return scratch::assemble("{" + tensors + "}", std::string(data_bytes, '\0'));
}

}  // namespace

TEST_CASE("a file that is cut short") {
  std::string whole = file(tensor("w", "F32", "[2,3]", 0, 24), 24);
  CHECK(complaint(whole) == "unnamed: (no error)");
  CHECK(complaint("") == "is empty");
  CHECK(complaint(whole.substr(0, 5)) == "is truncated: 5 bytes, the header's length alone takes 8");
  CHECK(complaint(whole.substr(0, 20)) == "is truncated: the header takes 57 bytes, 12 are left");
  CHECK(complaint(whole.substr(0, whole.size() - 1)) ==
        "is truncated: the tensors take 24 bytes, 23 follow the header");
  CHECK(complaint(whole + "more") == "4 bytes follow the last tensor");
  // Every shorter file is an error of its own; none is read beyond its end.
  for (size_t n = 0; n < whole.size(); ++n) CHECK(complaint(whole.substr(0, n)).substr(0, 8) != "unnamed:");
}

TEST_CASE("a header length that cannot be") {
  CHECK(complaint(std::string("\x00\xe1\xf5\x05\x00\x00\x00\x00{}", 10)) ==
        "is truncated: the header takes 100000000 bytes, 2 are left");
  CHECK(complaint(std::string("\x01\xe1\xf5\x05\x00\x00\x00\x00{}", 10)) ==
        "the header must not exceed 100000000 bytes: 100000001; hint: is this a safetensors file?");
  CHECK(complaint(std::string(8, '\xff') + "{}") ==
        "the header must not exceed 100000000 bytes: 18446744073709551615; hint: is this a safetensors file?");
  CHECK(complaint(scratch::assemble("", "")) == "the header is not valid JSON: expected '{' at byte 0");
}

TEST_CASE("a header that is no JSON, or no header") {
  CHECK(complaint(scratch::assemble("PK\x03\x04 something else", "")) ==
        "the header is not valid JSON: expected '{' at byte 0");
  CHECK(complaint(file("\"w\":[1,2]", 0)) == "the header is not valid JSON: expected '{' at byte 5");
  CHECK(complaint(file(tensor("w", "F32", "[-2]", 0, 8), 8)) ==
        "the header is not valid JSON: expected a whole number that is not negative at byte 29");
  CHECK(complaint(file(tensor("w", "F32", "[2]", -8, 0), 8)) ==
        "the header is not valid JSON: expected a whole number that is not negative at byte 48");
  CHECK(complaint(file(tensor("w", "F32", "[[[[[[[[2]]]]]]]]", 0, 8), 8)) ==
        "the header is not valid JSON: expected a whole number that is not negative at byte 29");
  CHECK(complaint(file(tensor("w", "F32", "[2]", 0, 8) + "," + tensor("w", "F32", "[2]", 8, 16), 16)) ==
        "tensor \"w\" occurs twice");
}

TEST_CASE("offsets that overlap, leave a gap or run backwards") {
  CHECK(complaint(file(tensor("b", "F32", "[2]", 4, 12) + "," + tensor("a", "F32", "[2]", 0, 8), 12)) ==
        "tensor \"b\": overlaps \"a\": begins at 4, the other ends at 8");
  CHECK(complaint(file(tensor("a", "F32", "[2]", 0, 8) + "," + tensor("b", "F32", "[2]", 0, 8), 8)) ==
        "tensor \"b\": overlaps \"a\": begins at 0, the other ends at 8");
  CHECK(complaint(file(tensor("a", "F32", "[2]", 0, 8) + "," + tensor("b", "F32", "[2]", 12, 20), 20)) ==
        "tensor \"b\": bytes 8 to 12 before it belong to no tensor");
  CHECK(complaint(file(tensor("a", "F32", "[2]", 4, 12), 12)) ==
        "tensor \"a\": bytes 0 to 4 before it belong to no tensor");
  CHECK(complaint(file(tensor("a", "F32", "[2]", 8, 0), 8)) ==
        "tensor \"a\": data_offsets end before they begin: [8, 0]");
}

TEST_CASE("sizes and types that do not fit") {
  CHECK(complaint(file(tensor("w", "F32", "[2,3]", 0, 20), 20)) ==
        "tensor \"w\": [2, 3] of F32 takes 24 bytes, data_offsets give 20");
  CHECK(complaint(file(tensor("w", "F64", "[]", 0, 4), 4)) ==
        "tensor \"w\": [] of F64 takes 8 bytes, data_offsets give 4");
  CHECK(complaint(file(tensor("w", "F32", "[4294967296,4294967296]", 0, 8), 8)) ==
        "tensor \"w\": the shape [4294967296, 4294967296] is too large");
  CHECK(complaint(file(tensor("w", "F32", "[9223372036854775807,0,9]", 0, 8), 8)) ==
        "tensor \"w\": the shape [9223372036854775807, 0, 9] is too large");
  CHECK(complaint(file(tensor("w", "F32", "[2305843009213693952,8,0]", 0, 0), 0)) ==
        "tensor \"w\": the shape [2305843009213693952, 8, 0] is too large");
  CHECK(complaint(file(tensor("w", "F32", "[3,0,9]", 0, 8), 8)) ==
        "tensor \"w\": [3, 0, 9] of F32 takes 0 bytes, data_offsets give 8");
  CHECK(complaint(file(tensor("w", "F32", "[1,1,1,1,1,1,2]", 0, 8), 8)) ==
        "tensor \"w\": has 7 axes, at most 6 are possible");
  CHECK(complaint(file(tensor("w", "F8_E4M3", "[8]", 0, 8), 8)) == "tensor \"w\": unknown dtype \"F8_E4M3\"");
  CHECK(complaint(file(tensor("w", "f32", "[2]", 0, 8), 8)) == "tensor \"w\": unknown dtype \"f32\"");
}

// what() ends at a NUL, where message() once looked for the place of the call behind it.
TEST_CASE("a NUL in a tensor's name") {
  scratch::Directory dir;
  std::string path = dir.file("model.safetensors"), message;
  scratch::write(path, file(tensor("a\\u0000b", "X", "[2]", 0, 8), 8));
  try {
    load_safetensors(path);
  } catch (const Error& e) {
    message = e.message();
  }
  CHECK(message == "[safetensors] " + path + ": tensor \"a?b\": unknown dtype \"X\"");
}

TEST_CASE("what is not a file") {
  scratch::Directory dir;
  auto text = [](const std::string& path) { return scratch::error_of([&] { load_safetensors(path); }); };
  CHECK(text(dir.file("nothing")) ==
        "[safetensors] " + dir.file("nothing") + ": cannot be opened: No such file or directory");
  CHECK(text(dir.path().string()) == "[safetensors] " + dir.path().string() + ": is not a file");
  std::string pipe = dir.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(text(pipe) == "[safetensors] " + pipe + ": is not a file");
}

// Whatever stands in the file: an Error or a result, never a crash.
TEST_CASE("random damage") {
  std::string whole = file(tensor("a", "F32", "[2,3]", 0, 24) + "," + tensor("b", "U8", "[5]", 24, 29), 29);
  scratch::Directory dir;
  std::string path = dir.file("model");
  uint32_t state = 12345;
  auto random = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = whole;
    for (uint32_t k = 0; k <= random() % 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    scratch::write(path, bytes);
    std::string text = scratch::error_of([&] { load_safetensors(path); });
    CHECK((text == "(no error)" || text.substr(0, 14) == "[safetensors] "));
  }
}
