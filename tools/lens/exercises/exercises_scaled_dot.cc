// The exercises about a Transformer's attention, with its mask and without, and what goes wrong in them.

#include <lens/lesson.h>

#include <cmath>

#include "exercise_parts.h"
#include "exercises.h"

namespace lens {
namespace {

using namespace gradus;

// ---- 13, 15: Q [T, d], K and V [S, d] -> o [T, d]; causal: word i looks at the words 0 .. i ----

double root_of_width(const In& in) { return 1 / std::sqrt(static_cast<double>(in[0].size(1))); }

// u8 [T, S], 1 where word i looks at word j: up to `ahead` places behind its own.
Tensor looked_at(const In& in, int64_t ahead) {
  int64_t T = in[0].size(0), S = in[1].size(0);
  Tensor mask = Tensor::zeros({T, S}, DType::u8);
  for (int64_t i = 0; i < T; ++i)
    for (int64_t j = 0; j < S; ++j) mask.set(i * S + j, j <= i + ahead);
  return mask;
}

Var scaled_scores(const In& in, double scale) { return matmul(in[0], transpose(in[1], 0, 1)) * scale; }
Var scaled_dot(const In& in, double scale) { return matmul(softmax(scaled_scores(in, scale)), in[2]); }
Var causal(const In& in, int64_t ahead) {
  Var alpha = softmax(scaled_scores(in, root_of_width(in)), {.mask = looked_at(in, ahead)});
  return matmul(alpha, in[2]);
}

// The backward of both by hand, with one slip.
enum class PairSlip {
  no_scale,
  scale_twice,
  scale_inverted,
  scaled_value,
  own_factor,
  own_in_Q,
  own_in_K,
  exchanged,
  no_mix,
  mix_added,
  diagonal,
  no_alpha,
  no_softmax,
  sign,
  plain_mean,
  column_mix,
  value_only,
  no_value,
  plain_value,
  turned_value,
  no_mask,
  no_mask_value_only,
  future_in_mix,
  own_hidden,
  one_ahead,
  wrong_way
};
Var pairs_with(const In& in, bool causally, PairSlip slip) {
  using enum PairSlip;
  double scale = root_of_width(in);
  Tensor out = (causally ? causal(in, 0) : scaled_dot(in, scale)).value();
  return record("attention", in, out, [=](const Tensor& dy, Grads& grads) {
    Rows g(dy), o(out), Q(in[0].value()), K(in[1].value()), V(in[2].value());
    Rows dQ(grads.into(0)), dK(grads.into(1)), dV(grads.into(2));
    int64_t T = in[0].size(0), S = in[1].size(0), d = in[0].size(1);
    auto last = [&](int64_t i) { return causally ? i : S - 1; };
    auto alpha = [&](int64_t i, int64_t j) {
      double total = 0;
      for (int64_t k = 0; k <= last(i); ++k) total += std::exp(scale * dot(Q[i], K[k], d));
      return std::exp(scale * dot(Q[i], K[j], d)) / total;
    };
    auto passes = [&](int64_t i, int64_t j) {
      return slip == no_mask || slip == no_mask_value_only ? true
             : slip == own_hidden                          ? j < i
             : slip == one_ahead                           ? j <= i + 1
             : slip == wrong_way                           ? j >= i
                                                           : j <= last(i);
    };
    auto mix = [&](int64_t i, int64_t j) {
      double sum = 0;
      if (slip == plain_mean)
        for (int64_t k = 0; k < S; ++k) sum += dot(g[i], V[k], d) / static_cast<double>(S);
      else if (slip == column_mix)
        for (int64_t k = 0; k < T; ++k) sum += alpha(k, j) * dot(g[k], V[j], d);
      else if (slip == future_in_mix)
        for (int64_t k = 0; k < S; ++k) sum += alpha(i, k) * dot(g[i], V[k], d);
      else
        sum = dot(g[i], o[i], d);
      return sum;
    };
    double down = slip == no_scale         ? 1
                  : slip == scale_twice    ? scale * scale
                  : slip == scale_inverted ? 1 / scale
                                           : scale;
    for (int64_t i = 0; i < T; ++i)
      for (int64_t j = 0; j < S; ++j) {
        if (!passes(i, j)) continue;
        double a = alpha(i, j), dalpha = dot(g[i], V[j], d), delta = a * (dalpha - mix(i, j));
        if (slip == no_mix) delta = a * dalpha;
        if (slip == mix_added) delta = a * (dalpha + mix(i, j));
        if (slip == diagonal) delta = a * (1 - a) * dalpha;
        if (slip == no_alpha) delta /= a;
        if (slip == no_softmax) delta = dalpha;
        if (slip == sign) delta = -delta;
        double share = slip == plain_value ? 1 : slip == turned_value ? alpha(j % T, i % S) : a;
        if (slip == scaled_value) share *= scale;
        if (slip == no_value) share = 0;
        if (slip == value_only || slip == no_mask_value_only) delta = 0;
        for (int64_t k = 0; k < d; ++k) {
          double to_q = down * delta * (slip == own_factor || slip == own_in_Q ? Q[i][k] : K[j][k]),
                 to_k = down * delta * (slip == own_factor || slip == own_in_K ? K[j][k] : Q[i][k]);
          dV[j][k] += share * g[i][k];
          (slip == exchanged ? dK[i % S] : dQ[i])[k] += to_q;
          (slip == exchanged ? dQ[j % T] : dK[j])[k] += to_k;
        }
      }
  });
}

OpFunction pairs(PairSlip slip) {
  return [slip](const In& in) { return pairs_with(in, false, slip); };
}
OpFunction causal_pairs(PairSlip slip) {
  return [slip](const In& in) { return pairs_with(in, true, slip); };
}

const Exercise kScaledDot{
    "scaled-dot",
    [](auto& in) { return scaled_dot(in, root_of_width(in)); },
    {{"value path only",
      "Only the value path is there, dV_j = sum_i alpha_ij g_i. Q and K made the weights: delta_ij = "
      "alpha_ij (g_i . V_j - g_i . o_i), and from there dQ_i and dK_j.",
      pairs(PairSlip::value_only)},
     {"scale forgotten",
      "The forward divides the scores by sqrt(d), the backward does not: delta takes the same factor on its "
      "way down to Q and K.",
      pairs(PairSlip::no_scale)},
     {"scale squared",
      "The factor 1 / sqrt(d) is in dQ and dK twice. The scores were divided once, on the way back it is "
      "once, too.",
      pairs(PairSlip::scale_twice)},
     {"scale inverted",
      "dQ and dK are multiplied by sqrt(d). The scores were divided by it, and what comes back is, too.",
      pairs(PairSlip::scale_inverted)},
     {"scale on the value path",
      "dV has a factor 1 / sqrt(d). Only the scores are divided by it: dV_j = sum_i alpha_ij g_i.",
      pairs(PairSlip::scaled_value)},
     {"own factor",
      "dQ is made of Q, and dK of K. The score is a product, in which each factor receives the OTHER one: "
      "dQ_i += delta_ij K_j / sqrt(d).",
      pairs(PairSlip::own_factor)},
     {"dQ is zero",
      "Either nothing is added to dQ_i, or delta_ij times what is the same for all j, such as Q_i itself, and "
      "the delta of a query sum to 0. In a product each factor receives the OTHER one: K_j.",
      pairs(PairSlip::own_in_Q)},
     {"own factor", "dK is made of K itself. In a product each factor receives the OTHER one: Q_i.",
      pairs(PairSlip::own_in_K)},
     {"dQ and dK exchanged",
      "What belongs to Q has gone to K, and the other way round: delta_ij K_j goes to query i, delta_ij Q_i "
      "to key j.",
      pairs(PairSlip::exchanged)},
     {"no competition",
      "delta lacks - alpha_ij (g_i . o_i): the weights of a query sum to 1, so that a key gains only what "
      "it is better than the mix.",
      pairs(PairSlip::no_mix)},
     {"mix added",
      "The mix is added: a key gains by what its value is better than the mix, g_i . V_j - g_i . o_i.",
      pairs(PairSlip::mix_added)},
     {"softmax diagonal",
      "delta uses alpha (1 - alpha), the diagonal of the softmax Jacobian. Each score moves all weights of "
      "its query: delta_ij = alpha_ij (g_i . V_j - g_i . o_i).",
      pairs(PairSlip::diagonal)},
     {"alpha forgotten", "delta lacks the factor alpha_ij: delta_ij = alpha_ij (g_i . V_j - g_i . o_i).",
      pairs(PairSlip::no_alpha)},
     {"softmax forgotten",
      "What arrives at the weights, g_i . V_j, goes on to the scores as it is. Between them lies the "
      "softmax.",
      pairs(PairSlip::no_softmax)},
     {"sign of delta", "dQ and dK have the wrong sign: it is the key's value minus the mix, V_j - o_i.",
      pairs(PairSlip::sign)},
     {"plain average",
      "Each g_i . V_j is compared with the plain average over j. Compare it with the mix, g_i . o_i.",
      pairs(PairSlip::plain_mean)},
     {"wrong axis",
      "The softmax's sum goes over the queries. It was taken over the keys j of one query i, and so is its "
      "backward.",
      pairs(PairSlip::column_mix)},
     {"no value path", "dV is missing: o_i is a mix of the values themselves, dV_j = sum_i alpha_ij g_i.",
      pairs(PairSlip::no_value)},
     {"weights forgotten", "dV lacks the weights: value j is in o_i with the share alpha_ij.",
      pairs(PairSlip::plain_value)},
     {"weights transposed",
      "dV_j takes alpha_ji, the weight that word j gives to word i. It wants what word i gave to it, "
      "alpha_ij.",
      pairs(PairSlip::turned_value)},
     {"no scale",
      "The scores are not divided by sqrt(d): their variance is d, and the softmax has one winner from the "
      "start.",
      [](auto& in) { return scaled_dot(in, 1); }},
     {"divided by d", "The scores are divided by d. Their spread is the root of it.",
      [](auto& in) { return scaled_dot(in, root_of_width(in) * root_of_width(in)); }},
     {"multiplied by sqrt(d)", "The scores are multiplied by sqrt(d), and not divided by it.",
      [](auto& in) { return scaled_dot(in, 1 / root_of_width(in)); }}}};

const Exercise kCausal{
    "causal",
    [](auto& in) { return causal(in, 0); },
    {{"mask not applied on the way back",
      "V_j receives from words i before it, which have never seen it. And Q and K get nothing yet: only j = "
      "0 .. i take part, as in the forward, and each pair sends to dV, dQ and dK.",
      causal_pairs(PairSlip::no_mask_value_only)},
     {"mask not applied on the way back",
      "Words receive a gradient from words before them, which have never seen them. weight(i, j) knows of "
      "no mask: the pairs are j = 0 .. i, as in the forward.",
      causal_pairs(PairSlip::no_mask)},
     {"value path only",
      "The pairs are right, and only V receives from them. delta_ij goes on to dQ_i and dK_j.",
      causal_pairs(PairSlip::value_only)},
     {"own word left out",
      "The pair of a word with itself, j = i, is left out on the way back: j <= i, not j < i.",
      causal_pairs(PairSlip::own_hidden)},
     {"one word too many", "The loop goes one word too far: word i has seen the words 0 .. i, and not i + 1.",
      causal_pairs(PairSlip::one_ahead)},
     {"mask the wrong way",
      "The pairs are those of the other side, j >= i. Word i has seen the words 0 .. i.",
      causal_pairs(PairSlip::wrong_way)},
     {"the future in the mix",
      "The softmax's sum takes in words that were masked. It is over the words that were seen, and that is "
      "g_i . o_i.",
      causal_pairs(PairSlip::future_in_mix)},
     {"scale forgotten", "dQ and dK lack the factor 1 / sqrt(d) that the forward gave to the scores.",
      causal_pairs(PairSlip::no_scale)},
     {"no competition", "delta lacks - alpha_ij (g_i . o_i).", causal_pairs(PairSlip::no_mix)},
     {"alpha forgotten", "delta lacks the factor alpha_ij: delta_ij = alpha_ij (g_i . V_j - g_i . o_i).",
      causal_pairs(PairSlip::no_alpha)},
     {"own factor", "dQ is made of Q, and dK of K: in a product each factor receives the OTHER one.",
      causal_pairs(PairSlip::own_factor)},
     {"sees the next word",
      "Word i looks at word i + 1, the very one that it shall say: the mask ends one place too late. Its "
      "loss falls to nothing, and what it writes is nonsense.",
      [](auto& in) { return causal(in, 1); }},
     {"no mask", "Every word looks at all words, at those behind it, too.",
      [](auto& in) { return scaled_dot(in, root_of_width(in)); }},
     {"own word hidden",
      "Word i looks at the words before it and not at itself: the mask ends one place too early.",
      [](auto& in) { return causal(in, -1); }},
     {"mask after softmax",
      "The future is removed after the softmax and has had its share: the weights of the first words sum to "
      "less than 1.",
      [](auto& in) {
        Var alpha = softmax(scaled_scores(in, root_of_width(in)));
        return matmul(alpha * Var(looked_at(in, 0).to(DType::f64)), in[2]);
      }}}};

}  // namespace

const std::vector<Exercise>& scaled_dot_exercises() {
  static const std::vector<Exercise> all{kScaledDot, kCausal};
  return all;
}

}  // namespace lens
