#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gradus/nn/module.h>
#include <gradus/ops/attention.h>
#include <gradus/random.h>

// One interface for all attentions: `prepare` a source once, `start` a target, `step` for each query.
//
//   AttentionMemory memory = attention.prepare(annotations, mask);     // what a source is, for all steps
//   AttentionState state = attention.start(memory);                    // what steps hand on to each other
//   for (...) {
//     Attended a = attention.step(query, memory, state);               // a.context [B, D], a.weights [B, S]
//     state = a.state;
//   }
//
// To write one: derive from ScoredAttention, say what the scores are, and name it with GRADUS_ATTENTION.

namespace gradus::nn {

/// What an attention keeps of a source for all steps of a target. S positions, B sentences.
struct AttentionMemory {
  /// [S, B, D], what contexts are made of
  Var annotations;
  /// [S, B, A], what queries are compared with: a projection of the annotations, made once
  Var keys;
  /// u8 [B, S], 1 = real; undefined: all real
  Tensor mask = {};
  /// [T, B, S] weights from outside, for all steps (oracle, hard); undefined: none
  Tensor given = {};
  /// Whatever else an attention prepares, each [S, B, ...]
  std::vector<Var> extra = {};

  /// The sentences rows[0], rows[1], ... (i32 [N]); one may be taken several times.
  /// @throws Error "[rows] must be in 0 .. 3: 4".
  AttentionMemory rows(const Tensor& rows) const;
};

/// What a step hands on to the next one. An attention uses the parts that it needs.
struct AttentionState {
  /// t, the steps taken before
  int64_t step = 0;
  /// [B, S] of the step before
  Var weights = {};
  /// [B, S] sum of the weights of all steps before
  Var coverage = {};
  /// Whatever else an attention hands on, each [B, ...]
  std::vector<Var> extra = {};

  /// The same for the sentences (or hypotheses) rows[0], rows[1], ... (i32 [N]).
  /// @throws Error "[gather_rows] indices must be in 0 .. 3: 4".
  AttentionState rows(const Tensor& rows) const;
};

/// What a step finds.
struct Attended {
  /// [B, D]
  Var context;
  /// [B, S], for looking at; of several heads the mean
  Tensor weights;
  AttentionState state = {};
  /// [B] of the position that was drawn: hard attention in training; undefined elsewhere.
  Var log_probability = {};
  /// [B, heads, S]; multi-head only
  Tensor head_weights = {};
};

/// What all steps of a target find, where they could be taken at once.
struct AttendedSequence {
  /// [T, B, D]
  Var context;
  /// [T, B, S]
  Tensor weights;
  /// [T, B]; hard attention in training
  Var log_probability = {};
};

struct AttentionOptions {
  /// Scores are divided by it: below 1 sharper, above 1 flatter
  double temperature = 1;
  /// Outside of Training only the k largest weights stay, and sum to 1; 0: all
  int64_t top_k = 0;
  /// Outside of Training only the last real position stays
  bool last_only = false;
  /// What local-m, local-p and hard score with; "": general, general, bahdanau
  std::string score = "";
  /// Of multihead
  int64_t heads = 4;
  /// D of local-m and local-p: positions on either side of the centre
  int64_t window = 2;
  /// Of location: source positions beyond are never looked at
  int64_t max_positions = 100;
  /// Of location-aware: so many filters, and the previous weights that one position sees, odd
  int64_t filters = 8, filter_width = 5;
};

struct AttentionSizes {
  /// Q, D, and A, the hidden layer of scores that have one
  int64_t query_size, annotation_size, attention_size;
  AttentionOptions options = {};
};

/// The interface.
class Attention {
 public:
  /// @throws Error when the temperature is not positive, or another option is not what it must be.
  explicit Attention(const AttentionOptions& options = {});
  virtual ~Attention() = default;
  /// annotations [S, B, D], mask u8 [B, S] or undefined. Here: annotations, their keys_of, and the mask.
  /// @throws Error "[Attention] annotations must be [S, B, D]: [4, 3]".
  virtual AttentionMemory prepare(const Input& annotations, const Tensor& mask) const;
  /// [S, B, A]. Here: the annotations are their own keys.
  virtual Var keys_of(const Input& annotations) const { return annotations; }
  /// Before the first step of a target. Here: nothing but the number of the step.
  virtual AttentionState start(const AttentionMemory& memory) const;
  /// query [B, Q]. A source with nothing real gives weights 0 and context 0.
  virtual Attended step(const Input& query, const AttentionMemory& memory,
                        const AttentionState& state) const = 0;
  /// queries [T, B, Q] that do not depend on contexts, from the start of a target. Here: step by step.
  virtual AttendedSequence sequence(const Input& queries, const AttentionMemory& memory) const;
  virtual void params(ParamVisitor&) {}

