// The text twin of the page.

#include <fmt/core.h>

#include <algorithm>

#include <common/utf8.h>
#include <gradus/numeric.h>

#include "explain.h"
#include "norms.h"
#include "text_parts.h"

namespace lens {
namespace {

using gradus::Tensor;
using translator::utf8::printable;

struct Report {
  const Subject& subject_;
  const Dissection& d_;
  const SentenceTrace& trace_;
  const translator::TerminalStyle& style_;
  const size_t t_ = static_cast<size_t>(trace_.shown);
  const std::vector<std::string> source_ = piece_names(subject_.source),
                                 target_ = piece_names(subject_.target);
  const bool scores_learn_ =
      std::any_of(trace_.gradients.begin(), trace_.gradients.end(),
                  [](const StepGradients& g) { return g.at("e").defined(); });
  std::string out_ = {};

  std::string run() {
    head();
    out_ += "\nWeights: where each word looks\n";
    weights();
    if (scores_learn_) {
      out_ += kPulls;
      pulls();
    } else {
      out_ += "\n" + paragraph("No score pull: nothing that is learned leads to the scores, and no gradient "
                               "arrives there.");
    }
    one_step();
    return out_;
  }

  void head() {
    out_ += fmt::format("{} ({}, {} order, {} cells)\n", printable(subject_.name),
                        subject_.model.config.network.attention, d_.luong_order() ? "Luong's" : "Bahdanau's",
                        gradus::nn::cell_name(subject_.model.config.network.rnn.cell));
    out_ += about_pieces(subject_);
    std::vector<SaidWord> said;
    for (const Step& s : trace_.steps)
      said.push_back(
          {choice(s.logits.value()), s.target, s.probabilities.value().f64()[s.target], s.loss.item()});
    out_ += said_words(subject_, said);
  }

  void weights() {
    std::vector<std::vector<float>> rows;
    for (const Step& s : trace_.steps) rows.push_back(mean_weights(s));
    out_ += weights_map(rows, subject_.target, subject_.source, style_);
  }

  // Those of all heads, and of all pieces of a word with those of another, added.
  void pulls() {
    const translator::Segmented &source = subject_.source, &target = subject_.target;
    std::vector<std::vector<double>> rows(target.words.size(), std::vector<double>(source.words.size()));
    for (size_t t = 0; t < trace_.steps.size(); ++t) {
      Tensor e = trace_.gradients[t].at("e");
      std::vector<double>& row = rows[static_cast<size_t>(target.word_of[t])];
      for (int64_t i = 0; e.defined() && i < e.numel(); ++i)
        row[static_cast<size_t>(source.word_of[static_cast<size_t>(i % e.size(1))])] -= e.f64()[i];
    }
    out_ += signed_map(rows, target.words, source.words, style_);
  }

  void one_step() {
    const StepGradients& g = trace_.gradients[t_];
    const Step& s = trace_.steps[t_];
    out_ += fmt::format("\nStep {} of {}: \"{}\" after \"{}\", loss {:.4f}\n", t_ + 1, trace_.steps.size(),
                        printable(target_[t_]), t_ == 0 ? "<s>" : printable(target_[t_ - 1]), s.loss.item());
    // Of several heads c is what W_o makes of all mixes, and a word's part in it is W_o W_v h.
    const bool several = d_.anatomy().heads > 1;
    const double temperature = d_.anatomy().temperature();
    const bool cooled = temperature != 1;
    out_ += fmt::format(
        "A source word gains attention when its annotation beats the current mix in the\ndirection that lowers "
        "the loss:\ndL/de_j = alpha_j g.({}){}, g = dL/dc{}.\n",
        several ? "v_j - mix" : "h_j - c", cooled ? fmt::format(" / {:g}", temperature) : "",
        several ? ",\nv_j = W_o W_v h_j, mix = sum_j alpha_j v_j, of each head" : "");
    const std::string source = fmt::format("source {}", token_of(subject_));
    for (int64_t m = 0; m < d_.anatomy().heads; ++m) {
      if (d_.anatomy().heads > 1) out_ += fmt::format("Head {}\n", m + 1);
      out_ += fmt::format("{:>14} {:>9} {:>9} {:>11} {:>11} {:>11}\n", source, "score", "weight",
                          several ? "g.v_j" : "g.h_j", several ? "g.(v_j-mix)" : "g.(h_j-c)", "dL/de_j");
      double least = 0;
      int64_t best = -1, S = static_cast<int64_t>(source_.size());
      Tensor e = g.at("e");
      for (int64_t j = 0; j < S; ++j) {
        int64_t i = m * S + j;
        double pull = e.defined() ? e.f64()[i] : 0;
        if (pull < least) best = j;
        least = std::min(least, pull);
        out_ += fmt::format("{} {:>9.4f} {:>9} {:>+11.3e} {:>+11.3e} {:>11}\n",
                            padded(source_[static_cast<size_t>(j)], 14), s.attending.scores.value().f64()[i],
                            weight_text(s.attending.weights.value().f64()[i]), g.gain.f64()[i],
                            g.gain.f64()[i] - g.mix.f64()[m],
                            e.defined() ? fmt::format("{:+.3e}", pull) : "none");
      }
      if (best >= 0)
        out_ += paragraph(fmt::format(
            "{} gains most: its annotation is better than the mix by {:.3e}, times its weight {}{}.",
            told(source_, static_cast<size_t>(best), subject_),
            g.mix.f64()[m] - g.gain.f64()[m * S + best],
            weight_text(s.attending.weights.value().f64()[m * S + best]),
            cooled ? fmt::format(", divided by the temperature {:g}", temperature) : ""));
    }
    out_ += "|dL/dh_j| by the way the gradient came:\n";
    out_ += fmt::format("{:>14} {:>9} {:>9} {:>9}\n", source, "value", "score", "recurrent");
    Tensor rest = zip(g.neighbours, g.earlier, g.start, [](auto a, auto b, auto c) { return a + b + c; });
    for (size_t j = 0; j < source_.size(); ++j) {
      const auto row = static_cast<int64_t>(j);
      out_ += fmt::format("{} {:>9.2e} {:>9} {:>9.2e}\n", padded(source_[j], 14), norm(g.value.row(row)),
                          g.score_path ? fmt::format("{:.2e}", norm(g.score.row(row))) : "none",
                          norm(rest.row(row)));
    }
    stations(g, s);
  }

  void stations(const StepGradients& g, const Step& s) {
    StationTables tables;
    for (const std::string& name : station_names(d_)) {
      const gradus::Var& x = station(s, name);
      if (!x.defined()) continue;
      const auto [count, worst] = checks_of(trace_, s.t, name);
      tables.add(name, station_title(name, d_.luong_order()), x.value(), name == "h" ? g.full : g.at(name));
      if (worst) tables.add_checks(name, count, worst->engine, worst->numeric, worst->error);
    }
    out_ += tables.text();
    out_ += paragraph(fmt::format(
        "Each line shows the worst of its checks. All steps: {} checks, worst relative error {:.1e}. "
        "The paths add up to the whole gradient within {:.1e}{}.",
        trace_.checks.size(), trace_.worst(), trace_.path_residual,
        scores_learn_ ? fmt::format("; sum of dL/de_j is 0 within {:.1e}", trace_.score_sum) : ""));
  }
};

}  // namespace

std::string explain_text(const Subject& subject, const Dissection& d, const SentenceTrace& trace,
                         const translator::TerminalStyle& style) {
  return Report{subject, d, trace, style}.run();
}

}  // namespace lens
