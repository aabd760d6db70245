#pragma once

#include <cstdint>
#include <vector>

#include <gradus/nn/data_parallel.h>
#include <translator/model/batches.h>
#include <translator/model/model.h>

// The heart of training: a batch of sentence pairs, its loss and its gradients.

namespace translator {

/// Everything that a step's loss and gradient depend on, besides the weights.
struct StepBatch {
  /// one for each thread's share
  std::vector<gradus::nn::Seq2SeqBatch> parts;
  /// of the whole batch
  gradus::nn::LossOptions loss;
  /// of dropout, and of what a model draws
  uint64_t training_seed = 0;
  /// as gradus::Training's
  double dropout_share = 1;
  /// larger products of the step in bfloat16, see set_float32_matmul_precision
  bool bf16 = false;
  int64_t step = 0;

  /// The same for one part, which weighs as much as it has target words.
  gradus::nn::LossOptions loss_of(size_t part) const;
};

/// The parameters that `freeze` (names, or what stands before one of their dots, with commas between) leaves to
/// be trained.
struct Trained {
  gradus::nn::ParameterList parameters;
  /// of a name that no parameter has, or that none is left; "": neither
  std::string complaint;
};
Trained trained_parameters(gradus::nn::TranslationModel& network, const std::string& freeze);
/// Those of hidden layers that have two axes: neither tables of words or positions nor the output layer.
gradus::nn::ParameterList hidden_matrices(gradus::nn::TranslationModel& network);
/// Takes the gradients of all others out.
void keep_only(const gradus::nn::ParameterList& parameters, gradus::Gradients& gradients);

/// The chosen pairs, padded, in `count` parts (fewer where there are fewer pairs).
std::vector<gradus::nn::Seq2SeqBatch> parts_of(const std::vector<EncodedPair>& pairs,
                                               const std::vector<size_t>& chosen, int count);

/// Word dropout: puts <unk> in the place of source words, and of target words that are fed, each with the given
/// probability; </s> and <s> stay, and so does what the model is to say (Bowman et al. 2016, section 3.2;
/// Sennrich and Zhang 2019). Each pair draws from its own split of `rng`, so the number of parts does not
/// matter.
void drop_words(std::vector<gradus::nn::Seq2SeqBatch>& parts, double probability, const gradus::Rng& rng);

/// Within its lifetime products are as the step wants them: those of validations are exact.
class ProductsOf {
 public:
  explicit ProductsOf(bool bf16);
  ~ProductsOf();
  ProductsOf(const ProductsOf&) = delete;
};

/// Loss and gradients of a step, each part differentiated by one thread, the output layer by all together.
gradus::nn::OutputGradients differentiate(const Model& model, const StepBatch& batch,
                                          gradus::ThreadPool& pool);

}  // namespace translator
