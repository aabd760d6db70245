#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include <gradus/error.h>

namespace gradus {

/// The sizes of a tensor's axes, at most 6 of them, outermost first. A scalar has none.
class Shape {
 public:
  static constexpr int kMaxDims = 6;

  Shape() = default;
  /// @throws Error for more than 6 axes or a negative size.
  Shape(std::initializer_list<int64_t> dims, Caller caller = Caller::current());
  Shape(const int64_t* dims, int count, Caller caller = Caller::current());

  /// An axis by its number, and the line that asks for it.
  struct Axis {
    int number;
    Caller caller;
    Axis(int number, Caller caller = Caller::current()) : number(number), caller(caller) {}
  };

  int dims() const { return dims_; }
  /// Size of an axis; negative axes count from the end (-1 is the last). @throws Error when out of range.
  int64_t operator[](const Axis& axis) const;
  /// Number of elements; 1 for a scalar.
  int64_t numel() const;
  /// The axis counted from the front. @throws Error "[where] axis must be in ..." when out of range.
  int axis(int axis, const char* where, Caller caller = Caller::current()) const;
  /// Elements per step of this axis in a row-major array. @throws Error as above, here and below.
  int64_t stride(int axis, Caller caller = Caller::current()) const;

  void set(int axis, int64_t size) { size_[axis] = size; }
  /// @throws Error for a 7th axis or a negative size.
  void append(int64_t size, Caller caller = Caller::current());
  /// A copy without one axis.
  Shape without(int axis, Caller caller = Caller::current()) const;

  bool operator==(const Shape& other) const;
  const int64_t* begin() const { return size_; }
  const int64_t* end() const { return size_ + dims_; }

  /// "[2, 3]"
  std::string str() const;

 private:
  int dims_ = 0;
  int64_t size_[kMaxDims] = {};
};

/// NumPy's broadcasting: axes are aligned at the end, a missing axis or one of size 1 stretches.
/// @throws Error "[where] shapes do not broadcast: [2, 3] and [4, 3]"
Shape broadcast(const Shape& a, const Shape& b, const char* where, Caller caller = Caller::current());

/// True when `from` broadcasts to exactly `to`.
bool broadcasts_to(const Shape& from, const Shape& to);

}  // namespace gradus
