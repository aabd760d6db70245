#include <gradus/tensor.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <gradus/kernels/random.h>
#include <gradus/memory.h>
#include <gradus/numeric.h>
#include <gradus/random.h>

namespace gradus {
namespace {

void must_fit(const Shape& shape, size_t count, const Caller& caller) {
  if (shape.numel() != static_cast<int64_t>(count))
    fail(caller, "tensor", fmt::format("{} numbers do not fill the shape {}", count, shape.str()));
}

// C++ does not say which integer a NaN or 1e10 becomes.
template <class T>
T narrowed(double value) {
  using Range = std::numeric_limits<T>;
  if constexpr (Range::is_integer)
    if (const double whole = std::trunc(value); !(whole >= Range::min() && whole <= Range::max()))
      fail("tensor", fmt::format("{} does not fit in {}", value, sizeof(T) == 1 ? "u8" : "i32"));
  return static_cast<T>(value);
}

std::shared_ptr<void> storage_for(const Shape& shape, int64_t bytes, DType dtype) {
  try {
    return allocate(bytes);
  } catch (const Error&) {
    fail("tensor", fmt::format("there is no room for {} bytes: {} {}", bytes, shape.str(), name_of(dtype)));
  }
}

}  // namespace

Tensor::Tensor(const Tensor&) = default;
Tensor& Tensor::operator=(const Tensor&) = default;
Tensor& Tensor::operator=(Tensor&& other) noexcept {
  shape_ = other.shape_;
  dtype_ = other.dtype_;
  numel_ = std::exchange(other.numel_, 0);
  data_ = std::exchange(other.data_, nullptr);
  storage_ = std::move(other.storage_);
  return *this;
}
Tensor::~Tensor() = default;

Tensor::Tensor(const Shape& shape, DType dtype)
    : shape_(shape),
      numel_(shape.numel()),
      dtype_(dtype),
      storage_(storage_for(shape, numel_ * size_of(dtype), dtype)),
      data_(storage_.get()) {}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  Tensor t(shape, dtype);
  std::memset(t.data_, 0, static_cast<size_t>(t.bytes()));  // all-zero bytes are 0 in every element type
  return t;
}

Tensor Tensor::ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  Tensor t(shape, dtype);
  t.fill(value);
  return t;
}

Tensor Tensor::from(const Shape& shape, const std::vector<double>& values, DType dtype, Caller caller) {
  must_fit(shape, values.size(), caller);
  Tensor t(shape, dtype);
  visit(t, [&]<class T>(T* p) {
    for (size_t i = 0; i < values.size(); ++i) p[i] = narrowed<T>(values[i]);
  });
  return t;
}

Tensor Tensor::from_ids(const Shape& shape, const std::vector<int32_t>& ids, Caller caller) {
  must_fit(shape, ids.size(), caller);
  Tensor t(shape, DType::i32);
  std::copy(ids.begin(), ids.end(), t.i32());
  return t;
}

Tensor Tensor::uniform(const Shape& shape, double low, double high, const RngInput& rng, DType dtype) {
  At at(rng.caller());
  Tensor t(shape, dtype);
  visit_floating(t, "uniform", [&](auto* p) { kernels::fill_uniform(rng, low, high, p, t.numel_); });
  return t;
}

Tensor Tensor::normal(const Shape& shape, double mean, double deviation, const RngInput& rng, DType dtype) {
  At at(rng.caller());
  Tensor t(shape, dtype);
  visit_floating(t, "normal", [&](auto* p) { kernels::fill_normal(rng, mean, deviation, p, t.numel_); });
  return t;
}

void* Tensor::typed(DType wanted) const {
  if (dtype_ != wanted || !defined())
    fail("tensor",
         fmt::format("{} numbers were asked of {} tensor", name_of(wanted),
                     defined() ? fmt::format("a {} {}", shape_.str(), name_of(dtype_)) : "an undefined"),
         defined() ? "" : "moved from, or never made?");
  return data_;
}

double Tensor::at(int64_t i) const {
  if (i < 0 || i >= numel_) fail("tensor", fmt::format("position {} is outside: shape {}", i, shape_.str()));
  double value = 0;
  visit(*this, [&](auto* p) { value = static_cast<double>(p[i]); });
  return value;
}

void Tensor::set(int64_t i, double value) const {
  if (i < 0 || i >= numel_) fail("tensor", fmt::format("position {} is outside: shape {}", i, shape_.str()));
  visit(*this, [&]<class T>(T* p) { p[i] = narrowed<T>(value); });
}

