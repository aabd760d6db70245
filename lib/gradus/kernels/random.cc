#include <gradus/kernels/random.h>
#include <gradus/kernels/simd_targets.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <gradus/parallel.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gradus/kernels/random.cc"
#include <hwy/foreach_target.h>

#include <gradus/kernels/simd-inl.h>

#include <hwy/contrib/math/math-inl.h>

// Vectors of doubles round a little differently from the C library, and the compiler may join a product and a
// sum. In f32 that shows only where a number lies next to the middle between two floats: there, and nowhere
// else, a number is made again as Rng makes it. So an initialisation is the same on every CPU.

HWY_BEFORE_NAMESPACE();
namespace gradus::kernels::HWY_NAMESPACE {
namespace {

/// One number as Rng makes it, from one or two draws of 64 bits as they stand in memory.
using Exact = float (*)(const uint64_t* draws, double a, double b);

/// The 64-bit products of the lower halves of the lanes.
template <class V>
HWY_INLINE V product(V x, uint32_t factor) {
  const Tag<uint64_t> d;
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, (hn::GetLane(x) & 0xFFFFFFFFu) * factor);
#else
  const hn::Repartition<uint32_t, Tag<uint64_t>> narrow;
  return hn::MulEven(hn::BitCast(narrow, x), hn::BitCast(narrow, hn::Set(d, uint64_t{factor})));
#endif
}

void philox_words(uint64_t seed, uint64_t stream, uint64_t first, int64_t blocks, uint32_t* out) {
  const Tag<uint64_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto low = hn::Set(d, 0xFFFFFFFFu);
  HWY_ALIGN uint64_t rest[2 * hn::MaxLanes(Tag<uint64_t>())];
  const auto step = hn::Set(d, static_cast<uint64_t>(lanes));
  auto block = hn::Iota(d, first);  // once: it goes through memory, lane by lane
  for (int64_t k = 0; k < blocks; k += lanes, block = hn::Add(block, step)) {
    // A word in the lower half of each lane; what stands above it does not matter to the products.
    auto x0 = block, x1 = hn::ShiftRight<32>(x0);
    auto x2 = hn::Set(d, stream), x3 = hn::ShiftRight<32>(x2);
    uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
    HWY_UNROLL(10) for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9, key1 += 0xBB67AE85) {
      const auto p0 = product(x0, 0xD2511F53u), p1 = product(x2, 0xCD9E8D57u);
      x0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), x1), hn::Set(d, uint64_t{key0}));
      x1 = p1;
      x2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), x3), hn::Set(d, uint64_t{key1}));
      x3 = p0;
    }
    const auto a = hn::Or(hn::And(x0, low), hn::ShiftLeft<32>(x1));
    const auto b = hn::Or(hn::And(x2, low), hn::ShiftLeft<32>(x3));
    if (k + lanes <= blocks) {
      hn::StoreInterleaved2(a, b, d, reinterpret_cast<uint64_t*>(out + 4 * k));
    } else {
      hn::StoreInterleaved2(a, b, d, rest);
      std::memcpy(out + 4 * k, rest, static_cast<size_t>(blocks - k) * 16);
    }
  }
}

/// Rng::uniform() of draws as they stand in memory: the word drawn first is the upper half.
template <class V>
HWY_INLINE hn::Vec<Tag<double>> unit(V draws) {
  const Tag<double> d;
  const Tag<int64_t> whole;
  const auto bits = hn::ShiftRight<11>(hn::Or(hn::ShiftLeft<32>(draws), hn::ShiftRight<32>(draws)));
  return hn::Mul(hn::ConvertTo(d, hn::BitCast(whole, bits)), hn::Set(d, 0x1p-53));
}

/// All n numbers, of `each` draws: a vector of them is lanes_of(draws). Where one of those +- error is two
/// floats, each is exact(draws, a, b) instead.
template <class LanesOf>
HWY_INLINE void fill(const uint64_t* draws, int64_t n, int64_t each, double a, double b, double error,
                     float* p, Exact exact, const LanesOf& lanes_of) {
  const Tag<double> d;
  const hn::Rebind<float, Tag<double>> narrow;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes, draws += lanes * each) {
    const auto x = lanes_of(draws);
    const auto below = hn::DemoteTo(narrow, hn::Sub(x, hn::Set(d, error)));
    const auto above = hn::DemoteTo(narrow, hn::Add(x, hn::Set(d, error)));
    if (HWY_LIKELY(hn::AllTrue(narrow, hn::Eq(below, above)))) {
      hn::StoreU(below, narrow, p + i);
    } else {
      for (int64_t k = 0; k < lanes; ++k) p[i + k] = exact(draws + k * each, a, b);
    }
  }
  for (; i < n; ++i, draws += each) p[i] = exact(draws, a, b);
}

void uniform_f32(const uint64_t* draws, int64_t n, double low, double high, float* p, Exact exact) {
  const Tag<double> d;
  const double error = (std::fabs(low) + std::fabs(high)) * 1e-15;
  fill(draws, n, 1, low, high, error, p, exact, [&](const uint64_t* from) HWY_ATTR {
    return hn::MulAdd(hn::Set(d, high - low), unit(hn::LoadU(Tag<uint64_t>(), from)), hn::Set(d, low));
  });
}

