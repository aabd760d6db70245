#include <gradus/nn/attention/formed.h>

#include <fmt/core.h>

#include <cmath>

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention_scores.h>
#include <gradus/ops/scaled_dot_product_attention.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/matmul.h>

namespace gradus::nn {

Var ScoreForm::project(const Input& queries) const {
  At at(queries.caller());
  return query.defined() ? linear(queries, query.var()) : queries.var();
}

ScoreForm ScoreForm::over(double temperature) const {
  bool additive = kind == Kind::additive;
  if (additive != v.defined())
    fail("ScoreForm", additive ? "additive scores need a vector v [A]" : "dot scores have no vector v");
  // An op that takes 0 for its own default would make something else of it than the others.
  if (!std::isfinite(scale) || scale == 0)
    fail("ScoreForm", fmt::format("scale must be finite and not 0: {}", scale));
  ScoreForm out = *this;
  out.scale = scale / temperature;
  if (additive && out.scale != 1) {
    out.v = v * out.scale;
    out.scale = 1;
  }
  return out;
}

Var FormedAttention::keys_of(const Input& annotations) const {
  At at(annotations.caller());
  WeightPart key = form().key;
  return key.defined() ? linear(annotations, key.var()) : annotations.var();
}

Var FormedAttention::scores(const Input& query, const AttentionMemory& memory, const AttentionState&) const {
  At at(query.caller());
  ScoreForm f = form().over(1);
  Var u = f.project(query);
  return f.kind == ScoreForm::Kind::additive ? additive_scores(u, memory.keys, f.v)
                                             : multiplicative_scores(u, memory.keys, f.scale);
}

Attended FormedAttention::step(const Input& query, const AttentionMemory& memory,
                               const AttentionState& state) const {
  At at(query.caller());
  if (cuts()) return ScoredAttention::step(query, memory, state);
  ScoreForm f = tempered_form();
  Var u = f.project(query);
  AttentionStep found =
      f.kind == ScoreForm::Kind::additive
          ? additive_attention(u, memory.keys, memory.annotations, f.v, memory.mask)
          : multiplicative_attention(u, memory.keys, memory.annotations, f.scale, memory.mask);
  Attended out{found.context, found.weights, state};
  ++out.state.step;
  return out;
}

AttendedSequence FormedAttention::sequence(const Input& queries, const AttentionMemory& memory) const {
  At at(queries.caller());
  if (cuts() || form().kind == ScoreForm::Kind::additive) return Attention::sequence(queries, memory);
  ScoreForm f = tempered_form();
  ScaledDotProduct all = scaled_dot_product_attention(
      f.project(queries), memory.keys, memory.annotations,
      {.heads = 1, .scale = f.scale, .mask = memory.mask, .weights = true});
  int64_t T = queries.size(0), B = queries.size(1);
  Var weights(all.weights.reshape({B, T, memory.keys.size(0)}));
  return {all.output, transpose(weights, 0, 1).value()};
}

// What an attention offers is what it is: there is no list of the ones that have a form.
const FormedAttention* as_formed(const Attention& attention) {
  return dynamic_cast<const FormedAttention*>(&attention);
}

}  // namespace gradus::nn
