#include <gradus/ops/gru.h>

#include <gradus/kernels/gru.h>
#include <gradus/op_case.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/recurrence.h>
#include <gradus/ops/shape.h>

// GRU (Cho et al. 2014), gates stacked r, z, n.
//   ai = W_ih x + b_ih,  ah = W_hh h + b_hh
//   r = s(ai_r + ah_r),  z = s(ai_z + ah_z),  h' = (1 - z) n + z h
//   reset after:  n = tanh(ai_n + r ah_n)
//   reset before: n = tanh(ai_n + W_hn (r h) + b_hn)
// Bahdanau et al. 2014 let z weight the new state, h' = (1 - z) h + z n: the kernels know both, see kernels/gru.h.
// Backward of one step from g = dh' (reset after):
//   dn = g (1 - z) (1 - n^2)        at the tanh input
//   dz = g (h - n) z (1 - z)
//   dr = dn ah_n r (1 - r)
//   dai = [dr, dz, dn],  dah = [dr, dz, dn r],  dh = dah W_hh + g z
// and over all steps at once: dx = dai W_ih, dW_ih = dai^T x, dW_hh = dah^T h_prev, biases their column sums.

namespace gradus {
namespace reference {

Var gru_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
             const Var& bias_hh, const GruOptions& options) {
  At at(x.caller());
  int64_t H = h.size(-1);
  std::vector<Var> ai = split(linear(x, weight_ih, bias_ih), {H, H, H}, -1);
  Var r, n, z, seen = options.state_mask.defined() ? h * options.state_mask : h;
  if (options.reset_after) {
    std::vector<Var> ah = split(linear(seen, weight_hh, bias_hh), {H, H, H}, -1);
    r = sigmoid(ai[0] + ah[0]);
    z = sigmoid(ai[1] + ah[1]);
    n = tanh(ai[2] + r * ah[2]);
  } else {
    auto block = [&](const Var& w, int64_t k) {
      return w.defined() ? slice(w, 0, k * H, (k + 1) * H) : Var();
    };
    r = sigmoid(ai[0] + linear(seen, block(weight_hh, 0), block(bias_hh, 0)));
    z = sigmoid(ai[1] + linear(seen, block(weight_hh, 1), block(bias_hh, 1)));
    n = tanh(ai[2] + linear(r * seen, block(weight_hh, 2), block(bias_hh, 2)));
  }
  return options.update_selects_new ? z * n + (1.0 - z) * h : (1.0 - z) * n + z * h;
}

Var gru(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
        const Var& bias_hh, const GruOptions& options) {
  At at(x.caller());
  int64_t T = x.size(0), B = x.size(1), H = weight_hh.size(1);
  Var start = h0.defined() ? h0 : Var(Tensor::zeros({B, H}, x.dtype()));
  return over_time(T, start, options.reverse, options.lengths, [&](int64_t t, const Var& h) {
    return reference::gru_cell(select(x, 0, t), h, weight_ih, weight_hh, bias_ih, bias_hh, options);
  });
}

}  // namespace reference

namespace {

struct Gru : Recurrence {
  bool reset_after;
  kernels::UpdateGate update;
  Tensor before{};  // [N, H] the states that the steps start from: `seen`, where no mask is between
  Tensor units{};   // [N, 4H] r, z, n and W_hn h + b_hn of each step

