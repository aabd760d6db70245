#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <common/spread.h>
#include <translator/text/word_picture.h>

// The race of the attentions: what single runs found, and what they say together.

namespace translator {

/// One training run, and how good its best model is on sentences it has not seen.
struct RaceRun {
  std::string attention;
  uint64_t seed = 0;
  int64_t parameters = 0;
  /// target tokens, in training
  double tokens_per_second = 0;
  /// passes over the data within the budget
  double epochs = 0;
  /// nats per target token
  double loss = 0;
  /// share
  double exact_match = 0;
  double bleu = 0;
  /// share; undefined without attention or without gold alignments
  std::optional<double> aer;
  /// nats; undefined without attention
  std::optional<double> entropy;
  /// the reference being forced: the same rows for every model
  WordPicture map;
};

std::string to_json(const RaceRun& run, const std::string& settings);
/// Nothing when the text is no run, or one with other settings.
std::optional<RaceRun> race_run_from_json(const std::string& text, const std::string& settings);

/// All runs of one attention.
struct RaceRow {
  std::string attention;
  int64_t parameters = 0, runs = 0;
  std::optional<Spread> tokens_per_second, loss, exact_match, bleu, aer,
      /// of the runs that have it
      entropy;
  /// of the first seed
  WordPicture map;
};

/// One row per attention, in the order in which they first come.
std::vector<RaceRow> race_rows(const std::vector<RaceRun>& runs);

/// The table for a terminal of so many columns, in parts where they do not hold it, and as Markdown.
std::string race_table(const std::vector<RaceRow>& rows, int screen);
std::string race_table_markdown(const std::vector<RaceRow>& rows);

/// What the seeds can tell: for each measure the best attention, those that are worse by more than twice the
/// standard error of the difference, and those that are not. A line each; empty with fewer than two seeds.
std::vector<std::string> race_findings(const std::vector<RaceRow>& rows);

/// The maps beside each other, as many in a line as fit into `width` columns.
std::string race_maps(const std::vector<RaceRow>& rows, int width);
/// The same as one SVG picture.
std::string race_svg(const std::vector<RaceRow>& rows);

}  // namespace translator
