#include <gradus/print.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace gradus {
namespace {

class Printer {
 public:
  Printer(const Tensor& t, const PrintOptions& options) : t_(t), options_(options) {}

  std::string str() {
    print(0, 0);  // for the width
    out_.clear();
    print(0, 0);
    return out_;
  }

 private:
  std::string number(int64_t i) const {
    double v = t_.at(i);
    if (!is_floating(t_.dtype())) return fmt::format("{}", static_cast<int64_t>(v));
    if (std::isnan(v)) return "nan";  // fmt would show its sign bit
    double size = std::abs(v);
    if (std::isfinite(v) && v != 0 && (size >= 1e6 || size < std::pow(10.0, -options_.precision)))
      return fmt::format("{:.{}e}", v, options_.precision);
    return fmt::format("{:.{}f}", v, options_.precision);
  }

  void print(int axis, int64_t base) {
    if (axis == t_.dims()) {
      std::string text = number(base);
      width_ = std::max(width_, text.size());
      out_ += fmt::format("{:>{}}", text, width_);
      return;
    }
    const int64_t n = t_.size(axis), edge = 4;
    const bool shorten = t_.numel() > 200 && n > 2 * edge;
    const bool last = axis + 1 == t_.dims();
    const std::string between = last ? ", " : ",\n" + std::string(static_cast<size_t>(axis) + 1, ' ');
    out_ += "[";
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0) out_ += between;
      if (shorten && i == edge) {
        out_ += "..." + between;
        i = n - edge;
      }
      print(axis + 1, base + i * t_.shape().stride(axis));
    }
    out_ += "]";
  }

  const Tensor& t_;
  PrintOptions options_;
  size_t width_ = 0;
  std::string out_;
};

}  // namespace

std::string to_string(const Tensor& t, const PrintOptions& options) {
  if (!t.defined()) return "(undefined)";
  return fmt::format("{}  {} {}", Printer(t, options).str(), name_of(t.dtype()), t.shape().str());
}

std::string describe(const Tensor& t) {
  if (!t.defined()) return "undefined";
  double low = INFINITY, high = -low;
  int64_t nan = 0, infinite = 0;
  for (double v : t.to_vector()) {
    if (std::isnan(v)) ++nan;
    else if (std::isinf(v)) ++infinite;
    else low = std::min(low, v), high = std::max(high, v);
  }
  std::string text = fmt::format("{} {}", name_of(t.dtype()), t.shape().str());
  if (low <= high) text += fmt::format(", {:.4g} .. {:.4g}", low, high);
  if (nan) text += fmt::format(", {} NaN", nan);
  if (infinite) text += fmt::format(", {} infinite", infinite);
  return text;
}

}  // namespace gradus
