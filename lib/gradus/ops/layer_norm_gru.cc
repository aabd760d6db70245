#include <gradus/ops/layer_norm_gru.h>

#include <gradus/kernels/gru.h>
#include <gradus/op_case.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/recurrent_norm.h>
#include <gradus/ops/shape.h>

// The GRU with its summed inputs normalised, what comes from x and what comes from h each on its own (Ba,
// Kiros & Hinton 2016, arXiv:1607.06450, supplement, the GRU of the order embeddings), blocks r, z, n.
// x [T, B, I] -> h [T, B, H]
//   1. p = W_ih x, ai = N_ih(p)          over all real steps at once; [r, z] is a row of 2H for N, n one of H
//   2. q_t = W_hh (m h_{t-1}), ah = N_hh(q_t)                              step by step, as what follows
//   3. r, z = s(ai + ah),  n = tanh(ai_n + r ah_n),  h_t = (1 - z) n + z h_{t-1}
// Reset before: 2. is for r and z alone, and 3. has  q_n = W_hn (r m h_{t-1}),  n = tanh(ai_n + N_hh(q_n)).
// Bahdanau's h_t = (1 - z) h_{t-1} + z n: see kernels/gru.h.
// Backward, newest step first, from dh. N': from dy to da for y = N(a), in a row of n with
// xh = (a - mean) / sqrt(var + eps), g = gain dy:
//   N'(dy) = (g - mean(g) - xh mean(g xh)) / sqrt(var + eps),   dgain += dy xh,   doffset += dy
//   3. dai, dah as in gru.cc,  dh = dh z
//   2. dq_t = N_hh'(dah),  dh_{t-1} = dh + m (dq_t W_hh)
//      reset before: dq_n = N_hh'(dai_n), d(r m h) = dq_n W_hn, then dr and the part of dh_{t-1} through it
//   1. dp = N_ih'(dai), dx = dp W_ih, dW_ih = dp^T x, dW_hh = dq^T (m h_prev), over all steps at once

namespace gradus {
namespace reference {
namespace {

// The two norms of one product [B, 3H].
Var normalise_blocks(const Var& product, const NormWeights& norm, int64_t H) {
  std::vector<Var> parts = split(product, {2 * H, H}, -1);
  return concat({normalise(parts[0], norm, 0), normalise(parts[1], norm, 2 * H)}, -1);
}

}  // namespace

Var layer_norm_gru_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh,
                        const GruNorms& norms, const GruOptions& options) {
  At at(x.caller());
  int64_t H = h.size(-1);
  Var seen = options.state_mask.defined() ? h * options.state_mask : h;
  std::vector<Var> ai = split(normalise_blocks(linear(x, weight_ih, {}), norms.ih, H), {H, H, H}, -1);
  Var r, z, n;
  if (options.reset_after) {
    std::vector<Var> ah = split(normalise_blocks(linear(seen, weight_hh, {}), norms.hh, H), {H, H, H}, -1);
    r = sigmoid(ai[0] + ah[0]);
    z = sigmoid(ai[1] + ah[1]);
    n = tanh(ai[2] + r * ah[2]);
  } else {
    Var gates = linear(seen, slice(weight_hh, 0, 0, 2 * H), {});
    std::vector<Var> ah = split(normalise(gates, norms.hh), {H, H}, -1);
    r = sigmoid(ai[0] + ah[0]);
    z = sigmoid(ai[1] + ah[1]);
    n = tanh(ai[2] + normalise(linear(r * seen, slice(weight_hh, 0, 2 * H, 3 * H), {}), norms.hh, 2 * H));
  }
  return options.update_selects_new ? z * n + (1.0 - z) * h : (1.0 - z) * n + z * h;
}

Var layer_norm_gru(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh,
                   const GruNorms& norms, const GruOptions& options) {
  At at(x.caller());
  Var start = h0.defined() ? h0 : Var(Tensor::zeros({x.size(1), weight_hh.size(1)}, x.dtype()));
  return over_time(x.size(0), start, options.reverse, options.lengths, [&](int64_t t, const Var& h) {
    return reference::layer_norm_gru_cell(select(x, 0, t), h, weight_ih, weight_hh, norms, options);
  });
}

}  // namespace reference

