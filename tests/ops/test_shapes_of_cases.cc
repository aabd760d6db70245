// Operands whose shapes are wrong by one axis or one element: an op refuses them, or it computes what its
// composed reference computes. Between the two lies what a check let through.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include <gradus/op_case.h>

#include "../check.h"

using namespace gradus;

namespace {

// The value of f, nothing when it throws an Error.
std::optional<Tensor> value_of(const OpFunction& f, const std::vector<Tensor>& inputs) {
  try {
    NoGrad guard;
    std::vector<Var> args(inputs.begin(), inputs.end());
    return f(args).value();
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool same(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return false;
  for (int64_t i = 0; i < a.numel(); ++i) {
    double x = a.at(i), y = b.at(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::abs(x - y) <= 1e-9 * (1 + std::abs(y)))) return false;
  }
  return true;
}

// As it is, with other sizes: numbers are repeated or left out.
Tensor resized(const Tensor& t, const Shape& shape) {
  Tensor out(shape, t.dtype());
  for (int64_t i = 0; i < out.numel(); ++i) out.set(i, t.numel() ? t.at(i % t.numel()) : 0);
  return out;
}

// The shapes beside `shape`: one axis longer or shorter by one, one axis more or less at either end. Sizes of 0
// are test_zero_sizes.cc's.
std::vector<Shape> neighbours(const Shape& shape) {
  std::vector<Shape> out;
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    for (int64_t by : {-1, 1}) {
      std::vector<int64_t> other = sizes;
      other[axis] += by;
      if (other[axis] > 0) out.emplace_back(other.data(), static_cast<int>(other.size()));
    }
  if (!sizes.empty())
    for (int first : {0, 1}) out.emplace_back(sizes.data() + first, static_cast<int>(sizes.size()) - 1);
  if (sizes.size() < Shape::kMaxDims)
    for (auto at : {sizes.begin(), sizes.end()}) {
      std::vector<int64_t> more(sizes.begin(), at);
      more.push_back(1);
      more.insert(more.end(), at, sizes.end());
      out.emplace_back(more.data(), static_cast<int>(more.size()));
    }
  return out;
}

}  // namespace

TEST_CASE("an operand of a wrong shape is refused, unless the composed form gives the same with it") {
  int refused = 0;
  for (const OpCase& c : op_cases()) {
    if (!c.reference || c.inputs.size() < 2) continue;  // a single operand fits itself
    CAPTURE(c.name);
    std::vector<Tensor> inputs = sample_inputs(c, DType::f64);
    for (size_t i = 0; i < inputs.size(); ++i)
      for (const Shape& shape : neighbours(inputs[i].shape())) {
        CAPTURE(i);
        CAPTURE(shape.str());
        std::vector<Tensor> wrong = inputs;
        wrong[i] = resized(inputs[i], shape);
        std::optional<Tensor> seen = value_of(c.op, wrong);
        refused += !seen;
        if (!seen) continue;
        std::optional<Tensor> expected = value_of(c.reference, wrong);
        CHECK_MESSAGE(expected.has_value(), "the composed form refuses it");
        if (expected) CHECK(same(*seen, *expected));
      }
  }
  CHECK(refused > 500);
}

TEST_CASE("an operand of another element type, or none, is refused") {
  for (const OpCase& c : op_cases()) {
    CAPTURE(c.name);
    std::vector<Tensor> inputs = sample_inputs(c, DType::f64);
    auto floating = [](const Tensor& t) { return is_floating(t.dtype()); };
    if (std::count_if(inputs.begin(), inputs.end(), floating) < 2) continue;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!floating(inputs[i])) continue;
      CAPTURE(i);
      for (DType dtype : {DType::f32, DType::i32}) {
        std::vector<Tensor> wrong = inputs;
        wrong[i] = Tensor::zeros(inputs[i].shape(), dtype);
        CHECK_FALSE(value_of(c.op, wrong).has_value());
      }
    }
  }
}
