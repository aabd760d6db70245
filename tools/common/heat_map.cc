#include <common/heat_map.h>

#include <common/utf8.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace translator {
namespace {

constexpr int kMaxStairs = 20;       // more columns than this get vertical words
constexpr int kVerticalHeight = 12;  // letters of a vertical word
constexpr int kReadable = 8;         // a word on the stairs may be cut, but not shorter than this
constexpr const char* kMark = "╺╸";  // half lines that meet in the middle of a cell

std::string spaces(int n) { return std::string(static_cast<size_t>(std::max(n, 0)), ' '); }

// Two digits: `.93`, and `1.0` from where `.99` would be too little.
std::string digits(float weight) {
  if (std::isnan(weight)) return "??";
  const double clamped = std::clamp(static_cast<double>(weight), 0.0, 1.0);
  return clamped >= 0.995 ? "1.0" : fmt::format("{:.2f}", clamped).substr(1);
}

std::vector<std::string> cleaned(std::vector<std::string> words) {
  for (std::string& word : words) word = utf8::printable(word);
  return words;
}

// Source words [first, last).
struct Block {
  int64_t first = 0;
  int64_t last = 0;
  int64_t size() const { return last - first; }
};

class HeatMap {
 public:
  HeatMap(const Weights& weights, const std::vector<std::string>& source,
          const std::vector<std::string>& target, const HeatMapOptions& options)
      : weights_(weights), source_(cleaned(source)), target_(cleaned(target)), options_(options) {
    plan();
  }

  std::string draw() {
    const bool several = blocks_.size() > 1;
    for (const Block& block : blocks_) {
      if (several) {
        if (block.first > 0) out_ += '\n';
        const auto title =
            fmt::format("source words {} to {} of {}", block.first + 1, block.last, weights_.columns);
        out_ += quiet(utf8::fit(title, options_.width)) + '\n';
      }
      stairs_ ? draw_stairs(block) : draw_vertical(block);
      for (int64_t row = 0; row < weights_.rows; ++row) draw_row(row, block);
    }
    if (options_.legend && colored()) draw_legend();
    return std::move(out_);
  }

 private:
  bool colored() const { return options_.color != Color::none; }
  int cell() const { return colored() ? 2 : 5; }
  std::string quiet(const std::string& text) const {
    return set_quiet(options_.color) + text + reset(options_.color);
  }

  // Brings the cursor to column `at` (from 0) where the width of `text`, written just before, is uncertain.
  std::string settle(const std::string& text, int at) const {
    if (!colored() || !options_.cursor || utf8::width_is_certain(text)) return "";
    return fmt::format("\x1b[{}G", at + 1);
  }

  // Decides on the width of the row labels, the blocks of columns, the header and what follows a row.
  void plan() {
    const int width = std::max(options_.width, 12);
    label_width_ = std::min(utf8::widest(target_), std::max(4, width / 4));
    left_ = label_width_ + 1;
    const int64_t n = weights_.columns;
    const int all = static_cast<int>(std::min<int64_t>(n, width)) * cell();
    name_width_ = std::min(utf8::widest(source_), 16);
    const bool single = left_ + all <= width;
    names_ = options_.name_largest && single && left_ + all + 2 + 4 + name_width_ <= width;

    const int room = width - left_;
    // In several blocks the stairs need room behind the last column; without colours that costs little.
    const bool reserve = !single && !colored() && options_.header != HeatMapOptions::Header::vertical;
    const int64_t capacity = std::max(1, (room - (reserve ? kReadable + 2 : 0)) / cell());
    const int64_t count = single ? 1 : (n + capacity - 1) / capacity;
    for (int64_t i = 0; i < count; ++i) blocks_.push_back({n * i / count, n * (i + 1) / count});

    using Header = HeatMapOptions::Header;
    stairs_ =
        options_.header == Header::stairs ||
        (options_.header == Header::automatic &&
         std::all_of(blocks_.begin(), blocks_.end(), [&](const Block& b) { return stairs_fit(b, room); }));
  }

  bool stairs_fit(const Block& block, int room) const {
    if (block.size() > kMaxStairs) return false;
    for (int64_t column = block.first; column < block.last; ++column) {
      const int rest = room - stair_start(column - block.first);
      if (rest < std::min(utf8::display_width(source_[static_cast<size_t>(column)]), kReadable)) return false;
    }
    return true;
  }

  // Where in its cell the line down from a word ends.
  int foot() const { return colored() ? 0 : 2; }

  // Where the word of a column begins on the stairs, counted from the first cell.
  int stair_start(int64_t column) const { return static_cast<int>(column) * cell() + foot() + 2; }

