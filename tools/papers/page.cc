#include "page.h"

#include <common/progress.h>
#include <common/utf8.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace papers {
namespace {

// Text as Markdown that shows it as it is, in a table too.
std::string plain(const std::string& text) {
  std::string out;
  for (char c : translator::utf8::markup(text)) {
    if (c == '|')
      out += "&#124;";
    else if (c == '`' || c == '*' || c == '_' || c == '[' || c == '\\')
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

std::string row_of(const Words& cells) {
  Words shown;
  for (const std::string& c : cells) shown.push_back(plain(c));
  return fmt::format("| {} |\n", fmt::join(shown, " | "));
}

std::string text_of(const Table& table) {
  Words rule(table.head.size(), "---");
  std::string out =
      table.caption + "\n\n" + row_of(table.head) + fmt::format("| {} |\n", fmt::join(rule, " | "));
  for (const Words& row : table.rows) out += row_of(row);
  return out + "\n";
}

size_t held(const Page& page) {
  return static_cast<size_t>(
      std::count_if(page.findings.begin(), page.findings.end(), [](auto& f) { return f.holds; }));
}
// Of these, by the means alone.
size_t unclear(const Page& page) {
  return static_cast<size_t>(std::count_if(page.findings.begin(), page.findings.end(),
                                           [](auto& f) { return f.holds && !f.clear; }));
}

std::string text_of(const Finding& finding) {
  const char* verdict = !finding.holds  ? "**Does not hold:**"
                        : finding.clear ? "Holds:"
                                        : "Holds by the means:";
  return fmt::format("- {} {}\n", verdict, finding.text);
}

}  // namespace

Finding rising(const std::vector<Measured>& order, const NumberFormat& format) {
  std::string text;
  Words wrong, close, open;
  for (size_t i = 0; i < order.size(); ++i) {
    const translator::Spread here = translator::spread_of(order[i].values);
    text += fmt::format("{}{} ({})", i == 0 ? "" : " < ", order[i].name,
                        translator::text_of(here, format.factor, format.digits));
    if (i == 0) continue;
    const translator::Spread before = translator::spread_of(order[i - 1].values);
    const std::string pair = order[i - 1].name + " and " + order[i].name;
    const bool known = before.count > 0 && here.count > 0 && std::isfinite(here.mean - before.mean);
    const bool below = known && before.mean < here.mean;
    if (!below)
      (known && !translator::clearly_apart(before, here) ? close : wrong).push_back(pair);
    else if (!translator::clearly_apart(before, here))
      open.push_back(pair);
  }
  if (!wrong.empty()) text += fmt::format("; not so: {}", fmt::join(wrong, ", "));
  if (!close.empty())
    text += fmt::format("; not so, though the seeds do not tell them apart: {}", fmt::join(close, ", "));
  if (!open.empty()) text += fmt::format("; the seeds do not tell apart: {}", fmt::join(open, ", "));
  return {wrong.empty() && close.empty(), text + ".", open.empty()};
}

void Page::find(const std::string& what, const std::vector<Measured>& order, const NumberFormat& format) {
  findings.push_back(rising(order, format));
  findings.back().text.insert(0, what);
}

std::string shown(const std::vector<double>& values, double factor, int digits) {
  return translator::text_of(translator::spread_of(values), factor, digits);
}

std::string markdown(const Experiment& experiment, const Page& page, const std::vector<Log>& logs) {
  std::set<uint64_t> seeds;
  double seconds = 0;
  for (const Log& log : logs) {
    seeds.insert(log.seed);
    seconds += log.seconds;
  }
  const std::string& name = experiment.name;
  std::string out =
      fmt::format("# {}\n\n{}\n\n**What theory lets expect.** {}\n\n", page.title, page.claim, page.theory);
  const bool quick = !logs.empty() && std::any_of(logs.front().commands.begin(), logs.front().commands.end(),
                                                  [](const std::string& c) { return c.ends_with(" --quick"); });
  const std::vector<Run> usual = experiment.runs(false, 1);
  const bool longer = std::any_of(usual.begin(), usual.end(), [&](const Run& run) {
    return run.longer && !where(logs, run.setting).empty();
  });
  out += fmt::format("    tools/experiments {}{}{}\n", name, quick ? " --quick" : "", longer ? " --long" : "");
  if (!logs.empty())
    for (const std::string& command : logs.front().commands) out += fmt::format("    {}\n", command);
  out += fmt::format(
      "\nThe first line runs all of it and makes this page; below it, one of the runs ([all]({0}.jsonl), "
      "with what they printed): {1} runs, seeds {2}, {3} of one core. ± is the standard deviation over "
      "seeds.\n\n![{4}]({0}.svg)\n\n",
      name, logs.size(), fmt::join(seeds, ", "), translator::format_duration(seconds), plain(page.svg_text));
  for (const Table& table : page.tables) out += text_of(table);
  out += "## What was found\n\n";
  for (const Finding& finding : page.findings) out += text_of(finding);
  if (!page.reasons.empty() && held(page) < page.findings.size()) {
    out += "\n## Why orders do not hold\n\n";
    for (const std::string& reason : page.reasons) out += "- " + reason + "\n";
  }
  out += "\n## What is different from the paper\n\n";
  for (const std::string& difference : page.differences) out += "- " + difference + "\n";
  return out;
}

std::string index_row(const Experiment& experiment, const Page& page) {
  return fmt::format(
      "| [{0}]({0}.md)<br>{1} | <a href=\"{0}.md\"><img src=\"{0}.svg\" width=\"240\" alt=\"\"></a> | {2} "
      "of {3}{4} |\n",
      experiment.name, experiment.shows, held(page), page.findings.size(),
      unclear(page) == 0 ? "" : fmt::format(", {} of them by the means", unclear(page)));
}

std::string index_of(const std::vector<std::string>& rows) {
  std::string out =
      "# Experiments\n\nWhat papers on attention claim, run at home: `tools/experiments NAME` trains, "
      "measures and makes the page, each within ten minutes of two cores, but for what `--long` adds. Its "
      "raw logs stand beside it; tables, pictures, findings are made of them. What holds by the means is an "
      "order of means, of which the seeds leave some pair open.\n\n"
      "| | | orders that hold |\n| --- | --- | --- |\n";
  for (const std::string& row : rows) out += row;
  return out;
}

}  // namespace papers
