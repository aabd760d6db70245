#include <gradus/io/safetensors.h>

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <set>

#include <gradus/io/half.h>
#include <gradus/io/json_header.h>
#include <gradus/io/replacement.h>

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

namespace gradus {
namespace {

constexpr int64_t kLargestHeader = 100'000'000;  // as the format's own reader

struct FileType {
  const char* name;
  int64_t bytes;  // in the file
  DType dtype;    // in memory
};

// First of each element type the one that it is written as.
constexpr FileType kTypes[] = {{"F64", 8, DType::f64}, {"F32", 4, DType::f32}, {"I32", 4, DType::i32},
                               {"U8", 1, DType::u8},   {"I64", 8, DType::i32}, {"F16", 2, DType::f32},
                               {"BF16", 2, DType::f32}};

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}
  ~Reader() {
    if (fd_ >= 0) ::close(fd_);
  }
  Reader(const Reader&) = delete;

  SafetensorsFile run() {
    open();
    io::Header header = read_header();
    std::ranges::stable_sort(header.tensors, {}, [](auto& e) { return std::pair(e.begin, e.end); });
    for (const io::HeaderEntry& e : header.tensors) check_size(e);
    check_layout(header);
    SafetensorsFile out;
    out.metadata = std::move(header.metadata);
    for (const io::HeaderEntry& e : header.tensors) out.tensors.emplace_back(e.name, read_tensor(e));
    return out;
  }

 private:
  [[noreturn]] void wrong(const std::string& what, std::string_view hint = {}) const {
    fail("safetensors", path_ + ": " + what, hint);
  }
  [[noreturn]] void failed(const char* what) const {
    wrong(fmt::format("{}: {}", what, std::strerror(errno)));
  }

  // O_NONBLOCK: opening a pipe must not wait for its other end.
  void open() {
    do fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd_ < 0 && errno == EINTR);
    if (fd_ < 0) failed("cannot be opened");
    struct stat info;
    if (fstat(fd_, &info) != 0) failed("cannot be read");
    if (!S_ISREG(info.st_mode)) wrong("is not a file");
    size_ = info.st_size;
  }

  void read(void* to, int64_t bytes) const {
    for (char* at = static_cast<char*>(to); bytes > 0;) {
      ssize_t got = ::read(fd_, at, static_cast<size_t>(bytes));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) failed("cannot be read");
      if (got == 0) wrong("became shorter while it was read");
      at += got, bytes -= got;
    }
  }

  io::Header read_header() {
    if (size_ == 0) wrong("is empty");
    if (size_ < 8) wrong(fmt::format("is truncated: {} bytes, the header's length alone takes 8", size_));
    uint64_t length = 0;
    read(&length, 8);
    // The first bytes of a zip archive, of which torch.save and numpy.savez make their files.
    if (char begin[5] = {}; std::memcpy(begin, &length, 4), std::string_view(begin) == "PK\3\4")
      wrong("is a zip archive, no safetensors file", "from torch.save? Use safetensors.torch.save_file");
    if (length > static_cast<uint64_t>(kLargestHeader))
      wrong(fmt::format("the header must not exceed {} bytes: {}", kLargestHeader, length),
            "is this a safetensors file?");
    if (length > static_cast<uint64_t>(size_ - 8))
      wrong(fmt::format("is truncated: the header takes {} bytes, {} are left", length, size_ - 8));
    std::string text(length, '\0');
    read(text.data(), static_cast<int64_t>(length));
    data_bytes_ = size_ - 8 - static_cast<int64_t>(length);
    try {
      return io::parse_header(text);
    } catch (const std::string& problem) {
      wrong(problem);
    }
  }

  [[noreturn]] void wrong(const io::HeaderEntry& e, const std::string& what) const {
    wrong(fmt::format("tensor \"{}\": {}", e.name, what));
  }

  const FileType& type_of(const io::HeaderEntry& e) const {
    for (const FileType& type : kTypes)
      if (e.dtype == type.name) return type;
    wrong(e, fmt::format("unknown dtype \"{}\"", e.dtype));
  }

  void check_size(const io::HeaderEntry& e) const {
    const int axes = static_cast<int>(e.shape.size());
    if (axes > Shape::kMaxDims)
      wrong(e, fmt::format("has {} axes, at most {} are possible", axes, Shape::kMaxDims));
    if (!Shape::countable(e.shape.data(), axes))
      wrong(e, fmt::format("the shape [{}] is too large", fmt::join(e.shape, ", ")));
    const int64_t bytes = type_of(e).bytes * Shape(e.shape.data(), axes).numel();
    if (e.end < e.begin)
      wrong(e, fmt::format("data_offsets end before they begin: [{}, {}]", e.begin, e.end));
    if (e.end - e.begin != bytes)
      wrong(e, fmt::format("[{}] of {} takes {} bytes, data_offsets give {}", fmt::join(e.shape, ", "),
                           e.dtype, bytes, e.end - e.begin));
  }

  void check_layout(const io::Header& header) const {
    int64_t end = 0;
    const io::HeaderEntry* before = nullptr;
    for (const io::HeaderEntry& e : header.tensors) {
      if (e.begin < end)
        wrong(e,
              fmt::format("overlaps \"{}\": begins at {}, the other ends at {}", before->name, e.begin, end));
      if (e.begin > end) wrong(e, fmt::format("bytes {} to {} before it belong to no tensor", end, e.begin));
      end = e.end;
      before = &e;
    }
    if (end > data_bytes_)
      wrong(fmt::format("is truncated: the tensors take {} bytes, {} follow the header", end, data_bytes_));
    if (end < data_bytes_) wrong(fmt::format("{} bytes follow the last tensor", data_bytes_ - end));
  }

  // The file is read front to back; the layout was checked to be without gaps.
  Tensor read_tensor(const io::HeaderEntry& e) const {
    const FileType& type = type_of(e);
    Tensor out(Shape(e.shape.data(), static_cast<int>(e.shape.size())), type.dtype);
    if (type.bytes == size_of(type.dtype)) {
      read(out.raw(), out.bytes());
      return out;
    }
    const size_t n = static_cast<size_t>(out.numel());
    if (type.dtype == DType::i32) {
      std::vector<int64_t> raw(n);
      read(raw.data(), e.end - e.begin);
      for (int64_t value : raw)
        if (value != static_cast<int32_t>(value)) wrong(e, fmt::format("{} does not fit in 32 bits", value));
      std::transform(raw.begin(), raw.end(), out.i32(), [](int64_t v) { return static_cast<int32_t>(v); });
    } else {
      std::vector<uint16_t> raw(n);
      read(raw.data(), e.end - e.begin);
      const auto from_bfloat = [](uint16_t v) { return std::bit_cast<float>(uint32_t{v} << 16); };
      std::transform(raw.begin(), raw.end(), out.f32(), e.dtype == "F16" ? io::from_half : +from_bfloat);
    }
    return out;
  }

  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0, data_bytes_ = 0;
};

}  // namespace

