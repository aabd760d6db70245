#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <gradus/nn/seq2seq.h>
#include <gradus/nn/transformer_seq2seq.h>

#include "explain/explain.h"

namespace lens {

/// With: attention, every annotation in the decoder's reach. Without: a network of the kind "none", whose
/// decoder lives on the encoder's last states. Cut: a network with attention whose short cut is stopped: no
/// gradient goes straight to an annotation but to the last state of each direction, so that the rest must
/// travel from state to state.
enum class FlowMode { with, without, cut };

/// dL/dh_j for all source words, [S, D] each, where D holds the states of both directions.
struct FlowGradients {
  /// dL_t/dh_j of each target word
  std::vector<gradus::Tensor> steps;
  /// With: the whole target's, by the way it came; they add up to it. A Transformer has no recurrent way.
  gradus::Tensor value, score, recurrent;
  /// L_t
  std::vector<double> losses;
  /// the steps' sum
  gradus::Tensor whole() const;
};
/// target ends with </s>. Needs a network in double precision.
FlowGradients flow_gradients(const gradus::nn::Seq2Seq& network, FlowMode mode,
                             const std::vector<int32_t>& source, const std::vector<int32_t>& target);

/// The same by word: of a target word's pieces the steps are added, and of a source word's the rows;
/// `*_word_of` as in translator::Segmented, </s> among them.
FlowGradients by_words(const FlowGradients& pieces, const std::vector<int32_t>& source_word_of,
                       const std::vector<int32_t>& target_word_of);

/// The same as lengths |.|, a number a word.
struct Flow {
  std::vector<double> full;
  /// with attention only
  std::vector<double> value, score, recurrent;
  /// [T][S]
  std::vector<std::vector<double>> steps;
};
Flow lengths_of(const FlowGradients& gradients);

/// What finite differences say about such lengths. The slope of the loss along a gradient is its length:
/// every state is moved along its own gradient, and everything after it is computed anew, by the library's
/// own decoder.
struct FlowChecks {
  /// lengths compared
  int64_t count = 0;
  /// Of them, those too small for differences in double precision to tell to six digits, and compared with what
  /// is: 10^-7 of the loss, or 5 10^-10 of it over the step where a kink forces a smaller one.
  int64_t small = 0;
  /// Not among them: those of a relu whose kinks are so near that differences of no step tell six digits.
  int64_t undecided = 0;
  /// |a - b| / max(|a|, |b|, what is too small)
  double worst = 0;
  void add(const FlowChecks& other);
};
/// Of `words` (from 0): dL_t/dh_j of every step, and of the whole target full, value, score and recurrent.
FlowChecks check_flow(const gradus::nn::Seq2Seq& network, FlowMode mode, const std::vector<int32_t>& source,
                      const std::vector<int32_t>& target, const FlowGradients& gradients,
                      const std::vector<size_t>& words);

/// At most so many of 0 .. count - 1, spread evenly, the first and the last among them.
std::vector<size_t> spread(size_t count, size_t most);

/// One line of the chart over several seeds: log10 |dL/dh_j| / |dL/dh_S|, S the last word.
struct FlowLine {
  std::vector<double> median, low, high;
  /// mean shares of the three norms' sum; empty without
  std::vector<double> value, score, recurrent;
  /// [T][S] median of log10 |dL_t/dh_j|
  std::vector<std::vector<double>> map;
};
FlowLine summarize(const std::vector<Flow>& flows);

/// `init` is one of flow_inits().
/// @throws gradus::Error for another name.
void start_anew(gradus::nn::Seq2Seq& network, const std::string& init, gradus::Rng& rng);
/// A network of 16 units over 24 words, bahdanau or none.
gradus::nn::Seq2SeqConfig flow_config(const std::string& cell, bool bidirectional);

struct FlowAsked {
  int seeds = 8;
  /// target words
  int64_t steps = 4;
  /// of fresh networks
  std::string init = "lecun";
  /// check every word of every seed; otherwise eight words of the first
  bool thorough = false;
};
struct FlowResult {
  /// "fresh" or "trained"
  std::string weights = "fresh";
  /// "gru", "lstm", "rnn" or "transformer"
  std::string cell = "gru";
  bool bidirectional = false;
  int64_t length = 30;
  /// words; empty where they were drawn at random
  std::vector<std::string> source = {}, target = {};
  FlowLine with = {}, without = {};
  FlowChecks checks = {};
};

/// Fresh networks of this shape, one a seed, on random words; for each with attention another one without.
FlowResult flow_fresh(const gradus::nn::Seq2SeqConfig& config, int64_t length, const FlowAsked& asked = {});
/// A trained network on random words of its vocabulary; `without`, where given, is another one, trained
/// without attention; otherwise the network's own short cut is cut.
FlowResult flow_trained(const gradus::nn::Seq2Seq& network, const gradus::nn::Seq2Seq* without,
                        int64_t length, const FlowAsked& asked = {});
/// The same on a sentence, by its words.
FlowResult flow_sentence(const Subject& subject, const gradus::nn::Seq2Seq* without);

/// Of a Transformer, which has no recurrence that an attention could be a short cut of: its result's `with` is
/// at the encoder's states, which every layer of the decoder attends to, and `without` at the words' vectors
/// that the encoder reads. Needs a network in double precision.
struct TransformerFlow {
  FlowGradients states, words;
};
TransformerFlow transformer_gradients(const gradus::nn::TransformerSeq2Seq& network,
                                      const std::vector<int32_t>& source, const std::vector<int32_t>& target);
/// Of `words` (from 0): at the states of every step and of the whole, value and score; at the words of every
/// step and of the whole.
FlowChecks check_transformer(const gradus::nn::TransformerSeq2Seq& network,
                             const std::vector<int32_t>& source, const std::vector<int32_t>& target,
                             const TransformerFlow& gradients, const std::vector<size_t>& words);
/// `fresh`: networks of its shape, one a seed, on random words; otherwise itself on them.
FlowResult transformer_random(const gradus::nn::TransformerSeq2Seq& network, bool fresh, int64_t length,
                              const FlowAsked& asked);
FlowResult transformer_sentence(const Subject& subject);

/// From the least to the largest of finite numbers.
struct FlowRange {
  double low = HUGE_VAL, high = -HUGE_VAL;
  void take(const std::vector<double>& all);
};
/// A row of blocks: one height a number, on a scale from low to high.
std::string blocks(const std::vector<double>& row, const FlowRange& range);
/// Of both maps of steps and words.
FlowRange range_of_maps(const FlowResult& result);

/// The words on a page or in a terminal that say what was measured.
struct FlowTitles {
  std::string title = {}, setup = {};
  /// name of the trained one; empty: none
  std::string model = {};
  /// what its line "without" is
  std::string without = "no attention";
  /// its lines are at the encoder's states and at the words
  bool transformer = false;
  /// it is another model
  bool versus = false;
  /// of a model of pieces: in its sentence "added" or "shown"
  std::string pieces = {};
  int seeds = 8;
};
/// What a result's columns are: "word" or "piece".
const char* unit_of(const FlowResult& result, const FlowTitles& titles);
/// How fresh networks were made, in words.
std::string flow_setup(const gradus::nn::Seq2SeqConfig& config, const FlowAsked& asked);
std::string transformer_setup(const gradus::nn::TransformerConfig& config, const FlowAsked& asked);

/// The chart of one result as a picture by itself.
std::string flow_svg(const FlowResult& result, const FlowTitles& titles);
/// The same as text, with the map of steps and words.
std::string flow_text(const FlowResult& result, const FlowTitles& titles);
/// "-5.5", and never "-0.0".
std::string tenths(double x);
/// "10^-5.5", and "0" for the logarithm of 0.
std::string power(double log10);
/// Shares of a whole in percents without fractions, which add up to 100: what rounding down leaves over goes to
/// the largest fractions.
std::vector<double> whole_percents(const std::vector<double>& shares);
/// "1/300000 of" for a log10 of -5.5, "1.2 times as much as" for 0.08.
std::string as_fraction(double log10);
json flow_json(const std::vector<FlowResult>& results, const FlowTitles& titles, size_t show);

}  // namespace lens
