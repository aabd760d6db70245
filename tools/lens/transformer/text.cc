// The text twin of a Transformer's page.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <common/utf8.h>

#include "explain/text_parts.h"
#include "norms.h"
#include "output.h"

namespace lens::transformer {
namespace {

using gradus::Tensor;
using translator::utf8::printable;

struct Report {
  const Explained& x_;
  const translator::TerminalStyle& style_;
  const Trace& trace_ = x_.trace;
  const Sublayer& s_ = trace_.run.parts[trace_.spot.part];
  const size_t t_ = static_cast<size_t>(trace_.shown);
  const PartGradients& g_ = trace_.steps[t_].parts[trace_.spot.part];
  const int64_t row_ = row_of(trace_, trace_.shown, trace_.spot);
  const std::vector<std::string> source_ = piece_names(x_.subject.source),
                                 target_ = piece_names(x_.subject.target);
  std::string out_ = {};

  std::string run() {
    head();
    all_heads();
    future();
    if (attends(s_.part)) one_head();
    stations();
    norm_opened();
    ways();
    shares();
    identities();
    return out_;
  }

  const translator::Segmented inputs_ = inputs_of(x_.subject.target);

  // Rows of the decoder are named by the word that they must say, columns by the word that is read there.
  std::vector<std::string> rows() const { return in_decoder(s_.part) ? target_ : source_; }
  std::vector<std::string> columns() const { return piece_names(column_side()); }
  const translator::Segmented& row_side() const {
    return in_decoder(s_.part) ? x_.subject.target : x_.subject.source;
  }
  const translator::Segmented& column_side() const {
    return s_.part == Part::decoder_self ? inputs_ : x_.subject.source;
  }

  void head() {
    const auto& c = x_.d.network().config;
    out_ += fmt::format("{} (Transformer, {} + {} layers, {} units, {} heads, norm {}{})\n",
                        printable(x_.subject.name), c.num_layers, c.num_layers, c.d_model, c.num_heads,
                        c.norm_first ? "first" : "last",
                        x_.d.causal()       ? ""
                        : x_.d.as_trained() ? ", trained without the causal mask"
                                            : ", computed without the causal mask");
    out_ += about_pieces(x_.subject);
    std::vector<SaidWord> said;
    const int64_t T = trace_.run.logits.size(0), V = trace_.run.logits.size(2);
    const Tensor z = trace_.run.logits.value().reshape({T, V}), p = trace_.run.probabilities.value();
    for (int64_t t = 0; t < T; ++t) {
      const int32_t target = x_.d.target()[static_cast<size_t>(t)];
      said.push_back({choice(z.row(t)), target, p.f64()[t * V + target],
                      trace_.run.losses[static_cast<size_t>(t)].item()});
    }
    out_ += said_words(x_.subject, said);
  }

  void all_heads() {
    out_ += "\n" + paragraph(fmt::format(
                       "All heads: |dL/de|, how much the loss of \"{}\" (step {} of {}) would change a head's "
                       "scores",
                       printable(target_[t_]), t_ + 1, target_.size()));
    out_ += std::string(33, ' ');
    for (int64_t h = 0; h < x_.d.heads(); ++h) out_ += fmt::format("{:>10}", fmt::format("head {}", h + 1));
    out_ += "\n";
    for (size_t p = 0; p < trace_.run.parts.size(); ++p) {
      const Sublayer& s = trace_.run.parts[p];
      if (!attends(s.part)) continue;
      out_ += fmt::format("{:<33}", name_of(s));
      for (int64_t h = 0; h < x_.d.heads(); ++h)
        out_ += fmt::format(" {:>8.2e}{}", score_gradient(trace_, trace_.shown, {p, h}),
                            p == trace_.spot.part && h == trace_.spot.head ? "<" : " ");
      out_ += "\n";
    }
    const Spot most = strongest(trace_, trace_.shown);
    const bool largest = most.part == trace_.spot.part && most.head == trace_.spot.head;
    out_ += paragraph(fmt::format("Below: {}{}. --sublayer, --layer and --head choose.",
                                  name_of(s_, trace_.spot.head),
                                  largest ? ", where that gradient is largest" : ""));
  }

