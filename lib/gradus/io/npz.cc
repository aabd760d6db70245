#include <algorithm>
#include <array>
#include <set>

#include <gradus/io/npy.h>
#include <gradus/io/npy_format.h>

// A zip archive, as far as npz needs it (APPNOTE 6.3): local headers with their data, then a directory of
// them, then a record that says where the directory is.

namespace gradus {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kDirectory = 0x02014b50, kEnd = 0x06054b50;
constexpr size_t kLocalSize = 30, kDirectorySize = 46, kEndSize = 22;
constexpr uint16_t kUtf8 = 1 << 11, kEncrypted = 1;
constexpr uint64_t kLargest = 0xFFFFFFFE;  // one more means: see the zip64 extension

uint32_t crc32(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      t[i] = i;
      for (int bit = 0; bit < 8; ++bit) t[i] = t[i] >> 1 ^ (t[i] & 1 ? 0xEDB88320u : 0);
    }
    return t;
  }();
  uint32_t crc = ~0u;
  for (char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  return ~crc;
}

struct Field {
  uint64_t value;
  int bytes;
};

std::string record(std::initializer_list<Field> fields) {
  std::string out;
  for (const auto& [value, bytes] : fields)
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

uint64_t get(std::string_view from, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(from[at + static_cast<size_t>(i)])) << (8 * i);
  return value;
}

// What the local header and the directory say alike, from "version needed" to the length of the extra field.
std::string description(const std::string& name, const std::string& data) {
  bool ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<uint8_t>(c) < 128; });
  return record({{20, 2},  // version needed
                 {ascii ? uint64_t{0} : kUtf8, 2},
                 {0, 2},     // stored
                 {0, 2},     // 00:00
                 {0x21, 2},  // 1980-01-01: equal tensors make equal files
                 {crc32(data), 4},
                 {data.size(), 4},
                 {data.size(), 4},
                 {name.size(), 2},
                 {0, 2}});
}

}  // namespace

std::string io::npz_bytes(const NamedTensors& tensors, const Complain& complain) {
  std::string out, directory;
  std::set<std::string> seen;
  for (const auto& [key, tensor] : tensors) {
    if (key.empty() || key.size() > 60000 || !seen.insert(key).second)
      complain("names must be given, and once each: \"" + key + "\"");
    std::string name = key + ".npy", data = io::npy_bytes(tensor, complain), about = description(name, data);
    directory += record({{kDirectory, 4}, {20, 2}}) + about;  // made by version 20
    // No comment, disk 0, internal attributes; external ones; where the local header is.
    directory += record({{0, 6}, {0, 4}, {out.size(), 4}}) + name;
    out += record({{kLocal, 4}}) + about + name + data;
    if (out.size() > kLargest - directory.size()) complain("would be larger than 4 GB");
  }
  if (tensors.size() >= 0xFFFF) complain("would have too many arrays");
  const uint64_t count = tensors.size();
  return out + directory +
         record({{kEnd, 4}, {0, 4}, {count, 2}, {count, 2}, {directory.size(), 4}, {out.size(), 4}, {0, 2}});
}

NamedTensors io::npz_tensors(std::string_view bytes, const Complain& complain) {
  size_t end = std::string_view::npos;  // of the archive there may be a comment behind
  for (size_t back = kEndSize; back <= bytes.size() && back < kEndSize + 0x10000; ++back)
    if (get(bytes, bytes.size() - back, 4) == kEnd) {
      end = bytes.size() - back;
      break;
    }
  if (end == std::string_view::npos) complain("is no zip archive, or was cut off");
  size_t count = get(bytes, end + 10, 2), at = get(bytes, end + 16, 4);
  if (count == 0xFFFF || at > kLargest) complain("is an archive of more than 4 GB, which is not known here");
  NamedTensors out;
  std::set<std::string> seen;
  uint64_t all = 0;  // bytes of the entries: more than the archive has are the same ones several times
  for (size_t i = 0; i < count; ++i) {
    if (at > end || end - at < kDirectorySize || get(bytes, at, 4) != kDirectory)
      complain("has a damaged directory");
    uint64_t flags = get(bytes, at + 8, 2), method = get(bytes, at + 10, 2), crc = get(bytes, at + 16, 4);
    uint64_t packed = get(bytes, at + 20, 4), size = get(bytes, at + 24, 4), local = get(bytes, at + 42, 4);
    size_t name_size = get(bytes, at + 28, 2), more = get(bytes, at + 30, 2) + get(bytes, at + 32, 2);
    if (end - at < kDirectorySize + name_size + more) complain("has a damaged directory");
    std::string name(bytes.substr(at + kDirectorySize, name_size));
    at += kDirectorySize + name_size + more;
    auto entry = [&](const std::string& what) { complain("entry \"" + name + "\" " + what); };
    if (flags & kEncrypted) entry("is encrypted");
    if (method != 0) entry("is compressed: write it with numpy.savez, not savez_compressed");
    if (packed > kLargest || size > kLargest || local > kLargest) entry("has more than 4 GB");
    if (local + kLocalSize > end || get(bytes, local, 4) != kLocal) entry("is not where the directory says");
    uint64_t begin = local + kLocalSize + get(bytes, local + 26, 2) + get(bytes, local + 28, 2);
    if (packed != size || begin > end || end - begin < size) entry("is cut off");
    std::string_view data = bytes.substr(begin, size);
    if (crc32(data) != crc) entry("is damaged: its checksum is wrong");
    if ((all += size) > bytes.size()) entry("lies where another one does");
    if (name.size() > 4 && name.ends_with(".npy")) name.resize(name.size() - 4);
    if (name.empty() || !seen.insert(name).second) entry("has the name of another one, or none");
    out.emplace_back(name, io::npy_tensor(data, entry));
  }
  return out;
}

void save_npz(const std::string& path, const NamedTensors& tensors) {
  io::Complain complain = io::complain_about("npz", path);
  io::replace_file(path, io::npz_bytes(tensors, complain), complain);
}

NamedTensors load_npz(const std::string& path) {
  io::Complain complain = io::complain_about("npz", path);
  return io::npz_tensors(io::read_file(path, complain), complain);
}

}  // namespace gradus
