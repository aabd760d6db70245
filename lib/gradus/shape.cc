#include <gradus/shape.h>

#include <fmt/ranges.h>

#include <algorithm>

#include <gradus/error.h>

namespace gradus {

Shape::Shape(std::initializer_list<int64_t> dims, Caller caller)
    : Shape(dims.begin(), static_cast<int>(dims.size()), caller) {}

Shape::Shape(const int64_t* dims, int count, Caller caller) {
  if (count > kMaxDims) fail(caller, "shape", "a tensor has at most 6 axes");
  dims_ = count;
  for (int i = 0; i < count; ++i) size_[i] = dims[i];
  check(caller);
}

void Shape::append(int64_t size, Caller caller) {
  if (dims_ == kMaxDims) fail(caller, "shape", "a tensor has at most 6 axes");
  size_[dims_++] = size;
  if (countable(size_, dims_)) return;
  const Shape wrong = *this;
  --dims_;
  wrong.check(caller);
}

void Shape::set(int axis, int64_t size, Caller caller) {
  std::swap(size_[axis], size);
  if (countable(size_, dims_)) return;
  const Shape wrong = *this;
  size_[axis] = size;
  wrong.check(caller);
}

bool Shape::countable(const int64_t* dims, int count) {
  int64_t n = 1;
  for (int i = 0; i < count; ++i)
    if (dims[i] < 0 || (dims[i] > 0 && (__builtin_mul_overflow(n, dims[i], &n) || n > kMaxNumel))) return false;
  return true;
}

void Shape::check(const Caller& caller) const {
  if (countable(size_, dims_)) return;
  for (int64_t size : *this)
    if (size < 0) fail(caller, "shape", fmt::format("an axis cannot have the negative size {}", size));
  fail(caller, "shape", fmt::format("too many elements, at most 2^56: {}", str()));
}

int Shape::axis(int axis, const char* where, Caller caller) const {
  int front = axis < 0 ? axis + dims_ : axis;
  if (front < 0 || front >= dims_)
    fail(caller, where, fmt::format("axis {} does not exist: shape {}", axis, str()));
  return front;
}

int64_t Shape::operator[](const Axis& a) const { return size_[axis(a.number, "shape", a.caller)]; }

int64_t Shape::numel() const {
  int64_t n = 1;
  for (int64_t size : *this) n *= size;
  return n;
}

int64_t Shape::stride(int a, Caller caller) const {
  int64_t n = 1;
  for (int i = axis(a, "shape", caller) + 1; i < dims_; ++i) n *= size_[i];
  return n;
}

Shape Shape::without(int a, Caller caller) const {
  int gone = axis(a, "shape", caller);
  Shape out;
  for (int i = 0; i < dims_; ++i)
    if (i != gone) out.append(size_[i]);
  return out;
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(begin(), end(), ", ")); }

Shape broadcast(const Shape& a, const Shape& b, const char* where, Caller caller) {
  const Shape& longer = a.dims() >= b.dims() ? a : b;
  const Shape& shorter = a.dims() >= b.dims() ? b : a;
  Shape out = longer;
  int shift = longer.dims() - shorter.dims();
  for (int i = 0; i < shorter.dims(); ++i) {
    int64_t x = longer[i + shift], y = shorter[i];
    if (x != y && x != 1 && y != 1)
      fail(caller, where, fmt::format("shapes do not broadcast: {} and {}", a.str(), b.str()));
    out.set(i + shift, x == 1 ? y : x, caller);
  }
  return out;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.dims() > to.dims()) return false;
  int shift = to.dims() - from.dims();
  for (int i = 0; i < from.dims(); ++i)
    if (from[i] != 1 && from[i] != to[i + shift]) return false;
  return true;
}

}  // namespace gradus