  // Gradient that comes from words after the one that is said.
  void future() {
    const double later = gradient_from_later(trace_, trace_.shown);
    if (later > 0)
      out_ += "\n" + paragraph(fmt::format(
                         "Gradient from the future: the loss of \"{}\" sends {:.3e} to the words after it. No "
                         "causal mask keeps them from being read: the answer itself is seen.",
                         printable(target_[t_]), later));
  }

  void one_head() {
    const int64_t h = trace_.spot.head, R = s_[kWeights].size(2), C = s_[kWeights].size(3);
    const Tensor alpha = head_of(s_[kWeights].value(), h), e = head_of(s_[kScores].value(), h),
                 delta = head_of(g_[kScores], h), gain = g_.gain.row(h);
    const std::vector<std::string> rows = this->rows(), columns = this->columns();
    const translator::Segmented &across = row_side(), &down = column_side();
    std::vector<std::vector<float>> weights(static_cast<size_t>(R));
    std::vector<std::vector<double>> pulls(across.words.size(), std::vector<double>(down.words.size()));
    for (int64_t i = 0; i < R * C; ++i) {
      weights[static_cast<size_t>(i / C)].push_back(static_cast<float>(alpha.f64()[i]));
      pulls[static_cast<size_t>(across.word_of[static_cast<size_t>(i / C)])]
           [static_cast<size_t>(down.word_of[static_cast<size_t>(i % C)])] -= delta.f64()[i];
    }
    out_ += "\nWeights: where each word looks\n";
    out_ += weights_map(weights, across, down, style_);
    out_ += kPulls;
    out_ += signed_map(pulls, across.words, down.words, style_);

    const std::vector<bool> seen = visible();
    const double mix = g_.mix.f64()[h * R + row_];
    out_ += "\n" + paragraph(fmt::format(
                       "The row of {}. A word gains attention when its value beats the head's mix in the "
                       "direction that lowers the loss:",
                       told(rows, static_cast<size_t>(row_), x_.subject)));
    out_ += "delta_tj = alpha_tj g . (v_j - o_t), g = dL/do_t through the head's part of W_O.\n";
    out_ += fmt::format("{:>14} {:>9} {:>9} {:>11} {:>11} {:>11}\n", token_of(x_.subject), "score", "weight",
                        "g.v_j", "g.(v_j-o_t)", "dL/de_tj");
    int64_t best = -1;
    double least = 0;
    for (int64_t j = 0; j < C; ++j) {
      const int64_t i = row_ * C + j;
      if (!seen[static_cast<size_t>(j)]) {
        out_ += fmt::format("{} {:>9}\n", padded(columns[static_cast<size_t>(j)], 14), "masked");
        continue;
      }
      if (delta.f64()[i] < least) best = j;
      least = std::min(least, delta.f64()[i]);
      out_ += fmt::format("{} {:>9.4f} {:>9} {:>+11.3e} {:>+11.3e} {:>+11.3e}\n",
                          padded(columns[static_cast<size_t>(j)], 14), e.f64()[i],
                          weight_text(alpha.f64()[i]), gain.f64()[i], gain.f64()[i] - mix, delta.f64()[i]);
    }
    if (best >= 0)
      out_ += paragraph(fmt::format(
          "{} gains most: its value is better than the mix by {:.3e}, times its weight {}.",
          told(columns, static_cast<size_t>(best), x_.subject, s_.part == Part::decoder_self ? 0 : 1),
          mix - gain.f64()[row_ * C + best], weight_text(alpha.f64()[row_ * C + best])));
  }

  std::vector<bool> visible() const {
    std::vector<bool> out(static_cast<size_t>(s_[kWeights].size(3)), true);
    const Tensor mask = x_.d.mask(s_);
    for (size_t j = 0; mask.defined() && j < out.size(); ++j) out[j] = mask.row(row_).u8()[j] != 0;
    return out;
  }

  void stations() {
    StationTables tables;
    for (const Station& station : x_.d.stations(s_)) {
      const Compared* worst = nullptr;
      int64_t count = 0;
      for (const Compared& c : trace_.checks) {
        if (c.part != trace_.spot.part || c.step != trace_.shown || c.station != station.name) continue;
        ++count;
        // The first that is no number stays.
        if (!worst || (!std::isnan(worst->error) && !(c.error <= worst->error))) worst = &c;
      }
      tables.add(station.name, station.title, s_[station.fields[0]].value(), g_.of(station));
      if (worst) tables.add_checks(station.name, count, worst->engine, worst->numeric, worst->error);
    }
    out_ += tables.text() + "Each line shows the worst of its checks.\n";
  }

