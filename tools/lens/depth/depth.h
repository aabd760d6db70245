#pragma once

#include <span>
#include <string>
#include <vector>

#include <gradus/nn/linear.h>
#include <gradus/nn/transformer.h>

#include "commands.h"
#include "flow/flow.h"

namespace lens {

/// Where a layer of a stack normalises: "last" y = norm(x + f(x)), Vaswani et al. 2017; "first" y = x +
/// f(norm(x)), and one more norm behind the last layer; "none" y = x + f(x). Without residuals x + is left out.
struct DepthKind {
  bool residual = true;
  std::string norm = "last";
  /// "residuals, norm last"
  std::string name() const;
};
/// All six.
std::span<const DepthKind> depth_kinds();

/// Sizes of a stack, and of what is put into it.
struct DepthSizes {
  int64_t layers = 24, width = 32, heads = 4, hidden = 128;
  int64_t words = 10, vocabulary = 24;
  /// smooth, so that differences of any step mean something; or "relu"
  std::string activation = "gelu";
};

/// A fresh stack of encoder layers and an output layer, made of the library's parts. Matrices start from
/// Xavier's uniform distribution, biases from 0, in double precision.
struct DepthStack {
  DepthKind kind;
  /// its parts; nn's layers know no way without the residual
  gradus::nn::TransformerEncoder encoder;
  gradus::nn::Linear output;

  DepthStack(const DepthKind& kind, const DepthSizes& sizes, gradus::Rng& rng);
  void params(gradus::nn::ParamVisitor& visit) {
    visit("encoder", encoder);
    visit("output", output);
  }
  /// Layer l, from 0, of x [T, B, E]. Where `direction` is defined the second matrix of its feed-forward part
  /// is moved along it, in column b by by[b].
  gradus::Var layer(size_t l, const gradus::Var& x, const gradus::Tensor& direction = {},
                    const std::vector<double>& by = {}) const;
  /// Of what the last layer made [T, B, E]: logits [T, B, V].
  gradus::Var logits(const gradus::Var& x) const;
};

/// What goes in, and what should come out.
struct DepthInput {
  /// f64 [T, 1, E], from N(0, 1)
  gradus::Tensor x;
  /// a class for each word; their losses are added
  std::vector<int32_t> target;
  DepthInput(const DepthSizes& sizes, gradus::Rng& rng);
};

/// Layer by layer, the first one first.
struct DepthGradients {
  /// x_l [T, 1, E], what layer l reads
  std::vector<gradus::Tensor> x;
  /// dL/dx_l, and one more: of what the last layer makes
  std::vector<gradus::Tensor> states;
  /// dL/dW_l, W_l the second matrix of the feed-forward part
  std::vector<gradus::Tensor> weights;
  double loss = 0;
};
DepthGradients depth_gradients(const DepthStack& stack, const DepthInput& input);

/// The lengths of both gradients at `layers` (from 0) beside differences: x_l, or W_l, is moved along its own
/// gradient, and all that follows is computed anew. Where what follows shrinks the move below the loss's
/// digits, or blows its rounding up (`small` counts both), the layer's output is followed instead, along the
/// gradient that arrives at it.
FlowChecks check_depth(const DepthStack& stack, const DepthInput& input, const DepthGradients& gradients,
                       const std::vector<size_t>& layers);

/// Over the seeds: log10 of |g_l| / |g_N| for each layer l, N the last; and of |g_N| itself.
struct DepthLine {
  std::vector<double> median, low, high;
  double last = 0, last_low = 0, last_high = 0;
};
struct DepthResult {
  DepthKind kind;
  int64_t layers = 0;
  DepthLine states, weights;
  /// Median of |x_l - mean| / |x_l|, mean that of all words' vectors: 0 where all words look alike.
  std::vector<double> apart;
  FlowChecks checks;
};
/// @param thorough check every layer of every seed; otherwise eight layers of the first.
DepthResult measure_depth(const DepthKind& kind, const DepthSizes& sizes, int seeds, bool thorough);

/// What `lens flow --depth` measured: each kind at each number of layers.
struct DepthStudy {
  /// `layers`: those that are shown
  DepthSizes sizes;
  int seeds = 8;
  /// of a kind all depths, upwards, then the next kind
  std::vector<DepthResult> results;
  std::string title() const;
  std::string setup() const;
  FlowChecks checks() const;
  /// Those of the depth that is shown, in the order of depth_kinds().
  std::vector<const DepthResult*> shown() const;
};
std::string depth_text(const DepthStudy& study);
json depth_json(const DepthStudy& study);
std::string depth_svg(const DepthStudy& study);

/// `lens flow --depth`. @throws UsageError for a model, whose depth is what it is.
int flow_depth(const FlowOptions& options);

}  // namespace lens
