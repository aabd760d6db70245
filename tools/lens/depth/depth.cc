// What `lens flow --depth` computes: gradients at each layer of fresh Transformer stacks, and their checks.

#include "depth.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <common/spread.h>
#include <gradus/differences.h>
#include <gradus/nn/init.h>
#include <gradus/numeric.h>
#include <gradus/ops.h>

#include "norms.h"
#include "sentence/dissection.h"

namespace lens {
namespace {

using namespace gradus;

constexpr size_t kCheckedLayers = 8;  // of a stack that is not checked in full
// The largest step whose two orders of differences agree counts.
constexpr double kDepthSteps[] = {1e-2, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7};
constexpr double kAgree = 1e-8;
// How far the loss would go, in losses, were x or W moved by its own length along the gradient. Outside of
// this a stack shrinks what is moved below the loss's digits, or blows rounding up with it.
constexpr double kDepthFloor = 1e-7;  // of the loss, or of what arrives at a layer's output: digits end there
constexpr double kSeen = 1e-6, kBlownUp = 10;

nn::TransformerOptions options_of(const DepthKind& kind, const DepthSizes& s) {
  return {.dim_feedforward = s.hidden,
          .dropout = 0,
          .activation = s.activation,
          .norm_first = kind.norm == "first"};
}

// x in as many columns as there are numbers, in column b moved by by[b] times the direction.
Var moved(const Tensor& x, const Tensor& direction, const std::vector<double>& by) {
  const int64_t T = x.size(0), B = static_cast<int64_t>(by.size()), E = x.size(2);
  Tensor out = Tensor::zeros({T, B, E}, DType::f64);
  for (int64_t t = 0; t < T; ++t)
    for (int64_t b = 0; b < B; ++b)
      for (int64_t e = 0; e < E; ++e)
        out.f64()[(t * B + b) * E + e] =
            x.f64()[t * E + e] + by[static_cast<size_t>(b)] * direction.f64()[t * E + e];
  return out;
}

// The direction of a gradient; any one where there is none, along which the loss must be level.
Tensor unit(const Tensor& g) {
  const double length = norm(g);
  return map(g,
             [&](auto v) { return length > 0 ? v / length : 1 / std::sqrt(static_cast<double>(g.numel())); });
}

Difference slope_of(const Function& f) {
  auto doubt = [](const Difference& d) { return (d.doubt + d.rounding) / std::abs(d.value); };
  Difference best = difference(f, kDepthSteps[0]);
  for (double step : kDepthSteps) {
    if (doubt(best) <= kAgree) break;
    Difference d = difference(f, step);
    if (!(doubt(d) >= doubt(best))) best = d;
  }
  return best;
}

// The columns' losses, from layer l on.
std::vector<double> losses_from(const DepthStack& stack, size_t l, Var x,
                                const std::vector<int32_t>& target) {
  for (; l < stack.encoder.layers.size(); ++l) x = stack.layer(l, x);
  std::vector<double> out;
  for (const auto& losses : exact_losses(stack.logits(x).value(), target))
    out.push_back(std::accumulate(losses.begin(), losses.end(), 0.0));
  return out;
}

// Each column's product with the rows of `direction` [T, 1, E].
std::vector<double> along(const Tensor& y, const Tensor& direction) {
  const int64_t T = y.size(0), B = y.size(1), E = y.size(2);
  std::vector<double> out(static_cast<size_t>(B));
  for (int64_t t = 0; t < T; ++t)
    for (int64_t b = 0; b < B; ++b)
      for (int64_t e = 0; e < E; ++e)
        out[static_cast<size_t>(b)] += y.f64()[(t * B + b) * E + e] * direction.f64()[t * E + e];
  return out;
}

double apart(const Tensor& x) {
  const int64_t T = x.size(0), E = x.size(2);
  Tensor mean = Tensor::zeros({E}, DType::f64);
  for (int64_t i = 0; i < x.numel(); ++i) mean.f64()[i % E] += x.f64()[i] / static_cast<double>(T);
  Tensor rest = x.clone();
  for (int64_t i = 0; i < x.numel(); ++i) rest.f64()[i] -= mean.f64()[i % E];
  return norm(rest) / norm(x);
}

DepthLine line_of(const std::vector<std::vector<double>>& lengths) {
  DepthLine out;
  const size_t N = lengths[0].size();
  auto summary = [&](auto&& number, double& middle, double& low, double& high) {
    std::vector<double> logs;
    for (const auto& seed : lengths) logs.push_back(std::log10(number(seed)));
    middle = translator::median(logs);
    low = *std::min_element(logs.begin(), logs.end());
    high = *std::max_element(logs.begin(), logs.end());
  };
  out.median.resize(N), out.low.resize(N), out.high.resize(N);
  for (size_t l = 0; l < N; ++l)
    summary([&](const auto& g) { return g[l] / g[N - 1]; }, out.median[l], out.low[l], out.high[l]);
  summary([&](const auto& g) { return g[N - 1]; }, out.last, out.last_low, out.last_high);
  return out;
}

}  // namespace

std::string DepthKind::name() const {
  return std::string(residual ? "residuals" : "no residuals") +
         (norm == "none" ? ", no norm" : ", norm " + norm);
}

std::span<const DepthKind> depth_kinds() {
  static const DepthKind all[] = {{true, "last"},  {true, "first"},  {true, "none"},
                                  {false, "last"}, {false, "first"}, {false, "none"}};
  return all;
}

DepthStack::DepthStack(const DepthKind& k, const DepthSizes& s, Rng& rng)
    : kind(k),
      encoder(s.layers, s.width, s.heads, rng, options_of(k, s)),
      output(s.width, s.vocabulary, rng) {
  for (const NamedParameter& p : nn::named_parameters(*this)) {
    if (p.parameter->shape().dims() == 2)
      nn::init::xavier_uniform_(*p.parameter, rng);
    else if (p.name.ends_with("bias"))
      nn::init::zeros_(*p.parameter);
  }
  nn::to(*this, DType::f64);
}

Var DepthStack::layer(size_t l, const Var& x, const Tensor& direction, const std::vector<double>& by) const {
  const nn::TransformerEncoderLayer& parts = encoder.layers[l];
  auto around = [&](const Var& in, const nn::LayerNorm& normed, auto&& part) {
    Var y = part(kind.norm == "first" ? normed(in) : in);
    if (kind.residual) y = in + y;
    return kind.norm == "last" ? normed(y) : y;
  };
  Var y = around(x, parts.norm1, [&](const Var& in) { return parts.self_attn(in, in, in).output; });
  return around(y, parts.norm2, [&](const Var& in) {
    const nn::FeedForward& f = parts.feed_forward;
    if (!direction.defined()) return f(in);
    Var hidden = f.gelu ? gelu(f.linear1(in)) : relu(f.linear1(in));
    Tensor factors = Tensor::from({static_cast<int64_t>(by.size()), 1}, by, DType::f64);
    return f.linear2(hidden) + linear(hidden, direction) * Var(factors);
  });
}

Var DepthStack::logits(const Var& x) const { return output(encoder.norm ? (*encoder.norm)(x) : x); }

DepthInput::DepthInput(const DepthSizes& s, Rng& rng)
    : x(Tensor::normal({s.words, 1, s.width}, 0, 1, rng, DType::f64)) {
  for (int64_t t = 0; t < s.words; ++t) target.push_back(static_cast<int32_t>(rng.below(s.vocabulary)));
}

DepthGradients depth_gradients(const DepthStack& stack, const DepthInput& input) {
  const size_t N = stack.encoder.layers.size();
  std::vector<Var> xs = {Parameter(input.x, "x").var()};
  for (size_t l = 0; l < N; ++l) xs.push_back(stack.layer(l, xs.back()));
  Var logits = stack.logits(xs.back());
  const int64_t T = logits.size(0);
  Var loss = cross_entropy(reshape(logits, {T, logits.size(2)}), Tensor::from_ids({T}, input.target),
                           {.reduction = Reduction::sum})
                 .loss;
  Gradients grads = backward(loss, {.keep = xs});
  DepthGradients out;
  out.loss = loss.item();
  for (const Var& x : xs) out.states.push_back(grads[x]);
  for (size_t l = 0; l < N; ++l) {
    out.x.push_back(xs[l].value());
    out.weights.push_back(grads[stack.encoder.layers[l].feed_forward.linear2.weight]);
  }
  return out;
}

FlowChecks check_depth(const DepthStack& stack, const DepthInput& input, const DepthGradients& g,
                       const std::vector<size_t>& layers) {
  NoGrad guard;
  FlowChecks out;
  for (size_t l : layers)
    for (bool weights : {false, true}) {
      const Tensor& gradient = weights ? g.weights[l] : g.states[l];
      const Tensor direction = unit(gradient);
      // What layer l makes of each point.
      auto after = [&](const std::vector<double>& by) {
        const int64_t B = static_cast<int64_t>(by.size());
        return weights ? stack.layer(l, expand(g.x[l], {g.x[l].size(0), B, g.x[l].size(2)}), direction, by)
                       : stack.layer(l, moved(g.x[l], direction, by));
      };
      double engine = norm(gradient);
      const Tensor& whole = weights ? stack.encoder.layers[l].feed_forward.linear2.weight.value() : g.x[l];
      const double reach = engine * norm(whole) / g.loss;
      const bool by_layer = reach < kSeen || reach > kBlownUp;
      Difference found;
      if (by_layer) {
        const Tensor towards = unit(g.states[l + 1]);
        engine /= norm(g.states[l + 1]);
        found = slope_of([&](const std::vector<double>& by) { return along(after(by).value(), towards); });
      } else {
        found = slope_of([&](const std::vector<double>& by) {
          return losses_from(stack, l + 1, after(by), input.target);
        });
      }
      const double floor = by_layer ? kDepthFloor : kDepthFloor * g.loss;
      out.add({.count = 1, .small = by_layer, .worst = relative_error(engine, found.value, floor)});
    }
  return out;
}

DepthResult measure_depth(const DepthKind& kind, const DepthSizes& sizes, int seeds, bool thorough) {
  DepthResult out{kind, sizes.layers, {}, {}, {}, {}};
  const size_t N = static_cast<size_t>(sizes.layers);
  std::vector<std::vector<double>> states, weights, spreads(N);
  for (int seed = 1; seed <= seeds; ++seed) {
    Rng rng(static_cast<uint64_t>(seed));
    Rng own = rng.split(1), draw = rng.split(2);
    DepthStack stack(kind, sizes, own);
    DepthInput input(sizes, draw);
    DepthGradients g = depth_gradients(stack, input);
    if (thorough || seed == 1)
      out.checks.add(check_depth(stack, input, g, spread(N, thorough ? N : kCheckedLayers)));
    states.emplace_back();
    weights.emplace_back();
    for (size_t l = 0; l < N; ++l) {
      states.back().push_back(norm(g.states[l]));
      weights.back().push_back(norm(g.weights[l]));
      spreads[l].push_back(apart(g.x[l]));
    }
  }
  out.states = line_of(states);
  out.weights = line_of(weights);
  for (const auto& layer : spreads) out.apart.push_back(translator::median(layer));
  return out;
}

}  // namespace lens
