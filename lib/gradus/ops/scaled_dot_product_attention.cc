#include <gradus/ops/scaled_dot_product_attention.h>

#include <algorithm>
#include <cmath>

#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/kernels/products/small_gemm.h>
#include <gradus/kernels/softmax.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/dropout.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>

// Per sentence and head, g = dO the gradient of the output:
//   forward (1) P = softmax(scale Q K^T)   (2) M = keep P / (1 - p)    (3) O = M V
//   back    (3) dV = M^T g, dM = g V^T     (2) dP = keep dM / (1 - p)
//           (1) dE = P (dP - rowsum(P dP)), dQ = scale dE K, dK = scale dE^T Q

namespace gradus {
namespace {

constexpr const char* kOp = "scaled_dot_product_attention";
constexpr int64_t kQueries = 64;          // rows of scores in memory at a time
constexpr int64_t kSmall = 64 * 64 * 32;  // multiplications up to which small_gemm beats a BLAS

// Which allowed keys a query has, u8 [B, 1, T, S]; undefined when all.
Tensor allowed(const ScaledDotProductOptions& o, int64_t T, int64_t B, int64_t S) {
  if (!o.causal && !o.mask.defined()) return {};
  Tensor allowed({B, 1, T, S}, DType::u8);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t s = 0; s < S; ++s)
        allowed.u8()[(b * T + t) * S + s] =
            (!o.causal || s <= S - T + t) && (!o.mask.defined() || o.mask.u8()[b * S + s]);
  return allowed;
}

}  // namespace

namespace reference {

Var scaled_dot_product_attention(const Input& q, const Var& k, const Var& v,
                                 const ScaledDotProductOptions& o) {
  At at(q.caller());
  int64_t T = q.size(0), B = q.size(1), S = k.size(0);
  auto heads = [&](const Var& x) {  // [T, B, H d] -> [B, H, T, d]
    return permute(reshape(x, {x.size(0), B, o.heads, x.size(2) / o.heads}), {1, 2, 0, 3});
  };
  double scale = o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(q.size(2) / o.heads));
  Var weights =
      softmax(matmul(heads(q), transpose(heads(k), 2, 3)) * scale, {.axis = -1, .mask = allowed(o, T, B, S)});
  return reshape(permute(matmul(dropout(weights, o.dropout), heads(v)), {2, 0, 1, 3}), {T, B, v.size(2)});
}

}  // namespace reference

namespace {

// Queries, keys or values inside a tensor [T, B, width]: columns `column` .. of each row.
struct Operand {
  int input;  // which input of the op
  Tensor tensor;
  int64_t column;

  int64_t row_stride() const { return tensor.size(1) * tensor.size(2); }
  // Where head h (d columns) of sentence b begins; rows are row_stride() apart.
  template <class T>
  T* at(const Tensor& like, int64_t b, int64_t h, int64_t d) const {
    return data<T>(like) + b * tensor.size(2) + column + h * d;
  }
  template <class T>
  const T* at(int64_t b, int64_t h, int64_t d) const {
    return at<T>(tensor, b, h, d);
  }
};

// C += alpha A B (or =), A row-major with rows `lda` apart, or transposed in place.
template <class T>
void product(bool transposed, int64_t m, int64_t n, int64_t k, double alpha, const T* a, int64_t lda,
             const T* b, int64_t ldb, bool add, T* c, int64_t ldc) {
  if (m * n * k <= kSmall)
    kernels::small_gemm(m, n, k, static_cast<T>(alpha), a, transposed ? 1 : lda, transposed ? lda : 1, b, ldb,
                        add, c, ldc);
  else
    kernels::gemm(transposed, false, m, n, k, static_cast<T>(alpha), a, lda, b, ldb, add ? T(1) : T(0), c,
                  ldc);
}

// to [d, n] = from [n, d] transposed.
template <class T>
void transpose_into(const T* from, int64_t stride, int64_t n, int64_t d, T* to) {
  for (int64_t s = 0; s < n; ++s)
    for (int64_t j = 0; j < d; ++j) to[j * n + s] = from[s * stride + j];
}

struct Problem {
  Operand q, k, v;
  int64_t T = q.tensor.size(0), B = q.tensor.size(1), S = k.tensor.size(0), H = 0, d = 0, dv = 0;
  double scale = 1, dropout = 0;
  bool causal = false;
  Tensor mask = {};
  std::vector<int64_t> real = {};             // keys up to the last real one, for each sentence
  std::vector<uint8_t> holes = {};            // whether masked ones stand before it
  std::pair<uint64_t, uint64_t> stream = {};  // of the dropped weights