namespace {

enum { kIh = 4, kHh = 6 };  // norms, weight and bias each, among the node's inputs

struct LayerNormGru : Recurrence {
  bool reset_after;
  kernels::UpdateGate update;
  RowNorm ih_gates{}, ih_new{}, hh_gates{}, hh_new{};
  Tensor before{};  // [N, H] the states that the steps start from: `seen`, where no mask is between
  Tensor p{}, q{};  // [N, 3H] both products
  Tensor units{};   // [N, 4H] r, z, n and ah_n of each step

  // out [T, B, H]
  template <class T>
  void forward(T* out) {
    auto [steps, B, I, H] = size;
    const int64_t W = 3 * H, N = real.total();
    Tensor ai = real.empty(W, dtype()), ah({B, W}, dtype()), state = h0.clone();
    project(data<T>(p));  // 1
    ih_gates.forward(0, N, data<T>(p), W, false, data<T>(ai), W);
    ih_new.forward(0, N, data<T>(p) + 2 * H, W, false, data<T>(ai) + 2 * H, W);
    const int64_t at_once = reset_after ? 3 : 2;
    auto w = packed<T>(Use<T>::transposed, 0, at_once), w_n = packed<T>(Use<T>::transposed, at_once, 3);
    T *h_new = data<T>(state), *ah_t = data<T>(ah);
    const T* none = nullptr;  // no biases beside the offsets
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = time(k), first = real.offset(t), n = real.count(t);
      const T *ai_t = data<T>(ai) + first * W, *seen_t = see(t, h_new);
      T *h = data<T>(before) + first * H, *q_t = data<T>(q) + first * W,
        *units_t = data<T>(units) + first * 4 * H;
      if (mask.defined()) std::copy_n(h_new, n * H, h);
      w.product(n, seen_t, H, false, q_t, W);  // 2
      hh_gates.forward(first, n, q_t, W, false, ah_t, W);
      if (reset_after) {
        hh_new.forward(first, n, q_t + 2 * H, W, false, ah_t + 2 * H, W);
        kernels::gru_reset_after(n, H, ai_t, ah_t, none, h, update, h_new, units_t);  // 3
      } else {
        T* rh_t = data<T>(reset_seen) + first * H;
        kernels::gru_reset_before_gates(n, H, ai_t, ah_t, none, seen_t, update, units_t, rh_t);
        w_n.product(n, rh_t, H, false, q_t + 2 * H, W);
        hh_new.forward(first, n, q_t + 2 * H, W, false, ah_t, H);
        kernels::gru_reset_before_state(n, H, ai_t, ah_t, none, h, h_new, units_t);
      }
      put(h_new, out + t * B * H);
    }
  }

