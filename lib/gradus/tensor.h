#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include <gradus/dtype.h>
#include <gradus/shape.h>

namespace gradus {

class RngInput;

/// Numbers: a shape, an element type chosen at run time, and shared 64-byte aligned storage. Always contiguous
/// and row-major; `reshape` and `rows` are views of the same storage. Copying a Tensor shares its numbers;
/// `clone` does not. Ops never write to a tensor they were given.
class Tensor {
 public:
  /// No tensor at all: defined() is false.
  Tensor() = default;
  // Not inline: they stand in every line that computes, and giving up a shared reference is much code.
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept { *this = std::move(other); }
  Tensor& operator=(const Tensor& other);
  Tensor& operator=(Tensor&& other) noexcept;
  ~Tensor();
  /// Uninitialised numbers.
  Tensor(const Shape& shape, DType dtype);

  static Tensor zeros(const Shape& shape, DType dtype = DType::f32);
  static Tensor ones(const Shape& shape, DType dtype = DType::f32);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32);
  static Tensor scalar(double value, DType dtype = DType::f32) { return full({}, value, dtype); }
  /// From numbers in row-major order, converted to `dtype`. @throws Error when they do not fill the shape.
  static Tensor from(const Shape& shape, const std::vector<double>& values, DType dtype = DType::f32,
                     Caller caller = Caller::current());
  static Tensor from_ids(const Shape& shape, const std::vector<int32_t>& ids,
                         Caller caller = Caller::current());
  /// @throws Error unless dtype is f32 or f64, here and below.
  static Tensor uniform(const Shape& shape, double low, double high, const RngInput& rng,
                        DType dtype = DType::f32);
  static Tensor normal(const Shape& shape, double mean, double deviation, const RngInput& rng,
                       DType dtype = DType::f32);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int dims() const { return shape_.dims(); }
  /// Size of an axis; negative axes count from the end. @throws Error when there is no such axis.
  int64_t size(int axis) const { return shape_[axis]; }
  int64_t numel() const { return numel_; }
  int64_t bytes() const { return numel_ * size_of(dtype_); }
  DType dtype() const { return dtype_; }

  /// The numbers. @throws Error when the tensor has another element type.
  float* f32() const { return as<float>(DType::f32); }
  double* f64() const { return as<double>(DType::f64); }
  int32_t* i32() const { return as<int32_t>(DType::i32); }
  uint8_t* u8() const { return as<uint8_t>(DType::u8); }
  void* raw() const { return data_; }

  /// One number by its row-major position, as double whatever its type. @throws Error when out of range.
  double at(int64_t i) const;
  void set(int64_t i, double value) const;
  /// The only number of a one-element tensor. @throws Error when there are more.
  double item() const;
  /// All numbers as double.
  std::vector<double> to_vector() const;

  /// The same numbers under another shape; one axis may be -1 (worked out). A view.
  /// @throws Error "[reshape] the number of elements must stay: [2, 3] to [4]"
  Tensor reshape(const std::vector<int64_t>& dims) const;
  Tensor reshape(std::initializer_list<int64_t> dims) const { return reshape(std::vector<int64_t>(dims)); }
  Tensor reshape(const Shape& shape) const;
  /// Entries begin .. end-1 of the first axis. A view. @throws Error when out of range.
  Tensor rows(int64_t begin, int64_t end) const;
  /// Entry i of the first axis, without that axis. A view. @throws Error when out of range.
  Tensor row(int64_t i) const;

  Tensor clone() const;
  /// Converted to another element type, to integers towards 0; shares storage when the type is the same.
  /// @throws Error "[tensor] nan does not fit in i32". As do from(), full(), fill() and set().
  Tensor to(DType dtype) const;
  void fill(double value) const;
  /// @throws Error unless shapes and element types agree.
  void copy_from(const Tensor& other) const;
  /// True when no other Tensor shares this storage: in-place changes cannot surprise anybody.
  bool sole_owner() const { return storage_.use_count() == 1; }

 private:
  void* typed(DType wanted) const;
  template <class T>
  T* as(DType wanted) const {
    return static_cast<T*>(typed(wanted));
  }

  Shape shape_;
  int64_t numel_ = 0;
  DType dtype_ = DType::f32;
  std::shared_ptr<void> storage_;
  void* data_ = nullptr;
};

/// The larger of two errors or sizes; NaN when either is, which std::max would lose where it is the second.
inline double worse(double a, double b) { return a >= b || a != a ? a : b; }
/// Largest |a - b|. NaN when any difference is NaN. @throws Error unless shapes agree.
double max_abs_difference(const Tensor& a, const Tensor& b);
/// True when every |a - b| <= atol + rtol |b|, or both are the same infinity; NaN is close to nothing.
bool all_close(const Tensor& a, const Tensor& b, double rtol = 1e-6, double atol = 1e-8);
/// True when no entry is NaN or infinite.
bool all_finite(const Tensor& t);

}  // namespace gradus
