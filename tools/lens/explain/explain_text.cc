// The text twin of the page.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <common/heat_map.h>
#include <common/utf8.h>
#include <gradus/numeric.h>

#include "explain.h"
#include "norms.h"
#include <translator/text/word_picture.h>

namespace lens {
namespace {

using gradus::Tensor;
using translator::utf8::printable;

std::string padded(const std::string& word, int width) {
  std::string fitted = translator::utf8::fit(printable(word), width);
  int space = std::max(0, width - translator::utf8::display_width(fitted));
  return std::string(static_cast<size_t>(space), ' ') + fitted;
}

// 24-bit teal for what gains, orange for what loses.
std::string signed_cell(double x, double scale, bool colors) {
  std::string text = x == 0 ? "     0" : fmt::format("{:+6.3f}", x);
  if (std::abs(x) < 5e-4 && x != 0) text = x > 0 ? "    +." : "    -.";
  if (!colors || scale <= 0) return text;
  double k = std::sqrt(std::min(1.0, std::abs(x) / scale));
  auto mix = [k](int to) { return static_cast<int>(128 + k * (to - 128)); };
  return x >= 0 ? fmt::format("\x1b[38;2;{};{};{}m{}\x1b[0m", mix(20), mix(184), mix(166), text)
                : fmt::format("\x1b[38;2;{};{};{}m{}\x1b[0m", mix(240), mix(130), mix(20), text);
}

struct Report {
  const Subject& subject_;
  const Dissection& d_;
  const SentenceTrace& trace_;
  const translator::TerminalStyle& style_;
  const size_t t_ = static_cast<size_t>(trace_.shown);
  const std::vector<std::string> source_ = piece_names(subject_.source),
                                 target_ = piece_names(subject_.target);
  std::string out_ = {};

  std::string run() {
    head();
    out_ += "\nWeights: where each word looks\n";
    weights();
    out_ +=
        "\nScore pull, -dL/de: + would get more attention by a step of gradient descent, - less; "
        "+. and -. are below 0.0005\n";
    pulls();
    one_step();
    return out_;
  }

  bool has_colors() const { return style_.color != translator::Color::none; }

  void head() {
    out_ += fmt::format("{} ({}, {} order, {} cells)\n", printable(subject_.name),
                        subject_.model.config.network.attention, d_.luong_order() ? "Luong's" : "Bahdanau's",
                        gradus::nn::cell_name(subject_.model.config.network.rnn.cell));
    if (subject_.in_words())
      out_ += translator::utf8::wrapped(
          "The model reads and writes pieces of words, a piece a step. Maps show words: columns of pieces are "
          "added, rows averaged, gradients summed. --pieces shows pieces.",
          100);
    for (const auto* side : {&subject_.source, &subject_.target})  // in narrow columns the mark has no room
      for (const std::string& word : side->words)
        if (word.ends_with(" <unk>")) out_ += fmt::format("unknown: {}\n", printable(word));
    out_ += fmt::format("{:<24}{:<24}{:>9}{:>9}\n", subject_.has_reference ? "should say" : "says",
                        "would choose", "p", "loss");
    for (size_t t = 0; t < trace_.steps.size(); ++t) {
      const Step& s = trace_.steps[t];
      int32_t said = choice(s);
      out_ += fmt::format("{:<24}{:<24}{:>9.4f}{:>9.4f}{}\n", target_[t], subject_.model.target.token(said),
                          s.probabilities.value().f64()[s.target], s.loss.item(),
                          said == s.target ? "" : "  wrong");
    }
  }

  void weights() {
    const translator::Segmented &source = subject_.source, &target = subject_.target;
    std::vector<std::vector<float>> rows;
    for (const Step& s : trace_.steps) rows.push_back(mean_weights(s));
    std::vector<float> w;
    for (const auto& row : translator::weights_of_words(rows, target.word_of, source.word_of))
      w.insert(w.end(), row.begin(), row.end());
    translator::HeatMapOptions o;
    o.width = style_.width;
    if (has_colors()) o.color = translator::Color::truecolor;
    out_ += translator::draw_heat_map(
        {static_cast<int64_t>(target.words.size()), static_cast<int64_t>(source.words.size()), w},
        source.words, target.words, o);
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
    double scale = 0;  // the largest number by size
    for (const auto& row : rows)
      for (double x : row)
        if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
    size_t columns = static_cast<size_t>(std::max(1, (style_.width - 13) / 7));
    for (size_t begin = 0; begin < source.words.size(); begin += columns) {
      size_t end = std::min(begin + columns, source.words.size());
      out_ += std::string(12, ' ');
      for (size_t j = begin; j < end; ++j) out_ += " " + padded(source.words[j], 6);
      out_ += "\n";
      for (size_t t = 0; t < rows.size(); ++t) {
        out_ += padded(target.words[t], 12);
        for (size_t j = begin; j < end; ++j) out_ += " " + signed_cell(rows[t][j], scale, has_colors());
        out_ += "\n";
      }
    }
  }

