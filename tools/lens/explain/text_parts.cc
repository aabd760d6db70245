#include "text_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <common/heat_map.h>
#include <common/utf8.h>
#include <translator/text/word_picture.h>

#include "norms.h"

namespace lens {
namespace {

using translator::utf8::printable;

bool has_colors(const translator::TerminalStyle& style) { return style.color != translator::Color::none; }

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

// The name of a word at the left of 24 columns, cut where it is longer.
std::string cell_of(const std::string& word) {
  return translator::utf8::pad_right(translator::utf8::fit(printable(word), 23), 24);
}

}  // namespace

std::string paragraph(const std::string& text) { return translator::utf8::wrapped(text, 80); }

std::string padded(const std::string& word, int width) {
  return translator::utf8::pad_left(translator::utf8::fit(printable(word), width), width);
}

std::string signed_map(const std::vector<std::vector<double>>& rows,
                       const std::vector<std::string>& row_names,
                       const std::vector<std::string>& column_names, const translator::TerminalStyle& style) {
  double scale = 0;  // the largest number by size
  for (const auto& row : rows)
    for (double x : row)
      if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
  std::string out;
  size_t columns = static_cast<size_t>(std::max(1, (style.width - 13) / 7));
  for (size_t begin = 0; begin < column_names.size(); begin += columns) {
    size_t end = std::min(begin + columns, column_names.size());
    out += std::string(12, ' ');
    for (size_t j = begin; j < end; ++j) out += " " + padded(column_names[j], 6);
    out += "\n";
    for (size_t t = 0; t < rows.size(); ++t) {
      out += padded(row_names[t], 12);
      for (size_t j = begin; j < end; ++j) out += " " + signed_cell(rows[t][j], scale, has_colors(style));
      out += "\n";
    }
  }
  return out;
}

std::string about_pieces(const Subject& subject) {
  if (!subject.model.reads.subwords()) return "";
  std::string out =
      "The model reads and writes pieces of words, a piece a step; ▁ is the space before a word.";
  if (subject.in_words())
    out +=
        " Maps show words: columns of pieces are added, rows averaged, gradients summed. "
        "--pieces shows pieces.";
  return paragraph(out);
}

std::string weight_text(double weight) {
  return weight != 0 && weight < 1e-3 ? fmt::format("{:.2e}", weight) : fmt::format("{:.4f}", weight);
}

const char* token_of(const Subject& subject) { return subject.model.reads.subwords() ? "piece" : "word"; }

std::string told(const std::vector<std::string>& names, size_t i, const Subject& subject, size_t first) {
  std::string out = fmt::format("\"{}\"", printable(names[i]));
  if (std::count(names.begin(), names.end(), names[i]) > 1)
    out += fmt::format(" ({} {})", token_of(subject), i + first);
  return out;
}

std::string said_words(const Subject& subject, const std::vector<SaidWord>& words) {
  std::string out;
  std::set<std::string> unknown;  // a name is on both sides, and once in the list
  for (const auto* side : {&subject.source, &subject.target})  // in narrow columns the mark has no room
    for (const std::string& word : side->words)
      if (word.ends_with(" <unk>") && unknown.insert(word).second)
        out += fmt::format("unknown: {}\n", printable(word));
  const std::vector<std::string> names = piece_names(subject.target);
  out += fmt::format("{:<24}{:<24}{:>9}{:>9}\n", subject.has_reference ? "should say" : "says",
                     "would choose", "p", "loss");
  for (size_t t = 0; t < words.size(); ++t)
    out += fmt::format("{}{}{:>9.4f}{:>9.4f}{}\n", cell_of(names[t]),
                       cell_of(subject.model.target.token(words[t].choice)), words[t].p, words[t].loss,
                       words[t].choice == words[t].target ? "" : "  wrong");
  return out;
}

void StationTables::add(const std::string& name, const std::string& title, const gradus::Tensor& value,
                        const gradus::Tensor& gradient) {
  sizes_ += fmt::format("{:<38} {:>12} {:>10.3e} {:>10}\n", name + "  " + title, value.shape().str(),
                        norm(value), gradient.defined() ? fmt::format("{:.3e}", norm(gradient)) : "none");
}

void StationTables::add_checks(const std::string& name, int64_t count, double engine, double differences,
                               double error) {
  checks_ += fmt::format("{:<7} {:>6} {:>+14.6e} {:>+14.6e} {:>8.1e}\n", name, count, engine, differences,
                         error);
}

std::string StationTables::text() const {
  return fmt::format("\n{:<38} {:>12} {:>10} {:>10}\n", "station", "shape", "|value|", "|gradient|") + sizes_ +
         fmt::format("\n{:<7} {:>6} {:>14} {:>14} {:>8}\n", "worst", "checks", "engine", "differences",
                     "error") +
         checks_;
}

std::string weights_map(const std::vector<std::vector<float>>& rows, const translator::Segmented& row_side,
                        const translator::Segmented& column_side, const translator::TerminalStyle& style) {
  std::vector<float> w;
  for (const auto& row : translator::weights_of_words(rows, row_side.word_of, column_side.word_of))
    w.insert(w.end(), row.begin(), row.end());
  translator::HeatMapOptions o;
  o.width = style.width;
  if (has_colors(style)) o.color = translator::Color::truecolor;
  return translator::draw_heat_map(
      {static_cast<int64_t>(row_side.words.size()), static_cast<int64_t>(column_side.words.size()), w},
      column_side.words, row_side.words, o);
}

}  // namespace lens
