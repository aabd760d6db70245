#include "translations.h"

#include <cmath>

namespace papers {
namespace {

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<Words> commands_of(const Trial& trial, bool quick, int seed) {
  std::vector<Words> out;
  Words training = {"translator", "train", "--quiet", "--threads", "1", "--seed", std::to_string(seed)};
  Words evaluation = {"translator", "evaluate", "model", "--json", "--threads", "1", "--beam-size", "1"};
  const Words order = trial.verb_final ? Words{"--verb-final"} : Words{};
  if (quick) {
    // From a file: train would make 1000 sentences more for validation and 1000 for tests, which takes longer
    // than to learn. The recipe is that of the embedded corpus.
    out.push_back(joined({"translator", "corpus", "--count", "1000", "--max-length",
                          std::to_string(trial.quick_length), "--links", "--out", "train.tsv"},
                         order));
    out.push_back(
        joined({"translator", "corpus", "--split", "test", "--count", "200", "--max-length",
                std::to_string(trial.quick_test), "--out", "test.tsv", "--alignments", "test.links"},
               order));
    training = joined(training, {"--data",
                                 "train.tsv",
                                 "--subwords",
                                 "none",
                                 "--case",
                                 "lower",
                                 "--min-count",
                                 "1",
                                 "--dropout",
                                 "0",
                                 "--recurrent-dropout",
                                 "0",
                                 "--ema",
                                 "0",
                                 "--hidden",
                                 "32",
                                 "--embedding",
                                 "32",
                                 "--epochs",
                                 "6",
                                 "--batch-size",
                                 "8",
                                 "--lr",
                                 "0.01"});
    evaluation = joined(evaluation, {"test.tsv", "--alignments", "test.links"});
  } else {
    training = joined(training, {"--corpus-size", "6000", "--hidden", "64", "--embedding", "64",
                                 "--no-tie-embeddings", "--epochs", std::to_string(trial.epochs),
                                 "--batch-size", "16", "--lr", "0.005"});
    if (trial.max_length < 40)
      training = joined(training, {"--max-length", std::to_string(trial.max_length)});
    training = joined(training, order);
    evaluation.push_back("--embedded");
  }
  out.push_back(joined(training, trial.train));
  for (const Words& more : trial.evaluations) out.push_back(joined(evaluation, more));
  return out;
}

}  // namespace

std::vector<Run> runs_of(const std::vector<Trial>& trials, bool quick, int seeds) {
  std::vector<Run> out;
  for (int seed = 1; seed <= seeds; ++seed)
    for (const Trial& trial : trials)
      out.push_back({trial.setting, static_cast<uint64_t>(seed), commands_of(trial, quick, seed),
                     quick ? 0.8 : trial.seconds});
  return out;
}

std::vector<Log> nth_line(const std::vector<Log>& logs, size_t number) {
  std::vector<Log> out;
  for (const Log& log : logs)
    if (number < log.lines.size())
      out.push_back({.setting = log.setting, .seed = log.seed, .lines = {log.lines[number]}});
  return out;
}

std::vector<double> results_at(const std::vector<Log>& logs, const std::string& source_words,
                               const std::string& name) {
  std::vector<double> out;
  for (const Log& log : logs) {
    double value = std::nan("");
    if (!log.lines.empty() && log.lines.back().contains("by_length"))
      for (const json& row : log.lines.back()["by_length"])
        if (row.at("source_words") == source_words && row.contains(name)) value = row[name].get<double>();
    out.push_back(value);
  }
  return out;
}

NumberFormat format_of(const std::string& name) {
  if (name == "exact_match") return {100, 1};
  return {1, name == "perplexity" ? 2 : name == "aer" ? 3 : 1};
}

std::string cell(const std::vector<Log>& logs, const std::string& name) {
  const NumberFormat format = format_of(name);
  return shown(results(logs, name), format.factor, format.digits);
}

std::vector<double> hundredths(std::vector<double> values) {
  for (double& value : values) value /= 100;
  return values;
}

}  // namespace papers
