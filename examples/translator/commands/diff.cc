#include <translator/commands/diff.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <unordered_map>

#include <fmt/core.h>

#include <common/error.h>
#include <common/progress.h>
#include <common/split.h>
#include <common/utf8.h>
#include <translator/inference/evaluation.h>
#include <translator/model/files.h>
#include <translator/text/bleu.h>
#include <translator/text/python_text.h>
#include <translator/text/tokenizer.h>

namespace translator {
namespace {

// Lines of a file of translations that belong to the pairs: line n of it to line n of theirs.
std::vector<std::string> translations_from(const std::string& path, const GivenPairs& given) {
  const std::string text = read_file(path);
  std::vector<std::string> lines = split(text.substr(text.starts_with("\xEF\xBB\xBF") ? 3 : 0), '\n');
  for (std::string& line : lines) {
    if (const std::string fault = utf8::describe_invalid_byte(line); !fault.empty())
      throw InputError(path, 1 + (&line - lines.data()), fault);
    if (line.ends_with('\r')) line.pop_back();
  }
  if (static_cast<int64_t>(lines.size()) != given.lines)
    throw InputError(path, 0,
                     fmt::format("has {} lines, the pairs have {}: a translation of each is needed, or an "
                                 "empty line",
                                 lines.size(), given.lines));
  std::vector<std::string> out;
  for (const SentencePair& p : given.pairs) out.push_back(lines[static_cast<size_t>(p.line - 1)]);
  return out;
}

// One of the two: a model, or a file of what one said.
class System {
 public:
  explicit System(std::string path) : path_(std::move(path)) {
    std::error_code none;
    if (std::filesystem::is_directory(path_, none)) model_.emplace(Model::load(path_));
  }

  const Model* model() const { return model_ ? &*model_ : nullptr; }

  std::vector<std::string> translations(const GivenPairs& given, const DiffCommand& o) const {
    if (!model_) return translations_from(path_, given);
    Progress bar("translating, " + path_, static_cast<int64_t>(given.pairs.size()),
                 {.unit = "sentences/s", .delay_seconds = 2});
    const Work work{.threads = o.common.threads, .on_progress = [&](int64_t done) { bar.update(done); }};
    return translate_pairs(*model_, *model_->generator(), given.pairs, given.pairs.size(), o.search, work);
  }

