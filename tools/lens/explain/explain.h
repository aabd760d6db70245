#pragma once

#include <string>
#include <vector>

#include <common/terminal.h>
#include <translator/model/model.h>

#include "page/output.h"
#include "sentence/sentence.h"

namespace lens {

/// @throws gradus::Error for a Transformer: it has no single attention to follow, see transformer/.
const gradus::nn::Seq2Seq& network_to_dissect(const translator::Model& model);

/// A sentence pair as a model has it.
struct Sentence {
  /// What the model reads and writes, and </s>. A piece is a word where the model has no others, or pieces are
  /// what is asked for. What the model does not know is marked: "Zork <unk>".
  translator::Segmented source, target;
  /// the former with </s>, the latter without
  std::vector<int32_t> source_ids, target_ids;
  /// the target was given; otherwise it is the model's own translation
  bool has_reference = false;

  /// Pieces are put together into words.
  bool in_words() const { return source.words != source.pieces || target.words != target.pieces; }
};
/// Reads the sentences; an empty target is the model's greedy translation, token by token as it said it: where
/// that was <unk> the copied word is shown, and marked. With `pieces` each piece stands for a word.
/// @throws translator::InputError for a sentence without words, or too long a one.
Sentence read_sentence(const translator::Model& model, const std::string& source, const std::string& target,
                       bool pieces = false);
/// The same with a target that the model said, by ids and without </s>: as text it might be cut into others.
Sentence read_said(const translator::Model& model, const std::string& source, const std::vector<int32_t>& said);

/// A model and a sentence pair to look at.
struct Subject : Sentence {
  /// in double precision
  translator::Model model;
  /// of the model, for people
  std::string name;

  const gradus::nn::Seq2Seq& network() const { return network_to_dissect(model); }
  Dissection dissect() const { return {network(), source_ids, target_ids}; }
};

/// Loads a model directory and reads the sentences.
/// @throws translator::InputError for files, and as read_sentence does.
Subject make_subject(const std::string& directory, const std::string& source, const std::string& target,
                     bool pieces = false);
/// The same with a model at hand.
Subject make_subject(translator::Model model, const std::string& name, const std::string& source,
                     const std::string& target, bool pieces = false);
/// And with a sentence that it has read.
Subject make_subject(translator::Model model, const std::string& name, Sentence sentence);
/// A side's pieces by name, for text: "k of Zork" where a word has several.
std::vector<std::string> piece_names(const translator::Segmented& side);
/// Adds to the trace of a model of pieces how they are shown, "pieces", and where they are put together
/// "words".
void add_pieces(json& trace, const Subject& subject);

struct SentenceOptions;
/// The same from the command line; without a model the program's own.
Subject subject_of(const SentenceOptions& options);
/// The step that --step asks for, from 0; -1: none. @throws UsageError when the target has fewer.
int64_t step_of(const SentenceOptions& options, const Subject& subject);

struct ExplainJson {
  int digits = 17;
  /// grids as bytes, of the shown step with more digits
  bool packed = false;
  /// columns of a grid that are written
  int64_t units = 64;
  /// with what a page needs to compute steps anew
  bool what_if = true;
  /// with the value and score paths' gradients in full, not only their norms
  bool paths = true;
};
/// How a trace of this kind begins: what it is of.
json trace_of(const char* kind, const Subject& subject, const json& model);
/// The trace that docs/trace-schema.md describes, of kind "explain".
json to_json(const Subject& subject, const Dissection& d, const SentenceTrace& trace,
             const ExplainJson& options);

/// The page of it: of the step shown first, from 0; -1: the one with the largest loss.
std::string explain_page(const Subject& subject, int64_t step);

/// The part "what_if" of it.
json what_if_json(const Subject& subject, const Dissection& d, const SentenceTrace& trace);

/// Of it, the output layer: the words that a page can make likelier (all, or the likeliest at any step where
/// that would be too much), their rows, and what the others add up to at each step.
json output_json(const translator::Model& model, const std::vector<gradus::Tensor>& logits,
                 const std::vector<int32_t>& targets, const gradus::Var& weight, const gradus::Var& bias);

struct ExplainOptions;
/// What the command writes: for a page, or as JSON in full.
ExplainJson json_for(const ExplainOptions& options);
/// "5 source words, 6 target words, 812 numbers checked ..."
std::string checked(const Subject& subject, size_t checks, double worst, double seconds);
/// The command for a Transformer.
int explain_transformer(const ExplainOptions& options, const Subject& subject);

/// What a terminal gets: the blame maps, and one step's stations with engine and differences side by side.
std::string explain_text(const Subject& subject, const Dissection& d, const SentenceTrace& trace,
                         const translator::TerminalStyle& style);

/// The model's choice: the likeliest word that may be said, of logits of all words.
int32_t choice(const gradus::Tensor& logits);

}  // namespace lens
