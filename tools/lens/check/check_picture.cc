#include "check_picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace lens {
namespace {

using translator::Background, translator::Color, translator::Shade;
namespace utf8 = translator::utf8;
using utf8::pad_left, utf8::pad_right;

constexpr int64_t kMaxRows = 12;    // more are cut off
constexpr int64_t kSpacedRows = 8;  // up to here there are lines between rows for outlines

// Neighbours of the mixtures among the 256, chosen by eye: the nearest ones wander off to pink and green.
int index_of_256(bool positive, double share, bool light) {
  constexpr int steps[2][2][6] = {{{236, 94, 130, 172, 208, 215}, {236, 23, 30, 37, 43, 79}},
                                  {{255, 223, 222, 215, 208, 166}, {255, 194, 152, 116, 73, 30}}};
  return steps[light][positive][std::clamp(static_cast<int>(share * 5.99), 0, 5)];
}

Shade mix(const int (&a)[3], const int (&b)[3], double t) {
  int c[3];
  for (int i = 0; i < 3; ++i) c[i] = static_cast<int>(std::lround(a[i] + (b[i] - a[i]) * t));
  return {c[0], c[1], c[2], 0};
}

// Orange for -1 over grey to teal for 1. The square root lets small ones be seen.
Shade diverging(double t, const PictureStyle& style) {
  double share = std::sqrt(std::min(std::abs(t), 1.0));
  if (style.color == Color::palette16) {  // two steps each way; mixtures would come out as any colour
    if (share < 0.25) return {85, 85, 85, 240};
    if (t < 0) return share < 0.7 ? Shade{170, 85, 0, 130} : Shade{255, 255, 85, 227};
    return share < 0.7 ? Shade{0, 170, 170, 37} : Shade{85, 255, 255, 87};
  }
  constexpr int grey[2][3] = {{43, 47, 54}, {238, 238, 236}}, orange[2][3] = {{255, 150, 50}, {206, 92, 0}},
                teal[2][3] = {{53, 205, 188}, {0, 122, 112}};
  int light = style.background == Background::light;
  Shade shade = mix(grey[light], t < 0 ? orange[light] : teal[light], share);
  shade.index = index_of_256(t > 0, share, light);
  return shade;
}

// The joint of heavy lines that leave in these directions.
const char* joint(bool up, bool down, bool left, bool right) {
  static const char* const joints[] = {" ", "╺", "╸", "━", "╻", "┏", "┓", "┳",
                                       "╹", "┗", "┛", "┻", "┃", "┣", "┫", "╋"};
  return joints[up * 8 + down * 4 + left * 2 + right];
}

class Maps {
 public:
  Maps(const Picture& p, const PictureStyle& style) : p_(p), style_(style) {
    const gradus::Shape& shape = p.yours.shape();
    bool downwards = shape.dims() < 2 && !p.words.empty();
    columns_ = shape.dims() == 0 || downwards ? 1 : shape[-1];
    rows_ = columns_ == 0 ? 0 : p.yours.numel() / columns_;
    for (int64_t i = 0; i < p.yours.numel(); ++i) {
      double a = p.yours.at(i), b = p.expected.at(i);
      for (double v : {a, b})
        if (std::isfinite(v)) scale_ = std::max(scale_, std::abs(v));
      const double bound = p.tolerance * std::max({p.floor, std::abs(a), std::abs(b)});
      bool wrong = !std::isnan(b) && (!std::isfinite(a - b) || std::abs(a - b) > bound);
      wrong_.push_back(wrong);
      any_ = any_ || wrong;
    }
    shown_rows_ = std::min(rows_, kMaxRows);
    while (scale_ > 0 && scale_ * std::pow(10, exponent_) < 0.1 && exponent_ < 12) exponent_ += 3;
    label_rows(shape, downwards);
    choose_cells();
    spaced_ = any_ && shown_rows_ <= kSpacedRows && !stacked_;
  }

  std::string draw() {
    std::string out;
    if (!stacked_) lines(out, {0, 1, 2});
    for (int map = 0; stacked_ && map < 3; ++map) {
      if (map) out += '\n';
      lines(out, {map});
    }
    std::string legend;
    auto explain = [&](const std::string& text) { legend += (legend.empty() ? "" : "  ") + text; };
    if (style_.color != Color::none) explain(swatch(-1) + " negative  " + swatch(1) + " positive");
    if (any_) explain(spaced_ ? "┏━┓ differs" : "[ ] differs");
    if (exponent_ && cell_ > 2) explain(fmt::format("in units of 1e-{}", exponent_));
    if (shown_rows_ < rows_ || shown_columns_ < columns_)
      explain(fmt::format("the first {} x {} of {} x {}", shown_rows_, shown_columns_, rows_, columns_));
    return legend.empty() ? out : out + (spaced_ ? "  " : "\n  ") + legend + "\n";
  }