  template <class T>
  void backward(const Tensor& dout, Grads& dx) const {
    auto [steps, B, I, H] = size;
    const int64_t W = 3 * H, N = real.total();
    Tensor dai = real.empty(W, dtype()), dq = real.empty(W, dtype());
    Tensor dh = Tensor::zeros({B, H}, dtype()), drh({B, H}, dtype()), scratch({B, H}, dtype());
    NormGradients of_ih(dx, kIh, W, dtype()), of_hh(dx, kHh, W, dtype());
    const int64_t at_once = reset_after ? 3 : 2;
    {  // the packed weights go before the gradients of the weights come
      auto w = packed<T>(Use<T>::plain, 0, at_once), w_n = packed<T>(Use<T>::plain, at_once, 3);
      for (int64_t k = steps; k-- > 0;) {
        int64_t t = time(k), first = real.offset(t), n = real.count(t);
        const T *h = data<T>(before) + first * H, *units_t = data<T>(units) + first * 4 * H;
        const T* q_t = data<T>(q) + first * W;
        T *dai_t = data<T>(dai) + first * W, *dq_t = data<T>(dq) + first * W, *dh_t = data<T>(dh);
        take(data<T>(dout) + t * B * H, dh_t);
        T* dseen = seen_gradient(t, data<T>(scratch), dh_t);
        const T* dah_t = dq_t;  // what arrives at N_hh's blocks r and z
        if (reset_after) {
          kernels::gru_reset_after_backward(n, H, units_t, h, dh_t, update, dai_t, dq_t, dh_t);  // 3
          hh_new.backward(first, n, q_t + 2 * H, W, dq_t + 2 * H, W, false, dq_t + 2 * H, W, of_hh);
        } else {
          kernels::gru_reset_before_state_backward(n, H, units_t, h, dh_t, update, dai_t, dh_t);
          hh_new.backward(first, n, q_t + 2 * H, W, dai_t + 2 * H, W, false, dq_t + 2 * H, W, of_hh);
          w_n.product(n, dq_t + 2 * H, W, false, data<T>(drh), H);
          kernels::gru_reset_before_gates_backward(n, H, units_t, data<T>(seen) + first * H, data<T>(drh),
                                                   dai_t, dseen);
          dah_t = dai_t;
        }
        hh_gates.backward(first, n, q_t, W, dah_t, W, false, dq_t, W, of_hh);  // 2
        w.product(n, dq_t, W, true, dseen, H);
        unmask(t, dseen, dh_t);
      }
    }
    T *into = data<T>(dai), *into_n = into + 2 * H;  // 1
    ih_gates.backward(0, N, data<T>(p), W, into, W, false, into, W, of_ih);
    ih_new.backward(0, N, data<T>(p) + 2 * H, W, into_n, W, false, into_n, W, of_ih);
    finish<T>(dai, dq, dh, dx);
  }
};

Var run(const char* op, const Var& x, const Var& h0, const Var& weight_ih, const Var& weight_hh,
        const GruNorms& norms, const GruOptions& o) {
  LayerNormGru gru{
      make_recurrence(op, 3, x, h0, weight_ih, weight_hh, {}, {}, o.reverse, o.lengths, o.state_mask),
      o.reset_after,
      o.update_selects_new ? kernels::UpdateGate::selects_new : kernels::UpdateGate::keeps_old};
  auto [steps, B, I, H] = gru.size;
  DType type = x.dtype();
  check_norm(op, "norm_ih", norms.ih, 3 * H, "3 hidden_size", type);
  check_norm(op, "norm_hh", norms.hh, 3 * H, "3 hidden_size", type);
  gru.ih_gates = RowNorm(norms.ih, 0, 2 * H, gru.real);
  gru.ih_new = RowNorm(norms.ih, 2 * H, H, gru.real);
  gru.hh_gates = RowNorm(norms.hh, 0, 2 * H, gru.real);
  gru.hh_new = RowNorm(norms.hh, 2 * H, H, gru.real);
  gru.before = gru.mask.defined() ? gru.real.empty(H, type) : gru.seen;
  gru.p = gru.real.empty(3 * H, type);
  gru.q = gru.real.empty(3 * H, type);
  gru.units = gru.real.empty(4 * H, type);
  if (!o.reset_after) gru.reset_seen = gru.real.empty(H, type);
  Tensor out(x.dims() == 2 ? Shape{B, H} : Shape{steps, B, H}, type);
  return record_recurrence(
      op, std::move(gru),
      {x, h0, weight_ih, weight_hh, norms.ih.weight, norms.ih.bias, norms.hh.weight, norms.hh.bias}, out);
}

}  // namespace

Var layer_norm_gru_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh,
                        const GruNorms& norms, const GruOptions& options) {
  At at(x.caller());
  check_cell_input("layer_norm_gru_cell", x);
  return run("layer_norm_gru_cell", x, h, weight_ih, weight_hh, norms, options);
}