  void draw_stairs(const Block& block) {
    for (int64_t step = 0; step < block.size(); ++step) {
      std::string lines = spaces(left_ + foot());
      for (int64_t before = 0; before < step; ++before) lines += "│" + spaces(cell() - 1);
      const std::string& word = source_[static_cast<size_t>(block.first + step)];
      out_ += quiet(lines + "╭") + " " +
              utf8::fit(word, std::max(options_.width - left_ - stair_start(step), 1)) + '\n';
    }
  }

  void draw_vertical(const Block& block) {
    std::vector<std::vector<std::string>> words;
    size_t height = 0;
    for (int64_t column = block.first; column < block.last; ++column) {
      auto letters = utf8::graphemes(source_[static_cast<size_t>(column)]);
      if (letters.size() > kVerticalHeight) {
        letters.resize(kVerticalHeight - 1);
        letters.emplace_back("⋮");
      }
      height = std::max(height, letters.size());
      words.push_back(std::move(letters));
    }
    for (size_t line = 0; line < height; ++line) {
      std::string text = spaces(left_);
      int at = left_;
      for (const auto& letters : words) {
        const size_t gap = height - letters.size();
        const std::string letter = line < gap ? "" : letters[line - gap];
        at += cell();
        text += spaces(foot()) + letter + spaces(cell() - foot() - utf8::display_width(letter)) +
                settle(letter, at);
      }
      text.erase(text.find_last_not_of(' ') + 1);
      out_ += text + '\n';
    }
  }

  void draw_row(int64_t row, const Block& block) {
    const std::string label = utf8::fit(target_[static_cast<size_t>(row)], label_width_);
    const int64_t largest = weights_.largest_of(row);
    std::string line = utf8::pad_left(label, label_width_) + " " + settle(label, left_);
    for (int64_t column = block.first; column < block.last; ++column) {
      const float weight = weights_.at(row, column);
      line += colored() ? color_cell(weight, column == largest) : plain_cell(weight, column == largest);
    }
    line += reset(options_.color);
    if (names_ && largest >= 0) {
      const std::string word = utf8::fit(source_[static_cast<size_t>(largest)], name_width_);
      line += fmt::format("  {}", quiet(digits(weights_.at(row, largest)) + " " + word));
    }
    if (!colored()) line.erase(line.find_last_not_of(' ') + 1);
    out_ += line + '\n';
  }

  std::string color_cell(float weight, bool largest) const {
    const Shade shade = blue_shade(weight, options_.background);
    const std::string back = set_background(shade, options_.color);
    if (!largest && !std::isnan(weight)) return back + "  ";
    const Shade ink = shade.is_bright() ? Shade{10, 26, 54, 17} : Shade{255, 255, 255, 231};
    return back + set_foreground(ink, options_.color) + (std::isnan(weight) ? "??" : kMark);
  }

  static std::string plain_cell(float weight, bool largest) {
    if (!std::isnan(weight) && weight < 0.05f) return largest ? "  · *" : "  ·  ";
    return fmt::format(" {:>3}{}", digits(weight), largest ? "*" : " ");
  }

  void draw_legend() {
    std::string line = spaces(left_) + quiet("0 ");
    constexpr int kAround = 17;  // columns of the words beside the scale
    const int steps = std::min(options_.width - left_ - kAround, 12);
    if (steps < 4) return;
    for (int i = 0; i < steps; ++i) {
      line += set_background(blue_shade(static_cast<double>(i) / (steps - 1), options_.background),
                             options_.color) +
              " ";
    }
    line += reset(options_.color) + quiet(fmt::format(" 1   {} largest", kMark)) + '\n';
    out_ += '\n' + line;
  }

  Weights weights_;
  std::vector<std::string> source_;
  std::vector<std::string> target_;
  HeatMapOptions options_;
  std::vector<Block> blocks_;
  int label_width_ = 0;
  int left_ = 0;
  int name_width_ = 0;
  bool names_ = false;
  bool stairs_ = true;
  std::string out_;
};

}  // namespace

std::string draw_heat_map(const Weights& weights, const std::vector<std::string>& source,
                          const std::vector<std::string>& target, const HeatMapOptions& options) {
  if (static_cast<int64_t>(weights.values.size()) != weights.rows * weights.columns) {
    throw std::invalid_argument(fmt::format("draw_heat_map: {} x {} weights wanted, {} given", weights.rows,
                                            weights.columns, weights.values.size()));
  }
  if (static_cast<int64_t>(source.size()) != weights.columns ||
      static_cast<int64_t>(target.size()) != weights.rows) {
    throw std::invalid_argument(fmt::format(
        "draw_heat_map: a word for each column and row: {} source and {} target words for [{}, {}]",
        source.size(), target.size(), weights.rows, weights.columns));
  }
  if (weights.rows == 0 || weights.columns == 0) return "";
  return HeatMap(weights, source, target, options).draw();
}

HeatMapOptions heat_map_options(const TerminalStyle& style) {
  return {.color = style.color,
          .background = style.background,
          .width = style.width,
          .cursor = style.cursor};
}

}  // namespace translator