  // out [T, B, H]
  template <class T>
  void forward(T* out) {
    auto [steps, B, I, H] = size;
    Tensor gi = real.empty(3 * H, dtype()), gh({B, 3 * H}, dtype()), state = h0.clone();
    project(data<T>(gi));
    // Reset before needs W_hn apart from W_h{r,z}.
    const int64_t at_once = reset_after ? 3 : 2;
    auto w = packed<T>(Use<T>::transposed, 0, at_once), w_n = packed<T>(Use<T>::transposed, at_once, 3);
    const T* b = b_hh.defined() ? data<T>(b_hh) : nullptr;
    T *h_new = data<T>(state), *gh_t = data<T>(gh);
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = time(k), first = real.offset(t), n = real.count(t);
      const T *gi_t = data<T>(gi) + first * 3 * H, *seen_t = see(t, h_new);
      T *h = data<T>(before) + first * H, *units_t = data<T>(units) + first * 4 * H;
      if (mask.defined()) std::copy_n(h_new, n * H, h);
      w.product(n, seen_t, H, false, gh_t, 3 * H);
      if (reset_after) {
        kernels::gru_reset_after(n, H, gi_t, gh_t, b, h, update, h_new, units_t);
      } else {
        T* rh_t = data<T>(reset_seen) + first * H;
        kernels::gru_reset_before_gates(n, H, gi_t, gh_t, b, seen_t, update, units_t, rh_t);
        w_n.product(n, rh_t, H, false, gh_t, H);
        kernels::gru_reset_before_state(n, H, gi_t, gh_t, b, h, h_new, units_t);
      }
      put(h_new, out + t * B * H);
    }
  }

  template <class T>
  void backward(const Tensor& dout, Grads& dx) const {
    auto [steps, B, I, H] = size;
    Tensor dgi = real.empty(3 * H, dtype()), dgh = reset_after ? real.empty(3 * H, dtype()) : dgi;
    Tensor dh = Tensor::zeros({B, H}, dtype()), drh({B, H}, dtype()), scratch({B, H}, dtype());
    const int64_t at_once = reset_after ? 3 : 2;
    {  // the packed weights go before the gradients of the weights come
      auto w = packed<T>(Use<T>::plain, 0, at_once), w_n = packed<T>(Use<T>::plain, at_once, 3);
      for (int64_t k = steps; k-- > 0;) {
        int64_t t = time(k), first = real.offset(t), n = real.count(t);
        const T *h = data<T>(before) + first * H, *units_t = data<T>(units) + first * 4 * H;
        T *dgi_t = data<T>(dgi) + first * 3 * H, *dgh_t = data<T>(dgh) + first * 3 * H, *dh_t = data<T>(dh);
        take(data<T>(dout) + t * B * H, dh_t);
        T* dseen = seen_gradient(t, data<T>(scratch), dh_t);
        if (reset_after) {
          kernels::gru_reset_after_backward(n, H, units_t, h, dh_t, update, dgi_t, dgh_t, dh_t);
        } else {
          kernels::gru_reset_before_state_backward(n, H, units_t, h, dh_t, update, dgi_t, dh_t);
          w_n.product(n, dgi_t + 2 * H, 3 * H, false, data<T>(drh), H);
          kernels::gru_reset_before_gates_backward(n, H, units_t, data<T>(seen) + first * H, data<T>(drh),
                                                   dgi_t, dseen);
        }
        w.product(n, dgh_t, 3 * H, true, dseen, H);
        unmask(t, dseen, dh_t);
      }
    }
    finish<T>(dgi, dgh, dh, dx);
  }
};

Var run(const char* op, const Var& x, const Var& h0, const Var& weight_ih, const Var& weight_hh,
        const Var& bias_ih, const Var& bias_hh, const GruOptions& o) {
  Gru gru{make_recurrence(op, 3, x, h0, weight_ih, weight_hh, bias_ih, bias_hh, o.reverse, o.lengths,
                          o.state_mask),
          o.reset_after,
          o.update_selects_new ? kernels::UpdateGate::selects_new : kernels::UpdateGate::keeps_old};
  auto [steps, B, I, H] = gru.size;
  gru.before = gru.mask.defined() ? gru.real.empty(H, x.dtype()) : gru.seen;
  gru.units = gru.real.empty(4 * H, x.dtype());
  if (!o.reset_after) gru.reset_seen = gru.real.empty(H, x.dtype());
  Tensor out(x.dims() == 2 ? Shape{B, H} : Shape{steps, B, H}, x.dtype());
  return record_recurrence(op, std::move(gru), {x, h0, weight_ih, weight_hh, bias_ih, bias_hh}, out);
}

}  // namespace

Var gru_cell(const Input& x, const Var& h, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
             const Var& bias_hh, const GruOptions& options) {
  At at(x.caller());
  check_cell_input("gru_cell", x);
  return run("gru_cell", x, h, weight_ih, weight_hh, bias_ih, bias_hh, options);
}

