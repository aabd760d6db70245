#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include <gradus/error.h>

namespace gradus {

/// The sizes of a tensor's axes, at most 6 of them, outermost first. A scalar has none. No shape has more
/// elements than an address could tell apart, also when an axis of size 0 is left out: numel() and stride()
/// never overflow, nor does a small multiple of them.
class Shape {
 public:
  static constexpr int kMaxDims = 6;
  static constexpr int64_t kMaxNumel = int64_t{1} << 56;

  Shape() = default;
  /// @throws Error for more than 6 axes, a negative size, or "[shape] too many elements, at most 2^56: [..]".
  Shape(std::initializer_list<int64_t> dims, Caller caller = Caller::current());
  Shape(const int64_t* dims, int count, Caller caller = {});

  int dims() const { return dims_; }
  /// Size of an axis; negative axes count from the end (-1 is the last). @throws Error when out of range.
  int64_t operator[](int axis) const;
  /// Number of elements; 1 for a scalar.
  int64_t numel() const;
  /// The axis counted from the front. @throws Error "[where] axis 3 does not exist: shape [2, 3]".
  int axis(int axis, const char* where) const;
  /// Elements per step of this axis in a row-major array. @throws Error as above, here and below.
  int64_t stride(int axis) const;

  /// Both throw as the constructors.
  void set(int axis, int64_t size);
  void append(int64_t size);
  /// False for sizes that no shape can have: what a file asks for is looked at before a shape is made of it.
  static bool countable(const int64_t* dims, int count);
  /// A copy without one axis.
  Shape without(int axis) const;

  bool operator==(const Shape& other) const;
  const int64_t* begin() const { return size_; }
  const int64_t* end() const { return size_ + dims_; }

  /// "[2, 3]"
  std::string str() const;

 private:
  // Says why no shape can have these sizes, if none can.
  void check(const Caller& caller = {}) const;

  int dims_ = 0;
  int64_t size_[kMaxDims] = {};
};

/// NumPy's broadcasting: axes are aligned at the end, a missing axis or one of size 1 stretches.
/// @throws Error "[where] shapes do not broadcast: [2, 3] and [4, 3]"
Shape broadcast(const Shape& a, const Shape& b, const char* where);

/// True when `from` broadcasts to exactly `to`.
bool broadcasts_to(const Shape& from, const Shape& to);

}  // namespace gradus
