#pragma once

#include <gradus/nn/seq2seq.h>
#include <gradus/nn/transformer_seq2seq.h>

#include <string>

namespace translator {

/// What a model directory holds besides its numbers: config.json.
struct ModelConfig {
  std::string model = "gru";                  ///< or "transformer": which of the two networks it is
  gradus::nn::Seq2SeqConfig network;          ///< of a "gru"
  gradus::nn::TransformerConfig transformer;  ///< of a "transformer"
  bool lowercase = true;                      ///< how its text was read
  bool french = false;                        ///< typography of the output
  std::string source_language = "source", target_language = "target";  ///< for people
};

/// Empty, or why there is no attention of this name ("none" is one).
std::string check_attention(const std::string& name);
/// Name, aliases and formula of each attention, a line each; what another file of the program registers is listed too.
std::string list_attentions();

/// The text of config.json.
std::string to_json(const ModelConfig& config);
/// Reads one, of any version: what is missing was not an option yet.
/// @throws InputError naming the file.
ModelConfig read_config(const std::string& path);

}  // namespace translator
