#include <gradus/ops/gru.h>

#include <gradus/kernels/recurrent.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/recurrent_cases.h>
#include <gradus/ops/recurrent_norm.h>
#include <gradus/ops/shape.h>

// GRU (Cho et al. 2014), blocks r, z, n. With norms (Ba et al. 2016, supplement, the GRU of the order
// embeddings) what comes from x and what comes from h are normalised each on its own, [r, z] as a row of 2H
// and n as one of H; without them N is the identity.   x [T, B, I] -> h [T, B, H]
//   1. p = W_ih x + b_ih, ai = N_ih(p)                     over all real steps at once
//   2. q_t = W_hh (m h_{t-1}) + b_hh, ah = N_hh(q_t)       step by step, as what follows
//   3. r, z = s(ai + ah),  n = tanh(ai_n + r ah_n),  h_t = (1 - z) n + z h_{t-1}
// Reset before: 2. is for r and z alone, and 3. has
//      q_n = W_hn (r m h_{t-1}) + b_hn,  n = tanh(ai_n + N_hh(q_n))
// Bahdanau et al. 2014 let z weight the new state, h_t = (1 - z) h_{t-1} + z n: the kernels know both, and add
// b_hh, see kernels/recurrent.h.
// Backward, newest step first, from dh, N' being the backward of N (layer_norm.h):
//   3. at the tanh and the sigmoids:
//      dn = dh (1 - z) (1 - n^2),  dz = dh (h_{t-1} - n) z (1 - z),  dr = dn ah_n r (1 - r)
//      dai = [dr, dz, dn],  dah = [dr, dz, dn r],  dh = dh z
//   2. dq_t = N_hh'(dah),  dh_{t-1} = dh + m (dq_t W_hh)
//      reset before: dq_n = N_hh'(dai_n), d(r m h) = dq_n W_hn, then dr and the part of dh_{t-1} through it
//   1. dp = N_ih'(dai), and over all steps at once
//      dx = dp W_ih, dW_ih = dp^T x, dW_hh = dq^T (m h_prev), biases the column sums of dp and dq

namespace gradus {
namespace reference {
namespace {

// Rows begin .. end of a product with W_hh, as the reset before it needs them apart.
Var recurrent_rows(const Var& seen, const RecurrentWeights& w, int64_t begin, int64_t end) {
  Var bias = w.bias_hh.defined() ? slice(w.bias_hh, 0, begin, end) : Var();
  return normalise(linear(seen, slice(w.hh, 0, begin, end), bias), w.norm_hh, begin);
}

// The two norms of one product [B, 3H], which become three blocks.
std::vector<Var> normalise_blocks(const Var& product, const NormWeights& norm, int64_t H) {
  if (!norm.weight.defined()) return split(product, {H, H, H}, -1);
  std::vector<Var> parts = split(product, {2 * H, H}, -1);
  return split(concat({normalise(parts[0], norm, 0), normalise(parts[1], norm, 2 * H)}, -1), {H, H, H}, -1);
}

}  // namespace

Var gru_cell(const Input& x, const Var& h, const RecurrentWeights& w, const GruOptions& options) {
  At at(x.caller());
  int64_t H = h.size(-1);
  Var seen = options.state_mask.defined() ? h * options.state_mask : h;
  std::vector<Var> ai = normalise_blocks(linear(x, w.ih, w.bias_ih), w.norm_ih, H);
  std::vector<Var> ah = options.reset_after ? normalise_blocks(linear(seen, w.hh, w.bias_hh), w.norm_hh, H)
                                            : split(recurrent_rows(seen, w, 0, 2 * H), {H, H}, -1);
  Var r = sigmoid(ai[0] + ah[0]), z = sigmoid(ai[1] + ah[1]);
  Var n = tanh(ai[2] + (options.reset_after ? r * ah[2] : recurrent_rows(r * seen, w, 2 * H, 3 * H)));
  return options.update_selects_new ? z * n + (1.0 - z) * h : (1.0 - z) * n + z * h;
}

Var gru(const Input& x, const Var& h0, const RecurrentWeights& w, const GruOptions& options) {
  At at(x.caller());
  Var start = h0.defined() ? h0 : Var(Tensor::zeros({x.size(1), w.hh.size(1)}, x.dtype()));
  return over_time(x.size(0), start, options.reverse, options.lengths, [&](int64_t t, const Var& h) {
    return reference::gru_cell(select(x, 0, t), h, w, options);
  });
}

}  // namespace reference

namespace {

enum { kGruIh = 6, kGruHh = 8 };  // norms, weight and bias each, among the node's inputs

struct Gru : Recurrence {
  bool reset_after;
  kernels::UpdateGate update;
  RowNorm ih_gates{}, ih_new{}, hh_gates{}, hh_new{};
  // [N, H], the states that the steps start from: `seen`, where no mask is between.
  Tensor before = mask.defined() ? real.empty(size.H, dtype()) : seen;
  Tensor units = real.empty(4 * size.H, dtype());  // r, z, n and ah_n of each step
  Tensor p{}, q{};                                 // [N, 3H] both products, where they are normalised

