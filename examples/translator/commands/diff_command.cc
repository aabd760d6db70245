#include <fmt/core.h>

#include <common/json_text.h>
#include <common/utf8.h>
#include <translator/commands/commands.h>
#include <translator/commands/diff.h>
#include <translator/model/files.h>

namespace translator {
namespace {

std::string table_of_scores(const Diff& d) {
  std::string out = fmt::format("{:<9} {:>16} {:>16} {:>8} {:>8}\n", "", "A", "B", "B - A", "p");
  auto cell = [](const Score& s) {
    return s.interval ? fmt::format("{:.2f} ± {:.2f}", s.value, s.interval->half_width)
                      : fmt::format("{:.2f}", s.value);
  };
  for (const PairedScores& s : d.scores)
    out += fmt::format("{:<9} {:>16} {:>16} {:>+8.2f} {:>8}\n", s.a.name, cell(s.a), cell(s.b),
                       s.b.value - s.a.value, s.p ? fmt::format("{:.4f}", *s.p) : "equal");
  for (const PairedScores& s : d.scores) out += fmt::format("{:<9} {}\n", s.a.name, s.a.signature);
  return out;
}

std::string table_by_length(const Diff& d) {
  std::string out = fmt::format("{:<13} {:>9} {:>13} {:>13} {:>13} {:>6} {:>6}\n", "source words",
                                "sentences", d.scores[0].a.name + " A, B", d.scores[1].a.name + " A, B",
                                d.scores[2].a.name + " A, B", "won", "lost");
  for (const DiffPart& p : d.by_length) {
    out += fmt::format("{:<13} {:>9}", p.source_words, p.won + p.lost + p.tied);
    for (size_t m = 0; m < p.a.size(); ++m) out += fmt::format("  {:>5.1f}, {:>5.1f}", p.a[m], p.b[m]);
    out += fmt::format(" {:>6} {:>6}\n", p.won, p.lost);
  }
  return out;
}

std::string table_by_frequency(const Diff& d) {
  std::string out = fmt::format("{:<13} {:>9} {:>8} {:>8}\n", "seen", "words", "F1 A", "F1 B");
  for (const DiffWords& w : d.by_frequency)
    out += fmt::format("{:<13} {:>9} {:>8.1f} {:>8.1f}\n", w.frequency, w.words, w.f_a, w.f_b);
  return out;
}

std::string sentence_of(const Diff& d, size_t i) {
  const auto [a, b] = d.by_sentence[i];
  return fmt::format("{:+.1f}  {}\n       =  {}\n       A  {}\n       B  {}\n", b - a, d.pairs[i].source_text,
                     d.references[i][0], d.a_says[i], d.b_says[i]);
}

std::string text_of(const Diff& d) {
  constexpr size_t kShown = 5;  // sentences each way
  std::string out =
      fmt::format("A: {}\nB: {}\n{} sentence{}\n\n{}", d.a, d.b, d.pairs.size(),
                  d.pairs.size() == 1 ? "" : "s", table_of_scores(d));
  out += fmt::format("\nB translates {} sentences better than A, {} worse, ", d.all.won, d.all.lost);
  out += fmt::format("{} equally well (chrF2 of each).\n\n", d.all.tied);
  out += table_by_length(d);
  out += fmt::format("\nTarget words by how often they are seen in {}\n{}",
                     d.of_training ? "the training pairs" : "the references (--train: in a training file)",
                     table_by_frequency(d));
  const std::vector<size_t> order = by_gain(d);
  auto list = [&](const std::string& title, bool lost) {
    std::string some;
    for (size_t k = 0; k < std::min(kShown, order.size()); ++k) {
      const size_t i = lost ? order[k] : order[order.size() - 1 - k];
      const double gain = d.by_sentence[i].second - d.by_sentence[i].first;
      if (lost ? gain < 0 : gain > 0) some += sentence_of(d, i);
    }
    if (!some.empty()) out += "\n" + title + "\n" + some;
  };
  list("Where B loses most (chrF2)", true);
  list("Where B wins most", false);
  return out;
}

}  // namespace

int run(DiffCommand& o) {
  apply(o.common);
  const Diff d = diff(o);
  if (o.json) {
    print_whole(json_text::dump(to_json(d)) + "\n");
  } else {
    print_whole(utf8::printable_lines(text_of(d)));
  }
  return d.bad > 0 ? 1 : 0;
}

}  // namespace translator
