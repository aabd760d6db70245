#pragma once

#include <gradus/nn/seq2seq.h>
#include <gradus/nn/transformer_seq2seq.h>

#include <istream>
#include <set>
#include <string>

#include <translator/model/fields.h>

namespace translator {

/// The most that a file or an option can ask for; what it then takes is compared with the machine, see
/// forecast.h.
/// of a layer
constexpr int kMostUnits = 1 << 16;
constexpr int kMostLayers = 256;
/// of a sentence
constexpr int kMostPositions = 1 << 20;
/// of a vocabulary
constexpr int kMostWords = 10'000'000;
constexpr double kMostDropout = 0.999;

/// What a model was trained on.
struct TrainingData {
  /// "embedded" or "own"; empty: the file does not say, it is of before it did
  std::string corpus;
  /// of the embedded one, see kCorpusVersion
  int64_t version = 0, pairs = 0, seed = 0, max_length = 0;
  /// of the embedded one
  bool verb_final = false;
};

/// What a model directory holds besides its numbers: config.json.
struct ModelConfig {
  /// "gru" or "transformer": which of the two networks it is
  std::string model = "gru";
  /// of a "gru"
  gradus::nn::Seq2SeqConfig network;
  /// of a "transformer"
  gradus::nn::TransformerConfig transformer;
  /// how its text is read, see SegmenterOptions
  std::string letter_case = "lower";
  /// of case "first": a capital begins their sentences
  bool source_folded = true, target_folded = true;
  /// typography of the output, where tokens are words
  bool french = false;
  /// what tokens are: words, or pieces of kind bpe, unigram, char
  std::string subwords = "none";
  /// "separate" or "joint": one for both sides
  std::string subword_model = "separate";
  /// Subwords::checksum() of what each side is read with; empty: words, or of before it was told
  std::string source_pieces = {}, target_pieces = {};
  /// for people
  std::string source_language = "source", target_language = "target";
  TrainingData trained_on = {};

  bool lowercase() const { return letter_case == "lower"; }
  /// What people are told that tokens are: words, or pieces.
  const char* tokens() const { return subwords == "none" ? "words" : "pieces"; }
};

/// What config.json holds, as lists: what both kinds of network have, and what one kind has.
Fields common_fields(ModelConfig& config);
Fields network_fields(ModelConfig& config, const std::string& model);
/// The options that a model of this kind has and the other has nothing for: --cell of a "gru".
std::set<std::string> options_only_of(const std::string& model);
/// A name that make_attention knows, or "none".
Word attention_name(std::string& value);
/// The name of a recurrent model's attention, "bahdanau" where the model says additive; or "none".
std::string attention_of(const ModelConfig& config);

/// The text of config.json.
std::string to_json(const ModelConfig& config);
/// Reads one, of any version: what is missing was not an option yet.
/// @throws InputError naming the file.
ModelConfig read_config(const std::string& path);
/// The same of a stream, which the errors call `path`.
ModelConfig read_config(std::istream& file, const std::string& path);

}  // namespace translator
