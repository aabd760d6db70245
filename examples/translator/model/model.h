#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <gradus/nn/seq2seq.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <translator/model/model_config.h>
#include <translator/text/segmenter.h>
#include <translator/text/vocabulary.h>

namespace translator {

class Shortlist;

/// What was learnt of the training text besides its vocabularies, for both sides; null where the description
/// has no use for it.
struct TextModels {
  /// a joint one stands on both sides
  std::shared_ptr<const Subwords> source = {}, target = {};
  std::shared_ptr<const Truecaser> source_case = {}, target_case = {};
};

/// A trained (or fresh) translator: network, vocabularies, conventions of its text.
class Model {
 public:
  /// Fresh weights from `seed`; the vocabulary sizes are filled in.
  Model(ModelConfig config, Vocabulary source, Vocabulary target, uint64_t seed, TextModels text = {});
  /// Reads config.json, source.vocab, target.vocab, what its pieces and case need, model.safetensors, and the
  /// shortlist where there is one.
  /// @throws InputError or gradus::Error naming the file, where weights are NaN or infinite the parameter, too:
  /// such a model answers anything with the same words. `any_numbers`: not then, for who looks for the reason.
  static Model load(const std::string& directory, bool any_numbers = false);
  /// The same without model.safetensors: the weights are fresh.
  static Model load_description(const std::string& directory);
  /// The same model with other options, which leave the shape of the network, and vocabularies that begin with
  /// its own: it keeps its weights, and gets rows from `seed` for what is new.
  void extend(ModelConfig config, Vocabulary source, Vocabulary target, uint64_t seed);
  /// Writes config.json, the vocabularies, pieces, case and shortlist (not the weights, see save_weights).
  /// Makes the directory.
  void save_description(const std::string& directory) const;
  /// Puts a new model, `save`d into the directory that it is told, in the place of the one in `directory`, if
  /// there is one: a crash at any moment leaves the old one or the new one, whole, never the description of one
  /// beside the weights of another. Other files there stay.
  static void replace(const std::string& directory,
                      const std::function<void(const std::string& where)>& save);
  /// What a crash kept `replace` from: to be called before anything else is written there.
  static void finish_replacing(const std::string& directory);
  /// Writes model.safetensors; the previous one stays whole until the new one is.
  void save_weights(const std::string& directory,
                    const std::map<std::string, std::string>& metadata = {}) const;

  /// Made ready for decoding: with products in 8 bits where its weights are.
  std::unique_ptr<gradus::nn::Generator> generator() const { return network->generator({.int8 = int8}); }
  /// Rounds its weights to 8 bits, see int8_state.h, as `translator quantize` writes them.
  void round_to_int8();

  /// The network as the recurrent one; null when it is a Transformer.
  const gradus::nn::Seq2Seq* recurrent() const;
  /// The same as a Transformer; null when it is recurrent.
  const gradus::nn::TransformerSeq2Seq* transformer() const;
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
  /// the way from text to tokens and back: the source's, and the target's
  Segmenter reads, writes;
  std::unique_ptr<gradus::nn::TranslationModel> network;
  /// its weights are numbers that 8 bits stand for
  bool int8 = false;
  /// Which target words come of which source words; null: unknown.
  std::shared_ptr<const Shortlist> shortlist = {};
  /// A search scores only those, see translate_listed; none: all words.
  std::optional<double> least_mass = {};
};

}  // namespace translator
