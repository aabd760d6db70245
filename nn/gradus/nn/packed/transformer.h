#pragma once

#include <memory>

#include <gradus/nn/packed/matrix.h>
#include <gradus/nn/transformer_seq2seq.h>

namespace gradus::nn::packed {

/// The weights of a Transformer's decoder, laid out for the few rows of a step.
struct TransformerWeights {
  struct Norm {
    const float *weight, *bias;
    float eps;
  };
  struct Product {
    Matrix matrix;
    const float* bias;  ///< null: none
  };
  struct Layer {
    Product self_in, self_out;                                 ///< [3E, E], [E, E]
    Product cross_query, cross_keys, cross_values, cross_out;  ///< each [E, E]
    Product up, down;                                          ///< [F, E], [E, F]
    Norm norms[3];
    bool gelu;
  };

  int64_t E, F, V, heads;
  float scale;  ///< of all scores
  bool norm_first;
  std::vector<Layer> layers;
  std::optional<Norm> last;  ///< after the last layer
  Product out;

  /// False when there is no such form of it: not f32.
  static bool fits(const TransformerSeq2Seq& model);
  TransformerWeights(const TransformerSeq2Seq& model, const Layout& layout);
};

/// Decoding by these weights. Keys and values of the source stand once for each sentence, those of the target
/// once for each row. A step allocates only where the words outgrow the room for them, which doubles then.
class PackedTransformer : public IncrementalDecoder {
 public:
  /// The model's encoder reads the sources. The model must stay.
  PackedTransformer(const TransformerSeq2Seq& model, std::shared_ptr<const TransformerWeights> weights,
                    const Tensor& source, const Tensor& lengths, const IncrementalOptions& options);
  const Tensor& step(const Tensor& previous) override;
  Tensor readouts(const Tensor& previous) override;
  const Tensor& weights() const override { return weights_view_; }
  void select(const std::vector<int64_t>& rows) override;

 private:
  struct KeysValues {
    Tensor keys, values;
  };

  void run_step(int member);
  void look_back(size_t layer, int member, const Share& rows);
  void look_at_source(size_t layer, int member, const Share& rows);
  void activate(bool gelu, const Share& rows);
  void join(const TransformerWeights::Norm& own, const TransformerWeights::Norm* next, const Share& rows);
  void normalise(const TransformerWeights::Norm& norm, const Tensor& from, const Tensor& to,
                 const Share& rows);
  void make_room();
  void set_rows(int64_t R);

  const TransformerSeq2Seq& model_;
  std::shared_ptr<const TransformerWeights> w_;
  Team team_;
  std::function<void(int)> job_;
  bool weights_wanted_, no_logits_ = false;
  RowSentences sentences_;
  std::vector<int64_t> begin_;      // of each sentence among the rows of source_
  std::vector<KeysValues> source_;  // by layer: [words of all sentences, E]
  std::vector<KeysValues> target_;  // by layer: [places, room, E]
  std::vector<int64_t> place_;      // of each row in target_
  int64_t S_ = 0, most_, R_ = 0, room_ = 0, length_ = 0;
  // By row: the sum that goes through the layers, what a part takes of it (pre-LN), its queries, keys and
  // values, what heads found, a part's result, the feed-forward part's hidden layer.
  Tensor x_, normed_, projected_, found_, result_, hidden_, stats_, scores_;
  Tensor logits_, logits_view_, alignment_, weights_view_;
};

}  // namespace gradus::nn::packed
