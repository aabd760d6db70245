#include <gradus/ops/matmul.h>

#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>
#include <gradus/walk.h>

namespace gradus {
namespace {

constexpr int64_t kFew = 4;  // terms of a sum: memory takes longer than they do

// Without its last two axes.
Shape leading(const Shape& shape) { return Shape(shape.begin(), shape.dims() - 2); }

// kernels::gemm on packed matrices, C = op(A) op(B) + beta C.
template <class T>
void product(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const T* a, const T* b, T beta,
             T* c) {
  kernels::gemm(trans_a, trans_b, m, n, k, T(1), a, trans_a ? m : k, b, trans_b ? k : n, beta, c, n);
}

// A product: sizes, and for every entry of the broadcast leading axes which matrix of a and of b it takes.
struct Plan {
  int64_t m = 0, k = 0, n = 0, count = 1;
  Shape out;
  std::vector<int64_t> a_index, b_index;

  Plan(const Shape& a, const Shape& b) {
    if (a.dims() < 2 || b.dims() < 2) refuse("matmul", "needs at least two dimensions: {} and {}", a, b);
    if (a[-1] != b[-2])
      fail("matmul", fmt::format("inner dimensions must agree: {} and {}", a, b),
           a[-1] == b[-1] ? "transpose the second operand?" : size_hint(a[-1], b[-2]));
    m = a[-2], k = a[-1], n = b[-1];
    Shape la = leading(a), lb = leading(b);
    for (int i = 1; i <= std::min(la.dims(), lb.dims()); ++i)
      if (la[-i] != lb[-i] && la[-i] != 1 && lb[-i] != 1)
        refuse("matmul", "leading dimensions do not broadcast: {} and {}", a, b);
    out = broadcast(la, lb, "matmul");
    count = out.numel();
    if (lb.numel() == 1 && la.numel() == count) {  // b is shared: all rows of a are one matrix
      m *= count;
      count = 1;
      a_index = b_index = {0};
    } else {
      Walk walk(out, {la, lb});
      walk.for_each_run([&](int64_t, const int64_t* offset) {
        for (int64_t i = 0; i < walk.length(); ++i) {
          a_index.push_back(offset[0] + i * walk.step(0));
          b_index.push_back(offset[1] + i * walk.step(1));
        }
      });
    }
    out.append(a[-2]);
    out.append(n);
  }
};

}  // namespace

namespace reference {
namespace {

Var matmul(const Var& a, const Var& b) {
  auto with_axis = [](const Var& x, int from_end) {
    std::vector<int64_t> dims(x.shape().begin(), x.shape().end());
    dims.insert(dims.end() - from_end, 1);
    return reshape(x, dims);
  };
  return sum(with_axis(a, 0) * with_axis(b, 2), {.axes = {-2}});  // [..., m, k, 1] [..., 1, k, n]
}

Var linear(const Var& x, const Var& weight, const Var& bias) {
  Var y = gradus::matmul(reshape(x, {-1, x.size(-1)}), transpose(weight, 0, 1));
  if (bias.defined()) y = y + bias;
  std::vector<int64_t> dims(x.shape().begin(), x.shape().end());
  dims.back() = weight.size(0);
  return reshape(y, dims);
}

}  // namespace
}  // namespace reference

Var matmul(const Input& a, const Var& b) {
  CheckedAt at(a, b, "matmul");
  Plan plan(a.shape(), b.shape());
  Tensor y(plan.out, a.dtype());
  with_type(a.dtype(), "matmul", [&]<class T>(T) {
    const auto& [m, k, n, count, out, a_index, b_index] = plan;
    for (int64_t i = 0; i < count; ++i)
      product(false, false, m, n, k, data<T>(a.value()) + a_index[i] * m * k,
              data<T>(b.value()) + b_index[i] * k * n, T(0), data<T>(y) + i * m * n);
  });
  auto back = [plan, a = a.value(), b = b.value()]<class T>(T, const Tensor& dy, Grads& dx) {
    const auto& [m, k, n, count, out, a_index, b_index] = plan;
    if (dx.needed(0)) {  // da = dy b^T
      Tensor da = dx.into(0);
      for (int64_t i = 0; i < count; ++i)
        product(false, true, m, k, n, data<T>(dy) + i * m * n, data<T>(b) + b_index[i] * k * n, T(1),
                data<T>(da) + a_index[i] * m * k);
    }
    if (dx.needed(1)) {  // db = a^T dy
      Tensor db = dx.into(1);
      for (int64_t i = 0; i < count; ++i)
        product(true, false, k, n, m, data<T>(a) + a_index[i] * m * k, data<T>(dy) + i * m * n, T(1),
                data<T>(db) + b_index[i] * k * n);
    }
  };
  return record_typed("matmul", {a, b}, y, std::move(back));
}

Var linear(const Input& x, const Var& weight, const Var& bias) {
  CheckedAt at(x, weight, "linear");
  if (weight.dims() != 2) refuse("linear", "weight must be [out, in]: {}", weight.shape());
  if (x.dims() == 0 || x.size(-1) != weight.size(1))
    fail("linear",
         fmt::format("input's last dimension must be in_features: input {}, weight {}", x.shape(),
                     weight.shape()),
         x.dims() == 0                  ? ""
         : x.size(-1) == weight.size(0) ? "weight is [out_features, in_features]: transposed?"
                                        : size_hint(x.size(-1), weight.size(1)));
  Shape shape = x.shape().without(-1);
  int64_t out = weight.size(0), in = weight.size(1), rows = shape.numel();
  shape.append(out);
  std::vector<Var> inputs = {x, weight};
  if (bias.defined()) {
    if (bias.dims() != 1 || bias.size(0) != out)
      refuse("linear", "bias must be [out]: bias {}, weight {}", bias.shape(), weight.shape());
    check_types("linear", x.dtype(), bias.dtype());
    inputs.push_back(bias);
  }
  Tensor y(shape, x.dtype());
  with_type(x.dtype(), "linear", [&]<class T>(T) {
    // Few inputs make many numbers with little work: the bias is added while they are in the first cache.
    const int64_t block = in <= kFew ? 64 : std::max<int64_t>(rows, 1);
    for (int64_t i = 0; i < rows; i += block) {
      const int64_t m = std::min(block, rows - i);
      T* part = data<T>(y) + i * out;
      product(false, true, m, out, in, data<T>(x.value()) + i * in, data<T>(weight.value()), T(0), part);
      if (bias.defined()) kernels::add_bias(data<T>(bias.value()), part, m, out);
    }
  });
  auto back = [=, biased = bias.defined(), x = x.value(), w = weight.value()]<class T>(
                  T, const Tensor& dy, Grads& dx) {
    if (dx.needed(0) && out <= kFew) {  // a sum of few terms goes where the others are
      product(false, false, rows, in, out, data<T>(dy), data<T>(w), T(1), data<T>(dx.into(0)));
    } else if (dx.needed(0)) {  // dx = dy W
      Tensor d(x.shape(), x.dtype());
      product(false, false, rows, in, out, data<T>(dy), data<T>(w), T(0), data<T>(d));
      dx.add(0, d);
    }
    // A weight is often used at many places: add to its gradient where it lies.
    if (dx.needed(1))  // dW = dy^T x
      product(true, false, out, in, rows, data<T>(dy), data<T>(x), T(1), data<T>(dx.into(1)));
    if (biased && dx.needed(2))  // db = sum of dy over rows
      kernels::sum_rows_into(data<T>(dy), data<T>(dx.into(2)), rows, out);
  };
  return record_typed("linear", inputs, y, std::move(back));
}

void set_float32_matmul_precision(MatmulPrecision precision, Caller caller) {
  bool medium = precision == MatmulPrecision::medium;
  if (medium && !kernels::bf16_ready())
    fail(caller, "set_float32_matmul_precision", "medium needs a CPU with AVX512_BF16");
  kernels::bf16_products(medium);
}

GRADUS_OP_CASES(
    {"matmul", {{3, 4}, {4, 2}}, calls(matmul), calls(reference::matmul)},
    {"matmul: square", {{3, 3}, {3, 3}}, calls(matmul), calls(reference::matmul)},
    {"matmul: one row", {{1, 4}, {4, 5}}, calls(matmul), calls(reference::matmul)},
    {"matmul: batched", {{2, 3, 4}, {2, 4, 5}}, calls(matmul), calls(reference::matmul)},
    {"matmul: shared right operand", {{2, 2, 3, 4}, {4, 2}}, calls(matmul), calls(reference::matmul)},
    {"matmul: shared left operand", {{3, 4}, {2, 4, 2}}, calls(matmul), calls(reference::matmul)},
    {"matmul: broadcast batch", {{2, 1, 3, 2}, {3, 2, 2}}, calls(matmul), calls(reference::matmul)},
    {"linear", {{2, 3, 4}, {5, 4}, {5}}, calls(linear), calls(reference::linear)},
    {"linear: no bias, input as weight", {{3, 3}, {3, 3}}, calls(linear, Var()),
     calls(reference::linear, Var())},
    {"linear: one vector", {{4}, {2, 4}, {2}}, calls(linear), calls(reference::linear)},
    {"linear: more rows than a block", {{67, 1}, {2, 1}, {2}}, calls(linear), calls(reference::linear)});

}  // namespace gradus