double Tensor::item() const {
  if (!defined()) fail("item", "the tensor is undefined");
  if (numel_ != 1) fail("item", fmt::format("the tensor must have one element: shape {}", shape_.str()));
  return at(0);
}

std::vector<double> Tensor::to_vector() const {
  std::vector<double> out;
  visit(*this, [&](auto* p) { out.assign(p, p + numel_); });
  return out;
}

Tensor Tensor::reshape(const std::vector<int64_t>& dims) const {
  std::vector<int64_t> sizes = dims;
  const auto shape = [&] { return Shape(sizes.data(), static_cast<int>(sizes.size())); };
  auto unknown = std::find(sizes.begin(), sizes.end(), -1);
  if (unknown == sizes.end()) return reshape(shape());
  if (std::find(unknown + 1, sizes.end(), -1) != sizes.end())
    fail("reshape", "only one axis may be -1: of " + shape_.str());
  *unknown = 1;
  const int64_t known = shape().numel();
  if (known == 0 || numel_ % known != 0)
    fail("reshape", fmt::format("axis {} cannot be worked out: {} elements over {}", unknown - sizes.begin(),
                                numel_, known));
  *unknown = numel_ / known;
  return reshape(shape());
}

Tensor Tensor::reshape(const Shape& shape) const {
  if (shape.numel() != numel_)
    fail("reshape", fmt::format("the number of elements must stay: {} to {}", shape_.str(), shape.str()));
  Tensor view = *this;
  view.shape_ = shape;
  return view;
}

Tensor Tensor::rows(int64_t begin, int64_t end) const {
  if (dims() == 0 || begin < 0 || end < begin || end > shape_[0])
    fail("rows", fmt::format("entries {} to {} are outside: shape {}", begin, end, shape_.str()));
  Tensor view = *this;
  view.shape_.set(0, end - begin);
  view.numel_ = view.shape_.numel();
  view.data_ = static_cast<char*>(data_) + begin * shape_.stride(0) * size_of(dtype_);
  return view;
}

Tensor Tensor::row(int64_t i) const {
  Tensor view = rows(i, i + 1);
  view.shape_ = shape_.without(0);
  return view;
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor out(shape_, dtype_);
  std::memcpy(out.data_, data_, static_cast<size_t>(bytes()));
  return out;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_ || !defined()) return *this;
  Tensor out(shape_, dtype);
  visit(*this, [&](auto* from) {
    visit(out, [&]<class T>(T* to) {
      for (int64_t i = 0; i < numel_; ++i) to[i] = narrowed<T>(from[i]);
    });
  });
  return out;
}

void Tensor::fill(double value) const {
  visit(*this, [&]<class T>(T* p) { std::fill(p, p + numel_, narrowed<T>(value)); });
}

void Tensor::copy_from(const Tensor& other) const {
  if (other.shape() != shape_ || other.numel() != numel_ || other.dtype() != dtype_)
    fail("copy", fmt::format("shapes and types must agree: {} {} and {} {}", shape_.str(), name_of(dtype_),
                             other.shape().str(), name_of(other.dtype())));
  std::memcpy(data_, other.data_, static_cast<size_t>(bytes()));
}

double max_abs_difference(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.numel() != b.numel())  // an undefined tensor's shape is a scalar's
    fail("max_abs_difference", fmt::format("shapes must agree: {} and {}", a.shape().str(), b.shape().str()));
  double worst = 0;
  for (int64_t i = 0; i < a.numel(); ++i) worst = worse(worst, std::abs(a.at(i) - b.at(i)));
  return worst;
}

bool all_close(const Tensor& a, const Tensor& b, double rtol, double atol) {
  if (a.shape() != b.shape() || a.numel() != b.numel()) return false;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.at(i), y = b.at(i), apart = std::abs(x - y);
    // Infinities are close to their equals alone, though the tolerance beside one is infinite.
    if (x != y && !(std::isfinite(apart) && apart <= atol + rtol * std::abs(y))) return false;
  }
  return true;
}

bool all_finite(const Tensor& t) {
  if (!is_floating(t.dtype())) return true;
  bool finite = true;
  visit_floating(t, "all_finite", [&](auto* p) {
    for (int64_t i = 0; i < t.numel() && finite; ++i) finite = std::isfinite(p[i]);
  });
  return finite;
}

}  // namespace gradus