void normal_f32(const uint64_t* draws, int64_t n, double mean, double deviation, float* p, Exact exact) {
  const Tag<double> d;
  const double error = std::fabs(deviation) * 1e-13 + std::fabs(mean) * 1e-15;
  fill(draws, n, 2, mean, deviation, error, p, exact, [&](const uint64_t* from) HWY_ATTR {
    hn::Vec<Tag<uint64_t>> first, second;
    hn::LoadInterleaved2(Tag<uint64_t>(), from, first, second);
    const auto u = hn::Sub(hn::Set(d, 1.0), unit(first));
    const auto angle = hn::Mul(hn::Set(d, 2.0 * std::numbers::pi), unit(second));
    const auto radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0), hn::Log(d, u)));
    return hn::MulAdd(hn::Set(d, deviation), hn::Mul(radius, hn::Cos(d, angle)), hn::Set(d, mean));
  });
}

}  // namespace
}  // namespace gradus::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradus::kernels {

GRADUS_PLAIN_KERNEL(philox_words, 5);

namespace {

HWY_EXPORT(uniform_f32);
HWY_EXPORT(normal_f32);

constexpr int64_t kBlocks = 512;  // Philox blocks at a time: 8 KB

double unit_of(uint64_t draw) { return static_cast<double>((draw << 32 | draw >> 32) >> 11) * 0x1p-53; }

float exact_uniform(const uint64_t* draws, double low, double high) {
  return static_cast<float>(low + (high - low) * unit_of(draws[0]));
}

float exact_normal(const uint64_t* draws, double mean, double deviation) {
  double u = 1.0 - unit_of(draws[0]), v = unit_of(draws[1]);
  return static_cast<float>(
      mean + deviation * (std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v)));
}

// make(draws, i, count) for numbers begin .. end - 1, of `each` draws, some at a time.
template <class Make>
void by_blocks(const Rng& rng, int64_t begin, int64_t end, int64_t each, const Make& make) {
  const uint64_t position = rng.position() + static_cast<uint64_t>(2 * each * begin);
  alignas(64) uint64_t draws[2 * kBlocks + 2];
  uint64_t block = position / 4;
  int64_t skip = static_cast<int64_t>(position / 2 % 2);
  int64_t left = 0;  // left over from the blocks before, fewer than each
  for (int64_t i = begin; i < end;) {
    int64_t wanted = ((end - i) * each - left + skip + 1) / 2, blocks = std::min(kBlocks, wanted);
    philox_words(rng.seed(), rng.stream(), block, blocks, reinterpret_cast<uint32_t*>(draws + left));
    block += static_cast<uint64_t>(blocks);
    const uint64_t* from = draws + skip;
    int64_t have = left + 2 * blocks - skip, count = std::min(end - i, have / each);
    skip = 0;
    make(from, i, count);
    i += count;
    left = have - count * each;
    if (left >= each) break;  // all are made
    std::copy_n(from + count * each, left, draws);
  }
}

// The same for all n numbers, parts of them on all processors where there are many: a model's initialisation
// is most of its program's start, and half of that is the system's zeroing of new pages. Numbers depend on
// their place alone. False where the generator stands in the middle of a draw.
template <class Make>
bool by_parts(Rng& rng, int64_t n, int64_t each, const Make& make) {
  if (rng.position() % 2 != 0) return false;
  constexpr int64_t kPart = 1 << 20;
  const int parts = static_cast<int>(std::min<int64_t>({n / kPart + 1, available_threads(), 8}));
  if (parts == 1) {
    by_blocks(rng, 0, n, each, make);
  } else {
    ThreadPool pool(parts);
    const int64_t size = pool.size();
    pool.run([&](int part) { by_blocks(rng, n * part / size, n * (part + 1) / size, each, make); });
  }
  rng.seek(rng.position() + static_cast<uint64_t>(2 * each * n));
  return true;
}

}  // namespace

void fill_uniform(Rng& rng, double low, double high, float* p, int64_t n) {
  bool done = by_parts(rng, n, 1, [&](const uint64_t* draws, int64_t i, int64_t count) {
    HWY_DYNAMIC_DISPATCH(uniform_f32)(draws, count, low, high, p + i, &exact_uniform);
  });
  for (int64_t i = 0; !done && i < n; ++i) p[i] = static_cast<float>(rng.uniform(low, high));
}
void fill_uniform(Rng& rng, double low, double high, double* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = rng.uniform(low, high);
}

void fill_normal(Rng& rng, double mean, double deviation, float* p, int64_t n) {
  bool done = by_parts(rng, n, 2, [&](const uint64_t* draws, int64_t i, int64_t count) {
    HWY_DYNAMIC_DISPATCH(normal_f32)(draws, count, mean, deviation, p + i, &exact_normal);
  });
  for (int64_t i = 0; !done && i < n; ++i) p[i] = static_cast<float>(mean + deviation * rng.normal());
}
void fill_normal(Rng& rng, double mean, double deviation, double* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = mean + deviation * rng.normal();
}

}  // namespace gradus::kernels
#endif  // HWY_ONCE
