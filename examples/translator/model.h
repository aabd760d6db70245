#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gradus/nn/search.h>
#include <gradus/nn/seq2seq.h>
#include <translator/model_config.h>
#include <translator/text/parallel.h>
#include <translator/text/segmenter.h>
#include <translator/text/vocabulary.h>

namespace translator {

/// What was learnt of the training text besides its vocabularies, for both sides; null where the description
/// has no use for it.
struct TextModels {
  std::shared_ptr<const Subwords> source = {}, target = {};  ///< a joint one stands on both sides
  std::shared_ptr<const Truecaser> source_case = {}, target_case = {};
};

/// A trained (or fresh) translator: network, vocabularies, conventions of its text.
class Model {
 public:
  /// Fresh weights from `seed`; the vocabulary sizes are filled in.
  Model(ModelConfig config, Vocabulary source, Vocabulary target, uint64_t seed, TextModels text = {});
  /// Reads config.json, source.vocab, target.vocab, what its pieces and case need, and model.safetensors.
  /// @throws InputError or gradus::Error naming the file.
  static Model load(const std::string& directory);
  /// The same without model.safetensors: the weights are fresh.
  static Model load_description(const std::string& directory);
  /// Writes config.json, the vocabularies, pieces and case (not the weights, see save_weights). Makes the
  /// directory.
  void save_description(const std::string& directory) const;
  /// Puts a new model, `save`d into the directory that it is told, in the place of the one in `directory`, if
  /// there is one: a crash at any moment leaves the old one or the new one, whole, never the description of one
  /// beside the weights of another. Other files there stay.
  static void replace(const std::string& directory, const std::function<void(const std::string& where)>& save);
  /// What a crash kept `replace` from: to be called before anything else is written there.
  static void finish_replacing(const std::string& directory);
  /// Writes model.safetensors; the previous one stays whole until the new one is.
  void save_weights(const std::string& directory,
                    const std::map<std::string, std::string>& metadata = {}) const;

  /// The network as the recurrent one; null when it is a Transformer.
  const gradus::nn::Seq2Seq* recurrent() const;
  /// True when its attention is given the gold alignments: oracle.
  bool takes_alignments() const;
  /// Target words at most, where learned positions end; 0: no end.
  int64_t most_positions() const;
  /// Why a sentence of so many tokens cannot be read or learned; "": it can.
  std::string length_fault(size_t tokens) const;
  /// The same of a text on its side, `reads` or `writes`.
  std::string length_fault(const Segmenter& side, const std::string& text) const;

  ModelConfig config;
  Vocabulary source, target;
  Segmenter reads, writes;  ///< the way from text to tokens and back: the source's, and the target's
  std::unique_ptr<gradus::nn::TranslationModel> network;
};

/// Ids of tokens. A word with a mark of its spacing that is not known counts as the word.
std::vector<int32_t> ids_of(const Vocabulary& vocabulary, const std::vector<std::string>& tokens);

/// One sentence pair as ids. Source without <s>, with </s>; target without either.
struct EncodedPair {
  std::vector<int32_t> source, target;
  Links links = {};  ///< gold alignment, for a model that takes one
};

/// With the links, where the model takes them: of words, so that each piece of a word has those of its word.
/// The dropout is Segmenter::split's; on_progress is told how many are done.
std::vector<EncodedPair> encode(const std::vector<SentencePair>& pairs, const Model& model,
                                double dropout = 0,
                                const std::function<void(int64_t pairs)>& on_progress = {});

/// Pads the chosen pairs into one batch. Targets get <s> in front of the input and </s> behind the output.
/// Where pairs have links, the batch has an alignment: a target word looks at the source words that it is
/// linked to, equally; one without links at all words equally; </s> at </s>.
gradus::nn::Seq2SeqBatch make_batch(const std::vector<EncodedPair>& pairs, const std::vector<size_t>& chosen);

/// Source sentences alone, as search wants them.
struct SourceBatch {
  gradus::Tensor ids, lengths;
};
SourceBatch make_source_batch(const std::vector<std::vector<int32_t>>& sentences);

/// Thrown out of work that takes long when its `stop` is set, between two batches.
struct Interrupted {};

/// How work on many sentences is done.
struct Work {
  int threads = 1;
  std::function<void(int64_t sentences)> on_progress =
      {};                                   ///< told, on the calling thread, how many are done
  const std::atomic<bool>* stop = nullptr;  ///< once set, Interrupted is thrown
};

/// Calls f(worker, chosen) for batches of up to `size` pairs of similar length, so that little is padding.
/// Each thread does whole batches, the same ones every time, and leaves no tape.
void for_each_batch(const std::vector<EncodedPair>& pairs, size_t size, const Work& work,
                    const std::function<void(size_t worker, const std::vector<size_t>& chosen)>& f);

struct Translation {
  std::vector<std::string> tokens;
  double log_probability = 0;
  /// Weights [tokens (+ </s>), source tokens + </s>]; empty unless asked for.
  std::vector<std::vector<float>> weights;
};

/// Translates sentences that model.reads has split, none of which has a length_fault, in batches of similar
/// length; results in the order given, each with up to options.beam_size translations, best first. A word the
/// model does not know is <unk>; an <unk> in the result is replaced by the source word with the largest
/// weight (Luong et al. 2015, section 4.2) when weights are there. The generator is the model's own, kept for
/// as long as there are sentences to translate.
std::vector<std::vector<Translation>> translate(const Model& model, const gradus::nn::Generator& generator,
                                                const std::vector<Segmented>& sources,
                                                gradus::nn::SearchOptions options = {},
                                                const Work& work = {});
/// The same for one call.
std::vector<std::vector<Translation>> translate(const Model& model, const std::vector<Segmented>& sources,
                                                gradus::nn::SearchOptions options = {}, int threads = 1);

/// A sentence and its translation as people see them, with </s> where there is one: whole words, and the
/// weights [target words, source words] between them, empty without attention.
struct WordPicture {
  std::vector<std::string> source, target;
  std::vector<std::vector<float>> weights;
  bool ended = false;  ///< the last of the target is </s>
};
/// Of pieces the weights are put together as weights_of_words says.
WordPicture picture_of(const Segmented& source, const Segmented& target,
                       const std::vector<std::vector<float>>& weights);
/// One link a target word, see links_from_attention.
Links links_of(const WordPicture& words);
/// The same as picture_of with a column and a row for each piece.
WordPicture picture_of_pieces(const Segmented& source, const Segmented& target,
                              const std::vector<std::vector<float>>& weights);

}  // namespace translator
