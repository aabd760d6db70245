#include "course.h"

#include <fmt/core.h>
#include <gradus/error.h>
#include <gradus/io/replacement.h>
#include <gradus/names.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include <common/split.h>

#include "../commands.h"
#include "builder.h"

namespace lens {
namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream in(path);
  std::error_code no;
  if (!in || fs::is_directory(path, no)) gradus::fail("lens", path.string() + " cannot be read");
  return std::string(std::istreambuf_iterator<char>(in), {});
}

static std::vector<std::string> lines_of(const fs::path& path) {
  return translator::split(read_text(path), '\n');
}

std::string source(const Unit& unit, bool answer) {
  std::string out;
  bool keep = true;
  for (const std::string& line : lines_of(unit.folder / "unit.cc")) {
    if (line == "#ifdef ANSWER" || line == "#ifndef ANSWER")
      keep = answer == (line == "#ifdef ANSWER");
    else if (line == "#else")
      keep = !keep;
    else if (line == "#endif")
      keep = true;
    else if (keep)
      out += line + '\n';
  }
  return out;
}

std::vector<std::string> parts(const Unit& unit) {
  std::vector<std::string> out;
  const std::string before = "#include \"", after = ".cc\"";
  for (const std::string& line : lines_of(unit.folder / "unit.cc"))
    if (line.starts_with(before) && line.ends_with(after))
      out.push_back(line.substr(before.size(), line.size() - before.size() - after.size()));
  return out;
}

Course::Course(const std::string& k) : kind(k) {
  fs::path root = course_folder() / (kind + "s");
  for (const std::string& line : lines_of(root / "list.txt")) {
    size_t space = line.find_first_of(" \t");
    if (line.empty() || line[0] == '#' || space == std::string::npos) continue;
    Unit unit;
    unit.name = line.substr(0, space);
    auto digit = [&](size_t i) { return i < unit.name.size() && unit.name[i] >= '0' && unit.name[i] <= '9'; };
    if (!digit(0) || !digit(1) || unit.name.size() < 4 || unit.name[2] != '-')
      gradus::fail("lens", (root / "list.txt").string() + ": no chapter has this name: " + unit.name);
    unit.number = std::stoi(unit.name.substr(0, 2));
    unit.diagnosis = line.substr(line.find_first_not_of(" \t", space));
    unit.folder = root / unit.name;
    std::string text = read_text(unit.folder / "text.md");
    if (!text.starts_with("# "))
      gradus::fail("lens", (unit.folder / "text.md").string() + ": begins without a heading");
    unit.title = text.substr(2, text.find('\n') - 2);
    units_.push_back(unit);
  }
  if (units_.empty()) gradus::fail("lens", (root / "list.txt").string() + ": names no chapter");
}

const Unit& Course::find(const std::string& what) const {
  std::vector<std::string> topics = {"verify"};
  for (const Unit& unit : units_) {
    topics.push_back(unit.name.substr(3));
    if (what == unit.name || what == topics.back() || what == std::to_string(unit.number) ||
        what == unit.name.substr(0, 2))
      return unit;
  }
  const std::string nearest = gradus::nearest_name(what, topics);
  throw UsageError(fmt::format("there is no {} {}: they go from {} to {}{}", kind, what,
                               units_.front().number, units_.back().number,
                               nearest.empty() ? "" : "; hint: " + nearest + "?"));
}

bool Workplace::hand_out(const Unit& unit) const {
  std::error_code error;
  if (fs::create_directories(folder_, error); error)
    gradus::fail("lens", fmt::format("{} cannot be made: {}", folder_.string(), error.message()));
  if (fs::exists(file(unit))) return false;
  write(file(unit), source(unit, false));
  return true;
}

fs::path Workplace::reset(const Unit& unit) const {
  fs::path kept;
  if (begun(unit)) {
    for (int n = 1; kept.empty() || fs::exists(kept); ++n)
      kept = folder_ / fmt::format("{}.old-{}.cc", unit.name, n);
    fs::rename(file(unit), kept);
  }
  hand_out(unit);
  forget(unit);
  return kept;
}

bool Workplace::passed(const Unit& unit) const {
  std::ifstream in(passed_file());
  for (std::string line; std::getline(in, line);)
    if (line == unit.name) return true;
  return false;
}

