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
  bool swap_columns = false;  ///< the second column (or file) is the source
  bool strict = false;        ///< throw InputError at the first bad line instead of leaving it out
  TokenizerOptions text = {};
  bool multi_reference = false;  ///< columns beyond the second are further translations, not links
  /// Pairs with more words on either side, or a hundred times as many bytes, are left out; 0 is no limit.
  int64_t max_length = 0;
  int64_t max_pairs = 0;         ///< stop after so many pairs; 0 is no limit
  int64_t kept_messages = 5;     ///< bad lines whose reasons are kept as text
  std::function<void(int64_t line, const std::string& reason)> on_bad = {};  ///< told of every bad line
};

/// One sentence and its translation.
struct SentencePair {
  std::vector<std::string> source;  ///< words, see tokenize()
  std::vector<std::string> target;
  std::string source_text;  ///< as in the file, without the outer white space
  std::string target_text;
  std::vector<std::string> further_targets = {};  ///< other translations, as target_text; of multi_reference
  std::optional<GoldAlignment> alignment;         ///< word indices, where the third column held Moses links
  int64_t line = 0;                               ///< in the file, from 1
  std::string tag = {};  ///< a token in front of the source, that no text has; empty: none
  double weight = 1;     ///< how often an epoch of training has it
};

/// What became of the lines of a file.
struct ReadReport {
  std::string name;  ///< the file, or both files
  int64_t lines = 0;
  int64_t pairs = 0;           ///< kept
  int64_t aligned = 0;         ///< of these, with an alignment
  int64_t with_further = 0;    ///< of these, with further columns that were not read
  int64_t blank = 0;           ///< lines of nothing but white space
  int64_t too_long = 0;        ///< left out because of max_length
  int64_t bad = 0;             ///< left out because something is wrong with them
  int64_t bad_alignments = 0;  ///< kept without their alignment, whose links point outside the sentences
  ChangedCharacters changed = {};          ///< of the kept pairs
  std::vector<std::string> messages = {};  ///< `pairs.tsv:17: no tab between source and target`, some

  /// `pairs.tsv: 98 of 101 lines read, 1 blank, 2 bad`.
  std::string summary() const;
  /// Says it on stderr, with the messages.
  void tell() const;
};

struct ParallelData {
  std::vector<SentencePair> pairs = {};
  ReadReport report = {};
};

/// What text is that begins so, if the program cannot read it: UTF-16, or compressed. "" where it may.
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
/// cannot be read, is UTF-16 or compressed, or has CR alone between its lines.
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
