#include <translator/text/bleu.h>

#include <translator/text/python_text.h>
#include <translator/text/tokenizer.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>
#include <unordered_map>

namespace translator {
namespace {

using std::string_view;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// ASCII punctuation that 13a always sets apart: all of it but ' , - .
bool is_apart(char c) {
  return python_text::is_punctuation(c) && c != '\'' && c != ',' && c != '-' && c != '.';
}

void replace_all(std::string& text, string_view what, string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

// One of the substitutions over pairs of neighbouring characters: where `match` holds for a pair, spaces go
// before, between and behind it, and both characters are used up, as in a regular expression's replacement.
template <typename Match>
std::string space_pairs(string_view text, Match match, string_view before, string_view between,
                        string_view behind) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !match(text[i], text[i + 1])) {
      out += text[i];
      continue;
    }
    out.append(before).append(1, text[i]).append(between).append(1, text[i + 1]).append(behind);
    ++i;
  }
  return out;
}

std::vector<std::string> words_of(const std::string& line, const BleuOptions& options) {
  const std::string trimmed = python_text::trim_end(options.lowercase ? python_text::lower(line) : line);
  return python_text::split(options.tokenize_13a ? tokenize_13a(trimmed) : trimmed);
}

// n-grams of every order and their counts. Words are joined by a character that split() removed from them.
using NGramCounts = std::unordered_map<std::string, int64_t>;

struct CountedSentence {
  int64_t length;  // in words
  std::vector<NGramCounts> ngrams;

  CountedSentence(const std::string& text, const BleuOptions& options)
      : ngrams(static_cast<size_t>(options.max_order)) {
    const std::vector<std::string> words = words_of(text, options);
    length = static_cast<int64_t>(words.size());
    for (size_t start = 0; start < words.size(); ++start) {
      std::string ngram;
      for (size_t n = 0; n < ngrams.size() && start + n < words.size(); ++n) {
        if (n > 0) ngram += ' ';
        ngram += words[start + n];
        ++ngrams[n][ngram];
      }
    }
  }
};

std::vector<CountedSentence> counted(const std::vector<std::string>& texts, const BleuOptions& options) {
  std::vector<CountedSentence> out;
  for (const std::string& text : texts) out.emplace_back(text, options);
  return out;
}

// Lengths of the hypothesis and of the closest reference; of each order the clipped matches, then the n-grams.
Counts bleu_counts(const CountedSentence& hypothesis, std::span<const CountedSentence> references) {
  const size_t orders = hypothesis.ngrams.size();
  std::pair closest{std::numeric_limits<int64_t>::max(), int64_t{0}};  // distance, length
  for (const CountedSentence& r : references)
    closest = std::min(closest, {std::abs(r.length - hypothesis.length), r.length});
  Counts out(2 + 2 * orders);
  out[0] = hypothesis.length;
  out[1] = closest.second;
  for (size_t n = 0; n < orders; ++n) {
    for (const auto& [ngram, count] : hypothesis.ngrams[n]) {
      int64_t allowed = 0;
      for (const CountedSentence& r : references)
        if (const auto found = r.ngrams[n].find(ngram); found != r.ngrams[n].end())
          allowed = std::max(allowed, found->second);
      out[2 + n] += std::min(count, allowed);
      out[2 + orders + n] += count;
    }
  }
  return out;
}

double smoothing_value(const BleuOptions& options) {
  if (options.smoothing_value >= 0) return options.smoothing_value;
  return options.smoothing == Smoothing::floor ? 0.1 : 1.0;
}

// score = BP exp(mean over n of log p_n), from the counts.
BleuScore bleu_of(const Counts& sum, const BleuOptions& options) {
  const auto begin = sum.begin() + 2, middle = begin + options.max_order;
  BleuScore bleu{.correct = {begin, middle},
                 .total = {middle, sum.end()},
                 .precisions = std::vector<double>(static_cast<size_t>(options.max_order)),
                 .hypothesis_length = sum[0],
                 .reference_length = sum[1],
                 .signature = {}};
  const auto hypothesis = static_cast<double>(bleu.hypothesis_length);
  const auto reference = static_cast<double>(bleu.reference_length);
  if (hypothesis < reference)
    bleu.brevity_penalty = hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0;
  const bool any = std::any_of(bleu.correct.begin(), bleu.correct.end(), [](int64_t c) { return c > 0; });
  if (!any) return bleu;
  double halving = 1;
  size_t orders = bleu.precisions.size();
  for (size_t n = 0; n < bleu.precisions.size(); ++n) {
    const double added = options.smoothing == Smoothing::add_k && n > 0 ? smoothing_value(options) : 0;
    const double correct = static_cast<double>(bleu.correct[n]) + added;
    const double total = static_cast<double>(bleu.total[n]) + added;
    if (total == 0) break;
    if (options.effective_order) orders = n + 1;
    if (correct > 0) {
      bleu.precisions[n] = 100 * correct / total;
    } else if (options.smoothing == Smoothing::exp) {
      halving *= 2;
      bleu.precisions[n] = 100 / (halving * total);
    } else if (options.smoothing == Smoothing::floor) {
      bleu.precisions[n] = 100 * smoothing_value(options) / total;
    }
  }
  double logs = 0;
  for (size_t n = 0; n < orders; ++n) {
    if (bleu.precisions[n] == 0) return bleu;  // a factor of 0
    logs += std::log(bleu.precisions[n]);
  }
  bleu.score = bleu.brevity_penalty * std::exp(logs / static_cast<double>(orders));
  return bleu;
}

