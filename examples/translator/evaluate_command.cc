#include <fmt/core.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include <translator/commands.h>
#include <translator/corpus/corpus.h>
#include <translator/data.h>
#include <translator/evaluation.h>
#include <translator/files.h>
#include <translator/text/alignment.h>
#include <common/error.h>
#include <common/json_text.h>
#include <common/progress.h>
#include <common/tell.h>

namespace translator {
namespace {

void add_alignments(std::vector<SentencePair>& pairs, const std::string& path, bool swap, int64_t lines) {
  std::ifstream file(path);
  if (!file) throw InputError(path, 0, fmt::format("cannot be opened: {}", std::strerror(errno)));
  std::string line;
  int64_t number = 0;
  for (SentencePair& p : pairs) {
    // Pair n of the data stands on line p.line: skipped lines have alignments too.
    while (number < p.line && std::getline(file, line)) ++number;
    if (number < p.line) throw InputError(path, 0, "has fewer lines than the pairs");
    auto gold = parse_moses(line);
    if (!gold) throw InputError(path, number, "is not a list of links like 0-0 1-2");
    p.alignment = swap ? swapped(std::move(*gold)) : std::move(*gold);
    if (!fits(*p.alignment, static_cast<int64_t>(p.source.size()), static_cast<int64_t>(p.target.size())))
      throw InputError(
          path, number,
          fmt::format("has links outside a sentence of {} and {} tokens", p.source.size(), p.target.size()));
  }
  while (std::getline(file, line)) ++number;
  if (number > lines) throw InputError(path, 0, fmt::format("has {} lines, the pairs have {}", number, lines));
}

// Leaves out what the model cannot read or learn: as bad a line as one without a tab.
void drop_too_long(ParallelData& data, const Model& model, const EvaluateCommand& o) {
  std::erase_if(data.pairs, [&](const SentencePair& p) {
    std::string fault;
    for (const auto& [side, words] : {std::pair("source", &p.source), std::pair("target", &p.target)})
      if (fault.empty() && !(fault = model.length_fault(words->size())).empty())
        fault = fmt::format("the {} side {}", side, fault);
    if (fault.empty()) return false;
    InputError error(data.report.name, p.line, fault);
    if (o.read.strict) throw error;
    --data.report.pairs;
    if (data.report.bad++ < o.read.kept_messages) data.report.messages.emplace_back(error.what());
    return true;
  });
}

// Line n belongs to line n of the data: where a line was left out there is an empty one.
void write_lines(const std::string& path, const std::vector<std::string>& texts,
                 const std::vector<SentencePair>& pairs, int64_t lines) {
  if (path.empty()) return;
  int64_t written = 0;
  std::string text;
  for (size_t i = 0; i < texts.size(); ++i, ++written) {
    for (; written + 1 < pairs[i].line; ++written) text += "\n";
    text += texts[i] + "\n";
  }
  for (; written < lines; ++written) text += "\n";
  write_file(path, text);
}

// The embedded test sentences tell something about a model that did not learn from them.
void must_not_know_the_test(const std::string& directory, const TrainingData& trained_on) {
  const std::string config = in(directory, "config.json");
  if (trained_on.corpus.empty())
    throw InputError(config, 0,
                     "does not say what the model learnt from (\"trained_on\"): the embedded test sentences "
                     "may be among it. Train it anew, or evaluate it on a file of pairs");
  if (trained_on.corpus == "embedded" && trained_on.version != kCorpusVersion)
    throw InputError(config, 0,
                     fmt::format("is of a model that learnt from version {} of the embedded corpus, where "
                                 "others were test sentences than in version {}: train it anew",
                                 trained_on.version, kCorpusVersion));
  if (trained_on.corpus != "embedded")
    tell("translator: {} learnt from sentences of its own, not from the embedded corpus; if the test "
               "sentences are among them, the scores mean nothing\n",
               directory);
}

// What is found of sentences whose source has so many words; the last range holds those of two others again.
struct LengthRow {
  const char* source_words;
  size_t from, to;
  Evaluation found = {};
};

std::vector<LengthRow> by_length(const Model& model, const std::vector<SentencePair>& pairs,
                                 const EvaluationOptions& options) {
  std::vector<LengthRow> rows = {{"1 .. 5", 1, 5},          {"6 .. 10", 6, 10},   {"11 .. 15", 11, 15},
                                 {"16 .. 20", 16, 20},      {"21 .. 30", 21, 30}, {"> 30", 31, SIZE_MAX},
                                 {"all > 20", 21, SIZE_MAX}};
  for (LengthRow& row : rows) {
    std::vector<SentencePair> some;
    for (const SentencePair& p : pairs)
      if (p.source.size() >= row.from && p.source.size() <= row.to) some.push_back(p);
    if (!some.empty()) row.found = evaluate(model, some, options);
  }
  std::erase_if(rows, [](const LengthRow& row) { return row.found.sentences == 0; });
  return rows;
}

void show(const Evaluation& e, const std::vector<LengthRow>& rows, bool as_json) {
  if (as_json) {
    nlohmann::ordered_json j = {
        {"sentences", e.sentences},    {"tokens", e.tokens},   {"loss", e.nll},
        {"perplexity", e.perplexity},  {"bleu", e.bleu.score}, {"signature", e.bleu.signature},
        {"exact_match", e.exact_match}};
    if (e.aer) j["aer"] = *e.aer;
    j["seconds"] = e.seconds;
    for (const LengthRow& r : rows)
      j["by_length"].push_back({{"source_words", r.source_words},
                                {"sentences", r.found.sentences},
                                {"bleu", r.found.bleu.score},
                                {"exact_match", r.found.exact_match},
                                {"perplexity", r.found.perplexity}});
    fmt::print("{}\n", json_text::dump(j));
    return;
  }
  fmt::print("sentences    {}\n", e.sentences);
  fmt::print("loss         {:.4f} nats per target token ({} tokens, </s> counted)\n", e.nll, e.tokens);
  fmt::print("perplexity   {:.3f}\n", e.perplexity);
  fmt::print("BLEU         {}\n             {}\n", e.bleu.format(), e.bleu.signature);
  fmt::print("exact match  {:.2f} %\n", 100 * e.exact_match);
  if (e.aer)
    fmt::print(
        "AER          {:.4f} (teacher-forced argmax against gold links; target words without one are "
        "not counted)\n",
        *e.aer);
  fmt::print("time         {}\n", format_duration(e.seconds));
  if (!rows.empty())
    fmt::print("\n{:<16} {:>9} {:>8} {:>12} {:>10}\n", "source words", "sentences", "BLEU", "exact match",
               "perplexity");
  for (const LengthRow& r : rows)
    fmt::print("{:<16} {:>9} {:>8.1f} {:>10.1f} % {:>10.3f}\n", r.source_words, r.found.sentences,
               r.found.bleu.score, 100 * r.found.exact_match, r.found.perplexity);
}

}  // namespace

int run(EvaluateCommand& o) {
  apply(o.common);
  if (o.pairs.empty() && !o.embedded) throw UsageError("evaluate needs a file of pairs, or --embedded");
  Model model = Model::load(o.model);
  o.read.lowercase = model.config.lowercase;
  std::vector<SentencePair> pairs;
  int64_t lines = 0;  // of the data, those that were left out among them
  if (o.embedded) {
    must_not_know_the_test(o.model, model.config.trained_on);
    pairs = embedded_pairs("test", 1000, 1, kCorpusLength);
  } else {
    ParallelData data =
        o.target.empty() ? read_pairs(o.pairs, o.read) : read_pairs(o.pairs, o.target, o.read);
    drop_too_long(data, model, o);
    lines = data.report.lines;
    if (data.report.bad > 0 || data.report.blank > 0) {
      tell("{}\n", data.report.summary());
      for (const std::string& m : data.report.messages) tell("  {}\n", m);
    }
    pairs = std::move(data.pairs);
  }
  if (!o.alignments.empty()) add_alignments(pairs, o.alignments, o.read.swap_columns, lines);
  if (pairs.empty()) throw InputError(o.pairs, 0, "has no usable sentence pairs");
  EvaluationOptions options{.search = o.search, .threads = o.common.threads};
  // A bar for each stage, on stderr, for what takes longer than two seconds.
  std::optional<Progress> bar;
  std::string stage;
  options.on_progress = [&](const char* what, int64_t done, int64_t total) {
    if (stage != what) {
      stage = what;
      bar.emplace(stage, total, ProgressOptions{.unit = "sentences/s", .delay_seconds = 2});
    }
    bar->update(done);
  };
  Evaluation all = evaluate(model, pairs, options);
  std::vector<LengthRow> rows;
  if (o.by_length) rows = by_length(model, pairs, options);
  bar.reset();
  show(all, rows, o.json);
  write_lines(o.hypotheses, all.hypotheses, pairs, lines);
  write_lines(o.references, all.references, pairs, lines);
  return 0;
}

}  // namespace translator
