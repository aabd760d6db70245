#include <gradus/kernels/products/amx.h>
#include <gradus/kernels/products/behind_gemm.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/memory.h>

#include <algorithm>

// for blocks of k:
//   for blocks of one of op(A) and op(B): its panels, at most 1.2 MB, are held in the second-level cache while
//     for parts of the other: its panels are packed, and multiplied at once.

namespace gradus::kernels {
namespace {

constexpr int64_t kHeld = 600 << 10;         // pieces of the side that is held
constexpr int64_t kDepth = 512;              // of a block, so that C is seldom read and written
constexpr int64_t kShallow = 128;            // where C stays in the second-level cache as well
constexpr int64_t kSmallC = 256 << 10;       // numbers of such a C
constexpr int64_t kPart = 4 * kAmxSide;      // rows or columns that are packed at a time
constexpr double kPlain = 1, kTurned = 1.8;  // time to pack a number, by the way it lies

/// op(A) or op(B): how it lies, and how it is packed.
struct Side {
  bool left, transposed;
  /// rows of op(A) or columns of op(B)
  int64_t n;
  float alpha;
  const float* at;
  int64_t ld;

  /// Whether the memory's rows do.
  bool along_k() const { return left != transposed; }
  /// From row (column) i and k = p on.
  const float* from(int64_t i, int64_t p) const { return at + (along_k() ? i * ld + p : p * ld + i); }
  bool pack(int64_t i, int64_t size, int64_t p, int64_t depth, uint16_t* to) const {
    return amx_pack(left, transposed, size, depth, alpha, from(i, p), ld, to);
  }
  /// The memory that pack() reads.
  AmxAhead memory(int64_t i, int64_t size, int64_t p, int64_t depth) const {
    return {from(i, p), along_k() ? size : depth, along_k() ? depth : size, ld};
  }
  /// Of packing it `times` times.
  double cost(int64_t times) const {
    return static_cast<double>(times) * static_cast<double>(n) * (transposed ? kTurned : kPlain);
  }
};

std::shared_ptr<uint16_t> pieces(int64_t panels, int64_t depth) {
  const int64_t bytes = panels * amx_panel(depth) * static_cast<int64_t>(sizeof(uint16_t));
  return std::static_pointer_cast<uint16_t>(allocate(bytes));
}

}  // namespace

void amx_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
              int64_t lda, const float* b, int64_t ldb, bool add, float* c, int64_t ldc) {
  const Side sides[] = {{true, trans_a, m, alpha, a, lda}, {false, trans_b, n, 1, b, ldb}};
  const int64_t deepest = next_part(k, m * n <= kSmallC ? kShallow : kDepth, kAmxStep);
  const int64_t most = kHeld / amx_panel(deepest) * kAmxSide;
  const auto parts = [&](const Side& side) { return (side.n + most - 1) / most; };
  const bool hold_left =
      sides[0].cost(1) + sides[1].cost(parts(sides[0])) <= sides[1].cost(1) + sides[0].cost(parts(sides[1]));
  const Side &held = sides[hold_left ? 0 : 1], &passing = sides[hold_left ? 1 : 0];
  const std::shared_ptr<uint16_t> panels = pieces(amx_panels(std::min(held.n, most)), deepest);
  const std::shared_ptr<uint16_t> part = pieces(kPart / kAmxSide, deepest);
  for (int64_t p = 0, depth; p < k; p += depth) {
    depth = next_part(k - p, deepest, kAmxStep);
    for (int64_t h = 0, size; h < held.n; h += size) {
      size = next_part(held.n - h, most, kAmxSide);
      const bool held_finite = held.pack(h, size, p, depth, panels.get());
      for (int64_t q = 0; q < passing.n; q += kPart) {
        const int64_t width = std::min(kPart, passing.n - q);
        const bool finite = passing.pack(q, width, p, depth, part.get()) && held_finite;
        const int64_t i = hold_left ? h : q, j = hold_left ? q : h;
        const int64_t rows = hold_left ? size : width, columns = hold_left ? width : size;
        float* to = c + i * ldc + j;
        AmxAhead ahead;
        if (q + width < passing.n) {
          ahead = passing.memory(q + width, std::min(kPart, passing.n - q - width), p, depth);
        } else if (h + size >= held.n && p + depth < k) {
          ahead = passing.memory(0, std::min(kPart, passing.n), p + depth, std::min(depth, k - p - depth));
        }
        if (finite) {
          const AmxPanels of_held{panels.get(), amx_panel(depth)}, of_part{part.get(), amx_panel(depth)};
          amx_multiply(rows, columns, depth, hold_left ? of_held : of_part, hold_left ? of_part : of_held,
                       add || p > 0, to, ldc, ahead);
        } else {
          block_gemm(trans_a, trans_b, rows, columns, depth, alpha, sides[0].from(i, p), lda,
                     sides[1].from(j, p), ldb, add || p > 0, to, ldc);
        }
      }
    }
  }
}

bool use_amx_gemm(int64_t m, int64_t n, int64_t k) {
  return m >= 16 && n >= 16 && k >= 16 && m * n * k >= (int64_t{1} << 18) && amx_ready();
}

}  // namespace gradus::kernels