  DType dtype() const { return q.tensor.dtype(); }

  // Queries of one head and sentence that go through together: t .. t + count - 1, which see at most n keys.
  struct Rows {
    int64_t b, h, t, count, n;
  };
  template <class F>
  void for_rows(int64_t b, int64_t h, F&& f) const {
    for (int64_t t = 0; t < T; t += kQueries) {
      int64_t count = std::min(kQueries, T - t);
      f(Rows{b, h, t, count, causal ? std::min(real[b], S - T + t + count) : real[b]});
    }
  }
  // How many keys query t of them sees.
  int64_t seen(const Rows& r, int64_t i) const { return causal ? std::min(r.n, S - T + r.t + i + 1) : r.n; }

  // (1): p [count, n].
  template <class T_>
  void weights_of(const Rows& r, const T_* keys_t, int64_t all, T_* p) const {
    const T_* queries = q.at<T_>(r.b, r.h, d) + r.t * q.row_stride();
    if (keys_t) {  // [d, all]
      product(false, r.count, r.n, d, scale, queries, q.row_stride(), keys_t, all, false, p, r.n);
    } else {  // few queries: row by row, which needs no transposed keys
      for (int64_t i = 0; i < r.count; ++i)
        for (int64_t s = 0; s < r.n; ++s)
          p[i * r.n + s] =
              static_cast<T_>(scale) *
              kernels::dot(queries + i * q.row_stride(), k.at<T_>(r.b, r.h, d) + s * k.row_stride(), d);
    }
    const uint8_t* row_mask = holes[r.b] ? mask.u8() + r.b * S : nullptr;
    if (!causal && !row_mask) return kernels::softmax_rows(p, nullptr, p, r.count, r.n);
    for (int64_t i = 0; i < r.count; ++i, p += r.n) {
      int64_t n = seen(r, i);
      kernels::softmax_rows(p, row_mask, p, 1, n);
      std::fill(p + n, p + r.n, T_(0));
    }
  }

  // (2), and its backward: x = keep x / (1 - p).
  template <class T_>
  void drop(const Rows& r, std::vector<uint8_t>& keep, T_* x) const {
    T_ factor = static_cast<T_>(1 / (1 - dropout));
    const int64_t drawn = (r.count - 1) * S + r.n;  // of the last row no more than it sees
    keep.resize(static_cast<size_t>(drawn));
    dropout_keep(stream, dropout, ((r.b * H + r.h) * T + r.t) * S, drawn, keep.data());
    for (int64_t i = 0; i < r.count; ++i, x += r.n)
      kernels::keep_scaled(x, keep.data() + i * S, factor, x, r.n);
  }

  template <class T_>
  void forward(const Tensor& output, const Tensor& weights) const {
    std::vector<uint8_t> keep;
    Tensor scores({std::min(T, kQueries) * S}, dtype()), transposed({d, S}, dtype());
    int64_t row = B * H * dv;  // of the output
    for (int64_t b = 0; b < B; ++b)
      for (int64_t h = 0; h < H; ++h) {
        T_* out = data<T_>(output) + (b * H + h) * dv;
        const T_* keys_t = nullptr;
        if (T >= 4) {
          transpose_into(k.at<T_>(b, h, d), k.row_stride(), real[b], d, data<T_>(transposed));
          keys_t = data<T_>(transposed);
        }
        for_rows(b, h, [&](const Rows& r) {
          T_* p = data<T_>(scores);
          if (r.n > 0) weights_of(r, keys_t, real[b], p);
          if (weights.defined())
            for (int64_t i = 0; i < r.count; ++i) {
              T_* w = data<T_>(weights) + ((b * H + h) * T + r.t + i) * S;
              std::fill(std::copy_n(p + i * r.n, r.n, w), w + S, T_(0));
            }
          if (dropout > 0) drop(r, keep, p);
          product(false, r.count, dv, r.n, 1, p, r.n, v.at<T_>(b, h, dv), v.row_stride(), false,
                  out + r.t * row, row);
        });
      }
  }

