#include <gradus/shape.h>

#include <fmt/ranges.h>

#include <algorithm>

namespace gradus {

Shape::Shape(std::initializer_list<int64_t> dims, Caller caller)
    : Shape(dims.begin(), static_cast<int>(dims.size()), caller) {}

Shape::Shape(const int64_t* dims, int count, Caller caller) : dims_(count) {
  std::copy_n(dims, std::min(count, kMaxDims), size_);
  check(caller);
}

void Shape::append(int64_t size) {
  Shape longer = *this;
  if (dims_ < kMaxDims) longer.size_[dims_] = size;
  ++longer.dims_;
  longer.check();
  *this = longer;
}

void Shape::set(int axis, int64_t size) {
  Shape changed = *this;
  changed.size_[this->axis(axis, "shape")] = size;
  changed.check();
  *this = changed;
}

bool Shape::countable(const int64_t* dims, int count) {
  int64_t n = 1;
  for (int i = 0; i < count; ++i)
    if (dims[i] < 0 || (dims[i] > 0 && (__builtin_mul_overflow(n, dims[i], &n) || n > kMaxNumel))) return false;
  return true;
}

void Shape::check(const Caller& caller) const {
  if (dims_ <= kMaxDims && countable(size_, dims_)) return;
  At at(caller);
  if (dims_ > kMaxDims) fail("shape", "a tensor has at most 6 axes");
  for (int64_t size : *this)
    if (size < 0) fail("shape", fmt::format("an axis cannot have the negative size {}", size));
  fail("shape", fmt::format("too many elements, at most 2^56: {}", str()));
}

int Shape::axis(int axis, const char* where) const {
  int front = axis < 0 ? axis + dims_ : axis;
  if (front < 0 || front >= dims_) fail(where, fmt::format("axis {} does not exist: shape {}", axis, str()));
  return front;
}

int64_t Shape::operator[](int a) const { return size_[axis(a, "shape")]; }

int64_t Shape::numel() const {
  int64_t n = 1;
  for (int64_t size : *this) n *= size;
  return n;
}

int64_t Shape::stride(int a) const {
  int64_t n = 1;
  for (int i = axis(a, "shape") + 1; i < dims_; ++i) n *= size_[i];
  return n;
}

Shape Shape::without(int a) const {
  int gone = axis(a, "shape");
  Shape out;
  for (int i = 0; i < dims_; ++i)
    if (i != gone) out.append(size_[i]);
  return out;
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(begin(), end(), ", ")); }

Shape broadcast(const Shape& a, const Shape& b, const char* where) {
  Shape out = a.dims() >= b.dims() ? a : b;
  for (int back = 1; back <= std::min(a.dims(), b.dims()); ++back) {
    int64_t x = a[-back], y = b[-back];
    if (x != y && x != 1 && y != 1)
      fail(where, fmt::format("shapes do not broadcast: {} and {}", a.str(), b.str()));
    out.set(out.dims() - back, x == 1 ? y : x);
  }
  return out;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.dims() > to.dims()) return false;
  for (int back = 1; back <= from.dims(); ++back)
    if (from[-back] != 1 && from[-back] != to[-back]) return false;
  return true;
}

}  // namespace gradus