Var gru(const Input& x, const Var& h0, const Var& weight_ih, const Var& weight_hh, const Var& bias_ih,
        const Var& bias_hh, const GruOptions& options) {
  At at(x.caller());
  check_sequence("gru", x);
  return run("gru", x, h0, weight_ih, weight_hh, bias_ih, bias_hh, options);
}

// ---- cases: T = 4, B = 3, I = 2, H = 5 ----

namespace {

OpCase cell_case(const char* name, const GruOptions& options) {
  return {name,
          {{3, 2}, {3, 5}, {15, 2}, {15, 5}, {15}, {15}},
          [=](auto& in) { return gru_cell(in[0], in[1], in[2], in[3], in[4], in[5], options); },
          [=](auto& in) { return reference::gru_cell(in[0], in[1], in[2], in[3], in[4], in[5], options); }};
}

OpCase sequence_case(const char* name, const GruOptions& options) {
  return {name,
          {{4, 3, 2}, {3, 5}, {15, 2}, {15, 5}, {15}, {15}},
          [=](auto& in) { return gru(in[0], in[1], in[2], in[3], in[4], in[5], options); },
          [=](auto& in) { return reference::gru(in[0], in[1], in[2], in[3], in[4], in[5], options); }};
}

// With a mask on the state, as dropout with p = 1/2 makes one; in the element type of x.
OpCase masked_case(const char* name, const GruOptions& options) {
  auto masked = [=](const Var& x) {
    GruOptions with = options;
    with.state_mask = Tensor::from({3, 5}, {2, 0, 2, 2, 0, 0, 0, 2, 0, 2, 2, 2, 0, 2, 0}, x.dtype());
    return with;
  };
  return {name,
          {{4, 3, 2}, {3, 5}, {15, 2}, {15, 5}, {15}, {15}},
          [=](auto& in) { return gru(in[0], in[1], in[2], in[3], in[4], in[5], masked(in[0])); },
          [=](auto& in) { return reference::gru(in[0], in[1], in[2], in[3], in[4], in[5], masked(in[0])); }};
}

Tensor some_lengths() { return Tensor::from_ids({3}, {4, 0, 2}); }

}  // namespace

GRADUS_OP_CASES(cell_case("gru_cell", {}), cell_case("gru_cell: reset before", {.reset_after = false}),
                sequence_case("gru", {}), sequence_case("gru: reverse", {.reverse = true}),
                sequence_case("gru: lengths", {.lengths = some_lengths()}),
                sequence_case("gru: sorted lengths", {.lengths = Tensor::from_ids({3}, {3, 2, 1})}),
                sequence_case("gru: reverse, sorted lengths",
                              {.reverse = true, .lengths = Tensor::from_ids({3}, {3, 2, 1})}),
                sequence_case("gru: nothing but padding", {.lengths = Tensor::from_ids({3}, {0, 0, 0})}),
                sequence_case("gru: reverse, lengths", {.reverse = true, .lengths = some_lengths()}),
                sequence_case("gru: reset before", {.reset_after = false}),
                sequence_case("gru: reset before, reverse, lengths",
                              {.reset_after = false, .reverse = true, .lengths = some_lengths()}),
                masked_case("gru: state mask", {}),
                masked_case("gru: state mask, reverse, lengths", {.reverse = true, .lengths = some_lengths()}),
                masked_case("gru: state mask, reset before, lengths",
                            {.reset_after = false, .lengths = some_lengths()}),
                cell_case("gru_cell: Bahdanau", {.reset_after = false, .update_selects_new = true}),
                sequence_case("gru: Bahdanau, reverse, lengths",
                              {.reset_after = false, .update_selects_new = true, .reverse = true,
                               .lengths = some_lengths()}),
                {"gru: no biases, no initial state",
                 {{4, 3, 2}, {15, 2}, {15, 5}},
                 [](auto& in) { return gru(in[0], {}, in[1], in[2], {}, {}); },
                 [](auto& in) { return reference::gru(in[0], {}, in[1], in[2], {}, {}); }});

}  // namespace gradus
