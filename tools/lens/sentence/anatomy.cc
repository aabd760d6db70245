#include "anatomy.h"

#include <gradus/nn/attention/formed.h>
#include <gradus/nn/attention/multihead.h>
#include <gradus/ops.h>

namespace lens {

using namespace gradus;

namespace {

// What the keys are compared with.
const Var& compared(const Attending& a) { return a.projected.defined() ? a.projected : a.query; }

}  // namespace

Anatomy::Anatomy(const nn::Attention& attention) : attention_(attention) {
  KeepValues keep;  // of the slices made here, for whoever traces steps later
  if (const nn::FormedAttention* formed = nn::as_formed(attention)) {
    nn::ScoreForm form = formed->form();
    kind = form.kind == nn::ScoreForm::Kind::additive ? Kind::additive : Kind::multiplicative;
    if (form.query.defined()) query_weight_ = form.query.var();
    score_vector_ = form.v;
    key_weight = form.key.defined();
    scale = form.scale;
  // What happens in several heads is no form of one score.
  } else if (auto* several = dynamic_cast<const nn::MultiheadSourceAttention*>(&attention)) {
    kind = Kind::multihead;
    multihead_ = &several->heads;
    heads = multihead_->num_heads;
    int64_t E = multihead_->embed_dim;
    key_weight = true;
    scale = multihead_->scale;
    bool packed = multihead_->in_proj_weight.defined();
    query_weight_ = packed ? slice(multihead_->in_proj_weight, 0, 0, E) : multihead_->q_proj_weight.var();
    if (multihead_->in_proj_bias.defined()) query_bias_ = slice(multihead_->in_proj_bias, 0, 0, E);
  } else {
    // Any other score is taken as a whole, if there is one.
    scored_ = dynamic_cast<const nn::ScoredAttention*>(&attention);
    if (!scored_) fail("lens", "this attention is no softmax of scores, so there is nothing to take apart");
  }
}

void Anatomy::compute(Stage stage, Attending& a, const Var& scored, const Var& mixed,
                      const nn::AttentionState& state) const {
  switch (stage) {
    case Stage::projected:
      a.projected = query_weight_.defined() ? linear(a.query, query_weight_, query_bias_) : Var();
      break;
    case Stage::keys:
      a.keys = kind == Kind::other ? Var() : attention_.prepare(scored, {}).keys;
      if (multihead_) a.keys = slice(a.keys, -1, 0, multihead_->embed_dim);  // the values stand behind them
      break;
    case Stage::hidden: a.hidden = kind == Kind::additive ? tanh(a.keys + compared(a)) : Var(); break;
    case Stage::scores: a.scores = scores(a, scored, state); break;
    case Stage::weights:
      a.weights = softmax(temperature() == 1 ? a.scores : a.scores * (1 / temperature()));
      break;
    case Stage::context: a.context = context(a, mixed); break;
    default: break;
  }
}

Var Anatomy::scores(const Attending& a, const Var& annotations, const nn::AttentionState& state) const {
  if (kind == Kind::other) return scored_->scores(a.query, attention_.prepare(annotations, {}), state);
  if (multihead_) {
    int64_t S = a.keys.size(0), n = multihead_->embed_dim / heads;
    Var each = reshape(a.keys, {S, heads, n}) * reshape(a.projected, {1, heads, n});
    return transpose(sum(each, {.axes = {-1}}), 0, 1) * scale;
  }
  Var each = kind == Kind::additive ? a.hidden * score_vector_ : a.keys * compared(a);
  Var e = transpose(sum(each, {.axes = {-1}}), 0, 1);
  return scale == 1 ? e : e * scale;
}

Var Anatomy::context(const Attending& a, const Var& annotations) const {
  if (!multihead_) return weighted_sum(a.weights, annotations);
  int64_t S = annotations.size(0), E = multihead_->embed_dim;
  Var values = reshape(slice(multihead_->project_memory(annotations), -1, E, 2 * E), {S, heads, E / heads});
  Var mixed = matmul(reshape(a.weights, {heads, 1, S}), transpose(values, 0, 1));
  return multihead_->out_proj(reshape(mixed, {1, E}));
}

nn::AttentionMemory Anatomy::mixing(nn::AttentionMemory memory, const Var& annotations) const {
  memory.annotations = annotations;
  if (!multihead_) return memory;
  int64_t E = multihead_->embed_dim;  // heads mix projections, which stand behind the keys
  Var values = slice(multihead_->project_memory(annotations), 2, E, 2 * E);
  memory.keys = concat({slice(memory.keys, 2, 0, E), values}, -1);
  return memory;
}

nn::AttentionState Anatomy::next(const Attending& a, const nn::AttentionState& state) const {
  nn::AttentionState out = state;
  ++out.step;
  if (state.weights.defined()) out.weights = a.weights;
  if (state.coverage.defined()) out.coverage = state.coverage + a.weights;
  return out;
}

Anatomy::Contributions Anatomy::contributions(const Tensor& annotations) const {
  int64_t S = annotations.size(0);
  if (!multihead_) return {annotations.reshape({1, S, annotations.size(2)}), {}};
  NoGrad guard;
  int64_t E = multihead_->embed_dim, n = E / heads;
  Var values = reshape(slice(multihead_->project_memory(annotations), -1, E, 2 * E), {S, E});
  std::vector<Var> each;
  for (int64_t m = 0; m < heads; ++m)
    each.push_back(linear(slice(values, 1, m * n, (m + 1) * n),
                          slice(multihead_->out_proj.weight, 1, m * n, (m + 1) * n)));
  return {stack(each, 0).value(),
          multihead_->out_proj.bias.defined() ? multihead_->out_proj.bias.value() : Tensor()};
}

}  // namespace lens
