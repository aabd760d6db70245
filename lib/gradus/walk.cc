#include <gradus/walk.h>

#include <algorithm>

namespace gradus {

Walk::Walk(const Shape& over, std::initializer_list<Shape> arrays)
    : dims_(over.dims()), arrays_(static_cast<int>(arrays.size())) {
  std::copy(over.begin(), over.end(), size_);
  int k = 0;
  for (const Shape& shape : arrays) {
    int shift = dims_ - shape.dims();
    for (int i = shift; i < dims_; ++i) stride_[k][i] = shape[i - shift] == 1 ? 0 : shape.stride(i - shift);
    ++k;
  }
  merge();
}

Walk::Walk(const Shape& over, const int64_t* strides) : dims_(over.dims()), arrays_(1) {
  std::copy(over.begin(), over.end(), size_);
  std::copy_n(strides, dims_, stride_[0]);
  merge();
}

void Walk::merge() {
  int kept = 0;
  for (int i = 0; i < dims_; ++i) {
    if (size_[i] == 1) continue;
    bool joins = kept > 0;
    for (int k = 0; k < arrays_; ++k) joins = joins && stride_[k][kept - 1] == stride_[k][i] * size_[i];
    if (!joins) ++kept;
    size_[kept - 1] = joins ? size_[kept - 1] * size_[i] : size_[i];
    for (int k = 0; k < arrays_; ++k) stride_[k][kept - 1] = stride_[k][i];
  }
  if (kept == 0) {  // a single number
    kept = 1;
    size_[0] = 1;
    for (int k = 0; k < arrays_; ++k) stride_[k][0] = 0;
  }
  dims_ = kept;
}

int64_t Walk::runs() const {
  if (length() == 0) return 0;
  int64_t n = 1;
  for (int i = 0; i + 1 < dims_; ++i) n *= size_[i];
  return n;
}

}  // namespace gradus
