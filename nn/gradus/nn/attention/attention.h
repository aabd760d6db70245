#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gradus/nn/module.h>
#include <gradus/ops/attention.h>
#include <gradus/random.h>

namespace gradus::nn {

/// What an attention keeps of a source for all steps of a target.
struct AttentionMemory {
  Var annotations;   ///< [S, B, D], what contexts are made of
  Var keys;          ///< [S, B, A], what queries are compared with: a projection of the annotations, made once
  Tensor mask = {};  ///< u8 [B, S], 1 = real; undefined: all real
};

/// One interface for all attentions: `prepare` a source once, then take a `step` for each query.
class Attention {
 public:
  virtual ~Attention() = default;
  /// annotations [S, B, D].
  virtual AttentionMemory prepare(const Var& annotations, const Tensor& mask) const = 0;
  /// query [B, Q] -> context [B, D], weights [B, S]. A source with nothing real gives weights 0 and context 0.
  virtual AttentionStep step(const Var& query, const AttentionMemory& memory) const = 0;
  virtual void params(ParamVisitor& visit) = 0;
  /// True when scores are query . key, unscaled: then many steps can be taken as one product.
  virtual bool is_multiplicative() const { return false; }
};

struct AttentionSizes {
  int64_t query_size;       ///< Q
  int64_t annotation_size;  ///< D
  int64_t attention_size;   ///< A, the hidden layer of additive and concat
};

/// By the names people type: "bahdanau" ("additive", "mlp"), "dot", "general" ("luong"), "concat".
/// @throws Error "[make_attention] unknown attention \"foo\": one of bahdanau, dot, general, concat".
std::unique_ptr<Attention> make_attention(std::string_view name, const AttentionSizes& sizes, Rng& rng);

/// The canonical names that make_attention knows.
std::vector<std::string> attention_names();

}  // namespace gradus::nn