Var layer_norm_gru(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh,
                   const GruNorms& norms, const GruOptions& options) {
  At at(x.caller());
  check_sequence("layer_norm_gru", x);
  return run("layer_norm_gru", x, h0, weight_ih, weight_hh, norms, options);
}

// ---- cases: T = 4, B = 3, I = 2, H = 5 ----

namespace {

OpCase cell_case(const char* name, const GruOptions& options) {
  auto with = [=](auto cell) {
    return [=](const std::vector<Var>& in) {
      return cell(in[0], in[1], in[2], in[3], GruNorms{{in[4], in[5]}, {in[6], in[7]}}, options);
    };
  };
  return {name,
          {{3, 2}, {3, 5}, {15, 2}, {15, 5}, {15}, {15}, {15}, {15}},
          with(layer_norm_gru_cell),
          with(reference::layer_norm_gru_cell)};
}

// `masked`: with a mask on the state, as dropout with p = 1/2 makes one; in the element type of x.
OpCase sequence_case(const char* name, const GruOptions& options, bool masked = false) {
  auto with = [=](auto over_time) {
    return [=](const std::vector<Var>& in) {
      GruOptions o = options;
      if (masked)
        o.state_mask = Tensor::from({3, 5}, {2, 0, 2, 2, 0, 0, 0, 2, 0, 2, 2, 2, 0, 2, 0}, in[0].dtype());
      return over_time(in[0], in[1], in[2], in[3], GruNorms{{in[4], in[5]}, {in[6], in[7]}}, o);
    };
  };
  return {name,
          {{4, 3, 2}, {3, 5}, {15, 2}, {15, 5}, {15}, {15}, {15}, {15}},
          with(layer_norm_gru),
          with(reference::layer_norm_gru)};
}

Tensor some_lengths() { return Tensor::from_ids({3}, {4, 0, 2}); }

}  // namespace

GRADUS_OP_CASES(cell_case("layer_norm_gru_cell", {}),
                cell_case("layer_norm_gru_cell: reset before", {.reset_after = false}),
                cell_case("layer_norm_gru_cell: as in the paper", {.update_selects_new = true}),
                sequence_case("layer_norm_gru", {}),
                sequence_case("layer_norm_gru: reverse", {.reverse = true}),
                sequence_case("layer_norm_gru: lengths", {.lengths = some_lengths()}),
                sequence_case("layer_norm_gru: sorted lengths",
                              {.lengths = Tensor::from_ids({3}, {3, 2, 1})}),
                sequence_case("layer_norm_gru: nothing but padding",
                              {.lengths = Tensor::from_ids({3}, {0, 0, 0})}),
                sequence_case("layer_norm_gru: reset before", {.reset_after = false}),
                sequence_case("layer_norm_gru: reset before, reverse, lengths",
                              {.reset_after = false, .reverse = true, .lengths = some_lengths()}),
                sequence_case("layer_norm_gru: state mask, reverse, lengths",
                              {.reverse = true, .lengths = some_lengths()}, true),
                sequence_case("layer_norm_gru: state mask, reset before, lengths",
                              {.reset_after = false, .lengths = some_lengths()}, true),
                sequence_case("layer_norm_gru: Bahdanau, reverse, lengths",
                              {.reset_after = false, .update_selects_new = true, .reverse = true,
                               .lengths = some_lengths()}),
                {"layer_norm_gru: no offsets, no initial state",
                 {{4, 3, 2}, {15, 2}, {15, 5}, {15}, {15}},
                 [](auto& in) { return layer_norm_gru(in[0], {}, in[1], in[2], {{in[3], {}}, {in[4], {}}}); },
                 [](auto& in) {
                   return reference::layer_norm_gru(in[0], {}, in[1], in[2], {{in[3], {}}, {in[4], {}}});
                 }});

}  // namespace gradus
