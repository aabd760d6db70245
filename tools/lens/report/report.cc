#include "report.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <common/error.h>
#include <common/progress.h>
#include <common/program.h>

#include <common/json_text.h>
#include "page/schema.h"

namespace lens {
namespace {

namespace fs = std::filesystem;
using translator::program;
using translator::shell_word;

constexpr size_t kMost = 240;  // validations on a page

// What is written in words is shown as it is, numbers as JSON has them.
std::string words(const json& x) { return x.is_string() ? x.get<std::string>() : json_text::dump(x); }

// config.json; {} where there is none. What is shown of it must be text, a number, true or false.
json load_config(const fs::path& path, std::istream* file) {
  if (!file) return json::object();
  json out = json_text::parse_or_discarded(*file);
  if (!out.is_object()) throw translator::InputError(path.string(), 0, "is not a JSON object");
  auto check = [&](const json& from, const std::string& where, std::initializer_list<const char*> keys) {
    for (const char* key : keys)
      if (const json& x = field(from, key); x.is_structured())
        throw translator::InputError(
            path.string(), 0, fmt::format("{}{} must be text or a number, is {}", where, key, x.type_name()));
  };
  check(out, "", {"model", "subwords"});
  json& network = out["network"];
  if (network.is_null()) network = json::object();
  if (!network.is_object())
    throw translator::InputError(path.string(), 0,
                                 fmt::format("network must be an object, is {}", network.type_name()));
  check(network, "network.", {"cell", "attention", "hidden_size", "d_model", "num_heads", "num_layers"});
  return out;
}

int64_t step_of(const json& event) {
  const json& step = field(event, "step");
  return step.is_number_integer() ? step.get<int64_t>() : 0;
}

// Whether what the model reads and writes are pieces of words.
bool has_pieces(const json& config) {
  const json& kind = field(config, "subwords");
  return !kind.is_null() && kind != "none";
}

bool attends(const json& config) {
  return field(config, "model") == "transformer" || field(field(config, "network"), "attention") != "none";
}

json facts_of(const json& config, const json& start) {
  json facts = json::array();
  auto add = [&](const char* name, const json& from, const char* key) {
    if (const json& x = field(from, key); !x.is_null()) facts.push_back({name, words(x)});
  };
  const json& network = field(config, "network");
  add("model", config, "model");
  if (has_pieces(config)) add("subwords", config, "subwords");
  if (field(config, "model") != "transformer") {
    add("cell", network, "cell");
    add("attention", network, "attention");
    add("hidden size", network, "hidden_size");
  } else {
    add("d_model", network, "d_model");
    add("heads", network, "num_heads");
    add("layers", network, "num_layers");
  }
  if (const json& parameters = field(start, "parameters"); parameters.is_number())
    facts.push_back({"parameters", translator::format_count(parameters.get<double>())});
  add("pairs", start, "pairs");
  add("batch size", start, "batch_size");
  add("learning rate", start, "lr");
  add("seed", start, "seed");
  if (const json& recipe = field(start, "recipe"); recipe.is_object())
    for (const auto& [option, value] : recipe.items())
      if (option == "--optimizer" || option == "--schedule")
        facts.push_back({option.substr(2), words(value)});
  return facts;
}

// Whether there were sentences to validate on. Old logs do not say, and there were.
bool validated(const std::vector<json>& validations) {
  return validations.empty() || std::any_of(validations.begin(), validations.end(),
                                            [](const json& v) { return field(v, "sentences") != 0; });
}

// Every k-th, the best one and the last.
json thinned(const json& all, size_t& left_out) {
  left_out = 0;
  if (all.size() <= kMost) return all;
  size_t every = (all.size() + kMost - 1) / kMost, best = all.size();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].value("best", false)) best = i;
  json out = json::array();
  for (size_t i = 0; i < all.size(); ++i)
    if (i % every == 0 || i == best || i + 1 == all.size()) out.push_back(all[i]);
  left_out = all.size() - out.size();
  return out;
}

}  // namespace