  template <class T_>
  void backward(const Tensor& doutput, Grads& dx) const {
    Tensor dq = into_if_needed(dx, q.input), dk = into_if_needed(dx, k.input),
           dv_ = into_if_needed(dx, v.input);
    std::vector<uint8_t> keep;
    int64_t most = std::min(T, kQueries) * S, row = B * H * dv;
    Tensor scores({most}, dtype()), slopes({most}, dtype()),
        dropped(dropout > 0 ? Shape{most} : Shape{0}, dtype());
    Tensor keys({d, S}, dtype()), values({dv, S}, dtype());
    for (int64_t b = 0; b < B; ++b)
      for (int64_t h = 0; h < H; ++h) {
        int64_t all = real[b];
        T_ *keys_t = data<T_>(keys), *values_t = data<T_>(values);
        transpose_into(k.at<T_>(b, h, d), k.row_stride(), all, d, keys_t);
        transpose_into(v.at<T_>(b, h, dv), v.row_stride(), all, dv, values_t);
        for_rows(b, h, [&](const Rows& r) {
          if (r.n == 0) return;
          const T_* g = data<T_>(doutput) + (b * H + h) * dv + r.t * row;
          T_ *p = data<T_>(scores), *e = data<T_>(slopes), *m = p;
          weights_of(r, keys_t, all, p);
          if (dropout > 0) {
            m = data<T_>(dropped);
            std::copy_n(p, r.count * r.n, m);
            drop(r, keep, m);
          }
          if (dv_.defined())
            product(true, r.n, dv, r.count, 1, m, r.n, g, row, true, v.at<T_>(dv_, b, h, dv), v.row_stride());
          if (!dq.defined() && !dk.defined()) return;
          product(false, r.count, r.n, dv, 1, g, row, values_t, all, false, e, r.n);
          if (dropout > 0) drop(r, keep, e);
          kernels::softmax_rows_backward(p, e, e, r.count, r.n);
          if (dq.defined())
            product(false, r.count, d, r.n, scale, e, r.n, k.at<T_>(b, h, d), k.row_stride(), true,
                    q.at<T_>(dq, b, h, d) + r.t * q.row_stride(), q.row_stride());
          if (dk.defined())
            product(true, r.n, d, r.count, scale, e, r.n, q.at<T_>(b, h, d) + r.t * q.row_stride(),
                    q.row_stride(), true, k.at<T_>(dk, b, h, d), k.row_stride());
        });
      }
  }
};

// Fills in what follows from the operands and runs the forward.
ScaledDotProduct attend(const std::vector<Var>& inputs, Problem p, const ScaledDotProductOptions& o) {
  p.H = o.heads;
  check_mask(kOp, o.mask, p.B, p.S);
  if (o.causal && p.S < p.T)
    refuse(kOp, "causal queries are the last of the keys' positions: {} queries, {} keys", p.T, p.S);
  p.scale = o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(p.d, 1)));
  p.causal = o.causal;
  p.mask = o.mask;
  if (!(o.dropout >= 0 && o.dropout < 1)) refuse(kOp, "dropout must be in [0, 1): {}", o.dropout);
  p.dropout = o.dropout * Training::dropout_share();
  if (p.dropout > 0) p.stream = Training::next_stream();
  p.real = real_positions(p.mask, p.B, p.S);
  p.holes.assign(static_cast<size_t>(p.B), 0);
  for (int64_t b = 0; b < p.B && p.mask.defined(); ++b) {
    const uint8_t* row = p.mask.u8() + b * p.S;
    p.holes[b] = std::find(row, row + p.real[b], 0) != row + p.real[b];
  }
  Tensor output({p.T, p.B, p.H * p.dv}, p.dtype());
  Tensor weights = o.weights ? Tensor({p.B, p.H, p.T, p.S}, p.dtype()) : Tensor();
  with_type(p.dtype(), kOp, [&](auto type) { p.forward<decltype(type)>(output, weights); });
  auto back = [p = std::move(p)](auto type, const Tensor& dy, Grads& dx) {
    p.backward<decltype(type)>(dy, dx);
  };
  return {record_typed(kOp, inputs, output, std::move(back)), weights};
}

// Columns per head of `width` columns. @throws when they do not divide.
int64_t per_head(const char* what, int64_t width, int64_t parts, int64_t heads) {
  if (heads < 1) refuse(kOp, "heads must be positive: {}", heads);
  if (heads > std::max<int64_t>(width, 1) || width % (parts * heads) != 0)
    refuse(kOp, "{} must divide into {} heads: {} columns{}", what, heads, width,
           parts > 1 ? fmt::format(" of {} operands", parts) : std::string());
  return width / parts / heads;
}

void check_time_major(const char* what, const Var& x) {
  check_operand(x, kOp);
  if (x.dims() != 3) refuse(kOp, "{} must have three axes, time first: {}", what, x.shape());
}

}  // namespace