  void norm_opened() {
    if (!g_.norm.defined()) return;
    const double* n = g_.norm.row(row_).f64();
    out_ += fmt::format(
        "\nLayerNorm opened, the row of \"{}\":\n"
        "dx = (dy gamma - mean(dy gamma) - xhat mean(dy gamma xhat)) / sigma\n"
        "1/sigma {:.4f}; taken away: mean(dy gamma) = {:+.3e} from every unit,\n{:+.3e} times xhat\n",
        printable(rows()[static_cast<size_t>(row_)]), n[1], n[2], n[3]);
  }

  void way_table(const std::vector<std::string>& words,
                 const std::vector<std::pair<std::string, Tensor>>& ways) {
    out_ += fmt::format("{:>14}", "word");
    for (const auto& [name, g] : ways) out_ += fmt::format(" {:>12}", name);
    out_ += "\n";
    for (size_t j = 0; j < words.size(); ++j) {
      out_ += padded(words[j], 14);
      for (const auto& [name, g] : ways)
        out_ += fmt::format(" {:>12.2e}", norm(g.row(static_cast<int64_t>(j))));
      out_ += "\n";
    }
  }

  void ways() {
    out_ += "\n" + paragraph(fmt::format(
                       "Ways from the loss of \"{}\" through this part: |dL/dx_j| by the way it came",
                       printable(target_[t_])));
    if (!attends(s_.part))
      return way_table(rows(), {{"through", g_[kToQuery]}, {"residual", g_[kResidual]}, {"whole", g_[kX]}});
    if (s_.part != Part::cross)
      return way_table(rows(), {{"value", g_[kToValue]},
                                {"key", g_[kToKey]},
                                {"query", g_[kToQuery]},
                                {"residual", g_[kResidual]},
                                {"whole", g_[kX]}});
    const Tensor& memory = trace_.steps[t_].memory;
    Tensor other = memory.clone();
    for (int64_t i = 0; i < other.numel(); ++i) other.f64()[i] -= g_[kToKey].f64()[i] + g_[kToValue].f64()[i];
    way_table(source_,
              {{"value", g_[kToValue]}, {"key", g_[kToKey]}, {"other layers", other}, {"whole", memory}});
    out_ += "and to the target words:\n";
    way_table(rows(), {{"query", g_[kToQuery]}, {"residual", g_[kResidual]}, {"whole", g_[kX]}});
  }

  void shares() {
    const Shares s = shares_of(trace_, trace_.shown);
    out_ += "\n" + paragraph(fmt::format(
                       "What is often drawn in place of the gradient, for \"{}\": shares of the source words",
                       printable(target_[t_])));
    out_ += fmt::format("{:>14} {:>10} {:>12} {:>10} {:>12} {:>12}\n", "word", "rollout", "weight*grad",
                        "gradient", "rollout off", "w*grad off");
    for (size_t j = 0; j < source_.size(); ++j)
      out_ += fmt::format("{} {:>10.3f} {:>12.3f} {:>10.3f} {:>+12.3f} {:>+12.3f}\n", padded(source_[j], 14),
                          s.rollout[j], s.weighted[j], s.gradient[j], s.rollout[j] - s.gradient[j],
                          s.weighted[j] - s.gradient[j]);
  }

  void identities() {
    out_ += "\n" + paragraph(fmt::format(
                       "All steps, parts and heads: {} checks, worst relative error {:.1e}. The ways add up to "
                       "the whole gradient within {:.1e}; sum_j dL/de_ij is 0 within {:.1e}; dL/de_ij is "
                       "alpha_ij g.(v_j - o_i) within {:.1e}; LayerNorm's three terms add up within {:.1e}.",
                       trace_.checks.size(), trace_.worst(), trace_.way_residual, trace_.score_sum,
                       trace_.identity_residual, trace_.norm_residual));
  }
};

}  // namespace

std::string text_of(const Explained& x, const translator::TerminalStyle& style) {
  return Report{x, style}.run();
}

}  // namespace lens::transformer
