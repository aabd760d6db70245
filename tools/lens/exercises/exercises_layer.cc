// The exercises about what stands around the attention in a Transformer's layer: heads, norm, residual.

#include <lens/lesson.h>

#include <cmath>

#include "exercise_parts.h"
#include "exercises.h"

namespace lens {
namespace {

using namespace gradus;

// ---- 14: x [T, D] -> [H, T, d], H = in[1]; o [H, T, d], W [D, D] -> [T, D] ----

struct HeadSizes {
  int64_t T, D, H, d;
  explicit HeadSizes(const In& in)
      : T(in[0].size(0)), D(in[0].size(1)), H(in[1].value().i32()[0]), d(D / H) {}
};

Var heads_of(const In& in) {
  HeadSizes n(in);
  return transpose(reshape(in[0], {n.T, n.H, n.d}), 0, 1);
}
Var heads_reshaped(const In& in) {
  HeadSizes n(in);
  return reshape(in[0], {n.H, n.T, n.d});
}
Var heads_interleaved(const In& in) {
  HeadSizes n(in);
  return permute(reshape(in[0], {n.T, n.d, n.H}), {2, 0, 1});
}

const Exercise kSplitHeads{
    "split-heads",
    heads_of,
    {{"heads mixed up",
      "The numbers keep their order in memory and get another shape: [H, T, d] is not [T, H, d] with "
      "another name. Number k of word t of head h was x[t][h * d + k].",
      [](auto& in) { return with_gradient_of(heads_of(in), heads_reshaped(in)); }},
     {"heads interleaved",
      "The gradient goes to column k * H + h, as if neighbouring columns belonged to different heads. Head "
      "h has the columns h * d to h * d + d - 1.",
      [](auto& in) { return with_gradient_of(heads_of(in), heads_interleaved(in)); }},
     {"all heads in one place",
      "The gradients of all heads go to the first d columns. Head h begins at column h * d.",
      [](auto& in) {
        HeadSizes n(in);
        std::vector<Var> same(static_cast<size_t>(n.H), slice(in[0], 1, 0, n.d));
        return with_gradient_of(heads_of(in), stack(same, 0));
      }},
     {"heads mixed up",
      "The numbers keep their order in memory and get another shape, so that a head holds pieces of all "
      "heads of some words. First [T, H, d], then exchange the axes: [H, T, d].",
      heads_reshaped},
     {"heads interleaved", "Head h has the columns h, H + h, ... Its columns are h * d to h * d + d - 1.",
      heads_interleaved}}};

Var side_by_side(const Var& o) { return reshape(transpose(o, 0, 1), {o.size(1), o.size(0) * o.size(2)}); }
Var reshaped(const Var& o) { return reshape(o, {o.size(1), o.size(0) * o.size(2)}); }
Var joined(const In& in) { return linear(side_by_side(in[0]), in[1]); }
// The gradient of `to_o` for o, and of `to_W` for W.
Var joined_with(const In& in, Var (*to_o)(const Var& o, const Var& W),
                Var (*to_W)(const Var& o, const Var& W)) {
  return with_gradient_of(joined(in), to_o(in[0], cut(in[1])) + to_W(cut(in[0]), in[1]));
}
Var by_right(const Var& o, const Var& W) { return joined({o, W}); }
Var by_reshape(const Var& o, const Var& W) { return linear(reshaped(o), W); }
Var by_turned(const Var& o, const Var& W) { return linear(side_by_side(o), transpose(W, 0, 1)); }
Var by_nothing(const Var& o, const Var&) { return side_by_side(o); }

const Exercise kJoinHeads{
    "join-heads",
    joined,
    {{"W_O left out",
      "The heads receive dy itself, and W_O nothing. Each y_i is a sum over c of W_ic o_c: the factors "
      "receive dy_i times the other one, summed over i for o.",
      [](auto& in) { return with_gradient_of(joined(in), side_by_side(in[0])); }},
     {"W_O left out", "dW is right, and o receives dy itself: on the way back it goes through W_O, too.",
      [](auto& in) { return joined_with(in, by_nothing, by_right); }},
     {"transposed",
      "o receives W dy; the way back goes through the transpose: do_c = sum_i W_ic dy_i, W_[i][c] in the "
      "file.",
      [](auto& in) { return joined_with(in, by_turned, by_right); }},
     {"heads mixed up",
      "What arrives at column c of word t goes to a place as if o were [T, D] in memory. It is [H, T, d]: "
      "column c is number c % d of head c / d.",
      [](auto& in) { return joined_with(in, by_reshape, by_right); }},
     {"heads mixed up",
      "dW reads o as if it were [T, D] in memory. It is [H, T, d]: column c is number c % d of head c / d.",
      [](auto& in) { return joined_with(in, by_right, by_reshape); }},
     {"heads mixed up",
      "o is read and written as if it were [T, D] in memory. It is [H, T, d]: column c is number c % d of "
      "head c / d.",
      [](auto& in) { return joined_with(in, by_reshape, by_reshape); }},
     {"own factor",
      "dW is made of W itself. In a product each factor receives dy times the OTHER one: dW_ic = sum_t "
      "dy_ti o_tc.",
      [](auto& in) {
        return joined_with(in, by_right, [](const Var& o, const Var& W) {
          return side_by_side(o) * 0.0 + sum(W * W, 1) * 0.5;
        });
      }},
     {"heads mixed up",
      "The numbers of [H, T, d] keep their order and are called [T, D]: a word gets pieces of other words. "
      "First exchange the axes, [T, H, d].",
      [](auto& in) { return linear(reshaped(in[0]), in[1]); }}}};

// ---- 16: x [T, D], gamma [D], beta [D] -> [T, D] ----

// The backward by hand, with one slip.
enum class NormSlip {
  begun,
  sigma_fixed,
  no_first,
  no_second,
  no_sigma,
  variance,
  times_sigma,
  sums,
  first_sum,
  second_sum,
  added,
  centred,
  raw_average,
  raw_factor,
  no_gamma,
  gamma_behind,
  gamma_plain,
  gamma_raw,
  gamma_twice,
  beta_gamma
};
Var normed_with(const In& in, NormSlip slip) {
  using enum NormSlip;
  Tensor y = layer_norm(in[0], in[1], in[2]).value();
  return record("row_norm", in, y, [=](const Tensor& dys, Grads& grads) {
    Rows x(in[0].value()), gamma(in[1].value()), dy(dys);
    Rows dx(grads.into(0)), dgamma(grads.into(1)), dbeta(grads.into(2));
    int64_t T = in[0].size(0), D = in[0].size(1);
    double n = static_cast<double>(D);
    for (int64_t t = 0; t < T; ++t) {
      double mean = 0, variance_of = 0, g_mean = 0, g_along = 0;
      for (int64_t d = 0; d < D; ++d) mean += x[t][d] / n;
      for (int64_t d = 0; d < D; ++d) variance_of += (x[t][d] - mean) * (x[t][d] - mean) / n;
      double sigma = std::sqrt(variance_of + kLayerNormEps);
      auto xhat = [&](int64_t d) { return (x[t][d] - mean) / sigma; };
      auto g = [&](int64_t d) {
        return dy[t][d] * (slip == no_gamma || slip == gamma_behind ? 1 : gamma[0][d]);
      };
      auto in_mean = [&](int64_t d) {
        return slip == centred ? x[t][d] - mean : slip == raw_average ? x[t][d] : xhat(d);
      };
      auto in_front = [&](int64_t d) {
        return slip == centred ? x[t][d] - mean : slip == raw_factor ? x[t][d] : xhat(d);
      };
      double first = slip == sums || slip == first_sum ? 1 : n,
             second = slip == sums || slip == second_sum ? 1 : n;
      for (int64_t d = 0; d < D; ++d) g_mean += g(d) / first, g_along += g(d) * in_mean(d) / second;
      if (slip == begun || slip == sigma_fixed || slip == no_first) g_mean = 0;
      if (slip == begun || slip == sigma_fixed || slip == no_second) g_along = 0;
      if (slip == added) g_mean = -g_mean, g_along = -g_along;
      double over = slip == no_sigma      ? 1
                    : slip == variance    ? sigma * sigma
                    : slip == times_sigma ? 1 / sigma
                                          : sigma;
      for (int64_t d = 0; d < D; ++d) {
        double to_x = (g(d) - g_mean - in_front(d) * g_along) / over;
        dx[t][d] += slip == gamma_behind ? to_x * gamma[0][d] : to_x;
        if (slip == begun) continue;
        double factor = slip == gamma_plain ? 1 : slip == gamma_raw ? x[t][d] : xhat(d);
        dgamma[0][d] += dy[t][d] * factor * (slip == gamma_twice ? gamma[0][d] : 1);
        dbeta[0][d] += dy[t][d] * (slip == beta_gamma ? gamma[0][d] : 1);
      }
    }
  });
}

OpFunction normed(NormSlip slip) {
  return [slip](const In& in) { return normed_with(in, slip); };
}

const Exercise kLayerNorm{
    "layer-norm",
    [](auto& in) { return layer_norm(in[0], in[1], in[2]); },
    {{"mean and sigma held fixed",
      "dx is g / sigma, as if the mean and sigma of a row did not depend on its x. Both do: subtract "
      "mean(g) for the one, xhat mean(g xhat) for the other. And gamma and beta want theirs.",
      normed(NormSlip::begun)},
     {"mean and sigma held fixed",
      "dx is g / sigma, as if the mean and sigma of a row did not depend on its x. Both do: subtract "
      "mean(g) for the one, xhat mean(g xhat) for the other.",
      normed(NormSlip::sigma_fixed)},
     {"first mean missing",
      "- mean(g) is missing: every x of the row moves the mean, and all xhat with it. A row of dx sums to 0.",
      normed(NormSlip::no_first)},
     {"second mean missing",
      "- xhat mean(g xhat) is missing: every x of the row moves sigma, and all xhat with it. A row that is "
      "stretched gives the same xhat, so that dx has nothing along xhat.",
      normed(NormSlip::no_second)},
     {"1 / sigma forgotten", "The bracket is right, and is not divided by sigma.",
      normed(NormSlip::no_sigma)},
     {"sigma squared", "The bracket is divided by the variance; it is sigma, its root.",
      normed(NormSlip::variance)},
     {"multiplied by sigma", "The bracket is multiplied by sigma, and not divided by it.",
      normed(NormSlip::times_sigma)},
     {"sums for means", "Both are means over the row: divide the sums by D.", normed(NormSlip::sums)},
     {"first mean is a sum", "The sum of g is subtracted. It is the mean: divided by D.",
      normed(NormSlip::first_sum)},
     {"second mean is a sum", "The sum of g xhat stands beside xhat. It is the mean: divided by D.",
      normed(NormSlip::second_sum)},
     {"means added", "Both means are added to g. They are subtracted.", normed(NormSlip::added)},
     {"x - mean for xhat", "In the second mean and in front of it stands x - mean. xhat is that over sigma.",
      normed(NormSlip::centred)},
     {"input for output", "The second mean is of g x. It is of g xhat, what the forward made of x.",
      normed(NormSlip::raw_average)},
     {"input for output", "In front of the second mean stands x. It is xhat, what the forward made of x.",
      normed(NormSlip::raw_factor)},
     {"gamma forgotten", "dx is made of dy. What arrives at xhat is g = dy gamma.",
      normed(NormSlip::no_gamma)},
     {"gamma behind the means",
      "gamma stands in front of the bracket. It differs from column to column, and belongs into both means: "
      "g = dy gamma first.",
      normed(NormSlip::gamma_behind)},
     {"xhat forgotten", "dgamma is the sum of dy. gamma stands beside xhat: dgamma = sum_t dy xhat.",
      normed(NormSlip::gamma_plain)},
     {"input for output", "dgamma is the sum of dy x. gamma stands beside xhat: dgamma = sum_t dy xhat.",
      normed(NormSlip::gamma_raw)},
     {"own factor",
      "dgamma has a factor gamma: in a product each factor receives dy times the OTHER one, xhat.",
      normed(NormSlip::gamma_twice)},
     {"a factor too many", "dbeta has a factor gamma. beta is added behind it: dbeta = sum_t dy.",
      normed(NormSlip::beta_gamma)}}};

// ---- 17: x [T, D], W1 [F, D], W2 [D, F] -> x + W2 relu(W1 norm(x)) ----

// x, gamma = 1 and beta = 0.
In plain(const Var& x) {
  Tensor zeros = Tensor::zeros({x.size(1)}, DType::f64);
  return {x, variable(map(zeros, [](auto) { return 1; })), variable(zeros)};
}
Var plain_norm(const Var& x) {
  In in = plain(x);
  return layer_norm(in[0], in[1], in[2]);
}

// What the path through f goes through, to be replaced one at a time.
struct Stations {
  Var (*norm)(const Var&) = plain_norm;
  Var (*squash)(const Var&) = [](const Var& h) { return relu(h); };
};
Var through(const In& in, const Stations& s = {}) {
  return linear(s.squash(linear(s.norm(in[0]), in[1])), in[2]);
}
Var block_by(const In& in, const Stations& s = {}) { return in[0] + through(in, s); }
template <NormSlip slip>
Var block_with(const In& in) {
  return block_by(in, {.norm = [](const Var& x) { return normed_with(plain(x), slip); }});
}
// W1 is given the gradient of a product with x, where it was multiplied with n.
Var block_of_x(const In& in) {
  Var n = plain_norm(in[0]);
  Var h = with_gradient_of(linear(n, in[1]), linear(n, cut(in[1])) + linear(cut(in[0]), in[1]));
  return in[0] + linear(relu(h), in[2]);
}

const Exercise kResidual{
    "residual",
    [](auto& in) { return block_by(in); },
    {{"only the residual",
      "x has dy, straight. The other path is missing: through W2, relu and W1 to n, and through the norm to "
      "x, and W1 and W2 receive on the way.",
      [](auto& in) { return with_gradient_of(block_by(in), in[0] * 1.0); }},
     {"residual path forgotten",
      "x has what comes through f alone. x is also added as it is: dx = dy + what comes through f.",
      [](auto& in) { return with_gradient_of(block_by(in), through(in)); }},
     {"residual behind the norm",
      "dy has been added to dn, and went through the norm's backward. The residual goes around it: y = x + "
      "..., not norm(x) + ...",
      [](auto& in) { return with_gradient_of(block_by(in), plain_norm(in[0]) + through(in)); }},
     {"f held fixed for x",
      "W1 and W2 are right, and x has the residual alone: dn goes on through the norm to x.",
      [](auto& in) {
        return with_gradient_of(block_by(in), in[0] + through({cut(in[0]), in[1], in[2]}));
      }},
     {"relu forgotten",
      "What arrives at a unit goes on although the unit was off. Where u = 0, relu is flat: nothing passes.",
      [](auto& in) {
        return block_by(in, {.squash = [](const Var& h) { return with_gradient_of(relu(h), h); }});
      }},
     {"norm forgotten",
      "dn is added to dx as it is. Between them lies the norm: (dn - mean(dn) - n mean(dn n)) / sigma.",
      [](auto& in) {
        return block_by(in, {.norm = [](const Var& x) { return with_gradient_of(plain_norm(x), x); }});
      }},
     {"mean and sigma held fixed",
      "dn is divided by sigma and no more: subtract mean(dn) and n mean(dn n) first.",
      block_with<NormSlip::sigma_fixed>},
     {"first mean missing",
      "In the norm's backward mean(dn) is missing: (dn - mean(dn) - n mean(dn n)) / sigma.",
      block_with<NormSlip::no_first>},
     {"second mean missing",
      "In the norm's backward n mean(dn n) is missing: (dn - mean(dn) - n mean(dn n)) / sigma.",
      block_with<NormSlip::no_second>},
     {"1 / sigma forgotten", "The norm's bracket is right, and is not divided by sigma.",
      block_with<NormSlip::no_sigma>},
     {"input for output", "dW1 is made of x. What W1 was multiplied with is n, the norm of x.", block_of_x}}};

}  // namespace

const std::vector<Exercise>& layer_exercises() {
  static const std::vector<Exercise> all{kSplitHeads, kJoinHeads, kLayerNorm, kResidual};
  return all;
}

}  // namespace lens
