#include "log.h"

#include <common/error.h>
#include <common/json_text.h>
#include <common/split.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <translator/model/files.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

namespace papers {
namespace {

bool is_event(const json& line, const char* name) {
  return line.is_object() && line.contains("event") && line["event"] == name;
}

// The experiments count in int: no number below this one may be larger.
bool countable(const json& value) {
  if (value.is_structured()) return std::all_of(value.begin(), value.end(), countable);
  return !value.is_number() || std::abs(value.get<double>()) <= std::numeric_limits<int>::max();
}

// Nothing where it is no run's first line.
std::optional<Log> begun(const json& line) {
  if (!line.at("seed").is_number_unsigned() || !countable(line.at("setting"))) return std::nullopt;
  return Log{line.at("setting"), line.at("seed").get<uint64_t>(), line.at("commands").get<Words>()};
}

std::string text_of(const Log& log) {
  const json head = {
      {"event", "run"}, {"setting", log.setting}, {"seed", log.seed}, {"commands", log.commands}};
  std::string out = json_text::dump(head) + "\n";
  for (const json& line : log.lines) out += json_text::dump(line) + "\n";
  return out + json_text::dump({{"event", "end"}, {"seconds", log.seconds}}) + "\n";
}

}  // namespace

Words typed(const std::vector<Words>& commands) {
  Words out;
  for (const Words& command : commands) out.push_back(fmt::format("{}", fmt::join(command, " ")));
  return out;
}

LogFile::LogFile(const std::string& path) : path_(path) {
  if (!std::filesystem::exists(path)) return;
  int64_t number = 0;
  bool open = false;
  auto wrong = [&](const std::string& what) {
    throw translator::InputError(path, number, what + "; without the file, all runs are done again");
  };
  for (const std::string& line : translator::split(translator::read_file(path), '\n')) {
    ++number;
    try {
      json value = json_text::parse(line);
      if (open == is_event(value, "run")) wrong(open ? "a run has no end" : "no run begins here");
      if (!open) {
        std::optional<Log> log = begun(value);
        if (!log) wrong("not a line of a log");
        logs_.push_back(std::move(*log));
      } else if (is_event(value, "end")) {
        logs_.back().seconds = value.at("seconds").get<double>();
      } else {
        if (value.contains("update") && !countable(value["update"])) wrong("not a line of a log");
        logs_.back().lines.push_back(std::move(value));
        continue;
      }
      open = !open;
    } catch (const json::exception&) {
      wrong("not a line of a log");
    }
  }
  if (open) wrong("the last run has no end");
}

bool LogFile::has(const Run& run) const {
  return std::any_of(logs_.begin(), logs_.end(),
                     [commands = typed(run.commands)](const Log& log) { return log.commands == commands; });
}

size_t LogFile::others(const std::vector<Run>& all) const {
  return static_cast<size_t>(std::count_if(logs_.begin(), logs_.end(), [&](const Log& log) {
    return std::none_of(all.begin(), all.end(),
                        [&](const Run& run) { return log.commands == typed(run.commands); });
  }));
}

void LogFile::add(Log log, const std::vector<Run>& all) {
  logs_.push_back(std::move(log));
  std::vector<Log> sorted;
  std::string text;
  for (const Run& run : all) {
    const Words commands = typed(run.commands);
    auto found =
        std::find_if(logs_.begin(), logs_.end(), [&](const Log& l) { return l.commands == commands; });
    if (found == logs_.end()) continue;
    text += text_of(*found);
    sorted.push_back(std::move(*found));
    logs_.erase(found);
  }
  logs_ = std::move(sorted);
  translator::write_file(path_, text);
}

// ---- reading them ----

double Log::result(const std::string& name) const {
  if (lines.empty() || !lines.back().is_object() || !lines.back().contains(name)) return std::nan("");
  const json& value = lines.back()[name];
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value.is_number() ? value.get<double>() : std::nan("");
}

std::vector<Log> where(const std::vector<Log>& logs, const json& part) {
  std::vector<Log> out;
  for (const Log& log : logs) {
    bool all = true;
    for (const auto& [name, value] : part.items())
      all = all && log.setting.contains(name) && log.setting[name] == value;
    if (all) out.push_back(log);
  }
  return out;
}

std::vector<double> results(const std::vector<Log>& logs, const std::string& name) {
  std::vector<double> out;
  for (const Log& log : logs) out.push_back(log.result(name));
  return out;
}

std::set<int64_t> tested_updates(const std::vector<Log>& logs) {
  std::set<int64_t> out;
  for (const Log& log : logs)
    for (const json& line : log.lines)
      if (line.at("event") == "test") out.insert(line.at("update").get<int64_t>());
  return out;
}

std::vector<double> at_update(const std::vector<Log>& logs, int64_t update, const std::string& name) {
  std::vector<double> out;
  for (const Log& log : logs)
    for (const json& line : log.lines)
      if (line.at("event") == "test" && line.at("update") == update) out.push_back(line.at(name));
  return out;
}

}  // namespace papers
