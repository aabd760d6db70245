#include "fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gradus/io/json_header.h>

namespace fuzzing {

void broken(std::string_view rule, std::string_view about) {
  throw Broken("a rule is broken: " + std::string(rule) + (about.empty() ? "" : ": ") + std::string(about));
}

namespace {

// Compared byte for byte where the fuzzer does not look on: it would put what is looked for into its inputs,
// and find it quoted.
FUZZ_UNWATCHED bool has(const char* text, size_t size, const char* word) {
  for (size_t begin = 0; begin < size; ++begin) {
    size_t n = 0;
    while (word[n] && begin + n < size && text[begin + n] == word[n]) ++n;
    if (!word[n]) return true;
  }
  return false;
}

}  // namespace

void must_be_a_message(std::string_view text) {
  must(!text.empty(), "an error says something");
  for (const char* own : {"std::", "basic_string::", "vector::_M", "json.exception", "map::at", "array::at",
                          "_M_range", "bad optional access", "filesystem error: "})
    must(!has(text.data(), text.size(), own), "an error is no exception of the standard library",
         [&] { return text; });
}

void must_be_printable(std::string_view text) {
  must_be_a_message(text);
  auto itself = [&] { return text; };
  must(gradus::io::valid_utf8(text), "what a program says is UTF-8", itself);
  for (char c : text)
    must(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F),
         "what a program says has no control character", itself);
}

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> sections(std::string_view input) {
  constexpr std::string_view kMark = "--- ";
  std::vector<std::pair<std::string, std::string>> out = {{"", ""}};
  while (!input.empty()) {
    size_t end = input.find('\n');
    std::string_view line = input.substr(0, end == input.npos ? end : end + 1);
    if (line.starts_with(kMark)) {
      std::string name(line.substr(kMark.size()));
      if (name.ends_with('\n')) name.pop_back();
      out.emplace_back(name, "");
    } else {
      out.back().second += line;
    }
    input.remove_prefix(line.size());
  }
  return out;
}

MemoryFile::MemoryFile() : file_(memfd_create("fuzz", MFD_CLOEXEC)) {
  if (file_ < 0) throw std::runtime_error("memfd_create does not work here");
  path_ = "/proc/self/fd/" + std::to_string(file_);
}

const std::string& MemoryFile::with(std::string_view bytes) {
  bool written = ftruncate(file_, 0) == 0;
  for (size_t at = 0; written && at < bytes.size();) {
    ssize_t put = pwrite(file_, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    written = put > 0;
    at += written ? static_cast<size_t>(put) : 0;
  }
  if (!written) throw std::runtime_error("a file in memory cannot be written");
  return path_;
}

const std::string& scratch_directory() {
  struct Directory {
    std::string path = "/dev/shm/gradus-fuzz-XXXXXX";
    Directory() {
      if (access("/dev/shm", W_OK) != 0)
        path = (std::filesystem::temp_directory_path() / "gradus-fuzz-XXXXXX").string();
      if (!mkdtemp(path.data())) throw std::runtime_error("no directory for the files of a target");
    }
    ~Directory() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Directory directory;
  return directory.path;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw std::runtime_error(path + " cannot be written");
}

std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

}  // namespace fuzzing
