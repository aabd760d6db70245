#pragma once

#include <cstdint>

// The pointwise half of one step of a GRU or an LSTM for B rows; the products with W_ih and W_hh are gemm's.

namespace gradus::kernels {

// ---- GRU ----

// Gates stand in the order r, z, n (PyTorch).
//
//   r = sigmoid(gi_r + gh_r)   z = sigmoid(gi_z + gh_z)
//   reset after (PyTorch, cuDNN):    n = tanh(gi_n + r gh_n)
//   reset before (Cho v3, Bahdanau): n = tanh(gi_n + gh_n) with gh_n = W_hn (r h) + b_hn, its own product
//   z keeps the old state (Cho, PyTorch):     h = (1 - z) n + z h_prev
//   z selects the new state (Bahdanau):       h = (1 - z) h_prev + z n
//
// As 1 - sigmoid(a) = sigmoid(-a), the last two are one formula: what is kept in the gates as z is always the
// weight of the old state, sigmoid(s (gi_z + gh_z)) with s = 1 or -1.
//
// gi [B, 3H] holds W_ih x + b_ih, gh [B, 3H] W_hh h_prev WITHOUT its bias: the kernels add b_hh [3H] (or null).

enum class UpdateGate { keeps_old, selects_new };

/// Keeps for its backward gates [B, 4H] = r, weight of the old state, n, gh_n + b_hn (unused by reset before).
template <class T>
void gru_reset_after(int64_t B, int64_t H, const T* gi, const T* gh, const T* b_hh, const T* h_prev,
                     UpdateGate update, T* h, T* gates);

/// dh [B, H] arrives; writes dgi [B, 3H] = [dr, dz, dn] and dgh [B, 3H] = [dr, dz, dn r] (pre-activation
/// gradients) and dh_prev [B, H], dh times the weight of the old state, to which the caller adds dgh W_hh.
/// dh_prev may be dh. Reset before: of its second half, with dgh null and dgi's r block left alone.
template <class T>
void gru_backward(int64_t B, int64_t H, const T* gates, const T* h_prev, const T* dh, UpdateGate update,
                  T* dgi, T* dgh, T* dh_prev);

/// Reset before, first half: r and z into gates, and rh [B, H] = r h_prev, the input of the product with
/// W_hn. Only the first 2H columns of gh (row stride 3H) are read.
template <class T>
void gru_reset_before_gates(int64_t B, int64_t H, const T* gi, const T* gh, const T* b_hh, const T* h_prev,
                            UpdateGate update, T* gates, T* rh);
/// Second half: gh_n [B, H] (contiguous) = W_hn rh without bias; n into gates, h out.
template <class T>
void gru_reset_before_state(int64_t B, int64_t H, const T* gi, const T* gh_n, const T* b_hh, const T* h_prev,
                            T* h, T* gates);
/// Backward of the first half: drh [B, H] = dn W_hn arrives; dgi's r block, and dh_prev += drh r. The caller
/// then adds [dr, dz] W_h{r,z} to dh_prev.
template <class T>
void gru_reset_before_gates_backward(int64_t B, int64_t H, const T* gates, const T* h_prev, const T* drh,
                                     T* dgi, T* dh_prev);

// ---- LSTM ----

// Gates stand in the order i, f, g, o (PyTorch).
//
//   i, f, o = sigmoid(.)   g = tanh(.)   c = f c_prev + i g   h = o tanh(c)

/// gates [B, 4H] arrives as W_ih x + b_ih + W_hh h_prev + b_hh and leaves as i, f, g, o. c may be c_prev. h
/// may be null: for a unit with something between c and tanh, y = N(c), which has h from lstm_output.
template <class T>
void lstm_step(int64_t B, int64_t H, T* gates, const T* c_prev, T* h, T* c);
/// y becomes tanh(y); h = o tanh(y).
template <class T>
void lstm_output(int64_t B, int64_t H, const T* gates, T* y, T* h);

/// dh, dc [B, H] arrive; writes dgates [B, 4H], the gradients before the activations, turns dc into dc_prev,
/// and dh into 0: all that reaches h_prev is the product dgates W_hh, which the caller adds. With dh null dc
/// is all that reaches c, and o's block of dgates is left to lstm_output_backward.
template <class T>
void lstm_step_backward(int64_t B, int64_t H, const T* gates, const T* c_prev, T* dh, T* dc, T* dgates);
/// tanh_y and dh [B, H] arrive; writes o's block of dgates [B, 4H] and dy [B, H], and turns dh into 0.
template <class T>
void lstm_output_backward(int64_t B, int64_t H, const T* gates, const T* tanh_y, T* dh, T* dgates, T* dy);

}  // namespace gradus::kernels
