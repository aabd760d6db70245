#include <gradus/io/npy.h>

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include <gradus/error.h>
#include <gradus/io/half.h>
#include <gradus/io/npy_format.h>

static_assert(std::endian::native == std::endian::little, "npy files are written little-endian");

namespace gradus {
namespace io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// The header: a Python dictionary of three entries, in any order and with any spaces.
struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

class HeaderReader {
 public:
  HeaderReader(std::string_view text, const Complain& complain) : text_(text), complain_(complain) {}

  NpyHeader read() {
    NpyHeader h;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      std::string key = word();
      expect(':');
      if (key == "descr")
        h.descr = type(), descr = true;
      else if (key == "fortran_order")
        h.fortran_order = truth(), order = true;
      else if (key == "shape")
        h.shape = tuple(), shape = true;
      else
        complain_("has an unknown entry \"" + key + "\" in its header");
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !order || !shape) complain_("has a header without descr, fortran_order or shape");
    return h;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::strchr(" \t\n", text_[at_])) ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) complain_(fmt::format("has a damaged header: no '{}' at character {}", c, at_));
  }
  std::string word() {
    char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) complain_("has a damaged header: a string without end");
    std::string out(text_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }
  std::string type() {
    skip();
    if (at_ < text_.size() && text_[at_] == '[') complain_("holds records with fields, not plain numbers");
    return word();
  }
  bool truth() {
    skip();
    for (std::string_view word : {"True", "False"})
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    complain_("has a damaged header: fortran_order is neither True nor False");
    return false;
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> out;
    expect('(');
    while (!accept(')')) {
      skip();
      int64_t n = 0;
      size_t begin = at_;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - begin < 18; ++at_)
        n = 10 * n + (text_[at_] - '0');
      if (at_ == begin) complain_("has a damaged header: a size that is no number");
      out.push_back(n);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return out;
  }

  std::string_view text_;
  const Complain& complain_;
  size_t at_ = 0;
};

// One number of `size` bytes, its bytes turned round where `swap`.
template <class T>
T number(const char* from, bool swap) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  if (swap) std::reverse(bytes, bytes + sizeof(T));
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

struct Type {
  const char* name;  // without byte order
  size_t bytes;
  DType dtype;  // in memory
};
constexpr Type kTypes[] = {{"f4", 4, DType::f32}, {"f8", 8, DType::f64}, {"i4", 4, DType::i32},
                           {"u1", 1, DType::u8},  {"b1", 1, DType::u8},  {"f2", 2, DType::f32},
                           {"i1", 1, DType::i32}, {"i2", 2, DType::i32}, {"u2", 2, DType::i32},
                           {"u4", 4, DType::i32}, {"i8", 8, DType::i32}, {"u8", 8, DType::i32}};

int32_t as_i32(int64_t value, bool fits, const Complain& complain) {
  if (!fits || value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
    complain("holds a whole number that does not fit into 32 bits");
  return static_cast<int32_t>(value);
}

// The i-th number of the file goes to place `at` of the tensor.
void put(const Type& type, const char* from, bool swap, const Tensor& t, int64_t at,
         const Complain& complain) {
  std::string_view name = type.name;
  if (name == "f4")
    t.f32()[at] = number<float>(from, swap);
  else if (name == "f8")
    t.f64()[at] = number<double>(from, swap);
  else if (name == "i4")
    t.i32()[at] = number<int32_t>(from, swap);
  else if (name == "u1" || name == "b1")
    t.u8()[at] = number<uint8_t>(from, false);
  else if (name == "f2")
    t.f32()[at] = from_half(number<uint16_t>(from, swap));
  else if (name == "i1")
    t.i32()[at] = static_cast<int8_t>(number<uint8_t>(from, false));
  else if (name == "i2")
    t.i32()[at] = number<int16_t>(from, swap);
  else if (name == "u2")
    t.i32()[at] = number<uint16_t>(from, swap);
  else if (name == "u4")
    t.i32()[at] = as_i32(number<uint32_t>(from, swap), true, complain);
  else if (name == "i8")
    t.i32()[at] = as_i32(number<int64_t>(from, swap), true, complain);
  else {
    uint64_t value = number<uint64_t>(from, swap);
    t.i32()[at] = as_i32(static_cast<int64_t>(value), value <= std::numeric_limits<int32_t>::max(), complain);
  }
}

const char* type_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "<f4";
    case DType::f64:
      return "<f8";
    case DType::i32:
      return "<i4";
    case DType::u8:
      return "|u1";
  }
  return "?";
}

}  // namespace

