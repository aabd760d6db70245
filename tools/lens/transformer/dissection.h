#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <gradus/nn/transformer_seq2seq.h>

namespace lens::transformer {

/// A part of a layer: what stands between two sums with the residual. `output` is what follows the last layer.
enum class Part { encoder_self, encoder_ff, decoder_self, cross, decoder_ff, output };
/// "cross-attention"
const char* title_of(Part part);
constexpr bool attends(Part part) {
  return part == Part::encoder_self || part == Part::decoder_self || part == Part::cross;
}
constexpr bool in_decoder(Part part) { return part != Part::encoder_self && part != Part::encoder_ff; }

/// The values of a part in the order in which they are computed. What comes in has a name for each way that its
/// gradient goes: the same numbers, other Vars.
enum Field : uint8_t {
  /// [R, n, E] what comes in
  kX,
  /// the same, as the sum with the residual takes it
  kResidual,
  /// as queries are made of it; of a part without attention, as it is transformed
  kToQuery,
  /// as keys are made of it; in cross-attention these two are the encoder's output [S, n, E]
  kToKey,
  /// as values are made of it
  kToValue,
  /// normalised; undefined with the norm last
  kNormQuery,
  kNormKey,
  kNormValue,
  /// [R, n, E], heads side by side
  kQ,
  /// [C, n, E]
  kK,
  /// [C, n, E]
  kV,
  /// [n, H, R, C] q . k / sqrt(d), before the mask
  kScores,
  /// [n, H, R, C]
  kWeights,
  /// [R, n, E], what the heads found, side by side
  kMixed,
  /// [R, n, F] of a feed-forward part, before the activation
  kHidden,
  /// [R, n, F]
  kActive,
  /// [R, n, E], what is added to the residual
  kOut,
  /// [R, n, E]
  kSum,
  /// of the sum; undefined with the norm first
  kNormed,
  kFields
};

/// One part of one layer, with its values for one sentence, n variants of it side by side (n = 1 but for
/// finite differences).
struct Sublayer {
  Part part = Part::output;
  int64_t layer = 0;
  std::array<gradus::Var, kFields> at = {};
  /// [R, 1, F] 1 where a relu is to stay on, 0 where off; undefined: it goes by its input.
  gradus::Tensor pattern = {};

  const gradus::Var& operator[](Field f) const { return at[f]; }
  gradus::Var& operator[](Field f) { return at[f]; }
  /// What the next part gets.
  const gradus::Var& result() const { return at[kNormed].defined() ? at[kNormed] : at[kSum]; }
};

/// Something a gradient is shown of: fields that hold the same numbers, or a single one.
struct Station {
  const char *name, *title;
  std::vector<Field> fields;
};

/// A sentence pair on its way through the network.
struct Run {
  /// [S, n, E], [T, n, E] words with positions
  gradus::Var source, target;
  /// [S, n, E], the encoder's output
  gradus::Var memory;
  /// in the order in which they are computed; the last is `output`
  std::vector<Sublayer> parts;
  /// [T, n, V]
  gradus::Var logits, probabilities;
  /// of each target word; not of variants
  std::vector<gradus::Var> losses;
};

/// Words' vectors with their positions, as the encoder reads them.
gradus::Var embed_source(const gradus::nn::TransformerSeq2Seq& network, const gradus::Tensor& words);

/// A Transformer taken apart for one sentence pair under teacher forcing: the library's modules, called in
/// pieces, every value a Var. Needs a network in double precision; refers to it.
class Dissection {
 public:
  /// source ends with </s>; target without <s> and </s>. `causal` false: the decoder's self-attention is
  /// computed without its mask, though the network was trained with it.
  Dissection(const gradus::nn::TransformerSeq2Seq& network, std::vector<int32_t> source,
             const std::vector<int32_t>& target, bool causal = true);

  Run run() const;
  /// Losses [n][T] with other numbers in fields of one part, whatever comes after computed anew: n variants,
  /// in the fields' shapes with n in place of 1. Without a graph. With `hold_relus` each stays on or off as it
  /// is in `run`: for differences, which a kink would spoil.
  std::vector<std::vector<double>> losses(const Run& run, size_t part, const std::vector<Field>& fields,
                                          const gradus::Tensor& variants, bool hold_relus) const;

  /// What has a value in this part, in order.
  std::vector<Station> stations(const Sublayer& part) const;
  /// The norm of a part, before or after it; null where it has none.
  const gradus::nn::LayerNorm* norm(const Sublayer& part) const;
  /// Of a part that attends, and of one that does not.
  const gradus::nn::MultiheadAttention& attention(const Sublayer& part) const;
  const gradus::nn::FeedForward& feed_forward(const Sublayer& part) const;
  /// 1 where a row of the part may look at a column; undefined: everywhere. u8 [R, C].
  gradus::Tensor mask(const Sublayer& part) const;

  const gradus::nn::TransformerSeq2Seq& network() const { return network_; }
  const std::vector<int32_t>& source() const { return source_; }
  /// with </s>
  const std::vector<int32_t>& target() const { return target_; }
  int64_t heads() const { return network_.config.num_heads; }
  bool norm_first() const { return network_.config.norm_first; }
  bool causal() const { return causal_; }
  /// Everything is computed as it was in training.
  bool as_trained() const { return causal_ == network_.config.causal; }
  /// The sum of the losses, as the network itself computes it, with the mask or without as it was trained.
  double network_loss() const;

 private:
  void compute(Sublayer& part, const gradus::Var& memory, int after) const;
  void finish(Run& run, size_t from) const;

  const gradus::nn::TransformerSeq2Seq& network_;
  std::vector<int32_t> source_, target_;
  bool causal_;
};

/// When a field is computed: all of one number at once, of the ones before.
int level(Field field);

}  // namespace lens::transformer