json read_run(const std::string& directory) {
  for (const char* name : {"train.log", "config.json"})
    if (std::error_code no; fs::is_directory(fs::path(directory) / name, no))
      throw translator::InputError((fs::path(directory) / name).string(), 0, "is a directory");
  std::ifstream log(fs::path(directory) / "train.log", std::ios::binary);
  if (!log) throw translator::InputError(directory, 0, "has no train.log: it is no run of `translator train`");
  std::ifstream config(fs::path(directory) / "config.json");
  return read_run(directory, log, config ? &config : nullptr);
}

json read_run(const std::string& directory, std::istream& log, std::istream* config) {
  const std::string path = (fs::path(directory) / "train.log").string();
  json start = json::object(), end, layers, resumes = json::array(), notes = json::array();
  std::vector<json> validations;
  int64_t unread = 0, behind = 0, version = 1;
  std::string line;
  for (int64_t number = 1; next_line(log, path, number, line); ++number) {
    json event = json_text::parse_or_discarded(line);
    if (!field(event, "event").is_string()) {
      ++unread;
      continue;
    }
    if (auto wrong = event_problems(event); !wrong.empty())
      throw translator::InputError(path, number, wrong[0]);
    std::string kind = event.at("event").get<std::string>();
    if (kind == "start" || kind == "resume") {
      if (const json& x = field(event, "version"); x.is_number_integer()) version = x.get<int64_t>();
      if (event.contains("layers")) layers = event.at("layers");
      end = nullptr;
    }
    if (kind == "start") start = event;
    if (kind == "end") end = event;
    if (kind == "resume") {
      int64_t step = step_of(event);
      behind += std::erase_if(validations, [&](const json& v) { return step_of(v) > step; });
      resumes.push_back({{"epoch", field(event, "epoch")}, {"step", step}});
    }
    if (kind == "validation") validations.push_back(std::move(event));
  }
  std::string state = version < 2 ? "not logged how it ended" : "going on, or ended without a word";
  if (end.is_object())
    state = end.value("finished", false) ? "finished" : fmt::format("interrupted at step {}", step_of(end));
  if (version < 2)
    notes.push_back("The log is of version 1: layers, attention and worst sentences were not logged.");
  if (version > 2)
    notes.push_back(fmt::format("The log is of version {}, newer than this program.", version));
  if (unread > 0)
    notes.push_back(fmt::format("{} line{} of train.log could not be read.", unread, unread == 1 ? "" : "s"));
  if (behind > 0)
    notes.push_back(fmt::format("{} validation{} left out: the run was killed, and went on from before.",
                                behind, behind == 1 ? " is" : "s are"));
  for (json& v : validations)
    if (field(v, "probe").is_object()) v.erase("samples");
  size_t left_out = 0;
  json shown = thinned(validations, left_out);
  if (left_out > 0)
    notes.push_back(fmt::format("{} of {} validations are shown.", shown.size(), validations.size()));
  const std::string name = name_of_model(fs::path(directory).lexically_normal().string());
  const json description = load_config(fs::path(directory) / "config.json", config);
  return {{"format", "gradus-lens-report"},
          {"version", 1},
          {"name", name.empty() ? directory : name},
          {"facts", facts_of(description, start)},
          {"pieces", has_pieces(description)},
          {"attends", attends(description)},
          {"validated", validated(validations)},
          {"state", state},
          {"notes", notes},
          {"resumes", resumes},
          {"layers", layers},
          {"validations", shown},
          {"left_out", left_out},
          {"explained", json::array()}};
}

std::string explain_command(const std::string& directory, const std::string& source,
                            const std::string& reference, const std::string& out) {
  // A dash at the beginning would be taken for an option's.
  const std::string sentence = (source.starts_with('-') ? " " : "") + source;
  return fmt::format("{} explain {} {} --target {} --out {}", program(), shell_word(directory),
                     shell_word(sentence), shell_word(reference), shell_word(out));
}

json last_worst(const json& run) {
  const json& all = run.at("validations");
  for (size_t i = all.size(); i-- > 0;)
    if (const json& worst = field(all[i], "worst"); worst.is_array() && !worst.empty()) return worst;
  return json::array();
}

}  // namespace lens
