#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <translator/text/alignment.h>
#include <translator/text/tokenizer.h>

namespace translator {

struct ReadOptions {
  /// the second column (or file) is the source
  bool swap_columns = false;
  /// throw InputError at the first bad line instead of leaving it out
  bool strict = false;
  TokenizerOptions text = {};
  /// columns beyond the second are further translations, not links
  bool multi_reference = false;
  /// Pairs with more words on either side, or a hundred times as many bytes, are left out; 0 is no limit.
  int64_t max_length = 0;
  /// stop after so many pairs; 0 is no limit
  int64_t max_pairs = 0;
  /// bad lines whose reasons are kept as text
  int64_t kept_messages = 5;
  /// told of every bad line
  std::function<void(int64_t line, const std::string& reason)> on_bad = {};
};

/// One sentence and its translation.
struct SentencePair {
  /// words, see tokenize()
  std::vector<std::string> source;
  std::vector<std::string> target;
  /// as in the file, without the outer white space
  std::string source_text;
  std::string target_text;
  /// other translations, as target_text; of multi_reference
  std::vector<std::string> further_targets = {};
  /// word indices, where the third column held Moses links
  std::optional<GoldAlignment> alignment;
  /// in the file, from 1
  int64_t line = 0;
  /// a token in front of the source, that no text has; empty: none
  std::string tag = {};
  /// how often an epoch of training has it
  double weight = 1;
};

/// What became of the lines of a file.
struct ReadReport {
  /// the file, or both files
  std::string name;
  int64_t lines = 0;
  /// kept
  int64_t pairs = 0;
  /// of these, with an alignment
  int64_t aligned = 0;
  /// of these, with further columns that were not read
  int64_t with_further = 0;
  /// lines of nothing but white space
  int64_t blank = 0;
  /// left out because of max_length
  int64_t too_long = 0;
  /// left out because something is wrong with them
  int64_t bad = 0;
  /// of these, without a tab
  int64_t without_tab = 0;
  /// kept without their alignment, whose links point outside the sentences
  int64_t bad_alignments = 0;
  /// of the kept pairs
  ChangedCharacters changed = {};
  /// `pairs.tsv:17: no tab between source and target`, some
  std::vector<std::string> messages = {};

  /// `pairs.tsv: 98 of 101 lines read, 1 blank, 2 bad`.
  std::string summary() const;
  /// That line, the messages, and where no line has a tab, what helps.
  std::vector<std::string> told() const;
  /// Says so on stderr.
  void tell() const;
};

struct ParallelData {
  std::vector<SentencePair> pairs = {};
  ReadReport report = {};
};

/// What text is that begins so, where the program cannot read it: UTF-16, compressed, a spreadsheet; else "".
std::string unreadable_as(std::string_view beginning);

/// Whether a side has more words than so many, or 100 times as many bytes: a line without a space is one word,
/// and may be thousands of pieces.
bool too_long(const SentencePair& pair, int64_t max_length);

/// Reads `source TAB target` lines; `-` is standard input. Columns beyond the second are left alone and lines
/// with some counted, but that a third one of Moses links becomes the pair's alignment, or, with
/// `multi_reference`, that they are further targets, as many as a line has (an empty column is none). CRLF, a
/// BOM and a last line without a line end are all right; blank lines are counted and skipped.
///
/// Bad lines (no tab, invalid UTF-8, a side without a word) are counted and left out, or with `strict` thrown
/// as InputError: "pairs.tsv:17: no tab between source and target". Also throws InputError when the file
/// cannot be read, is UTF-16 or compressed, has CR alone between its lines, or a number before each sentence.
ParallelData read_pairs(const std::string& path, const ReadOptions& options = {});
/// The pairs of a file that has some; stderr is told of bad lines. @throws InputError as read_pairs, and
/// where there are none.
std::vector<SentencePair> read_usable_pairs(const std::string& path, const ReadOptions& options);
ParallelData read_pairs(std::istream& in, const std::string& name, const ReadOptions& options = {});

/// Reads two files line by line, line n of one the translation of line n of the other; one of them may be
/// `-`. Throws InputError naming both files and their numbers of lines when these differ.
ParallelData read_pairs(const std::string& source_path, const std::string& target_path,
                        const ReadOptions& options);
ParallelData read_pairs(std::istream& source, const std::string& source_name, std::istream& target,
                        const std::string& target_name, const ReadOptions& options);

}  // namespace translator
