#pragma once

#include <cstdint>

// The pointwise half of one LSTM step for B rows; the products with W_ih and W_hh are gemm's. Gates stand in
// the order i, f, g, o (PyTorch).
//
//   i, f, o = sigmoid(.)   g = tanh(.)   c = f c_prev + i g   h = o tanh(c)

namespace gradus::kernels {

/// gates [B, 4H] arrives as W_ih x + b_ih + W_hh h_prev + b_hh and leaves as i, f, g, o. c may be c_prev.
void lstm_step(int64_t B, int64_t H, float* gates, const float* c_prev, float* h, float* c);
void lstm_step(int64_t B, int64_t H, double* gates, const double* c_prev, double* h, double* c);

/// dh, dc [B, H] arrive; writes dgates [B, 4H], the gradients before the activations, turns dc into dc_prev,
/// and dh into 0: all that reaches h_prev is the product dgates W_hh, which the caller adds.
void lstm_step_backward(int64_t B, int64_t H, const float* gates, const float* c_prev, float* dh, float* dc,
                        float* dgates);
void lstm_step_backward(int64_t B, int64_t H, const double* gates, const double* c_prev, double* dh,
                        double* dc, double* dgates);

}  // namespace gradus::kernels
