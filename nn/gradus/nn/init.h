#pragma once

#include <string>

#include <gradus/autograd.h>
#include <gradus/random.h>

// Starting values, under the names of torch.nn.init. All work in place on a Parameter of either element type
// and draw in double, so that f32 and f64 models of one seed start from the same numbers up to rounding. A
// weight is [out, in]: fan_in = in, fan_out = out; further axes [out, in, k...] multiply both fans by their
// size.
// @throws Error "[xavier_uniform_] needs a weight [out, in, ...]: [3]".

namespace gradus::nn::init {

/// @throws Error "[update] the parameter is undefined", here and below.
void zeros_(Parameter& p, Caller caller = Caller::current());
void ones_(Parameter& p, Caller caller = Caller::current());
void constant_(Parameter& p, double value, Caller caller = Caller::current());
void uniform_(Parameter& p, double low, double high, Rng& rng, Caller caller = Caller::current());
void normal_(Parameter& p, double mean, double deviation, Rng& rng, Caller caller = Caller::current());

/// N(mean, deviation^2) without what lies outside [low, high].
/// @throws Error when the mean is more than 2 deviations away from the interval (PyTorch warns: its numbers
/// are wrong there), or the interval is empty.
void trunc_normal_(Parameter& p, Rng& rng, double mean = 0, double deviation = 1, double low = -2,
                   double high = 2, Caller caller = Caller::current());
/// [n, m]: 1 on the diagonal, 0 elsewhere.
void eye_(Parameter& p, Caller caller = Caller::current());
/// [out, in, k...] of a convolution: passes its first `in` channels through. 1 in the middle of the kernel
/// that leads from channel i to channel i, 0 elsewhere; the same in each of `groups` parts of the first axis.
void dirac_(Parameter& p, int groups = 1, Caller caller = Caller::current());
/// [n, m]: in every column ceil(sparsity n) entries, drawn without putting back, are 0, the others N(0,
/// deviation^2) (Martens 2010).
void sparse_(Parameter& p, double sparsity, Rng& rng, double deviation = 0.01,
             Caller caller = Caller::current());

/// The recommended gain after a nonlinearity: "linear", "sigmoid", "conv" and PyTorch's "conv1d" to "conv_transpose3d" 1;
/// "tanh" 5/3; "relu" sqrt(2); "leaky_relu" sqrt(2 / (1 + slope^2)); "selu" 3/4. @throws Error for another name.
double calculate_gain(const std::string& nonlinearity, double slope = 0.01,
                      Caller caller = Caller::current());

/// Which fan kaiming's deviation is for: fan_in keeps the size of the activations forward, fan_out that of
/// the gradients backward.
enum class Fan { in, out };

struct InitOptions {
  double gain = 1;  ///< factor on the deviation, see calculate_gain
  int blocks =
      1;  ///< equal parts of the first axis, each initialised on its own: 3 for a GRU's stacked gates
  Fan mode = Fan::in;  ///< kaiming only
};

/// U(-a, a), a = gain sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio 2010).
void xavier_uniform_(Parameter& p, Rng& rng, const InitOptions& options = {},
                     Caller caller = Caller::current());
/// N(0, gain^2 2 / (fan_in + fan_out)) (Glorot & Bengio 2010).
void xavier_normal_(Parameter& p, Rng& rng, const InitOptions& options = {},
                    Caller caller = Caller::current());
/// U(-a, a), a = gain sqrt(3 / fan) (He et al. 2015). PyTorch's default gain here is sqrt(2), of relu; ours
/// is 1.
void kaiming_uniform_(Parameter& p, Rng& rng, const InitOptions& options = {},
                      Caller caller = Caller::current());
/// N(0, gain^2 / fan) (He et al. 2015), gain as above.
void kaiming_normal_(Parameter& p, Rng& rng, const InitOptions& options = {},
                     Caller caller = Caller::current());
/// Orthonormal rows (or columns, whichever are fewer), uniformly distributed: Q of a normal matrix, the signs
/// of R's diagonal made positive (Saxe et al. 2013). Keeps the length of a recurrent state's gradient.
void orthogonal_(Parameter& p, Rng& rng, const InitOptions& options = {}, Caller caller = Caller::current());
/// orthogonal_ for each of `blocks` stacked matrices: weight_hh [3H, H] of a GRU with blocks = 3.
void orthogonal_blocks(Parameter& p, int blocks, Rng& rng, double gain = 1,
                       Caller caller = Caller::current());

}  // namespace gradus::nn::init
