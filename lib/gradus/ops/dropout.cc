#include <gradus/ops/dropout.h>

#include <fmt/core.h>

#include <algorithm>

#include <gradus/numeric.h>
#include <gradus/op_case.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/random.h>

namespace gradus {
namespace {

// u8, 1 = kept.
Tensor draw_mask(const Shape& shape, double p) {
  Tensor mask(shape, DType::u8);
  auto [seed, stream] = Training::next_stream();
  uint32_t threshold = static_cast<uint32_t>(p * 0x1p32);
  uint8_t* keep = mask.u8();
  for (int64_t i = 0, n = mask.numel(); i < n; i += 4) {
    std::array<uint32_t, 4> words = philox(seed, stream, static_cast<uint64_t>(i / 4));
    if (i + 4 <= n) {
      for (int k = 0; k < 4; ++k) keep[i + k] = words[k] >= threshold;
    } else {
      for (int64_t k = 0; k < n - i; ++k) keep[i + k] = words[k] >= threshold;
    }
  }
  return mask;
}

Tensor masked(const Tensor& x, const Tensor& mask, double p) {
  Tensor y(x.shape(), x.dtype());
  with_type(x.dtype(), "dropout", [&](auto type) {
    using T = decltype(type);
    const T* in = data<T>(x);
    T* out = data<T>(y);
    const uint8_t* keep = mask.u8();
    T scale = static_cast<T>(1 / (1 - p));
    for (int64_t i = 0, n = x.numel(); i < n; ++i) out[i] = keep[i] ? in[i] * scale : T(0);
  });
  return y;
}

bool drops(double p) {
  if (!(p >= 0 && p < 1)) fail("dropout", fmt::format("p must be in [0, 1): {}", p));
  return p > 0 && Training::active();
}

}  // namespace

// Composed of elementary ops. Not in the header: there the name would be ambiguous to other references.
namespace reference {
namespace {

Var dropout(const Var& x, double p) {
  if (!drops(p)) return x;
  return x * draw_mask(x.shape(), p).to(x.dtype()) / (1 - p);
}

}  // namespace
}  // namespace reference

Var dropout(const Var& x, double p) {
  if (!drops(p)) return x;
  Tensor mask = draw_mask(x.shape(), p);
  return record("dropout", {x}, masked(x.value(), mask, p),
                [mask, p](const Tensor& dy, Grads& dx) { dx.add(0, masked(dy, mask, p)); });
}

// The mask depends on the seed: every call of a case draws the same one.
GRADUS_OP_CASES({"dropout", {{5, 3}},
                 [](auto& in) {
                   Training mode(11);
                   return dropout(in[0], 0.4);
                 },
                 [](auto& in) {
                   Training mode(11);
                   return reference::dropout(in[0], 0.4);
                 }},
                {"dropout: two in a row", {{2, 3}},
                 [](auto& in) {
                   Training mode(3);
                   return dropout(dropout(in[0], 0.2), 0.5);
                 },
                 [](auto& in) {
                   Training mode(3);
                   return reference::dropout(reference::dropout(in[0], 0.2), 0.5);
                 }});

}  // namespace gradus
