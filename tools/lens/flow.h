#pragma once

#include <string>
#include <vector>

#include <gradus/nn/seq2seq.h>

#include "output.h"

namespace lens {

/// How much of a loss's gradient reaches each source word: norms of dL/dh_j, and by the way it came.
struct Flow {
  std::vector<double> full;
  std::vector<double> value, score, recurrent;  ///< with attention only
};

/// With attention: the whole target's loss, back to every annotation.
Flow flow_with(const gradus::nn::Seq2Seq& network, const std::vector<int32_t>& source,
               const std::vector<int32_t>& target);
/// Without: a network of the kind "none", whose decoder lives on the encoder's last states alone.
Flow flow_without(const gradus::nn::Seq2Seq& network, const std::vector<int32_t>& source,
                  const std::vector<int32_t>& target);
/// A network with attention whose short cut is cut: no gradient goes straight to an annotation but to the last state of
/// each direction, so that the rest must travel from state to state.
Flow flow_cut(const gradus::nn::Seq2Seq& network, const std::vector<int32_t>& source,
              const std::vector<int32_t>& target);

/// One line of the chart over several seeds: log10 |dL/dh_j| / |dL/dh_S|, S the last word.
struct FlowLine {
  std::vector<double> median, low, high;
  std::vector<double> value, score,
      recurrent;  ///< mean shares of the three norms' sum; empty without attention
};
FlowLine summarize(const std::vector<Flow>& flows);

struct FlowSetting {
  std::string cell = "gru";
  bool bidirectional = false;
  int64_t length = 30;
};
struct FlowResult {
  FlowSetting setting;
  FlowLine with, without;
  double worst_error = 0;  ///< of the gradients that were compared with finite differences
};

/// Fresh networks of `width` units, `seeds` of them, random words, a target of `steps` words.
FlowResult flow_untrained(const FlowSetting& setting, int seeds = 8, int64_t width = 16, int64_t steps = 4);
/// A trained network on random words of its vocabulary; `without`, where given, is another one, trained without
/// attention; otherwise the network's own short cut is cut.
FlowResult flow_trained(const gradus::nn::Seq2Seq& network, const gradus::nn::Seq2Seq* without,
                        int64_t length, int seeds = 8, int64_t steps = 4);

/// The chart of one result as a picture by itself.
std::string flow_svg(const FlowResult& result, const std::string& title);
/// The same as text.
std::string flow_text(const FlowResult& result, const std::string& title);
/// "1/300000 of" for a log10 of -5.5, "1.2 times as much as" for 0.08.
std::string as_fraction(double log10);
json flow_json(const std::vector<FlowResult>& results, const std::string& title, bool trained, int seeds,
               size_t show);

}  // namespace lens