 private:
  // What entry i of the first axis is called.
  std::string word(int64_t i) const {
    size_t k = static_cast<size_t>(i);
    return k < p_.words.size() ? p_.words[k] : std::to_string(i);
  }

  void label_rows(const gradus::Shape& shape, bool downwards) {
    for (int64_t r = 0; r < shown_rows_; ++r) {
      std::string label;
      if (shape.dims() > 2) {
        int64_t rest = r;
        for (int axis = shape.dims() - 2; axis >= 0; --axis) {
          int64_t i = rest % shape[axis];
          rest /= shape[axis];
          std::string name = axis == 0 ? word(i) : std::to_string(i);
          label = label.empty() ? name : name + "," + label;
        }
      } else if (shape.dims() == 2 || downwards) {
        label = word(r);
      }
      labels_.push_back(utf8::fit(label, 10));
      label_width_ = std::max(label_width_, utf8::display_width(labels_.back()));
    }
  }

  // Of one map without its row labels.
  int64_t map_width(int64_t columns, int cell) const { return columns * cell + (any_ ? columns + 1 : 0); }

  // Numbers side by side; cells without; numbers one below the other; and if nothing helps, fewer columns.
  void choose_cells() {
    shown_columns_ = columns_;
    bool coloured = style_.color != Color::none;
    int64_t room = style_.width - 2 - (label_width_ + 1);
    auto beside = [&](int cell) { return 3 * map_width(columns_, cell) + 2 * 3 <= room; };
    auto below = [&](int cell) { return map_width(columns_, cell) <= room; };
    bool few = rows_ * 3 <= 24 && columns_ <= 12;  // numbers then matter more than one look at all three
    for (auto [cell, stacked] : {std::pair{6, false},
                                 {any_ || coloured ? 5 : 6, false},
                                 {any_ ? 4 : 6, false},
                                 {coloured && !few ? 2 : 6, false},
                                 {6, true},
                                 {coloured ? 2 : 6, true}}) {
      cell_ = cell;
      stacked_ = stacked;
      if (stacked ? below(cell) : beside(cell)) return;
    }
    while (shown_columns_ > 1 && map_width(shown_columns_, cell_) > room) --shown_columns_;
  }

  double value(int map, int64_t i) const {
    double a = p_.yours.at(i), b = p_.expected.at(i);
    return map == 0 ? a : map == 1 ? b : a - b;
  }

  bool outlined(int map, int64_t r, int64_t c) const {
    if (map == 1 || r < 0 || c < 0 || r >= shown_rows_ || c >= shown_columns_) return false;
    return wrong_[static_cast<size_t>(r * columns_ + c)];
  }

  std::string swatch(double t) const {
    return translator::set_background(diverging(t, style_), style_.color) + "  " +
           translator::reset(style_.color);
  }

  std::string number(double v) const {
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
    v *= std::pow(10, exponent_);
    double largest = scale_ * std::pow(10, exponent_);
    int digits = largest < 9.995 ? 2 : largest < 99.95 ? 1 : 0;
    if (std::abs(v) < 0.5 * std::pow(10, -digits)) return "0";
    std::string text = fmt::format("{:.{}f}", v, digits);
    if (cell_ == 4) {  // -.25, -1.3, -13
      text = fmt::format("{:.{}f}", v, std::abs(v) < 0.995 ? 2 : std::abs(v) < 9.95 ? 1 : 0);
      if (size_t zero = text.find("0."); zero < 2 && std::abs(v) < 0.995) text.erase(zero, 1);
      return text.size() > 4 ? fmt::format("{:.0e}", v).substr(0, 4) : text;
    }
    return text.size() > 5 ? fmt::format("{:.0e}", v) : text;
  }

  std::string cell(int map, int64_t r, int64_t c) const {
    int64_t i = r * columns_ + c;
    double v = value(map, i);
    bool absent = map > 0 && std::isnan(p_.expected.at(i));  // not computed: never as 0
    std::string text = absent             ? (cell_ > 2 ? "·" : "··")
                       : cell_ > 2        ? number(v)
                       : std::isfinite(v) ? ""
                                          : "!!";
    text = cell_ > 5 ? pad_left(text, cell_ - 1) + " " : pad_left(text, cell_);
    if (style_.color == Color::none || absent) return text;
    Shade shade = diverging(!std::isfinite(v) ? 1 : scale_ > 0 ? v / scale_ : 0, style_);
    if (!std::isfinite(v)) shade = {200, 30, 60, 161};
    Shade ink = shade.is_bright() ? Shade{0, 0, 0, 16} : Shade{255, 255, 255, 231};
    return translator::set_background(shade, style_.color) + translator::set_foreground(ink, style_.color) +
           text + translator::reset(style_.color);
  }

