#pragma once

#include <string>

#include <gradus/autograd.h>
#include <gradus/random.h>

// Starting values, under the names of torch.nn.init. All take a Parameter of either element type
// and draw in double, so that f32 and f64 models of one seed start from the same numbers up to rounding. A
// weight is [out, in]: fan_in = in, fan_out = out, both times the size of further axes.
// @throws Error "[xavier_uniform_] needs a weight [out, in, ...]: [3]".

namespace gradus::nn::init {

/// @throws Error "[update] the parameter is undefined", or [assign]; what looks at fans names its shape, [].
void zeros_(Parameter& p);
void constant_(Parameter& p, double value);
void uniform_(Parameter& p, double low, double high, const RngInput& rng);
void normal_(Parameter& p, double mean, double deviation, const RngInput& rng);

/// The recommended gain after a nonlinearity: "linear" and "sigmoid" 1; "tanh" 5/3; "relu" sqrt(2);
/// "leaky_relu" sqrt(2 / (1 + slope^2)); "selu" 3/4. @throws Error for another name.
double calculate_gain(const std::string& nonlinearity, double slope = 0.01);

/// Which fan kaiming's deviation is for: fan_in keeps the size of the activations forward, fan_out that of
/// the gradients backward.
enum class Fan { in, out };

struct InitOptions {
  /// Factor on the deviation, see calculate_gain
  double gain = 1;
  /// Equal parts of the first axis, each initialised on its own: 3 for a GRU's stacked gates.
  int blocks = 1;
  Fan mode = Fan::in;
};

/// U(-a, a), a = gain sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio 2010).
void xavier_uniform_(Parameter& p, const RngInput& rng, const InitOptions& options = {});
/// N(0, gain^2 2 / (fan_in + fan_out)) (Glorot & Bengio 2010).
void xavier_normal_(Parameter& p, const RngInput& rng, const InitOptions& options = {});
/// U(-a, a), a = gain sqrt(3 / fan) (He et al. 2015). PyTorch's default gain is relu's here; ours is 1.
void kaiming_uniform_(Parameter& p, const RngInput& rng, const InitOptions& options = {});
/// N(0, gain^2 / fan) (He et al. 2015), gain as above.
void kaiming_normal_(Parameter& p, const RngInput& rng, const InitOptions& options = {});
/// Orthonormal rows (or columns, whichever are fewer), uniformly distributed: Q of a normal matrix, the signs
/// of R's diagonal made positive (Saxe et al. 2013). Keeps the length of a recurrent state's gradient.
void orthogonal_(Parameter& p, const RngInput& rng, const InitOptions& options = {});

}  // namespace gradus::nn::init
