// The exercises about attention, and what goes wrong in them.

#include <cmath>

#include "exercise_parts.h"
#include "exercises.h"

namespace lens {
namespace {

using namespace gradus;

// ---- one step, forward: s [D], h [S, D] ----

Var dots(const In& in) { return sum(in[0] * in[1], 1); }  // [S]
Var row(const In& in, int64_t j) { return select(in[1], 0, j); }
int64_t last(const In& in) { return in[1].size(0) - 1; }
// sum_j weight_j h_j with the weights that the right scores give, or what becomes of them.
Var mixed(const In& in, Var (*weights)(const Var& alpha)) {
  return sum(reshape(weights(softmax(dots(in))), {-1, 1}) * in[1], 0);
}

const Exercise kScore{
    "one-score",
    [](auto& in) { return sum(in[0] * in[1]); },
    {{"state ignored",
      "The numbers of the annotation alone are added, so that every state would give the same score. Multiply "
      "each by the state's number in the same place first.",
      [](auto& in) { return sum(in[1]); }},
     {"annotation ignored",
      "The numbers of the state alone are added, so that every word would get the same score. Multiply each by "
      "the annotation's number in the same place first.",
      [](auto& in) { return sum(in[0]); }},
     {"not added up", "The products stand there, one for each place. Add them up: a score is one number.",
      [](auto& in) { return in[0] * in[1]; }},
     {"mean for sum", "The products are averaged. A dot product adds them up.",
      [](auto& in) { return mean(in[0] * in[1]); }},
     {"added, not multiplied",
      "State and annotation are added place by place. A dot product multiplies them.",
      [](auto& in) { return sum(in[0] + in[1]); }},
     {"a distance",
      "That is a distance, which grows the less the two have in common. A score grows the better they fit.",
      [](auto& in) { return sum((in[0] - in[1]) * (in[0] - in[1])); }},
     {"divided by sqrt(D)", "That is the Transformer's score. The one that is asked for is not scaled.",
      [](auto& in) { return sum(in[0] * in[1]) / std::sqrt(static_cast<double>(in[0].numel())); }},
     {"a cosine", "The lengths of both are divided out, so that no score is above 1. The formula keeps them.",
      [](auto& in) { return sum(in[0] * in[1]) / sqrt(sum(in[0] * in[0]) * sum(in[1] * in[1])); }}}};

const Exercise kScores{
    "all-scores",
    dots,
    {{"one annotation for all", "All scores are that of the first annotation: take annotation j.",
      [](auto& in) {
        return dots({in[0], reshape(row(in, 0), {1, -1})}) + dots(in) * 0.0;
      }},
     {"one annotation for all", "All scores are that of the last annotation: take annotation j.",
      [](auto& in) {
        return dots({in[0], reshape(row(in, last(in)), {1, -1})}) + dots(in) * 0.0;
      }},
     {"the annotation asks",
      "Each annotation is compared with itself. What is compared with all of them is the state.",
      [](auto& in) { return sum(in[1] * in[1], 1); }},
     {"the state answers",
      "The state is compared with itself, the same number for all words. Compare it with annotation j.",
      [](auto& in) { return sum(in[0] * in[0]) + dots(in) * 0.0; }},
     {"weights for scores", "These are the weights already: exp and the division come behind the scores.",
      [](auto& in) { return softmax(dots(in)); }}}};

const Exercise kMix{
    "weighted-sum",
    [](auto& in) { return mixed(in, [](auto& alpha) { return alpha; }); },
    {{"weights ignored",
      "The annotations are added as they are, so that c is the same for every state. Times "
      "its weight each.",
      [](auto& in) { return sum(in[1], 0); }},
     {"a mean", "Each annotation counts 1/S. Its own weight belongs there.",
      [](auto& in) { return mean(in[1], 0); }},
     {"one weight for all", "Each annotation is taken times the first weight. Its own is alpha_j.",
      [](auto& in) { return mixed(in, [](auto& alpha) { return alpha * 0.0 + select(alpha, 0, 0); }); }},
     {"annotations ignored",
      "The weights alone are added, which gives 1 everywhere. Each weight times annotation j.",
      [](auto& in) { return row(in, 0) * 0.0 + sum(softmax(dots(in))); }},
     {"overwritten",
      "Every annotation sets c anew, so that only the last is left. Add to what c has: c = c + ...",
      [](auto& in) { return row(in, last(in)) * select(softmax(dots(in)), 0, last(in)); }},
     {"the largest alone",
      "c is the annotation with the largest weight. The others belong in it, too, by their weights.",
      [](auto& in) { return row(in, argmax(dots(in)).i32()[0]); }}}};

// ---- pieces with a mistake in their backward ----

// Without - y (dy . y): the gradient of a softmax whose outputs do not compete.
Var softmax_without_mix(const Var& e) {
  return softmax_with(e, [](auto& r, int64_t j) { return r.dy[j] * r.y[j]; });
}

Var softmax_diagonal(const Var& e) {
  return softmax_with(e, [](auto& r, int64_t j) { return r.dy[j] * r.y[j] * (1 - r.y[j]); });
}

Var softmax_wrong_way(const Var& e) { return softmax(e) * -1.0 + stop_gradient(softmax(e)) * 2.0; }

Var tanh_as_identity(const Var& x) {
  return record("tanh", {x}, tanh(x).value(), [](const Tensor& dy, Grads& dx) { dx.add(0, dy); });
}

Var plain_softmax(const Var& e) { return softmax(e); }
Var plain_tanh(const Var& x) { return tanh(x); }
Var same(const Var& x) { return x; }

using Piece = Var (*)(const Var&);

// ---- additive: s [H], h [S, D], Wa [A, H], Ua [A, D], v [A] -> c [D] ----

// What each path of the gradient goes through, to be replaced one at a time.
struct Pieces {
  Piece value = same, score = same, query = same, weights = plain_softmax, squash = plain_tanh;
};

Var additive(const In& in, const Pieces& p = {}) {
  Var s = reshape(p.query(in[0]), {1, -1}), h = in[1];
  Var u = p.squash(linear(s, in[2]) + linear(p.score(h), in[3]));  // [S, A]
  Var e = sum(u * in[4], {.axes = {1}});                           // [S]
  Var alpha = reshape(p.weights(e), {-1, 1});
  return sum(alpha * p.value(h), {.axes = {0}});
}

// h receives its share of the mix, all others nothing.
Var additive_value_only(const In& in) {
  return additive(
      {stop_gradient(in[0]), in[1], stop_gradient(in[2]), stop_gradient(in[3]), stop_gradient(in[4])},
      {.score = cut});
}

// The backward of the chapter by hand, with one of the slips that loops over j, a and d invite.
enum class Slip {
  set_dh,
  set_dv,
  set_dUa,
  set_dWa,
  set_ds,
  no_v,
  no_u,
  no_alpha,
  half_tanh,
  square,
  sigmoid,
  plain,
  plus,
  mix_in_dUa,
  turned
};
Var additive_with(const In& in, Slip slip) {
  Tensor c = additive(in).value();
  auto backward = [=, s = in[0].value(), h = in[1].value(), Wa = in[2].value(), Ua = in[3].value(),
                   v = in[4].value()](const Tensor& g, Grads& grads) {
    int64_t S = h.size(0), D = h.size(1), H = s.size(0), A = v.size(0);
    std::vector<Tensor> d;
    for (const Tensor* t : {&s, &h, &Wa, &Ua, &v}) d.push_back(Tensor::zeros(t->shape(), DType::f64));
    Tensor u = tanh(linear(reshape(Var(s), {1, -1}), Var(Wa)) + linear(Var(h), Var(Ua))).value();
    Tensor alpha = softmax(sum(Var(u) * Var(v), {.axes = {1}})).value();
    auto along = [&](const Tensor& t, int64_t row) {
      double sum = 0;
      for (int64_t k = 0; k < D; ++k) sum += g.at(k) * t.at(row * D + k);
      return sum;
    };
    auto put = [&](size_t i, int64_t at, double value, bool set) {
      d[i].set(at, set ? value : d[i].at(at) + value);
    };
    double mean = 0;
    for (int64_t j = 0; j < S; ++j) mean += along(h, j) / static_cast<double>(S);
    for (int64_t j = 0; j < S; ++j) {
      for (int64_t k = 0; k < D; ++k) put(1, j * D + k, alpha.at(j) * g.at(k), false);
      double delta = along(h, j) - (slip == Slip::plain ? mean : along(c, 0)) * (slip == Slip::plus ? -1 : 1);
      if (slip != Slip::no_alpha) delta *= alpha.at(j);
      for (int64_t a = 0; a < A; ++a) {
        double u_a = u.at(j * A + a), dz = slip == Slip::half_tanh ? 1 - u_a
                                           : slip == Slip::square  ? u_a * u_a
                                           : slip == Slip::sigmoid ? u_a * (1 - u_a)
                                                                   : 1 - u_a * u_a;
        dz *= (slip == Slip::no_v ? 1 : v.at(a)) * delta;
        put(4, a, slip == Slip::no_u ? delta : u_a * delta, slip == Slip::set_dv);
        for (int64_t k = 0; k < D; ++k) {
          put(3, a * D + k, dz * (slip == Slip::mix_in_dUa ? c.at(k) : h.at(j * D + k)),
              slip == Slip::set_dUa);
          put(1, j * D + k, dz * Ua.at(a * D + k), slip == Slip::set_dh);
        }
        for (int64_t i = 0; i < H; ++i) {
          put(2, a * H + i, dz * s.at(i), slip == Slip::set_dWa);
          bool turned = slip == Slip::turned && H == A;
          put(0, i, dz * Wa.at(turned ? i * H + a : a * H + i), slip == Slip::set_ds);
        }
      }
    }
    for (size_t i = 0; i < d.size(); ++i) grads.add(static_cast<int>(i), d[i]);
  };
  return record("attention", in, c, backward);
}

const Exercise kAdditive{
    "attention",
    [](auto& in) { return additive(in); },
    {{"value path only",
      "Only the value path is there, alpha_j g. The weights move, too: a word gains attention when its "
      "annotation beats the current mix, delta_j = alpha_j g.(h_j - c), and delta goes on through e, u and "
      "the projections.",
      additive_value_only},
     {"no competition",
      "The score gradient is alpha_j (g.h_j). The numeric one also subtracts alpha_j (g.c): the weights sum "
      "to 1, so that a word gains only what it is better than the current mix. delta_j = alpha_j "
      "g.(h_j - c).",
      [](auto& in) { return additive(in, {.weights = softmax_without_mix}); }},
     {"softmax diagonal",
      "The score gradient uses alpha (1 - alpha), the diagonal of the softmax Jacobian. Each score moves all "
      "weights: delta_j = alpha_j g.(h_j - c).",
      [](auto& in) { return additive(in, {.weights = softmax_diagonal}); }},
     {"sign of delta",
      "The score path has the wrong sign: delta_j = alpha_j g.(h_j - c), the word's annotation minus the "
      "mix.",
      [](auto& in) { return additive(in, {.weights = softmax_wrong_way}); }},
     {"tanh forgotten",
      "The score path does not go through tanh: multiply by 1 - u^2 before the projections.",
      [](auto& in) { return additive(in, {.squash = tanh_as_identity}); }},
     {"no score path to h",
      "h receives the value path only, although the projections are right: a source word is also what the "
      "scores look at. Add Ua^T ((1 - u_j^2) v) delta_j to dh_j.",
      [](auto& in) { return additive(in, {.score = cut}); }},
     {"no value path",
      "The value path is missing: the context is a mix of the annotations themselves, so dh_j starts with "
      "alpha_j g.",
      [](auto& in) { return additive(in, {.value = cut}); }},
     {"detached query",
      "No gradient arrives at the query s: the decoder cannot learn what to ask for. ds = Wa^T sum_j (1 - "
      "u_j^2) v delta_j.",
      [](auto& in) { return additive(in, {.query = cut}); }},
     {"overwritten",
      "dh_j is set (=) where the score path arrives: the value path, and all units a but the last, are lost. "
      "Add (+=).",
      [](auto& in) { return additive_with(in, Slip::set_dh); }},
     {"overwritten", "dv is set (=) by each word, and only the last word's share is left. Add (+=) over j.",
      [](auto& in) { return additive_with(in, Slip::set_dv); }},
     {"overwritten", "dUa is set (=) by each word, and only the last word's share is left. Add (+=) over j.",
      [](auto& in) { return additive_with(in, Slip::set_dUa); }},
     {"overwritten", "dWa is set (=) by each word, and only the last word's share is left. Add (+=) over j.",
      [](auto& in) { return additive_with(in, Slip::set_dWa); }},
     {"overwritten", "ds is set (=): what is left is the last word's share through the last unit. Add (+=).",
      [](auto& in) { return additive_with(in, Slip::set_ds); }},
     {"v forgotten",
      "From e_j = v . u_j down to u_j the gradient takes the factor v: dz_j = (1 - u_j^2) v delta_j.",
      [](auto& in) { return additive_with(in, Slip::no_v); }},
     {"dv is zero",
      "Either nothing is added to dv, or delta_j without u_j, and the delta sum to 0: what one word gains, the "
      "others lose. dv = sum_j delta_j u_j.",
      [](auto& in) { return additive_with(in, Slip::no_u); }},
     {"alpha forgotten",
      "delta_j lacks the factor alpha_j: a word that nobody looks at has no say, however good it is. delta_j "
      "= alpha_j g.(h_j - c).",
      [](auto& in) { return additive_with(in, Slip::no_alpha); }},
     {"half of tanh", "The slope of tanh is 1 - u^2; here it is 1 - u.",
      [](auto& in) { return additive_with(in, Slip::half_tanh); }},
     {"half of tanh", "The slope of tanh is 1 - u^2; here it is u^2.",
      [](auto& in) { return additive_with(in, Slip::square); }},
     {"slope of the sigmoid", "The slope of tanh is 1 - u^2; u (1 - u) is that of the sigmoid.",
      [](auto& in) { return additive_with(in, Slip::sigmoid); }},
     {"average added",
      "g . c is added to g . h_j, and must be subtracted: a word gains what it is better than the mix, "
      "delta_j = alpha_j g.(h_j - c).",
      [](auto& in) { return additive_with(in, Slip::plus); }},
     {"mix for annotation",
      "dUa is made of c, the mix. What Ua is multiplied with is the annotation of the word: dUa_ad = sum_j "
      "dz_ja h_jd.",
      [](auto& in) { return additive_with(in, Slip::mix_in_dUa); }},
     {"plain average",
      "Each annotation is compared with the plain average of all. Compare it with c, the mix that the "
      "weights make: delta_j = alpha_j g.(h_j - c).",
      [](auto& in) { return additive_with(in, Slip::plain); }},
     {"transposed",
      "ds is Wa dz; the way back goes through the transpose: ds_i += dz_a Wa_ai, Wa_[a][i] in the file.",
      [](auto& in) { return additive_with(in, Slip::turned); }}}};

// ---- dot products: q [D], h [S, D] -> c [D] ----

Var dot(const In& in, double scale, const Pieces& p = {}) {
  Var q = reshape(p.query(in[0]), {-1, 1});
  Var e = reshape(matmul(p.score(in[1]), q), {-1}) * scale;
  return sum(reshape(p.weights(e), {-1, 1}) * p.value(in[1]), {.axes = {0}});
}

double root(const In& in) { return 1 / std::sqrt(static_cast<double>(in[0].numel())); }

Var scale_in_forward_only(const In& in) {
  double scale = root(in);
  auto scaled = [scale](const Var& e) {
    return record("scale", {e},
                  map(e.value(), [scale](auto v) { return v * static_cast<decltype(v)>(scale); }),
                  [](const Tensor& dy, Grads& dx) { dx.add(0, dy); });
  };
  Var e = scaled(reshape(matmul(in[1], reshape(in[0], {-1, 1})), {-1}));
  return sum(reshape(softmax(e), {-1, 1}) * in[1], {.axes = {0}});
}

const Exercise kDot{
    "dot-attention",
    [](auto& in) { return dot(in, root(in)); },
    {{"softmax diagonal",
      "The score gradient takes only the diagonal of the softmax Jacobian, alpha (1 - alpha) (g.h). Raising "
      "one score lowers all other weights: delta_j = alpha_j g.(h_j - c).",
      [](auto& in) { return dot(in, root(in), {.weights = softmax_diagonal}); }},
     {"no competition", "The score gradient lacks - alpha_j (g.c): delta_j = alpha_j g.(h_j - c).",
      [](auto& in) { return dot(in, root(in), {.weights = softmax_without_mix}); }},
     {"scale forgotten",
      "The forward divides the scores by the root of the width, the backward does not: delta takes the same "
      "factor on its way down.",
      scale_in_forward_only},
     {"no scale", "The scores are not divided by the root of the width.",
      [](auto& in) { return dot(in, 1); }}}};

// ---- bilinear: s [D], h [S, D], W [D, D] -> weights [S] ----

const Exercise kBilinear{"bilinear-weights",
                         [](auto& in) {
                           Var q = linear(reshape(in[0], {1, -1}), in[2]);                     // [1, D]
                           return softmax(reshape(matmul(in[1], reshape(q, {-1, 1})), {-1}));  // [S]
                         },
                         {{"ignores the source",
                           "The weights come from the decoder state alone: whatever the source says, they "
                           "stay. Each score must look at its annotation, e_j = h_j . (W s).",
                           [](auto& in) {
                             Var q = linear(reshape(in[0], {1, -1}), in[2]);
                             return softmax(reshape(slice(q, 1, 0, in[1].size(0)), {-1}));
                           }}}};

// ---- masks: e [B, S], mask u8 [B, S] -> weights [B, S] ----

Tensor inverted(const Tensor& mask) {
  return map(mask.to(DType::f64), [](auto v) { return 1 - v; }).to(DType::u8);
}

const Exercise kMasked{
    "masked-softmax",
    [](auto& in) { return softmax(in[0], {.mask = in[1].value()}); },
    {{"mask after softmax",
      "The padding is removed after the softmax: it has already taken its share, and the weights of a "
      "sentence no longer sum to 1. Remove it from the scores before.",
      [](auto& in) { return softmax(in[0]) * Var(in[1].value().to(in[0].dtype())); }},
     {"mask as factor",
      "Scores of padding are multiplied by 0. A score of 0 still gets exp(0) = 1 of the softmax: padding "
      "needs minus infinity, or a very negative number.",
      [](auto& in) { return softmax(in[0] * Var(in[1].value().to(in[0].dtype()))); }},
     {"no mask", "Padding gets attention: the mask is not used.", [](auto& in) { return softmax(in[0]); }},
     {"mask inverted", "The mask is the wrong way round: 1 stands for a word, 0 for padding.",
      [](auto& in) { return softmax(in[0], {.mask = inverted(in[1].value())}); }},
     {"mask inverted", "The mask is the wrong way round: 1 stands for a word, 0 for padding.",
      [](auto& in) { return softmax(where(in[1].value(), Tensor::scalar(-1e30, in[0].dtype()), in[0])); }},
     {"wrong axis", "Each row is a sentence: the softmax goes along the last axis, so that a row sums to 1.",
      [](auto& in) {
        return softmax(where(in[1].value(), in[0], Tensor::scalar(-1e30, in[0].dtype())), {.axis = 0});
      }}},
    "Each row must sum to 1 over its words and be exactly 0 at padding. Is the number in the place of "
    "padding's scores negative enough?"};

}  // namespace

const std::vector<Exercise>& attention_exercises() {
  static const std::vector<Exercise> all{kScore, kScores, kMix, kAdditive, kDot, kBilinear, kMasked};
  return all;
}

}  // namespace lens
