#include <gradus/ops/dropout.h>

#include <algorithm>

#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/random.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/shape.h>

namespace gradus {
namespace {

// u8, 1 = kept.
Tensor draw_mask(const Shape& shape, double p) {
  Tensor mask(shape, DType::u8);
  dropout_keep(Training::next_stream(), p, 0, mask.numel(), mask.u8());
  return mask;
}

Tensor masked(const Tensor& x, const Tensor& mask, double p) {
  auto kernel = [p, keep = mask.u8()]<class T>(const T* in, T* out, int64_t n) {
    kernels::keep_scaled(in, keep, static_cast<T>(1 / (1 - p)), out, n);
  };
  return by_kernel("dropout", kernel, x);
}

// Of p, as much as is dropped now.
double share_of(double p) {
  if (!(p >= 0 && p < 1)) refuse("dropout", "p must be in [0, 1): {}", p);
  return p * Training::dropout_share();
}

}  // namespace

void dropout_keep(std::pair<uint64_t, uint64_t> stream, double p, int64_t begin, int64_t n, uint8_t* keep) {
  uint32_t threshold = static_cast<uint32_t>(p * 0x1p32);
  constexpr int64_t kWords = 1024;  // at a time
  uint32_t words[kWords];
  for (int64_t i = begin / 4 * 4, count; i < begin + n; i += count) {
    count = std::min(kWords, (begin + n - i + 3) / 4 * 4);
    kernels::philox_words(stream.first, stream.second, static_cast<uint64_t>(i / 4), count / 4, words);
    const int64_t from = std::max(begin, i), end = std::min(begin + n, i + count);
    kernels::keep_words(words + (from - i), threshold, keep + (from - begin), end - from);
  }
}

namespace reference {
namespace {

Var dropout(const Var& x, double p) {
  if ((p = share_of(p)) == 0) return x;
  return x * draw_mask(x.shape(), p).to(x.dtype()) / (1 - p);
}

}  // namespace
}  // namespace reference

Var dropout(const Input& x, double p) {
  At at(x.caller());
  if ((p = share_of(p)) == 0) return x;
  Tensor mask = draw_mask(x.shape(), p);
  return record("dropout", {x}, masked(x.value(), mask, p),
                [mask, p](const Tensor& dy, Grads& dx) { dx.add(0, masked(dy, mask, p)); });
}

Tensor dropout_mask(const Shape& shape, double p, DType dtype) {
  if ((p = share_of(p)) == 0) return {};
  return masked(Tensor::ones(shape, dtype), draw_mask(shape, p), p);
}

Var variational_dropout(const Input& x, double p) {
  At at(x.caller());
  if (share_of(p) == 0) return x;
  if (x.dims() == 0) fail("variational_dropout", "x must be a sequence [T, ...]: []");
  return x * dropout_mask(x.shape().without(0), p, x.dtype());
}

GRADUS_OP_CASES(
    {"dropout", {{5, 3}}, training(11, calls(dropout, 0.4)), training(11, calls(reference::dropout, 0.4))},
    {"variational_dropout", {{4, 3, 2}}, training(11, calls(variational_dropout, 0.4)),
     training(11, [](auto& in) {
       Tensor mask = dropout_mask({3, 2}, 0.4, in[0].dtype());
       std::vector<Var> steps;
       for (int64_t t = 0; t < 4; ++t) steps.push_back(select(in[0], 0, t) * mask);
       return stack(steps, 0);
     })},
    {"dropout: two in a row", {{2, 3}},
     training(3, [](auto& in) { return dropout(dropout(in[0], 0.2), 0.5); }),
     training(3, [](auto& in) { return reference::dropout(reference::dropout(in[0], 0.2), 0.5); })});

}  // namespace gradus
