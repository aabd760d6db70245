#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include <translator/commands/commands.h>
#include <translator/inference/ensemble.h>
#include <translator/inference/evaluation.h>
#include <translator/model/data.h>
#include <translator/model/files.h>
#include <translator/model/given_pairs.h>
#include <translator/text/alignment.h>
#include <translator/text/metric.h>
#include <common/error.h>
#include <common/json_text.h>
#include <common/progress.h>
#include <common/tell.h>

namespace translator {
namespace {

void add_alignments(std::vector<SentencePair>& pairs, const std::string& path, bool swap, int64_t lines) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) throw InputError(path, 0, "is a directory");
  std::ifstream file(path);
  if (!file) throw InputError(path, 0, fmt::format("cannot be opened: {}", std::strerror(errno)));
  std::string line;
  int64_t number = 0;
  for (SentencePair& p : pairs) {
    // Pair n of the data stands on line p.line: skipped lines have alignments too.
    while (number < p.line && std::getline(file, line))
      if (++number == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
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
  if (number > lines)
    throw InputError(path, 0, fmt::format("has {} lines, the pairs have {}", number, lines));
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
    tell(
        "translator: {} learnt from sentences of its own, not from the embedded corpus; if the test "
        "sentences are among them, the scores mean nothing\n",
        directory);
}

// What is found of some sentences. Translations were made once, of all.
struct Part {
  const char* source_words = "";
  int64_t sentences = 0;
  std::vector<Score> scores = {};  // of the usual metrics, in their order
  double exact_match = 0;
  std::optional<double> perplexity = {};  // of models that translate as one by averaged logs nothing is said
};

// The translations of all sentences with what the metrics count of each.
class Scored {
 public:
  Scored(const Model& model, const std::vector<SentencePair>& pairs, const Evaluation& all)
      : model_(model), pairs_(pairs), all_(all), metrics_(usual_metrics(model.config.lowercase())) {
    for (const Metric& m : metrics_) counts_.push_back(count(m, all.hypotheses, all.references));
  }

  std::vector<Score> scores(const std::vector<size_t>& chosen) const {
    std::vector<Score> out;
    for (size_t m = 0; m < metrics_.size(); ++m)
      out.push_back(score_of(metrics_[m], counts_[m].some(chosen), Resampling()));
    return out;
  }

  std::vector<Part> by_length(const Ensemble& ensemble, const Work& work) const {
    const auto encoded = encode(pairs_, model_);
    std::vector<std::vector<double>> losses;
    if (ensemble.size() == 1)
      losses = token_losses(model_, encoded, work);
    else if (ensemble.space() == gradus::nn::EnsembleSpace::probability)
      losses = ensemble.token_losses(encoded, work);
    std::vector<Part> out;
    for (const LengthRange& range : length_ranges()) {
      const std::vector<size_t> chosen = range.chosen(pairs_);
      if (chosen.empty()) continue;
      int64_t exact = 0;
      std::vector<double> own;
      for (size_t i : chosen) {
        exact += is_exact(all_.hypotheses[i], all_.references[i], model_.config.lowercase());
        if (!losses.empty()) own.insert(own.end(), losses[i].begin(), losses[i].end());
      }
      const auto n = static_cast<double>(chosen.size()), tokens = static_cast<double>(own.size());
      out.push_back({range.name, static_cast<int64_t>(chosen.size()), scores(chosen),
                     static_cast<double>(exact) / n});
      if (!own.empty())
        out.back().perplexity = std::exp(std::accumulate(own.begin(), own.end(), 0.0) / tokens);
    }
    return out;
  }

 private:
  const Model& model_;
  const std::vector<SentencePair>& pairs_;
  const Evaluation& all_;
  std::vector<Metric> metrics_;
  std::vector<CorpusCounts> counts_;  // of each metric
};

nlohmann::ordered_json confidence_of(const std::vector<Score>& scores) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const Score& s : scores)
    if (s.interval) out[s.key()] = {{"mean", s.interval->mean}, {"half_width", s.interval->half_width}};
  return out;
}

void show_json(const Evaluation& e, const std::vector<Score>& scores, const std::vector<Part>& parts) {
  nlohmann::ordered_json j = {{"sentences", e.sentences}};
  if (e.tokens > 0) j.update({{"tokens", e.tokens}, {"loss", e.nll}, {"perplexity", e.perplexity}});
  for (const Score& s : scores) j[s.key()] = s.value;
  j["exact_match"] = e.exact_match;
  j["exact_match_own_spelling"] = e.exact_in_own_spelling;
  if (e.aer) j["aer"] = *e.aer;
  if (e.searched_anew) j["searched_anew"] = *e.searched_anew;
  j["seconds"] = e.seconds;
  j["confidence"] = confidence_of(scores);
  for (const Score& s : scores) j["signatures"][s.key()] = s.signature;
  for (const Part& p : parts) {
    nlohmann::ordered_json row = {{"source_words", p.source_words}, {"sentences", p.sentences}};
    for (const Score& s : p.scores) row[s.key()] = s.value;
    row["exact_match"] = p.exact_match;
    if (p.perplexity) row["perplexity"] = *p.perplexity;
    row["confidence"] = confidence_of(p.scores);
    j["by_length"].push_back(row);
  }
  fmt::print("{}\n", json_text::dump(j));
}