std::string settings_of(const BleuOptions& options) {
  static constexpr const char* kNames[] = {"exp", "floor", "add-k", "none"};
  std::string smoothing = kNames[static_cast<int>(options.smoothing)];
  if (options.smoothing == Smoothing::floor || options.smoothing == Smoothing::add_k)
    smoothing += fmt::format("[{:.2f}]", smoothing_value(options));
  return fmt::format("case:{}|eff:{}|tok:{}|smooth:{}", options.lowercase ? "lc" : "mixed",
                     options.effective_order ? "yes" : "no", options.tokenize_13a ? "13a" : "none",
                     smoothing);
}

}  // namespace

std::string tokenize_13a(string_view line) {
  static constexpr std::pair<string_view, string_view> kReplaced[] = {
      {"<skipped>", ""}, {"-\n", ""},   {"\n", " "},  {"&quot;", "\""},
      {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"}};
  std::string text(line);
  for (const auto& [what, with] : kReplaced) replace_all(text, what, with);

  std::string spaced = " ";
  for (char c : text) {
    if (is_apart(c)) {
      spaced.append({' ', c, ' '});
    } else {
      spaced += c;
    }
  }
  spaced += ' ';
  const auto stop = [](char c) { return c == '.' || c == ','; };
  spaced = space_pairs(
      spaced, [&](char a, char b) { return !is_digit(a) && stop(b); }, "", " ", " ");
  spaced = space_pairs(
      spaced, [&](char a, char b) { return stop(a) && !is_digit(b); }, " ", " ", "");
  spaced = space_pairs(
      spaced, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ", " ");
  return join_tokens(python_text::split(spaced));
}

std::string BleuScore::details() const {
  std::vector<std::string> percents;
  for (double precision : precisions) percents.push_back(fmt::format("{:.1f}", precision));
  const double ratio = reference_length > 0
                           ? static_cast<double>(hypothesis_length) / static_cast<double>(reference_length)
                           : 0;
  return fmt::format("{} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", fmt::join(percents, "/"),
                     brevity_penalty, ratio, hypothesis_length, reference_length);
}

Metric bleu_metric(const BleuOptions& options) {
  return {.name = "BLEU",
          .settings = settings_of(options),
          .count =
              [options](const std::string& hypothesis, const std::vector<std::string>& references) {
                return bleu_counts({hypothesis, options}, counted(references, options));
              },
          .score = [options](const Counts& sum) { return bleu_of(sum, options).score; },
          .details = [options](const Counts& sum) { return bleu_of(sum, options).details(); },
          .pairwise =
              [options](const std::vector<std::string>& texts) {
                std::vector<double> out;
                const std::vector<CountedSentence> all = counted(texts, options);
                for (const CountedSentence& own : all)
                  for (const CountedSentence& reference : all)
                    out.push_back(bleu_of(bleu_counts(own, {&reference, 1}), options).score);
                return out;
              }};
}

BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references, const BleuOptions& options) {
  const Metric metric = bleu_metric(options);
  const CorpusCounts counts = count(metric, hypotheses, references);
  const Counts none(2 + 2 * static_cast<size_t>(options.max_order));
  BleuScore bleu = bleu_of(counts.sentences() > 0 ? counts.sum() : none, options);
  bleu.signature = signature_of(metric, counts.references);
  return bleu;
}

BleuScore corpus_bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
                      const BleuOptions& options) {
  std::vector<std::vector<std::string>> one_each;
  for (const std::string& reference : references) one_each.push_back({reference});
  return corpus_bleu(hypotheses, one_each, options);
}

}  // namespace translator
