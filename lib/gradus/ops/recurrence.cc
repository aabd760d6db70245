#include <gradus/ops/recurrence.h>

#include <gradus/ops/operands.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/where.h>

namespace gradus {

void check_lengths(const char* op, const Tensor& lengths, int64_t T, int64_t B) {
  if (!lengths.defined()) return;
  if (lengths.dtype() != DType::i32 || lengths.shape() != Shape{B})
    refuse(op, "lengths must be i32 [B] = [{}]: {} {}", B, lengths.dtype(), lengths.shape());
  for (int64_t b = 0; b < B; ++b)
    if (lengths.i32()[b] < 0 || lengths.i32()[b] > T)
      refuse(op, "lengths must be in 0 .. {}: {}", T, lengths.i32()[b]);
}

namespace {

RecurrentSizes check_recurrence(const char* op, int64_t gates, int dims, const Var& x, const Var& h,
                                const RecurrentWeights& w, const Tensor& lengths) {
  std::string rows = gates == 1 ? "hidden_size" : fmt::format("{} hidden_size", gates);
  if (x.dims() != dims)
    refuse(op, "input must be {}: input {}", dims == 2 ? "[B, input_size]" : "[T, B, input_size]", x.shape());
  RecurrentSizes s{dims == 2 ? 1 : x.size(0), x.size(-2), x.size(-1), w.hh.dims() == 2 ? w.hh.size(1) : 0};
  if (w.ih.dims() != 2 || w.ih.size(1) != s.I || w.ih.size(0) != gates * s.H)
    fail(op,
         fmt::format("weight_ih must be [{}, input_size]: input {}, weight_ih {}, weight_hh {}", rows,
                     x.shape(), w.ih.shape(), w.hh.shape()),
         w.ih.dims() == 2 && w.ih.size(0) == gates * s.H ? size_hint(s.I, w.ih.size(1)) : "");
  if (w.hh.shape() != Shape{gates * s.H, s.H})
    refuse(op, "weight_hh must be [{}, hidden_size]: weight_hh {}", rows, w.hh.shape());
  if (h.defined() && h.shape() != Shape{s.B, s.H})
    refuse(op, "the initial state must be [B, hidden_size] = [{}, {}]: state {}", s.B, s.H, h.shape());
  for (const Var* bias : {&w.bias_ih, &w.bias_hh})
    if (bias->defined() && bias->shape() != Shape{gates * s.H})
      refuse(op, "a bias must be [{}] = [{}]: bias {}", rows, gates * s.H, bias->shape());
  for (const Var* v : {&h, &w.ih, &w.hh, &w.bias_ih, &w.bias_hh})
    if (v->defined()) check_types(op, x.dtype(), v->dtype());
  check_lengths(op, lengths, s.T, s.B);
  return s;
}

}  // namespace

void check_state(const char* op, const char* name, const Var& state, const RecurrentSizes& s, DType dtype) {
  if (!state.defined()) return;
  if (state.shape() != Shape{s.B, s.H})
    refuse(op, "{} must be [B, hidden_size] = [{}, {}]: {}", name, s.B, s.H, state.shape());
  check_types(op, dtype, state.dtype());
}

Tensor active_steps(const Tensor& lengths, int64_t T, int64_t B) {
  if (!lengths.defined()) return {};
  Tensor active({T, B}, DType::u8);
  for (int64_t t = 0; t < T; ++t)
    for (int64_t b = 0; b < B; ++b) active.u8()[t * B + b] = t < lengths.i32()[b];
  return active;
}

Var reference::over_time(int64_t T, const Var& start, bool reverse, const Tensor& lengths,
                         const std::function<Var(int64_t t, const Var& state)>& step) {
  Tensor active = active_steps(lengths, T, start.size(0));
  Var state = start;
  std::vector<Var> states(static_cast<size_t>(T));
  for (int64_t k = 0; k < T; ++k) {
    int64_t t = reverse ? T - 1 - k : k;
    Var next = step(t, state);
    state = active.defined() ? where(active.row(t).reshape({-1, 1}), next, state) : next;
    states[static_cast<size_t>(t)] = state;
  }
  return stack(states, 0);
}

Recurrence make_recurrence(const char* op, int64_t gates, int dims, const Var& x, const Var& h0,
                           const RecurrentWeights& w, bool reverse, const Tensor& lengths,
                           const Tensor& state_mask) {
  RecurrentSizes s = check_recurrence(op, gates, dims, x, h0, w, lengths);
  check_state(op, "state_mask", state_mask, s, x.dtype());
  PackedSequence real(lengths, s.T, s.B);
  return {.size = s,
          .gates = gates,
          .reverse = reverse,
          .w_ih = w.ih.value(),
          .w_hh = w.hh.value(),
          .b_ih = w.bias_ih.value(),
          .b_hh = w.bias_hh.value(),
          .real = real,
          .x = real.pack(x.value()),
          .h0 = h0.defined() ? real.sort(h0.value()) : Tensor::zeros({s.B, s.H}, x.dtype()),
          .mask = real.sort(state_mask),
          .input_shape = x.shape()};
}

}  // namespace gradus