void show(const Evaluation& e, const std::vector<Score>& scores, const std::vector<Part>& parts) {
  fmt::print("sentences    {}\n", e.sentences);
  if (e.tokens > 0)
    fmt::print("loss         {:.4f} nats per target token ({} tokens, </s> counted)\nperplexity   {:.3f}\n",
               e.nll, e.tokens, e.perplexity);
  for (const Score& s : scores) fmt::print("{:<12} {}\n{:13}{}\n", s.name, s.format(), "", s.signature);
  fmt::print("exact match  {:.2f} %\n", 100 * e.exact_match);
  if (e.exact_in_own_spelling != e.exact_match)
    fmt::print("{:13}{:.2f} % in the model's spelling: of references as the model reads and writes them\n",
               "", 100 * e.exact_in_own_spelling);
  if (e.aer)
    fmt::print(
        "AER          {:.4f} (teacher-forced argmax against gold links; target words without one are "
        "not counted)\n",
        *e.aer);
  if (e.searched_anew)
    fmt::print("shortlist    {:.2f} % of sentences translated anew with all words\n", 100 * *e.searched_anew);
  fmt::print("time         {}\n", format_duration(e.seconds));
  if (parts.empty()) return;
  fmt::print("\n{:<12} {:>9}", "source words", "sentences");
  for (const Score& s : scores) fmt::print(" {:>12}", s.name);
  fmt::print(" {:>7} {:>10}\n", "exact %", parts[0].perplexity ? "perplexity" : "");
  for (const Part& p : parts) {
    fmt::print("{:<12} {:>9}", p.source_words, p.sentences);
    for (const Score& s : p.scores)
      fmt::print(" {:>5.1f}{:<7}", s.value,
                 s.interval ? fmt::format(" ± {:.1f}", s.interval->half_width) : "");
    fmt::print(" {:>7.1f} {:>10}\n", 100 * p.exact_match,
               p.perplexity ? fmt::format("{:.3f}", *p.perplexity) : "");
  }
}

}  // namespace

int run(EvaluateCommand& o) {
  apply(o.common);
  if (o.given.pairs.empty() && !o.embedded) throw UsageError("evaluate needs a file of pairs, or --embedded");
  must_not_overwrite("--hypotheses", o.hypotheses, {o.given.pairs, o.given.target, o.alignments});
  must_not_overwrite("--references", o.references, {o.given.pairs, o.given.target, o.alignments});
  must_not_write_within("--hypotheses", o.hypotheses, model_directories(o.model));
  must_not_write_within("--references", o.references, model_directories(o.model));
  if (!o.hypotheses.empty() && is_same_place(o.hypotheses, o.references))
    throw UsageError("--hypotheses and --references name one file: " + o.references);
  Ensemble ensemble(o.model, space_named(o.ensemble), o.int8);
  if (o.least_mass) ensemble.use_shortlist(*o.least_mass);
  const Model& model = ensemble.first();
  ensemble.for_each([&](const Model& each) {
    apply(o.look, each);
    if (ensemble.size() > 1 && each.takes_alignments())
      throw InputError(o.model, 0, "has a model that is told where to look, which works alone");
  });
  if (!o.alignments.empty() && ensemble.size() > 1)
    throw UsageError("--alignments is of one model, whose attention is compared with them");
  if (!o.alignments.empty() && !model.network->attends())
    tell("translator: this model has no attention: --alignments says nothing of it\n");
  GivenPairs given;
  if (o.embedded) {
    must_not_know_the_test(o.model, model.config.trained_on);
    given.pairs = embedded_pairs("test", 1000, {.verb_final = model.config.trained_on.verb_final});
  } else {
    given = read_given_pairs(o.given, {&model});
  }
  std::vector<SentencePair>& pairs = given.pairs;
  if (!o.alignments.empty()) add_alignments(pairs, o.alignments, o.given.read.swap_columns, given.lines);
  EvaluationOptions options{.ensemble = &ensemble, .search = o.search, .threads = o.common.threads};
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
  bar.reset();
  const Scored scored(model, pairs, all);
  std::vector<size_t> each(pairs.size());
  std::iota(each.begin(), each.end(), size_t{0});
  const std::vector<Score> scores = scored.scores(each);
  std::vector<Part> parts;
  if (o.by_length) parts = scored.by_length(ensemble, {.threads = o.common.threads});
  // Chinese, Japanese, Thai: whole sentences would be its words.
  if (all.bleu.reference_length < 2 * all.translated)
    tell("translator: BLEU's words stand between spaces, of which these references have few: look at chrF2\n");
  o.json ? show_json(all, scores, parts) : show(all, scores, parts);
  std::vector<std::string> references;
  for (const auto& one : all.references) references.push_back(fmt::format("{}", fmt::join(one, "\t")));
  if (!o.hypotheses.empty()) write_file(o.hypotheses, line_by_line(all.hypotheses, given));
  if (!o.references.empty()) write_file(o.references, line_by_line(references, given));
  return given.bad > 0 ? 1 : 0;
}

}  // namespace translator