std::string npy_bytes(const Tensor& t, const Complain& complain) {
  if (!t.defined()) complain("an undefined tensor cannot be written");
  std::string shape;
  for (int axis = 0; axis < t.dims(); ++axis) shape += (axis ? ", " : "") + std::to_string(t.size(axis));
  if (t.dims() == 1) shape += ",";
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type_name(t.dtype()), shape);
  // NumPy leaves room for a first axis of 20 digits to grow in place, and ends the header at a multiple of 64
  // bytes.
  if (t.dims() > 0) header += std::string(21 - std::to_string(t.size(0)).size(), ' ');
  header += std::string(64 - (kMagic.size() + 5 + header.size()) % 64, ' ') + '\n';
  std::string out(kMagic);
  out += {'\x01', '\0', static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  out += header;
  out.append(static_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes()));
  return out;
}

Tensor npy_tensor(std::string_view bytes, const Complain& complain) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != kMagic) complain("is no npy file");
  int version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3) complain(fmt::format("has npy format {}, only 1 to 3 are known", version));
  size_t begin = version == 1 ? 10 : 12;
  if (bytes.size() < begin) complain("ends within its header");
  size_t length =
      version == 1 ? number<uint16_t>(bytes.data() + 8, false) : number<uint32_t>(bytes.data() + 8, false);
  if (bytes.size() - begin < length) complain("ends within its header");
  NpyHeader h = HeaderReader(bytes.substr(begin, length), complain).read();
  std::string_view numbers = bytes.substr(begin + length);

  if (h.descr.find('O') != std::string::npos) complain("holds Python objects, not numbers");
  const Type* type = nullptr;
  bool order_known = !h.descr.empty() && std::strchr("<>|=", h.descr[0]);
  for (const Type& known : kTypes)
    if (order_known && h.descr.substr(1) == known.name) type = &known;
  if (!type) complain("has numbers of type \"" + h.descr + "\", which is not known here");
  if (h.shape.size() > static_cast<size_t>(Shape::kMaxDims))
    complain(fmt::format("has {} axes, at most {} are possible", h.shape.size(), Shape::kMaxDims));
  const int axes = static_cast<int>(h.shape.size());
  if (!Shape::countable(h.shape.data(), axes)) complain("has a shape beyond all memory");
  Shape shape(h.shape.data(), axes);
  const uint64_t count = static_cast<uint64_t>(shape.numel());
  if (numbers.size() != count * type->bytes)
    complain(fmt::format("has {} bytes of numbers where its shape asks for {} numbers of {} bytes",
                         numbers.size(), count, type->bytes));

  Tensor out(shape, type->dtype);
  bool swap = h.descr[0] == '>';
  // A "u4" is as long as an i32 and yet has numbers that are none.
  bool as_it_is = !swap && !h.fortran_order && std::string_view(type->name) == type_name(type->dtype) + 1;
  if (as_it_is && count > 0) {
    std::memcpy(out.raw(), numbers.data(), numbers.size());
    return out;
  }
  // Fortran order counts up the first axis fastest.
  std::vector<int64_t> index(h.shape.size(), 0);
  for (uint64_t i = 0; i < count; ++i) {
    int64_t at = static_cast<int64_t>(i);
    if (h.fortran_order) {
      at = 0;
      for (size_t axis = 0; axis < index.size(); ++axis)
        at += index[axis] * shape.stride(static_cast<int>(axis));
      for (size_t axis = 0; axis < index.size() && ++index[axis] == h.shape[axis]; ++axis) index[axis] = 0;
    }
    put(*type, numbers.data() + i * type->bytes, swap, out, at, complain);
  }
  return out;
}

std::string read_file(const std::string& path, const Complain& complain) {
  std::ifstream file(path, std::ios::binary);
  if (!file) complain(std::string("cannot be opened: ") + std::strerror(errno));
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) complain("cannot be read");
  return bytes;
}

}  // namespace io

namespace {

io::Complain complain_about(const std::string& path) {
  return [path](const std::string& what) { fail("npy", path + ": " + what); };
}

}  // namespace

void save_npy(const std::string& path, const Tensor& t) {
  io::Complain complain = complain_about(path);
  io::replace_file(path, io::npy_bytes(t, complain), complain);
}

Tensor load_npy(const std::string& path) {
  io::Complain complain = complain_about(path);
  const std::string bytes = io::read_file(path, complain);
  if (bytes.starts_with("PK")) fail("npy", path + ": is no npy file", "an .npz archive: load_npz reads it");
  return io::npy_tensor(bytes, complain);
}

}  // namespace gradus
