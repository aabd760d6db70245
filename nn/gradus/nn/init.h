#pragma once

#include <gradus/autograd.h>
#include <gradus/random.h>

// Starting values, under PyTorch's names. All work in place on a Parameter of either element type and draw in
// double, so that f32 and f64 models of one seed start from the same numbers up to rounding. A weight is
// [out, in]: fan_in = in.

namespace gradus::nn::init {

void zeros_(Parameter& p);
void constant_(Parameter& p, double value);
void uniform_(Parameter& p, double low, double high, Rng& rng);
void normal_(Parameter& p, double mean, double deviation, Rng& rng);

struct InitOptions {
  double gain = 1;  ///< factor on the deviation; sqrt(2) for relu
  int blocks = 1;   ///< equal parts of the first axis, each initialised on its own: 3 for a GRU's stacked gates
};

/// U(-a, a), a = gain sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio 2010).
void xavier_uniform_(Parameter& p, Rng& rng, const InitOptions& options = {});
/// N(0, gain^2 2 / (fan_in + fan_out)) (Glorot & Bengio 2010).
void xavier_normal_(Parameter& p, Rng& rng, const InitOptions& options = {});
/// U(-a, a), a = gain sqrt(3 / fan_in) (He et al. 2015); for relu gain = sqrt(2).
void kaiming_uniform_(Parameter& p, Rng& rng, const InitOptions& options = {});
/// Orthonormal rows (or columns, whichever are fewer), uniformly distributed: Q of a normal matrix, the signs
/// of R's diagonal made positive (Saxe et al. 2013). Keeps the length of a recurrent state's gradient.
void orthogonal_(Parameter& p, Rng& rng, const InitOptions& options = {});
/// orthogonal_ for each of `blocks` stacked matrices: weight_hh [3H, H] of a GRU with blocks = 3.
void orthogonal_blocks(Parameter& p, int blocks, Rng& rng, double gain = 1);

}  // namespace gradus::nn::init
