#pragma once

#include <string>
#include <vector>

#include "explain.h"

namespace lens {

/// Sentences, in lines that fit a terminal of 80 columns.
std::string paragraph(const std::string& text);

/// A word at the right of so many columns, cut where it is longer.
std::string padded(const std::string& word, int width);

/// Signed numbers by row and column, seven columns of a terminal each: more in teal, less in orange. Columns
/// that the terminal has no room for come below.
std::string signed_map(const std::vector<std::vector<double>>& rows,
                       const std::vector<std::string>& row_names,
                       const std::vector<std::string>& column_names, const translator::TerminalStyle& style);

/// What stands above a map of pulls.
inline constexpr const char* kPulls =
    "\nScore pull, -dL/de: + would get more attention by a step of gradient descent,\n"
    "- less; +. and -. are below 0.0005\n";

/// Of a model of pieces that it is one, and where they are put together into words how; else nothing.
std::string about_pieces(const Subject& subject);

/// Four decimals, or where they would say next to nothing three digits: 2.31e-05.
std::string weight_text(double weight);

/// What the model reads and writes: "word" or "piece".
const char* token_of(const Subject& subject);

/// A name of a list in quotes, and where it stands if it is there more than once: "the" (word 4). The first has
/// the number `first`.
std::string told(const std::vector<std::string>& names, size_t i, const Subject& subject, size_t first = 1);

/// A target word: what the model would choose, what it should say, and what that costs.
struct SaidWord {
  int32_t choice = 0, target = 0;
  double p = 0, loss = 0;
};
/// A line for each, after the words that the model does not know.
std::string said_words(const Subject& subject, const std::vector<SaidWord>& words);

/// Two tables of a step's stations: shapes and sizes of values and gradients, and below it the worst check of
/// each that has one.
class StationTables {
 public:
  /// `gradient` is undefined where none arrived.
  void add(const std::string& name, const std::string& title, const gradus::Tensor& value,
           const gradus::Tensor& gradient);
  /// How often the station was checked, and what the engine and differences said where they differ most.
  void add_checks(const std::string& name, int64_t count, double engine, double differences, double error);
  std::string text() const;

 private:
  std::string sizes_, checks_;
};

/// A heat map of weights by target and source word; rows and columns of pieces are put together.
std::string weights_map(const std::vector<std::vector<float>>& rows, const translator::Segmented& row_side,
                        const translator::Segmented& column_side, const translator::TerminalStyle& style);

}  // namespace lens
