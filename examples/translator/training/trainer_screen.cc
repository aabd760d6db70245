#include <fmt/core.h>

#include <common/progress.h>
#include <common/utf8.h>
#include <translator/training/live_view.h>
#include <translator/training/trainer.h>

// What a run shows of its validations.

namespace translator {

void Trainer::show(Progress& bar, const RunLog::Details& d) const {
  TerminalStyle style = terminal_style(2);
  std::string text = describe(validations_.back(), screen_width(style));
  if (!style.cursor) {
    for (const RunLog::Sample& s : d.samples)  // of an untrained model they are long, and say nothing
      text += "\n" + utf8::fit(fmt::format("          {}  ->  {}", utf8::printable(s.source),
                                           utf8::printable(s.output)),
                               screen_width(style));
    bar.print(text);
    return;
  }
  bar.set_panel("");  // its lines would be drawn twice
  bar.print(text);
  bar.set_panel(draw_live_view(validations_, d, style));
}

// A step whose gradient is not finite is skipped: weights that make all of them so stay as they are for ever.
void Trainer::look_for_divergence(Progress& bar) {
  const Validation& v = validations_.back();
  const bool trained = std::isfinite(v.train_loss);
  const bool finite = valid_.empty() ? trained : std::isfinite(v.evaluation.nll);
  diverged_ = !finite_ && !finite && !trained;
  if (finite_ && !finite && !options_.silent() && options_.title.empty())
    bar.print(fmt::format("The loss is not finite. {}", kDivergedAdvice));
  finite_ = finite;
}

// One line; what a narrow terminal has no room for is left out, the least telling first.
std::string Trainer::describe(const Validation& v, int width) const {
  const Evaluation& e = v.evaluation;
  enum { kAlways, kLast, kThen, kFirst };  // in which order parts go
  std::vector<std::pair<int, std::string>> parts = {
      {kAlways, fmt::format("{:>8}  epoch {:<3} ", format_duration(v.seconds), v.epoch)},
      {kThen, fmt::format("step {:<6} ", v.step)},
      {valid_.empty() ? kAlways : kThen, fmt::format("train {:.3f}  ", v.train_loss)}};
  if (!valid_.empty()) {
    parts.emplace_back(kAlways, fmt::format("valid {:.3f}  ", e.nll));
    parts.emplace_back(kFirst, fmt::format("perplexity {:<7.2f} ", e.perplexity));
    parts.emplace_back(kLast, fmt::format("BLEU {:5.1f}  ", e.bleu.score));
    parts.emplace_back(kLast, fmt::format("exact {:5.1f} %  ", 100 * e.exact_match));
    if (options_.metric == "chrf") parts.emplace_back(kThen, fmt::format("chrF {:5.1f}  ", v.score));
  }
  parts.emplace_back(kFirst, format_count(v.tokens_per_second) + "/s");
  if (v.best && !valid_.empty()) parts.emplace_back(kAlways, "  *");
  for (int kept = kFirst;; --kept) {
    std::string text;
    for (const auto& [order, part] : parts)
      if (order <= kept) text += part;
    if (kept == kAlways || static_cast<int>(text.size()) < width) return text;
  }
}

}  // namespace translator
