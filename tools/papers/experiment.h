#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <common/spread.h>
#include <nlohmann/json.hpp>

// An experiment is a list of runs, each a few command lines that a person can type, and a page that is made of
// what these printed and of nothing else.

namespace papers {

using json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

/// One training, and what is asked of it afterwards.
struct Run {
  /// what the page tells it by: {"task": "add", "length": 50}
  json setting;
  uint64_t seed;
  /// one after the other, in a scratch directory; the first word is a program's name
  std::vector<Words> commands;
  /// about, on one core: what the time left is reckoned from
  double seconds;
  /// beyond an experiment's ten minutes: run by --long alone
  bool longer = false;
};

/// A run that is finished: every line that its commands printed is JSON.
struct Log {
  json setting;
  uint64_t seed = 0;
  /// as they are typed
  std::vector<std::string> commands = {};
  std::vector<json> lines = {};
  /// of processors
  double seconds = 0;
  /// A number of the last line; NaN where it has none of this name.
  double result(const std::string& name) const;
};

/// A run of a program of the gallery: `words`, --seed, --json, `more`, and --quick where it is one.
Run gallery_run(const json& setting, Words words, int seed, bool quick, double seconds,
                const Words& more = {});

/// The logs whose setting has all that `part` has: {{"task", "add"}}.
std::vector<Log> where(const std::vector<Log>& logs, const json& part);
/// A result of each. NaN where it is missing.
std::vector<double> results(const std::vector<Log>& logs, const std::string& name);
/// After how many updates the networks were tested on their way: of the lines {"event":"test"}.
std::set<int64_t> tested_updates(const std::vector<Log>& logs);
/// What these tests found after so many updates.
std::vector<double> at_update(const std::vector<Log>& logs, int64_t update, const std::string& name);

/// What the logs say about an order that somebody claims.
struct Finding {
  bool holds;
  /// Markdown
  std::string text;
  /// false: it holds by the means, and of some pair the seeds do not tell which is above
  bool clear = true;
};

/// A result of some runs, by the name it has on the page.
struct Measured {
  std::string name;
  std::vector<double> values;
};
struct NumberFormat {
  /// 100 for shares in per cent
  double factor = 1;
  int digits = 1;
};
/// That each mean is below the next one. Says where it is not, and where the seeds do not tell two apart, be
/// they as claimed or not. A mean that is no number is below nothing.
Finding rising(const std::vector<Measured>& order, const NumberFormat& format = {});
/// "80.1 ± 0.4", times `factor`.
std::string shown(const std::vector<double>& values, double factor, int digits = 1);

struct Table {
  /// Markdown, above it
  std::string caption;
  Words head;
  /// text, not Markdown
  std::vector<Words> rows;
};

/// What stands on a page, in this order.
struct Page {
  std::string title, claim, theory;
  /// the picture, and what it shows for who does not see it
  std::string svg, svg_text;
  std::vector<Table> tables;
  std::vector<Finding> findings;
  /// Why some do not hold, as far as is known; shown where one does not.
  std::vector<std::string> reasons = {};
  /// from the paper
  std::vector<std::string> differences;

  /// Adds what `rising` finds, with words in front; in per cent where nothing else is said.
  void find(const std::string& what, const std::vector<Measured>& order,
            const NumberFormat& format = {100, 1});
};

struct Experiment {
  std::string name, shows;
  /// Seeds 1 to `seeds` of every setting. Quick ones hold the orders, not the numbers.
  std::vector<Run> (*runs)(bool quick, int seeds);
  Page (*page)(const std::vector<Log>& logs);
};

/// All, in the order in which they are listed.
const std::vector<Experiment>& experiments();
extern const Experiment kLength, kStart, kRecall, kGrid, kNeed, kGuided, kFeedForward, kHops, kStack, kReader,
    kCaptions, kRepeats, kTransformer, kCopy, kFocus;

}  // namespace papers
