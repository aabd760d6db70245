#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "check/check_picture.h"

namespace lens {

/// A chapter or a lab: a folder with unit.cc (see source()), text.md and hint.md.
struct Unit {
  /// its name begins with it
  int number = 0;
  /// "09-attention"
  std::string name;
  /// the text's first heading
  std::string title;
  /// what the check says of the file as it is handed out
  std::string diagnosis;
  std::filesystem::path folder;
};

/// The file to work on, or its answer. unit.cc tells both: where they differ, the answer stands after
/// `#ifdef ANSWER`, the other after `#else`.
std::string source(const Unit& unit, bool answer);
/// The chapters that this one is put together of: unit.cc includes the learner's files of theirs by name,
/// "13-scaled-dot.cc". Empty for most.
std::vector<std::string> parts(const Unit& unit);

/// All chapters, or all labs, in order: a list file says which, and how each begins to fail.
class Course {
 public:
  /// kind: "lesson" or "lab".
  explicit Course(const std::string& kind);

  const std::string kind;
  const std::vector<Unit>& units() const { return units_; }
  /// "9", "09", "attention" or "09-attention". @throws UsageError.
  const Unit& find(const std::string& what) const;

 private:
  std::vector<Unit> units_;
};

/// The learner's folder: one file for each unit, and a list of those that passed.
class Workplace {
 public:
  explicit Workplace(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path file(const Unit& unit) const { return folder_ / (unit.name + ".cc"); }
  /// Writes the file to work on, unless there is one: a learner's work is never overwritten. True when it
  /// wrote.
  bool hand_out(const Unit& unit) const;
  /// Hands the file out anew. What was there is kept beside it, and its name returned; empty when there was
  /// nothing.
  std::filesystem::path reset(const Unit& unit) const;
  bool begun(const Unit& unit) const { return std::filesystem::exists(file(unit)); }
  bool passed(const Unit& unit) const;
  void remember(const Unit& unit) const;
  void forget(const Unit& unit) const;

 private:
  std::filesystem::path passed_file() const { return folder_ / "passed.txt"; }
  static void write(const std::filesystem::path& path, const std::string& text);

  std::filesystem::path folder_;
};

/// One line each: passed, begun or open, number, title, the learner's file.
std::string listed(const Course& course, const Workplace& work, const PictureStyle& style);

std::string read_text(const std::filesystem::path& path);

/// Headings, paragraphs, **strong**, *emphasised* and `code`; what is indented by four stays as it is.
std::string render(const std::string& markdown, const PictureStyle& style);

}  // namespace lens
