// The bytes of a safetensors file. What is read is written and read again the same; so is the header alone.

#include <algorithm>
#include <cstring>

#include <gradus/error.h>
#include <gradus/io/json_header.h>
#include <gradus/io/safetensors.h>

#include "fuzz.h"
#include "tensors.h"

using namespace fuzzing;

namespace {

bool same_tensors(const gradus::SafetensorsFile& a, const gradus::SafetensorsFile& b) {
  if (a.metadata != b.metadata || a.tensors.size() != b.tensors.size()) return false;
  auto by_name = [](const auto& x, const auto& y) { return x.first < y.first; };
  auto first = a.tensors, second = b.tensors;
  std::sort(first.begin(), first.end(), by_name);
  std::sort(second.begin(), second.end(), by_name);
  for (size_t i = 0; i < first.size(); ++i) {
    const auto& [name, x] = first[i];
    const auto& [other, y] = second[i];
    if (name != other || !same(x, y)) return false;
  }
  return true;
}

void header_comes_back(std::string_view input) {
  uint64_t length = 0;
  if (input.size() < 8) return;
  std::memcpy(&length, input.data(), 8);
  std::string_view text = input.substr(8, std::min<uint64_t>(length, input.size() - 8));
  gradus::io::Header header;
  try {
    header = gradus::io::parse_header(text);
  } catch (const std::string& problem) {
    return must_be_a_message(problem);
  }
  std::string written = gradus::io::write_header(header);
  must(gradus::io::write_header(gradus::io::parse_header(written)) == written,
       "a header is written as it is read");
}

std::string one(const std::string& name, const std::string& dtype, const std::string& shape, int begin,
                int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

std::string file_of(const std::string& header, const std::string& data) {
  std::string text = "{" + header + "}", out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return out + text + data;
}
std::string file_of(const std::string& header, size_t bytes) {
  return file_of(header, std::string(bytes, '\1'));
}

}  // namespace

FUZZ_TARGET(safetensors, {file_of("", ""), file_of(one("w", "F32", "[2,3]", 0, 24), 24),
                          file_of(one("b", "F64", "[]", 0, 8) + "," + one("none", "U8", "[0,7]", 8, 8), 8),
                          file_of(one("ids", "I64", "[1]", 0, 8), std::string("\5\0\0\0\0\0\0\0", 8)),
                          file_of(one("h", "F16", "[2]", 0, 4) + "," + one("g", "BF16", "[1,2]", 4, 8), 8),
                          file_of(R"("__metadata__":{"step":"7","a\"b":"é\n\ud83d\ude00"},)" +
                                      one("w", "I32", "[1,1,1,1,1,2]", 0, 8),
                                  8)}) {
  static MemoryFile file;
  header_comes_back(input);
  gradus::SafetensorsFile read;
  if (!accepts<gradus::Error>([&] { read = gradus::load_safetensors(file.with(input)); })) return false;
  std::string path = scratch_directory() + "/again.safetensors";
  gradus::save_safetensors(path, read);
  must(same_tensors(read, gradus::load_safetensors(path)), "what is read is written and read again the same");
  return true;
}
