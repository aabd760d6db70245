#include <fmt/core.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include <translator/commands.h>
#include <translator/data.h>
#include <translator/evaluation.h>
#include <translator/text/alignment.h>
#include <translator/text/error.h>
#include <translator/text/progress.h>

#include "json_text.h"

namespace translator {
namespace {

void add_alignments(std::vector<SentencePair>& pairs, const std::string& path, bool swap) {
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
}

void write_lines(const std::string& path, const std::vector<std::string>& lines) {
  if (path.empty()) return;
  std::ofstream file(path, std::ios::binary);
  for (const std::string& line : lines) file << line << "\n";
  file.close();
  if (!file) throw InputError(path, 0, fmt::format("cannot be written: {}", std::strerror(errno)));
}

std::vector<SentencePair> longer_than(const std::vector<SentencePair>& pairs, size_t words) {
  std::vector<SentencePair> out;
  for (const SentencePair& p : pairs)
    if (p.source.size() > words) out.push_back(p);
  return out;
}

void show(const Evaluation& e, bool as_json) {
  if (as_json) {
    nlohmann::ordered_json j = {
        {"sentences", e.sentences},    {"tokens", e.tokens},   {"loss", e.nll},
        {"perplexity", e.perplexity},  {"bleu", e.bleu.score}, {"signature", e.bleu.signature},
        {"exact_match", e.exact_match}};
    if (e.aer) j["aer"] = *e.aer;
    j["seconds"] = e.seconds;
    fmt::print("{}\n", json_text::dump(j));
    return;
  }
  fmt::print("sentences    {}\n", e.sentences);
  fmt::print("loss         {:.4f} nats per target token ({} tokens, </s> counted)\n", e.nll, e.tokens);
  fmt::print("perplexity   {:.3f}\n", e.perplexity);
  fmt::print("BLEU         {}\n             {}\n", e.bleu.format(), e.bleu.signature);
  fmt::print("exact match  {:.2f} %\n", 100 * e.exact_match);
  if (e.aer) fmt::print("AER          {:.4f} (teacher-forced argmax against gold links)\n", *e.aer);
  fmt::print("time         {}\n", format_duration(e.seconds));
}

}  // namespace

int run(EvaluateCommand& o) {
  apply(o.common);
  if (o.pairs.empty() && !o.embedded) throw UsageError("evaluate needs a file of pairs, or --embedded");
  Model model = Model::load(o.model);
  o.read.lowercase = model.config.lowercase;
  std::vector<SentencePair> pairs;
  if (o.embedded) {
    pairs = embedded_pairs("test", 1000, 1, 40);
  } else {
    ParallelData data =
        o.target.empty() ? read_pairs(o.pairs, o.read) : read_pairs(o.pairs, o.target, o.read);
    if (data.report.bad > 0 || data.report.blank > 0) {
      fmt::print(stderr, "{}\n", data.report.summary());
      for (const std::string& m : data.report.messages) fmt::print(stderr, "  {}\n", m);
    }
    pairs = std::move(data.pairs);
  }
  if (!o.alignments.empty()) add_alignments(pairs, o.alignments, o.read.swap_columns);
  if (pairs.empty()) throw InputError(o.pairs, 0, "has no usable sentence pairs");
  EvaluationOptions options{.search = o.search, .threads = o.common.threads};
  // A bar for each stage, on stderr, for what takes longer than two seconds.
  std::unique_ptr<Progress> bar;
  std::string stage, part;
  auto begin = std::chrono::steady_clock::now();
  auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  options.on_progress = [&](const char* what, int64_t done, int64_t total) {
    if (stage != part + what) {
      bar.reset();
      stage = part + what;
      bar = std::make_unique<Progress>(
          stage, total, ProgressOptions{.unit = "sentences/s", .delay_seconds = 2, .clock = elapsed});
    }
    bar->update(done);
  };
  Evaluation all = evaluate(model, pairs, options);
  bar.reset();
  show(all, o.json);
  write_lines(o.hypotheses, all.hypotheses);
  write_lines(o.references, all.references);
  if (o.by_length && !o.json) {
    fmt::print("\n{:<16} {:>9} {:>8} {:>12} {:>10}\n", "source words", "sentences", "BLEU", "exact match",
               "perplexity");
    size_t from = 1;
    for (size_t to : {5, 10, 15, 20, 30, 1000}) {
      std::vector<SentencePair> part;
      for (const SentencePair& p : pairs)
        if (p.source.size() >= from && p.source.size() <= to) part.push_back(p);
      if (!part.empty()) {
        Evaluation e = evaluate(model, part, options);
        fmt::print("{:<16} {:>9} {:>8.1f} {:>10.1f} % {:>10.3f}\n",
                   to == 1000 ? fmt::format("> {}", from - 1) : fmt::format("{} .. {}", from, to),
                   e.sentences, e.bleu.score, 100 * e.exact_match, e.perplexity);
      }
      from = to + 1;
    }
    std::vector<SentencePair> over = longer_than(pairs, 20);
    if (!over.empty()) {
      Evaluation e = evaluate(model, over, options);
      fmt::print("{:<16} {:>9} {:>8.1f} {:>10.1f} % {:>10.3f}\n", "all > 20", e.sentences, e.bleu.score,
                 100 * e.exact_match, e.perplexity);
    }
  }
  return 0;
}

}  // namespace translator
