#pragma once

#include <cstdint>

// The pointwise half of one LSTM step for B rows; the products with W_ih and W_hh are gemm's. Gates stand in
// the order i, f, g, o (PyTorch).
//
//   i, f, o = sigmoid(.)   g = tanh(.)   c = f c_prev + i g   h = o tanh(c)

namespace gradus::kernels {

/// gates [B, 4H] arrives as W_ih x + b_ih + W_hh h_prev + b_hh and leaves as i, f, g, o. c may be c_prev.
template <class T>
void lstm_step(int64_t B, int64_t H, T* gates, const T* c_prev, T* h, T* c);

/// dh, dc [B, H] arrive; writes dgates [B, 4H], the gradients before the activations, turns dc into dc_prev,
/// and dh into 0: all that reaches h_prev is the product dgates W_hh, which the caller adds.
template <class T>
void lstm_step_backward(int64_t B, int64_t H, const T* gates, const T* c_prev, T* dh, T* dc, T* dgates);

// The same step in two halves, for a unit with something between c and tanh, y = N(c).

/// gates [B, 4H] arrives as above and leaves as i, f, g, o; c = f c_prev + i g. c may be c_prev.
template <class T>
void lstm_cell_state(int64_t B, int64_t H, T* gates, const T* c_prev, T* c);
/// y becomes tanh(y); h = o tanh(y).
template <class T>
void lstm_output(int64_t B, int64_t H, const T* gates, T* y, T* h);

/// tanh_y and dh [B, H] arrive; writes o's block of dgates [B, 4H] and dy [B, H], and turns dh into 0.
template <class T>
void lstm_output_backward(int64_t B, int64_t H, const T* gates, const T* tanh_y, T* dh, T* dgates, T* dy);
/// dc [B, H], all that reaches c, arrives; writes the other blocks of dgates and turns dc into dc_prev.
template <class T>
void lstm_cell_state_backward(int64_t B, int64_t H, const T* gates, const T* c_prev, T* dc, T* dgates);

}  // namespace gradus::kernels