void Workplace::remember(const Unit& unit) const {
  if (!passed(unit))
    write(passed_file(), (fs::exists(passed_file()) ? read_text(passed_file()) : "") + unit.name + '\n');
}

void Workplace::forget(const Unit& unit) const {
  if (!passed(unit)) return;
  std::string others;
  for (const std::string& line : lines_of(passed_file()))
    if (line != unit.name) others += line + '\n';
  write(passed_file(), others);
}

void Workplace::write(const fs::path& path, const std::string& text) {
  gradus::io::replace_file(path.string(), text, [&](const std::string& what) {
    gradus::fail("lens", path.string() + " " + what);
  });
}

std::string listed(const Course& course, const Workplace& work, const PictureStyle& style) {
  size_t width = 0;
  for (const Unit& unit : course.units()) width = std::max(width, unit.title.size());
  std::string out;
  for (const Unit& unit : course.units()) {
    std::string mark = work.passed(unit)  ? toned("●", Tone::good, style)
                       : work.begun(unit) ? "◐"
                                          : toned("○", Tone::quiet, style);
    std::string line = fmt::format("  {} {:>2}  {}", mark, unit.number, unit.title);
    if (work.begun(unit))
      line += std::string(width + 2 - unit.title.size(), ' ') +
              toned(work.file(unit).string(), Tone::quiet, style);
    out += line + '\n';
  }
  return out;
}

namespace {

// Marks within a line that has been wrapped already.
std::string with_marks(const std::string& text, const PictureStyle& style, bool& strong, bool& code,
                       bool& emphasis) {
  std::string out, run;
  auto flush = [&] {
    if (!run.empty())
      out += toned(run, code ? Tone::code : strong || emphasis ? Tone::strong : Tone::plain, style);
    run.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`')
      flush(), code = !code;
    else if (!code && text.compare(i, 2, "**") == 0)
      flush(), strong = !strong, ++i;
    else if (!code && text[i] == '*')
      flush(), emphasis = !emphasis;
    else
      run += text[i];
  }
  flush();
  return out;
}

// A line of a picture: what goes backward is drawn with heavy lines, and in the colour of gradients.
std::string drawn(const std::string& line, const PictureStyle& style) {
  static const std::string_view heavy[] = {"━", "┃", "┏", "┓", "┗", "┛", "┣",
                                           "┫", "┳", "┻", "╋", "◀", "▲", "▼"};
  std::string out, run;
  bool gradient = false;
  auto flush = [&] {
    if (!run.empty()) out += toned(run, gradient ? Tone::good : Tone::plain, style);
    run.clear();
  };
  for (size_t i = 0; i < line.size();) {
    size_t n = 1;
    while (i + n < line.size() && (static_cast<unsigned char>(line[i + n]) & 0xc0) == 0x80) ++n;
    std::string_view one(line.data() + i, n);
    bool now = std::find(std::begin(heavy), std::end(heavy), one) != std::end(heavy) ||
               (gradient && (one == " " || one == "▶"));
    if (now != gradient) flush();
    gradient = now;
    run += one;
    i += n;
  }
  flush();
  return out;
}

}  // namespace

std::string render(const std::string& markdown, const PictureStyle& style) {
  std::string out, paragraph;
  int width = std::min(style.width, 92);
  auto flush = [&] {
    if (paragraph.empty()) return;
    bool strong = false, code = false, emphasis = false;
    for (const std::string& line : translator::split(wrapped(paragraph, width, 2), '\n'))
      out += with_marks(line, style, strong, code, emphasis) + '\n';
    paragraph.clear();
  };
  bool picture = false;
  for (const std::string& line : translator::split(markdown, '\n')) {
    if (line.starts_with("```")) {
      flush();
      picture = !picture;
    } else if (picture) {
      out += "    " + drawn(line, style) + '\n';
    } else if (line.starts_with("## ")) {
      flush();
      out += toned(line.substr(3), Tone::strong, style) + "\n";
    } else if (line.starts_with("# ")) {
      out += toned(line.substr(2), Tone::strong, style) + "\n";
    } else if (line.starts_with("    ")) {
      flush();
      out += toned(line, Tone::code, style) + '\n';
    } else if (line.empty()) {
      flush();
      out += '\n';
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  flush();
  return out;
}

}  // namespace lens