ScaledDotProduct scaled_dot_product_attention(const Input& q, const Var& k, const Var& v,
                                              const ScaledDotProductOptions& options) {
  At at(q.caller());
  check_time_major("queries", q);
  check_time_major("keys", k);
  check_time_major("values", v);
  check_operands(q, k, kOp);
  check_operands(q, v, kOp);
  if (k.size(1) != q.size(1) || k.size(2) != q.size(2))
    refuse(kOp, "keys must be [S, B, E] for queries [T, B, E]: queries {}, keys {}", q.shape(), k.shape());
  if (v.size(0) != k.size(0) || v.size(1) != k.size(1))
    refuse(kOp, "values must be [S, B, Ev] for keys [S, B, E]: keys {}, values {}", k.shape(), v.shape());
  Problem p{.q = {0, q.value(), 0}, .k = {1, k.value(), 0}, .v = {2, v.value(), 0}};
  p.d = per_head("queries", q.size(2), 1, options.heads);
  p.dv = per_head("values", v.size(2), 1, options.heads);
  return attend({q, k, v}, std::move(p), options);
}

ScaledDotProduct packed_self_attention(const Input& qkv, const ScaledDotProductOptions& options) {
  At at(qkv.caller());
  check_time_major("queries, keys, values", qkv);
  int64_t d = per_head("queries, keys, values", qkv.size(2), 3, options.heads), E = d * options.heads;
  const Tensor& x = qkv.value();
  Problem p{.q = {0, x, 0}, .k = {0, x, E}, .v = {0, x, 2 * E}};
  p.d = p.dv = d;
  return attend({qkv}, std::move(p), options);
}

ScaledDotProduct packed_cross_attention(const Input& q, const Var& kv,
                                        const ScaledDotProductOptions& options) {
  At at(q.caller());
  check_time_major("queries", q);
  check_time_major("keys, values", kv);
  check_operands(q, kv, kOp);
  if (kv.size(1) != q.size(1) || kv.size(2) != 2 * q.size(2))
    refuse(kOp, "keys and values must be [S, B, 2E] for queries [T, B, E]: queries {}, keys and values {}",
           q.shape(), kv.shape());
  Problem p{.q = {0, q.value(), 0}, .k = {1, kv.value(), 0}, .v = {1, kv.value(), q.size(2)}};
  p.d = p.dv = per_head("queries", q.size(2), 1, options.heads);
  return attend({q, kv}, std::move(p), options);
}

// ---- cases: T = 3, B = 3, S = 4, H = 2; the second sentence is empty, the third has a hole ----

namespace {

ScaledDotProductOptions case_options(bool causal, double dropout = 0) {
  Tensor mask = length_mask(Tensor::from_ids({3}, {4, 0, 3}), 4);
  mask.u8()[2 * 4 + 1] = 0;
  return {.heads = 2, .mask = mask, .causal = causal, .dropout = dropout};
}

OpCase attention_case(const std::string& name, const std::vector<OpCase::Input>& inputs,
                      const ScaledDotProductOptions& options) {
  auto fused = [=](auto& in) { return scaled_dot_product_attention(in[0], in[1], in[2], options).output; };
  return {"scaled_dot_product_attention" + name, inputs, training(5, fused),
          training(5, calls(reference::scaled_dot_product_attention, options))};
}

}  // namespace

GRADUS_OP_CASES(
    attention_case("", {{3, 2, 4}, {5, 2, 4}, {5, 2, 6}}, {.heads = 2}),
    attention_case(": mask, causal", {{3, 3, 4}, {4, 3, 4}, {4, 3, 4}}, case_options(true)),
    attention_case(": one head, scale", {{4, 1, 3}, {4, 1, 3}, {4, 1, 3}}, {.scale = 1.3}),
    attention_case(": dropout", {{5, 3, 4}, {4, 3, 4}, {4, 3, 4}}, case_options(false, 0.4)),
    {"packed_self_attention", {{4, 3, 12}},
     [](auto& in) { return packed_self_attention(in[0], case_options(true)).output; },
     [](auto& in) {
       std::vector<Var> parts = split(in[0], {4, 4, 4}, 2);
       return reference::scaled_dot_product_attention(parts[0], parts[1], parts[2], case_options(true));
     }},
    {"packed_cross_attention", {{5, 3, 4}, {4, 3, 8}},
     [](auto& in) { return packed_cross_attention(in[0], in[1], case_options(false)).output; },
     [](auto& in) {
       std::vector<Var> parts = split(in[1], {4, 4}, 2);
       return reference::scaled_dot_product_attention(in[0], parts[0], parts[1], case_options(false));
     }});

}  // namespace gradus