  // Left of column c: a part of the outline, or brackets where there are no lines between the rows.
  std::string side(int map, int64_t r, int64_t c) const {
    bool before = outlined(map, r, c - 1), after = outlined(map, r, c);
    if (spaced_) return before != after ? "┃" : " ";
    return before && after ? "|" : before ? "]" : after ? "[" : " ";
  }

  std::string outline(const std::string& text) const {
    bool blank = text.find_first_not_of(' ') == std::string::npos;
    return blank ? text : toned(text, Tone::bad, style_);
  }

  // One row of cells, with the lines at their sides.
  std::string row(int map, int64_t r) const {
    std::string out;
    for (int64_t c = 0; c <= shown_columns_; ++c) {
      if (any_) out += outline(side(map, r, c));
      if (c < shown_columns_) out += cell(map, r, c);
    }
    return out;
  }

  // The line above row r.
  std::string between(int map, int64_t r) const {
    std::string out;
    auto edge_left = [&](int64_t y, int64_t x) { return outlined(map, y, x - 1) != outlined(map, y, x); };
    auto edge_above = [&](int64_t y, int64_t x) { return outlined(map, y - 1, x) != outlined(map, y, x); };
    for (int64_t c = 0; c <= shown_columns_; ++c) {
      out += joint(edge_left(r - 1, c), edge_left(r, c), edge_above(r, c - 1), edge_above(r, c));
      if (c == shown_columns_) break;
      for (int i = 0; i < cell_; ++i) out += edge_above(r, c) ? "━" : " ";
    }
    return outline(out);
  }

  void lines(std::string& out, const std::vector<int>& maps) const {
    const std::string left = "  ";
    int64_t width = map_width(shown_columns_, cell_);
    std::string blank = pad_left("", label_width_ + 1);
    const char* titles[] = {"yours", p_.expected_title, "difference"};
    std::string title, axis;
    auto before = [&](int map) { return map == maps.front() ? "" : "   "; };
    for (int map : maps) {
      title += before(map) + pad_right(titles[map], static_cast<int>(width));
      axis += before(map);
      for (int64_t c = 0; c < shown_columns_; ++c)
        axis += (any_ ? " " : "") + pad_left(std::to_string(c), cell_ > 5 ? cell_ - 1 : cell_) +
                (cell_ > 5 ? " " : "");
      if (any_) axis += " ";
    }
    if (width < 10 && maps.size() > 1)  // the titles need more room than the maps
      title = fmt::format("{} | {} | {}", titles[0], titles[1], titles[2]);
    out += left + blank + toned(title, Tone::quiet, style_) + '\n';
    if (columns_ > 1) out += left + blank + toned(axis, Tone::quiet, style_) + '\n';
    for (int64_t r = 0; r <= shown_rows_; ++r) {
      if (spaced_) {
        std::string line;
        for (int map : maps) line += before(map) + between(map, r);
        if (line.find_first_not_of(' ') != std::string::npos || r > 0) out += left + blank + line + '\n';
      }
      if (r == shown_rows_) break;
      out += left + pad_left(labels_[static_cast<size_t>(r)], label_width_) + " ";
      for (int map : maps) out += before(map) + row(map, r);
      out += '\n';
    }
  }

  const Picture& p_;
  PictureStyle style_;
  int64_t rows_ = 0, columns_ = 0, shown_rows_ = 0, shown_columns_ = 0;
  std::vector<char> wrong_;
  std::vector<std::string> labels_;
  bool any_ = false, spaced_ = false, stacked_ = false;
  int label_width_ = 0, cell_ = 5, exponent_ = 0;
  double scale_ = 0;
};

}  // namespace

PictureStyle style_of_stdout() {
  PictureStyle style = translator::terminal_style(1);
  style.width = std::clamp(style.width, 40, 120);
  return style;
}

std::string draw(const Picture& picture, const PictureStyle& style) {
  std::string out;
  for (char c : Maps(picture, style).draw()) {
    if (c == '\n') out.erase(out.find_last_not_of(' ') + 1);
    out += c;
  }
  return out;
}

std::string toned(const std::string& text, Tone tone, const PictureStyle& style) {
  if (style.color == Color::none || tone == Tone::plain) return text;
  auto colour = [&](const Shade& on_light, const Shade& on_dark) {
    return translator::set_foreground(style.background == Background::light ? on_light : on_dark,
                                      style.color);
  };
  std::string begin = tone == Tone::quiet    ? translator::set_quiet(style.color)
                      : tone == Tone::strong ? "\x1b[1m"
                      : tone == Tone::good   ? colour({0, 122, 60, 29}, {70, 200, 120, 78})
                      : tone == Tone::bad    ? colour({190, 20, 40, 124}, {255, 105, 105, 203})
                                             : colour({8, 81, 156, 25}, {125, 184, 247, 111});
  return begin + text + translator::reset(style.color);
}

}  // namespace lens