  // out [T, B, H]
  template <class T>
  void forward(T* out) {
    auto [steps, B, I, H] = size;
    const int64_t W = 3 * H, N = real.total();
    const bool normed = static_cast<bool>(ih_gates);
    Tensor ai = real.empty(W, dtype()), ah({B, W}, dtype()), state = h0.clone();
    T* p_all = data<T>(normed ? p : ai);
    project(p_all);  // 1
    ih_gates.forward(0, N, p_all, W, false, data<T>(ai), W);
    ih_new.forward(0, N, p_all + 2 * H, W, false, data<T>(ai) + 2 * H, W);
    // Reset before needs W_hn apart from W_h{r,z}.
    const int64_t at_once = reset_after ? 3 : 2;
    auto w = packed<T>(Use<T>::transposed, 0, at_once), w_n = packed<T>(Use<T>::transposed, at_once, 3);
    const T* b = data_or_null<T>(b_hh);
    T *h_new = data<T>(state), *ah_t = data<T>(ah);
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = time(k), first = real.offset(t), n = real.count(t);
      const T *ai_t = data<T>(ai) + first * W, *seen_t = see(t, h_new);
      T *h = data<T>(before) + first * H, *units_t = data<T>(units) + first * 4 * H;
      T* q_t = normed ? data<T>(q) + first * W : ah_t;
      if (mask.defined()) std::copy_n(h_new, n * H, h);
      w.product(n, seen_t, H, false, q_t, W);  // 2
      hh_gates.forward(first, n, q_t, W, false, ah_t, W);
      if (reset_after) {
        hh_new.forward(first, n, q_t + 2 * H, W, false, ah_t + 2 * H, W);
        kernels::gru_reset_after(n, H, ai_t, ah_t, b, h, update, h_new, units_t);  // 3
      } else {
        T *rh_t = data<T>(reset_seen) + first * H, *q_n = normed ? q_t + 2 * H : ah_t;
        kernels::gru_reset_before_gates(n, H, ai_t, ah_t, b, seen_t, update, units_t, rh_t);
        w_n.product(n, rh_t, H, false, q_n, normed ? W : H);
        hh_new.forward(first, n, q_n, W, false, ah_t, H);
        kernels::gru_reset_before_state(n, H, ai_t, ah_t, b, h, h_new, units_t);
      }
      put(h_new, out + t * B * H);
    }
  }

  template <class T>
  void backward(const Tensor& dout, Grads& dx) const {
    auto [steps, B, I, H] = size;
    const int64_t W = 3 * H, N = real.total();
    const bool normed = static_cast<bool>(ih_gates);
    Tensor dai = real.empty(W, dtype()), dq = reset_after || normed ? real.empty(W, dtype()) : dai;
    Tensor dh = Tensor::zeros({B, H}, dtype()), drh({B, H}, dtype()), scratch({B, H}, dtype());
    NormGradients of_ih(normed, dx, kGruIh, W, dtype()), of_hh(normed, dx, kGruHh, W, dtype());
    const int64_t at_once = reset_after ? 3 : 2;
    {  // the packed weights go before the gradients of the weights come
      auto w = packed<T>(Use<T>::plain, 0, at_once), w_n = packed<T>(Use<T>::plain, at_once, 3);
      for (int64_t k = steps; k-- > 0;) {
        int64_t t = time(k), first = real.offset(t), n = real.count(t);
        const T *h = data<T>(before) + first * H, *units_t = data<T>(units) + first * 4 * H;
        const T* q_t = normed ? data<T>(q) + first * W : nullptr;
        T *dai_t = data<T>(dai) + first * W, *dq_t = data<T>(dq) + first * W, *dh_t = data<T>(dh);
        take(data<T>(dout) + t * B * H, dh_t);
        T* dseen = seen_gradient(t, data<T>(scratch), dh_t);
        const T* dah_t = reset_after ? dq_t : dai_t;  // what arrives at N_hh
        T* dgh_t = reset_after ? dq_t : nullptr;
        kernels::gru_backward(n, H, units_t, h, dh_t, update, dai_t, dgh_t, dh_t);  // 3
        if (normed)
          hh_new.backward(first, n, q_t + 2 * H, W, dah_t + 2 * H, W, false, dq_t + 2 * H, W, of_hh);
        if (!reset_after) {
          w_n.product(n, dq_t + 2 * H, W, false, data<T>(drh), H);
          kernels::gru_reset_before_gates_backward(n, H, units_t, data<T>(seen) + first * H, data<T>(drh),
                                                   dai_t, dseen);
        }
        hh_gates.backward(first, n, q_t, W, dah_t, W, false, dq_t, W, of_hh);  // 2
        w.product(n, dq_t, W, true, dseen, H);
        unmask(t, dseen, dh_t);
      }
    }
    if (normed) {  // 1
      T *into = data<T>(dai), *into_n = into + 2 * H;
      ih_gates.backward(0, N, data<T>(p), W, into, W, false, into, W, of_ih);
      ih_new.backward(0, N, data<T>(p) + 2 * H, W, into_n, W, false, into_n, W, of_ih);
    }
    finish<T>(dai, dq, dh, dx);
  }
};

Var run(const char* op, int dims, const Var& x, const Var& h0, const RecurrentWeights& w,
        const GruOptions& o) {
  Gru gru{make_recurrence(op, 3, dims, x, h0, w, o.reverse, o.lengths, o.state_mask), o.reset_after,
          o.update_selects_new ? kernels::UpdateGate::selects_new : kernels::UpdateGate::keeps_old};
  auto [steps, B, I, H] = gru.size;
  DType type = x.dtype();
  std::vector<Var> inputs = recurrent_inputs(op, x, {h0}, w, {.ih = 3, .hh = 3, .c = 0});
  if (!o.reset_after) gru.reset_seen = gru.real.empty(H, type);
  if (w.normalised()) {
    gru.ih_gates = RowNorm(w.norm_ih, 0, 2 * H, gru.real);
    gru.ih_new = RowNorm(w.norm_ih, 2 * H, H, gru.real);
    gru.hh_gates = RowNorm(w.norm_hh, 0, 2 * H, gru.real);
    gru.hh_new = RowNorm(w.norm_hh, 2 * H, H, gru.real);
    gru.p = gru.real.empty(3 * H, type);
    gru.q = gru.real.empty(3 * H, type);
  }
  Tensor out(dims == 2 ? Shape{B, H} : Shape{steps, B, H}, type);
  return record_unit(op, std::move(gru), inputs, out);
}

}  // namespace

