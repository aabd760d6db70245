#include <gradus/ops/dropout.h>

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <type_traits>

#include <gradus/numeric.h>
#include <gradus/op_case.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/random.h>

namespace gradus {
namespace {

// Philox blocks first .. first + kLanes - 1 of a stream, as random.h's philox() gives them one by one: word w
// of block first + k is words[w][k]. Side by side the compiler makes vector instructions of them, which is
// about three times as fast.
constexpr int kLanes = 8;

void philox_lanes(uint64_t seed, uint64_t stream, uint64_t first, uint32_t (&words)[4][kLanes]) {
  for (int k = 0; k < kLanes; ++k) {
    uint64_t counter = first + static_cast<uint64_t>(k);
    words[0][k] = static_cast<uint32_t>(counter);
    words[1][k] = static_cast<uint32_t>(counter >> 32);
    words[2][k] = static_cast<uint32_t>(stream);
    words[3][k] = static_cast<uint32_t>(stream >> 32);
  }
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9, key1 += 0xBB67AE85)
    for (int k = 0; k < kLanes; ++k) {
      uint64_t p0 = uint64_t{0xD2511F53} * words[0][k], p1 = uint64_t{0xCD9E8D57} * words[2][k];
      words[0][k] = static_cast<uint32_t>(p1 >> 32) ^ words[1][k] ^ key0;
      words[1][k] = static_cast<uint32_t>(p1);
      words[2][k] = static_cast<uint32_t>(p0 >> 32) ^ words[3][k] ^ key1;
      words[3][k] = static_cast<uint32_t>(p0);
    }
}

// u8, 1 = kept.
Tensor draw_mask(const Shape& shape, double p) {
  Tensor mask(shape, DType::u8);
  auto [seed, stream] = Training::next_stream();
  uint32_t threshold = static_cast<uint32_t>(p * 0x1p32);
  uint8_t* keep = mask.u8();
  uint32_t words[4][kLanes];
  for (int64_t i = 0, n = mask.numel(); i < n; i += 4 * kLanes) {
    philox_lanes(seed, stream, static_cast<uint64_t>(i / 4), words);
    uint8_t kept[4 * kLanes];
    for (int k = 0; k < kLanes; ++k)
      for (int w = 0; w < 4; ++w) kept[4 * k + w] = words[w][k] >= threshold;
    std::copy_n(kept, std::min<int64_t>(4 * kLanes, n - i), keep + i);
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
    // By bits: no branch, which would be mispredicted often, and no NaN where an infinity is dropped.
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    for (int64_t i = 0, n = x.numel(); i < n; ++i)
      out[i] = std::bit_cast<T>(std::bit_cast<Bits>(in[i] * scale) & (Bits{0} - Bits{keep[i]}));
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