 private:
  std::string path_;
  std::optional<Model> model_;
};

using WordCounts = std::unordered_map<std::string, int64_t>;

// Words as BLEU counts them.
std::vector<std::string> words_of_text(const std::string& text, bool lowercase) {
  return split_tokens(tokenize_13a(lowercase ? python_text::lower(text) : text));
}

WordCounts count_words(const std::vector<std::string>& texts, bool lowercase) {
  WordCounts out;
  for (const std::string& text : texts)
    for (const std::string& word : words_of_text(text, lowercase)) ++out[word];
  return out;
}

// compare-mt's ranges of frequencies; each from what is given to below the next.
constexpr std::pair<const char*, int64_t> kFrequencies[] = {
    {"0", 0},         {"1", 1},      {"2", 2},         {"3", 3},
    {"4", 4},         {"5 .. 9", 5}, {"10 .. 99", 10}, {"100 .. 999", 100},
    {"1000 ..", 1000}};

std::vector<DiffWords> words_by_frequency(const Diff& d, const WordCounts& frequencies, bool lowercase) {
  // Of each range: words of the references, of a and b, and those of them that are right.
  struct Sums {
    int64_t words = 0, said[2] = {}, right[2] = {};
  };
  std::vector<Sums> sums(std::size(kFrequencies));
  auto of = [&](const std::string& word) -> Sums& {
    const auto found = frequencies.find(word);
    const int64_t frequency = found == frequencies.end() ? 0 : found->second;
    size_t k = std::size(kFrequencies) - 1;
    while (kFrequencies[k].second > frequency) --k;
    return sums[k];
  };
  for (size_t i = 0; i < d.pairs.size(); ++i) {
    const WordCounts reference = count_words({d.references[i][0]}, lowercase);
    for (const auto& [word, count] : reference) of(word).words += count;
    for (size_t system : {0, 1}) {
      for (const auto& [word, count] : count_words({(system ? d.b_says : d.a_says)[i]}, lowercase)) {
        of(word).said[system] += count;
        if (const auto found = reference.find(word); found != reference.end())
          of(word).right[system] += std::min(count, found->second);
      }
    }
  }
  std::vector<DiffWords> out;
  for (size_t k = 0; k < sums.size(); ++k) {
    const Sums& s = sums[k];
    auto f = [&](int system) {  // 2 P R / (P + R)
      const int64_t both = s.words + s.said[system];
      return both ? 200 * static_cast<double>(s.right[system]) / static_cast<double>(both) : 0;
    };
    if (s.words > 0) out.push_back({kFrequencies[k].first, s.words, f(0), f(1)});
  }
  return out;
}

WordCounts training_frequencies(const DiffCommand& o, bool lowercase) {
  ReadOptions read = o.given.read;
  read.multi_reference = read.strict = false;
  std::vector<std::string> targets;
  for (SentencePair& p : read_usable_pairs(o.train, read)) targets.push_back(std::move(p.target_text));
  return count_words(targets, lowercase);
}

}  // namespace

Diff diff(const DiffCommand& o) {
  const System a(o.a), b(o.b);
  std::vector<const Model*> models;
  for (const System* system : {&a, &b})
    if (system->model()) models.push_back(system->model());
  const gradus::nn::SearchOptions usual, &asked = o.search;
  if (models.empty() &&
      (asked.beam_size != usual.beam_size || asked.length_penalty != usual.length_penalty ||
       asked.coverage_penalty != usual.coverage_penalty || asked.min_length != usual.min_length ||
       asked.no_repeat_ngram != usual.no_repeat_ngram || asked.exact_stop != usual.exact_stop))
    throw UsageError("diff: both are files of translations: how to search is asked of models");
  GivenPairs given = read_given_pairs(o.given, models);
  Diff out;
  out.bad = given.bad;
  out.a = o.a;
  out.b = o.b;
  // Files first: one that does not fit is said before a model translates for minutes.
  for (bool by_model : {false, true})
    for (const auto& [system, says] : {std::pair(&a, &out.a_says), std::pair(&b, &out.b_says)})
      if ((system->model() != nullptr) == by_model) *says = system->translations(given, o);
  out.pairs = std::move(given.pairs);
  for (const SentencePair& p : out.pairs) out.references.push_back(references_of(p));
  const bool lowercase = o.lowercase || std::any_of(models.begin(), models.end(),
                                                    [](const Model* m) { return m->config.lowercase(); });

  const std::vector<Metric> metrics = usual_metrics(lowercase);
  std::vector<std::pair<CorpusCounts, CorpusCounts>> counts;
  for (const Metric& m : metrics) {
    counts.emplace_back(count(m, out.a_says, out.references), count(m, out.b_says, out.references));
    out.scores.push_back(paired_scores(m, counts.back().first, counts.back().second, {.seed = o.seed}));
  }
  const size_t kJudge = 1;  // chrF2: it knows parts of words, and needs no smoothing
  for (size_t i = 0; i < out.pairs.size(); ++i)
    out.by_sentence.emplace_back(metrics[kJudge].score(counts[kJudge].first.some({i}).sum()),
                                 metrics[kJudge].score(counts[kJudge].second.some({i}).sum()));
  auto part = [&](const std::string& name, const std::vector<size_t>& chosen) {
    DiffPart p{.source_words = name};
    for (size_t m = 0; m < metrics.size(); ++m) {
      p.a.push_back(metrics[m].score(counts[m].first.some(chosen).sum()));
      p.b.push_back(metrics[m].score(counts[m].second.some(chosen).sum()));
    }
    for (size_t i : chosen) {
      const auto [of_a, of_b] = out.by_sentence[i];
      ++(of_b > of_a ? p.won : of_b < of_a ? p.lost : p.tied);
    }
    return p;
  };
  std::vector<size_t> each(out.pairs.size());
  std::iota(each.begin(), each.end(), size_t{0});
  out.all = part("all", each);
  for (const LengthRange& range : length_ranges())
    if (const auto chosen = range.chosen(out.pairs); !chosen.empty())
      out.by_length.push_back(part(range.name, chosen));

  out.of_training = !o.train.empty();
  std::vector<std::string> references;
  for (const auto& one : out.references) references.push_back(one[0]);
  out.by_frequency = words_by_frequency(
      out, out.of_training ? training_frequencies(o, lowercase) : count_words(references, lowercase),
      lowercase);
  return out;
}

std::vector<size_t> by_gain(const Diff& d) {
  std::vector<size_t> out(d.pairs.size());
  std::iota(out.begin(), out.end(), size_t{0});
  auto gain = [&](size_t i) { return d.by_sentence[i].second - d.by_sentence[i].first; };
  std::stable_sort(out.begin(), out.end(), [&](size_t i, size_t j) { return gain(i) < gain(j); });
  return out;
}

nlohmann::ordered_json to_json(const Diff& d) {
  using json = nlohmann::ordered_json;
  auto score = [](const Score& s) {
    json out = {{"score", s.value}};
    if (s.interval) out["confidence"] = {{"mean", s.interval->mean}, {"half_width", s.interval->half_width}};
    return out;
  };
  auto part = [&](const DiffPart& p) {
    json out = {{"source_words", p.source_words}, {"sentences", p.won + p.lost + p.tied}};
    for (size_t m = 0; m < d.scores.size(); ++m) out[d.scores[m].a.key()] = {{"a", p.a[m]}, {"b", p.b[m]}};
    out["won"] = p.won;
    out["lost"] = p.lost;
    out["tied"] = p.tied;
    return out;
  };
  json out = {{"a", utf8::printable(d.a)}, {"b", utf8::printable(d.b)}, {"sentences", d.pairs.size()}};
  for (const PairedScores& s : d.scores)
    out["scores"].push_back({{"name", s.a.name},
                             {"a", score(s.a)},
                             {"b", score(s.b)},
                             {"p", s.p ? json(*s.p) : json(nullptr)},
                             {"signature", s.a.signature}});
  out["won"] = d.all.won;
  out["lost"] = d.all.lost;
  out["tied"] = d.all.tied;
  for (const DiffPart& p : d.by_length) out["by_length"].push_back(part(p));
  out["frequencies_of"] = d.of_training ? "training" : "references";
  out["by_frequency"] = json::array();
  for (const DiffWords& w : d.by_frequency)
    out["by_frequency"].push_back(
        {{"frequency", w.frequency}, {"words", w.words}, {"a", w.f_a}, {"b", w.f_b}});
  for (size_t i = 0; i < d.pairs.size(); ++i)
    out["by_sentence"].push_back({{"line", d.pairs[i].line},
                                  {"source", d.pairs[i].source_text},
                                  {"references", d.references[i]},
                                  {"a", d.a_says[i]},
                                  {"b", d.b_says[i]},
                                  {"chrf2_a", d.by_sentence[i].first},
                                  {"chrf2_b", d.by_sentence[i].second}});
  return out;
}

}  // namespace translator