  void one_step() {
    const StepGradients& g = trace_.gradients[t_];
    const Step& s = trace_.steps[t_];
    out_ += fmt::format("\nStep {} of {}: \"{}\" after \"{}\", loss {:.4f}\n", t_ + 1, trace_.steps.size(),
                        target_[t_], t_ == 0 ? "<s>" : target_[t_ - 1], s.loss.item());
    out_ +=
        "A source word gains attention when its annotation beats the current mix in the direction that lowers "
        "the\nloss: dL/de_j = alpha_j g.(h_j - c), g = dL/dc. |dL/dh_j| by the way the gradient came:\n";
    Tensor rest = zip(g.neighbours, g.earlier, g.start, [](auto a, auto b, auto c) { return a + b + c; });
    for (int64_t m = 0; m < d_.anatomy().heads; ++m) {
      if (d_.anatomy().heads > 1) out_ += fmt::format("Head {}\n", m + 1);
      out_ += fmt::format("{:>14} {:>9} {:>9} {:>11} {:>11} {:>11} | {:>9} {:>9} {:>9}\n", "source word",
                          "score", "weight", "g.h_j", "g.(h_j-c)", "dL/de_j", "value", "score", "recurrent");
      double least = 0;
      int64_t best = -1, S = static_cast<int64_t>(source_.size());
      Tensor e = g.at("e");
      for (int64_t j = 0; j < S; ++j) {
        int64_t i = m * S + j;
        double pull = e.defined() ? e.f64()[i] : 0;
        if (pull < least) best = j;
        least = std::min(least, pull);
        out_ += fmt::format(
            "{} {:>9.4f} {:>9.4f} {:>+11.3e} {:>+11.3e} {:>+11.3e} | {:>9.2e} {:>9} {:>9.2e}\n",
            padded(source_[static_cast<size_t>(j)], 14), s.attending.scores.value().f64()[i],
            s.attending.weights.value().f64()[i], g.gain.f64()[i], g.gain.f64()[i] - g.mix.f64()[m], pull,
            norm(g.value.row(j)), g.score_path ? fmt::format("{:.2e}", norm(g.score.row(j))) : "none",
            norm(rest.row(j)));
      }
      if (best >= 0)
        out_ += fmt::format(
            "\"{}\" gains most: its annotation is better than the mix by {:.3e}, times its weight {:.4f}.\n",
            source_[static_cast<size_t>(best)], g.mix.f64()[m] - g.gain.f64()[m * S + best],
            s.attending.weights.value().f64()[m * S + best]);
    }
    stations(g, s);
  }

  void stations(const StepGradients& g, const Step& s) {
    out_ += fmt::format("\n{:<27} {:>12} {:>11} {:>11} {:>7} {:>14} {:>14} {:>9}\n", "station", "shape",
                        "|value|", "|gradient|", "checks", "engine", "differences", "error");
    for (const std::string& name : station_names(d_)) {
      const gradus::Var& x = station(s, name);
      if (!x.defined()) continue;
      Tensor grad = name == "h" ? g.full : g.at(name);
      const Compared* worst = nullptr;
      int count = 0;
      for (const Compared& c : trace_.checks) {
        if (c.step != s.t || c.station != name) continue;
        ++count;
        if (!worst || !(c.error <= worst->error)) worst = &c;
      }
      out_ += fmt::format("{:<27} {:>12} {:>11.4e} {:>11}",
                          name + "  " + station_title(name, d_.luong_order()), x.shape().str(),
                          norm(x.value()), grad.defined() ? fmt::format("{:.4e}", norm(grad)) : "none");
      if (worst)
        out_ += fmt::format(" {:>7} {:>+14.6e} {:>+14.6e} {:>9.1e}", count, worst->engine, worst->numeric,
                            worst->error);
      out_ += "\n";
    }
    out_ += fmt::format(
        "Each line shows its worst check. All steps: {} checks, worst relative error {:.1e}.\n"
        "The paths add up to the whole gradient within {:.1e}; sum of dL/de_j is 0 within {:.1e}.\n",
        trace_.checks.size(), trace_.worst(), trace_.path_residual, trace_.score_sum);
  }
};

}  // namespace

std::string explain_text(const Subject& subject, const Dissection& d, const SentenceTrace& trace,
                         const translator::TerminalStyle& style) {
  return Report{subject, d, trace, style}.run();
}

}  // namespace lens
