#pragma once

#include <memory>

#include <gradus/nn/packed/steps.h>
#include <gradus/nn/packed/matrix.h>
#include <gradus/nn/transformer_seq2seq.h>

namespace gradus::nn::packed {

/// A Transformer's weights, laid out for the few rows of a step.
struct TransformerWeights {
  struct Norm {
    const float *weight, *bias;
    float eps;
  };
  /// Two products of a layer. Of attention `in` gives queries, keys and values [3E, E], or queries alone where
  /// the source is looked at; of a feed-forward part it is [F, E].
  struct Part {
    Matrix in, out;
    Norm norm;
  };
  struct FeedForward : Part {
    bool gelu;
  };
  struct EncoderLayer {
    Part own;
    FeedForward forward;
  };
  struct DecoderLayer {
    Part own, source;
    /// keys and values of the source [2E, E]
    Matrix memory;
    FeedForward forward;
  };

  int64_t E, F, heads;
  /// of all scores
  float scale;
  bool norm_first;
  std::vector<EncoderLayer> encoder;
  std::vector<DecoderLayer> decoder;
  /// after the last layer
  std::optional<Norm> encoder_norm, decoder_norm;
  Matrix out;

  /// False when there is no such form of it: not f32.
  static bool fits(const TransformerSeq2Seq& model);
  TransformerWeights(const TransformerSeq2Seq& model, const Layout& layout);
};

/// Decoding by these weights. Keys and values of the source stand once for each sentence, those of the target
/// once for each row. A step allocates only where the words outgrow the room for them, which doubles then.
class PackedTransformer : public PackedSteps {
 public:
  /// Reads the sources. The model must stay. @throws Error for ids and lengths that do not fit.
  PackedTransformer(const TransformerSeq2Seq& model, std::shared_ptr<const TransformerWeights> weights,
                    const Tensor& source, const Tensor& lengths, const IncrementalOptions& options);
  void select(const std::vector<int64_t>& rows) override;
  void join(const IncrementalDecoder& started) override;

 private:
  void read(const Tensor& ids, const Tensor& lengths, int64_t first, int64_t end);
  Tensor run(const Tensor& previous) override;
  void run_step(int member);
  void look_back(size_t layer, int member, int64_t r);
  void look_at_source(size_t layer, int member, int64_t r);
  void make_room(int64_t words);

  // R rows of words on their way through the layers, those of sources or of a step. All members call each part
  // together; between parts a member touches its own rows alone. between(rows) is called when `inner` has what
  // the first product gives, and makes `made` of it; look(r) once for each row, when its queries are there.
  void pass(const TransformerWeights::Part& part, int64_t R, int member, const Tensor& inner,
            const Tensor& made, const std::function<void(const Share& rows)>& between);
  void attend(const TransformerWeights::Part& part, int64_t R, int member,
              const std::function<void(int64_t r)>& look);
  const float* look_at(int64_t S, const float* keys, int64_t stride, int64_t r, const float* query,
                       int member);
  void feed_forward(const TransformerWeights::FeedForward& part, int64_t R, int member);
  const Tensor& normed(const std::optional<TransformerWeights::Norm>& norm, const Share& rows);
  void normalise(const TransformerWeights::Norm& norm, const Tensor& from, const Tensor& to,
                 const Share& rows);
  void multiply(const Matrix& m, int64_t R, const Tensor& x, const Tensor& to, int member);
  float* projected(int64_t r) const { return projected_.f32() + r * 3 * w_->E; }

  const TransformerSeq2Seq& model_;
  std::shared_ptr<const TransformerWeights> w_;
  std::function<void(int)> job_ = [this](int member) { run_step(member); };
  RowSentences sentences_;
  // By layer, keys and values side by side: of each source [words, 2E], of the target [places, room, 2E].
  std::vector<std::vector<Tensor>> sources_;
  std::vector<Tensor> target_;
  // Of each row: where it stands in target_, and how many words there.
  std::vector<int64_t> place_, said_;
  int64_t S_ = 0, room_ = 0;
  // By row: the sum that goes through the layers, what a part takes of it (pre-LN), its queries, keys and
  // values, what heads found, a part's result, the feed-forward part's hidden layer.
  Tensor x_, normed_, projected_, found_, result_, hidden_, stats_, scores_;
};

}  // namespace gradus::nn::packed
