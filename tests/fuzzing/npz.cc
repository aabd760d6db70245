// A .npz archive: of the bytes that are given, and with its sizes and checksums set right, which a fuzzer
// does not hit.

#include <gradus/error.h>
#include <gradus/io/npy_format.h>

#include "fuzz.h"
#include "tensors.h"

using namespace fuzzing;

namespace {

FUZZ_UNWATCHED uint32_t checksum(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

uint64_t number(const std::string& from, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(from[at + static_cast<size_t>(i)])) << (8 * i);
  return value;
}

std::string little_endian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

// Every entry of the directory gets the checksum of what it points at.
std::string with_checksums(std::string bytes) {
  for (size_t at = bytes.find("PK\1\2"); at != bytes.npos; at = bytes.find("PK\1\2", at + 4)) {
    if (bytes.size() - at < 46) break;
    uint64_t size = number(bytes, at + 24, 4), local = number(bytes, at + 42, 4);
    if (local + 30 > bytes.size()) continue;
    uint64_t begin = local + 30 + number(bytes, local + 26, 2) + number(bytes, local + 28, 2);
    if (begin > bytes.size() || bytes.size() - begin < size) continue;
    bytes.replace(at + 16, 4, little_endian(checksum(std::string_view(bytes).substr(begin, size)), 4));
  }
  return bytes;
}

std::string archive(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out, directory;
  for (const auto& [name, data] : entries) {
    std::string about = little_endian(20, 2) + std::string(8, '\0') + little_endian(checksum(data), 4) +
                        little_endian(data.size(), 4) + little_endian(data.size(), 4) +
                        little_endian(name.size(), 2) + std::string(2, '\0');
    directory +=
        "PK\1\2" + little_endian(20, 2) + about + std::string(10, '\0') + little_endian(out.size(), 4) + name;
    out += "PK\3\4" + about + name + data;
  }
  return out + directory + "PK\5\6" + std::string(4, '\0') + little_endian(entries.size(), 2) +
         little_endian(entries.size(), 2) + little_endian(directory.size(), 4) +
         little_endian(out.size(), 4) + std::string(2, '\0');
}

bool comes_back(const std::string& bytes) {
  auto complain = [](const std::string& what) { gradus::fail("npz", what); };
  gradus::NamedTensors read;
  if (!accepts<gradus::Error>([&] { read = gradus::io::npz_tensors(bytes, complain); })) return false;
  size_t numbers = 0;
  for (const auto& [name, tensor] : read) numbers += static_cast<size_t>(tensor.bytes());
  must(numbers <= 2 * bytes.size(),
       "an archive holds the numbers that it gives");  // f2 takes twice as much when read
  gradus::NamedTensors again = gradus::io::npz_tensors(gradus::io::npz_bytes(read, complain), complain);
  must(again.size() == read.size(), "an archive has as many arrays as were written");
  for (size_t i = 0; i < read.size(); ++i)
    must(again[i].first == read[i].first && same(again[i].second, read[i].second),
         "an archive is read as it was written");
  return true;
}

}  // namespace

FUZZ_TARGET(npz, {archive({}), archive({{"x.npy", npy_file("<f4", "(2,)", 8)}}),
                  archive({{"x.npy", npy_file("<f2", "(2,)", 4)}, {"é.npy", npy_file("|u1", "()", 1)}})}) {
  std::string as_it_is(input), right = with_checksums(as_it_is);
  bool accepted = comes_back(as_it_is);
  return (right != as_it_is && comes_back(right)) || accepted;
}
