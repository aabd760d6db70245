#include <gradus/io/npy.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include <gradus/io/half.h>
#include <gradus/io/npy_format.h>
#include <gradus/numeric.h>

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
    list('{', '}', [&] {
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
    });
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
  // Items with a comma between them, which may also stand behind the last one.
  template <class Item>
  void list(char open, char close, Item&& item) {
    expect(open);
    while (!accept(close)) {
      item();
      if (!accept(',')) return expect(close);
    }
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
    const bool yes = text_.substr(at_).starts_with("True");
    if (!yes && !text_.substr(at_).starts_with("False"))
      complain_("has a damaged header: fortran_order is neither True nor False");
    at_ += yes ? 4 : 5;
    return yes;
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> out;
    list('(', ')', [&] {
      skip();
      int64_t n = 0;
      size_t begin = at_;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - begin < 18; ++at_)
        n = 10 * n + (text_[at_] - '0');
      if (at_ == begin) complain_("has a damaged header: a size that is no number");
      out.push_back(n);
    });
    return out;
  }

  std::string_view text_;
  const Complain& complain_;
  size_t at_ = 0;
};

// One number of `size` bytes, its bytes turned round where `swap`.
template <class T>
T number(const char* from, bool swap) {
  std::array<char, sizeof(T)> bytes;
  std::copy_n(from, sizeof(T), bytes.begin());
  if (swap) std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

struct Half {
  uint16_t bits;
  operator float() const { return from_half(bits); }
};

// The number in the file goes to place `at` of the tensor.
template <class T>
void put(const char* from, bool swap, const Tensor& t, int64_t at, const Complain& complain) {
  const T value = number<T>(from, swap);
  if constexpr (std::is_integral_v<T>)
    if (!std::in_range<int32_t>(value)) complain("holds a whole number that does not fit into 32 bits");
  visit(t, [&](auto* p) { p[at] = static_cast<std::remove_pointer_t<decltype(p)>>(+value); });
}

struct Type {
  const char* name;  // without byte order
  size_t bytes;
  DType dtype;  // in memory
  decltype(&put<float>) put;
};
template <class T>
constexpr Type type(const char* name, DType dtype) {
  return {name, sizeof(T), dtype, put<T>};
}
// First of each element type the one that it is written as.
constexpr Type kTypes[] = {
    type<float>("f4", DType::f32),    type<double>("f8", DType::f64),  type<int32_t>("i4", DType::i32),
    type<uint8_t>("u1", DType::u8),   type<uint8_t>("b1", DType::u8),  type<Half>("f2", DType::f32),
    type<int8_t>("i1", DType::i32),   type<int16_t>("i2", DType::i32), type<uint16_t>("u2", DType::i32),
    type<uint32_t>("u4", DType::i32), type<int64_t>("i8", DType::i32), type<uint64_t>("u8", DType::i32)};

Complain complain_about(const std::string& path) {
  return [path](const std::string& what) { fail("npy", path + ": " + what); };
}

const Type& type_of(DType dtype) { return *std::ranges::find(kTypes, dtype, &Type::dtype); }

}  // namespace

std::string npy_bytes(const Tensor& t, const Complain& complain) {
  if (!t.defined()) complain("an undefined tensor cannot be written");
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   t.dtype() == DType::u8 ? '|' : '<', type_of(t.dtype()).name,
                                   fmt::join(t.shape(), ", "), t.dims() == 1 ? "," : "");
  // NumPy leaves room for a first axis of 20 digits to grow in place, and ends the header at 64 n bytes.
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
  bool as_it_is = !swap && !h.fortran_order && type == &type_of(type->dtype);
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
    type->put(numbers.data() + i * type->bytes, swap, out, at, complain);
  }
  return out;
}

}  // namespace io

void save_npy(const std::string& path, const Tensor& t) {
  io::Complain complain = io::complain_about(path);
  io::replace_file(path, io::npy_bytes(t, complain), complain);
}

Tensor load_npy(const std::string& path) {
  io::Complain complain = io::complain_about(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) complain(std::string("cannot be opened: ") + std::strerror(errno));
  if (file.peek(); file.bad()) complain("cannot be read: is it a directory?");
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) complain("cannot be read");
  if (bytes.starts_with("PK"))
    fail("npy", path + ": is no npy file",
         "an .npz archive: numpy.load it and write its arrays by safetensors.numpy.save_file");
  return io::npy_tensor(bytes, complain);
}

}  // namespace gradus