  /// Temperature, top_k and last_only may be changed at any time
  AttentionOptions options;
  /// True where only some weights stay now: by top_k or last_only.
  bool cuts() const;
  /// Size of the contexts: D of the annotations, where they are means of these.
  virtual int64_t context_size(int64_t annotation_size) const { return annotation_size; }

 protected:
  /// u8 [B, S] of the positions that stay where it cuts: of equal weights the first ones. weights [B, S], or
  /// anything that rises with them.
  Tensor kept(const Tensor& weights, const Tensor& mask) const;
};

/// An attention that is a score and a softmax: weights = softmax(scores / temperature) over the real positions,
/// context = sum_s weights_s annotations_s. What the state carries is what `start` defined of it: previous
/// weights, coverage.
class ScoredAttention : public Attention {
 public:
  using Attention::Attention;
  /// query [B, Q] -> scores [B, S]. Those of masked positions have no influence.
  virtual Var scores(const Input& query, const AttentionMemory& memory,
                     const AttentionState& state) const = 0;
  Attended step(const Input&, const AttentionMemory&, const AttentionState&) const override;

 protected:
  /// `scores`, divided by the temperature.
  /// @throws Error "[ScoredAttention] scores must be f32 [B, S] = [2, 3]: f32 [3, 2]".
  Var scaled_scores(const Input& query, const AttentionMemory& memory, const AttentionState& state) const;
  /// scaled_scores [B, S] -> weights [B, S]: mask, softmax, of what stays where it cuts.
  Var weigh(const Var& scaled_scores, const Tensor& mask) const;
  /// Weights are known: context and the next state.
  Attended attend(const Var& weights, const AttentionMemory& memory, const AttentionState& state) const;
};

// ---- by name ----

/// An attention that can be made by name.
struct AttentionKind {
  /// "general"
  std::string name;
  /// "luong"
  std::vector<std::string> aliases;
  /// One line for --help, with the formula
  std::string description;
  /// The order it was published with, which "auto" takes: Luong's (the new state asks), or Bahdanau's.
  bool luong_order = false;
  /// Needs Q = D: the encoder's directions are made half as wide
  bool equal_sizes = false;
  std::function<std::unique_ptr<Attention>(const AttentionSizes&, Rng&)> make;
};

/// The kind that makes a T(const AttentionSizes&, Rng&).
template <class T>
AttentionKind attention_kind_of(std::string name, std::string description,
                                std::vector<std::string> aliases = {}, bool luong_order = false,
                                bool equal_sizes = false) {
  auto make = [](const AttentionSizes& sizes, Rng& rng) -> std::unique_ptr<Attention> {
    return std::make_unique<T>(sizes, rng);
  };
  return {name, aliases, description, luong_order, equal_sizes, make};
}

/// All that are known, the library's own first.
const std::vector<AttentionKind>& attention_kinds();
/// By name or alias. @throws Error "[make_attention] unknown attention \"foo\": one of bahdanau, dot, ...".
const AttentionKind& attention_kind(std::string_view name);
/// @throws Error as attention_kind, and what the attention's constructor throws.
std::unique_ptr<Attention> make_attention(std::string_view name, const AttentionSizes& sizes,
                                          const RngInput& rng);
/// The attention named by sizes.options.score, or `otherwise` where that is empty, to build on its scores.
/// @throws Error "[make_score] multihead has no scores of its own to build on".
std::unique_ptr<ScoredAttention> make_score(const AttentionSizes& sizes, std::string_view otherwise,
                                            const RngInput& rng);
/// One that takes scores of another attention and makes weights of its own of them. Parameters: score.*
class BorrowingAttention : public ScoredAttention {
 public:
  std::unique_ptr<ScoredAttention> score;

  AttentionMemory prepare(const Input& annotations, const Tensor& mask) const override;
  AttentionState start(const AttentionMemory& memory) const override { return score->start(memory); }
  Var scores(const Input& query, const AttentionMemory& memory, const AttentionState& state) const override;
  void params(ParamVisitor& visit) override { visit("score", *score); }

 protected:
  /// @throws Error as make_score.
  BorrowingAttention(const AttentionSizes& sizes, std::string_view otherwise, const RngInput& rng);
};

/// The names that make_attention knows, without aliases.
std::vector<std::string> attention_names();
/// Makes one known, before threads start. @throws Error when a name is taken.
void register_attention(AttentionKind kind);

struct AttentionRegistration {
  explicit AttentionRegistration(AttentionKind kind) { register_attention(std::move(kind)); }
};

/// At namespace scope of a source file, once: makes `Type(const AttentionSizes&, Rng&)` known as `name`.
///   GRADUS_ATTENTION(MyAttention, "mine", "v . relu(W [query ; annotation])")
#define GRADUS_ATTENTION(Type, name, description)                                            \
  [[maybe_unused]] static const ::gradus::nn::AttentionRegistration gradus_attention_##Type( \
      ::gradus::nn::attention_kind_of<Type>(name, description));

}  // namespace gradus::nn