Var gru_cell(const Input& x, const Var& h, const RecurrentWeights& w, const GruOptions& options) {
  At at(x.caller());
  return run(w.normalised() ? "layer_norm_gru_cell" : "gru_cell", 2, x, h, w, options);
}

Var gru(const Input& x, const Var& h0, const RecurrentWeights& w, const GruOptions& options) {
  At at(x.caller());
  return run(w.normalised() ? "layer_norm_gru" : "gru", 3, x, h0, w, options);
}

// ---- cases: T = 4, B = 3, I = 2, H = 5 ----

namespace {

using cases::some_lengths, cases::some_mask;

OpCase sequence_case(const std::string& name, const GruOptions& options, int norms) {
  return cases::unit_case(name, {4, 3, 2}, 15, gru, reference::gru, options, norms);
}

// What only this unit has: the order of reset and product, and what z weighs.
std::vector<OpCase> gate_cases(const std::string& op, int norms) {
  auto cell = [&](const char* what, const GruOptions& options) {
    return cases::unit_case(op + "_cell" + what, {3, 2}, 15, gru_cell, reference::gru_cell, options, norms);
  };
  auto sequence = [&](const char* what, const GruOptions& options) {
    return sequence_case(op + what, options, norms);
  };
  return {
      cell("", {}),
      cell(": reset before", {.reset_after = false}),
      cell(": z selects", {.update_selects_new = true}),
      cell(": Bahdanau", {.reset_after = false, .update_selects_new = true}),
      sequence(": reset before", {.reset_after = false}),
      sequence(": reset before, reverse, lengths",
               {.reset_after = false, .reverse = true, .lengths = some_lengths()}),
      sequence(": state mask, reset before, lengths",
               {.reset_after = false, .lengths = some_lengths(), .state_mask = some_mask()}),
      sequence(
          ": Bahdanau, reverse, lengths",
          {.reset_after = false, .update_selects_new = true, .reverse = true, .lengths = some_lengths()})};
}

}  // namespace

GRADUS_OP_CASES(cases::over_time("gru", sequence_case, 0));
GRADUS_OP_CASES(cases::over_time("layer_norm_gru", sequence_case, 2));
GRADUS_OP_CASES(gate_cases("gru", 0));
GRADUS_OP_CASES(gate_cases("layer_norm_gru", 2));
GRADUS_OP_CASES(cases::bare_case("gru: no biases, no initial state", {{4, 3, 2}, {15, 2}, {15, 5}}, gru,
                                 reference::gru),
                cases::bare_case("layer_norm_gru: no offsets, no initial state",
                                 {{4, 3, 2}, {15, 2}, {15, 5}, {15}, {15}}, gru, reference::gru));

}  // namespace gradus