void save_safetensors(const std::string& path, const SafetensorsFile& file) {
  auto wrong = [&](const std::string& what) { fail("safetensors", path + ": " + what); };
  std::vector<std::pair<std::string, Tensor>> tensors = file.tensors;
  std::ranges::stable_sort(tensors, std::greater(), [](auto& t) { return size_of(t.second.dtype()); });
  io::Header header{{}, file.metadata};
  std::set<std::string> names;
  int64_t end = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!io::valid_utf8(name)) wrong("a tensor's name is not valid UTF-8");
    if (name == "__metadata__") wrong("\"__metadata__\" cannot be a tensor's name");
    if (!names.insert(name).second) wrong(fmt::format("tensor \"{}\" occurs twice", name));
    if (!tensor.defined()) wrong(fmt::format("tensor \"{}\" is undefined", name));
    const Shape& shape = tensor.shape();
    const FileType& type = *std::ranges::find(kTypes, tensor.dtype(), &FileType::dtype);
    const int64_t begin = std::exchange(end, end + tensor.bytes());
    header.tensors.push_back({name, type.name, {shape.begin(), shape.end()}, begin, end});
  }
  for (const auto& [key, value] : file.metadata)
    if (!io::valid_utf8(key) || !io::valid_utf8(value)) wrong("the metadata is not valid UTF-8");
  std::string text = io::write_header(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the numbers begin aligned
  if (static_cast<int64_t>(text.size()) > kLargestHeader)
    wrong(fmt::format("the header must not exceed {} bytes: {}", kLargestHeader, text.size()));

  io::Replacement out(path, wrong);
  uint64_t length = text.size();
  out.write(&length, 8);
  out.write(text.data(), static_cast<int64_t>(length));
  for (const auto& [name, tensor] : tensors) out.write(tensor.raw(), tensor.bytes());
  out.commit();
}

SafetensorsFile load_safetensors(const std::string& path) { return Reader(path).run(); }

}  // namespace gradus
