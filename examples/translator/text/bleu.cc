#include <translator/text/bleu.h>

#include <common/utf8.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <unordered_map>

namespace translator {
namespace {

using std::string_view;

constexpr string_view kVersion = "gradus-0.1";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// ASCII punctuation that 13a always sets apart: all of it but ' , - .
bool is_apart(char c) {
  const bool punctuation =
      (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  return punctuation && c != '\'' && c != ',' && c != '-' && c != '.';
}

std::string replace_all(std::string text, string_view what, string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
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

// White space as Python's str.split() sees it.
bool is_blank(char32_t c) { return utf8::is_space(c) || (c >= 0x1C && c <= 0x1F); }

// The tokens of a text between white space, and that white space made single spaces.
std::vector<std::string> split(string_view text) {
  std::vector<std::string> out;
  std::string token;
  for (char32_t c : utf8::decode_lossy(text)) {
    if (!is_blank(c)) {
      utf8::append(token, c);
    } else if (!token.empty()) {
      out.push_back(std::move(token));
      token.clear();
    }
  }
  if (!token.empty()) out.push_back(std::move(token));
  return out;
}

std::string trim_end(string_view text) {
  std::u32string code = utf8::decode_lossy(text);
  while (!code.empty() && is_blank(code.back())) code.pop_back();
  return utf8::encode(code);
}

bool has_case(char32_t c) { return utf8::to_lower(c) != c || utf8::to_upper(c) != c; }

// Whether a letter with case stands next to code[at] in the direction of `step`, apostrophes and accents not
// counted.
bool beside_letter(const std::u32string& code, size_t at, size_t step) {
  constexpr std::u32string_view kIgnored = U"'.:^`\u00A8\u00AD\u00B4\u00B7\u2018\u2019";
  for (at += step; at < code.size(); at += step) {  // below 0 it is beyond the end
    if (kIgnored.find(code[at]) == kIgnored.npos && !utf8::is_mark(code[at])) return has_case(code[at]);
  }
  return false;
}

// As Python's str.lower() does, which is sacreBLEU's: a sigma at the end of a word is another letter there, and
// the capital i with a dot becomes two characters.
std::string lower(string_view text) {
  const std::u32string code = utf8::decode_lossy(text);
  std::string out;
  for (size_t i = 0; i < code.size(); ++i) {
    const bool final_sigma =
        code[i] == U'\u03A3' && beside_letter(code, i, size_t(-1)) && !beside_letter(code, i, 1);
    utf8::append(out, final_sigma ? U'\u03C2' : code[i] == U'\u0130' ? U'i' : utf8::to_lower(code[i]));
    if (code[i] == U'\u0130') utf8::append(out, U'\u0307');
  }
  return out;
}

std::vector<std::string> words_of(const std::string& line, const BleuOptions& options) {
  const std::string trimmed = trim_end(options.lowercase ? lower(line) : line);
  return split(options.tokenize_13a ? tokenize_13a(trimmed) : trimmed);
}

// n-grams of every order and their counts. Words are joined by a character that split() removed from them.
using Counts = std::unordered_map<std::string, int64_t>;

std::vector<Counts> count_ngrams(const std::vector<std::string>& words, int max_order) {
  std::vector<Counts> out(static_cast<size_t>(max_order));
  for (size_t start = 0; start < words.size(); ++start) {
    std::string ngram;
    for (size_t n = 0; n < out.size() && start + n < words.size(); ++n) {
      if (n > 0) ngram += ' ';
      ngram += words[start + n];
      ++out[n][ngram];
    }
  }
  return out;
}

// Adds one sentence to the counts of the corpus.
void add_sentence(BleuScore& sums, const std::string& hypothesis, const std::vector<std::string>& references,
                  const BleuOptions& options) {
  const auto words = words_of(hypothesis, options);
  const auto length = static_cast<int64_t>(words.size());
  std::vector<Counts> allowed(static_cast<size_t>(options.max_order));
  int64_t closest = -1;
  for (const std::string& reference : references) {
    const auto reference_words = words_of(reference, options);
    const auto candidate = static_cast<int64_t>(reference_words.size());
    const int64_t distance = std::abs(candidate - length);
    const int64_t least = std::abs(closest - length);
    if (closest < 0 || distance < least || (distance == least && candidate < closest)) closest = candidate;
    const auto counts = count_ngrams(reference_words, options.max_order);
    for (size_t n = 0; n < allowed.size(); ++n) {
      for (const auto& [ngram, count] : counts[n]) {
        int64_t& most = allowed[n][ngram];
        most = std::max(most, count);
      }
    }
  }
  const auto counts = count_ngrams(words, options.max_order);
  for (size_t n = 0; n < counts.size(); ++n) {
    for (const auto& [ngram, count] : counts[n]) {
      sums.total[n] += count;
      const auto found = allowed[n].find(ngram);
      if (found != allowed[n].end()) sums.correct[n] += std::min(count, found->second);
    }
  }
  sums.hypothesis_length += length;
  sums.reference_length += closest;
}

double smoothing_value(const BleuOptions& options) {
  if (options.smoothing_value >= 0) return options.smoothing_value;
  return options.smoothing == Smoothing::floor ? 0.1 : 1.0;
}

double brevity_penalty(int64_t hypothesis, int64_t reference) {
  if (hypothesis >= reference) return 1;
  if (hypothesis == 0) return 0;
  return std::exp(1 - static_cast<double>(reference) / static_cast<double>(hypothesis));
}

// score = BP exp(mean over n of log p_n), from the counts.
void finish(BleuScore& bleu, const BleuOptions& options) {
  bleu.brevity_penalty = brevity_penalty(bleu.hypothesis_length, bleu.reference_length);
  const bool any = std::any_of(bleu.correct.begin(), bleu.correct.end(), [](int64_t c) { return c > 0; });
  if (!any) return;
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
    if (bleu.precisions[n] == 0) return;  // a factor of 0
    logs += std::log(bleu.precisions[n]);
  }
  bleu.score = bleu.brevity_penalty * std::exp(logs / static_cast<double>(orders));
}

std::vector<std::vector<std::string>> one_each(const std::vector<std::string>& references) {
  std::vector<std::vector<std::string>> out;
  out.reserve(references.size());
  for (const std::string& reference : references) out.push_back({reference});
  return out;
}

void check_sizes(size_t hypotheses, size_t references, const char* where) {
  if (hypotheses != references) {
    throw std::invalid_argument(
        fmt::format("{}: as many hypotheses as references: {} and {}", where, hypotheses, references));
  }
}

}  // namespace

std::string tokenize_13a(string_view line) {
  std::string text = replace_all(std::string(line), "<skipped>", "");
  text = replace_all(std::move(text), "-\n", "");
  std::replace(text.begin(), text.end(), '\n', ' ');
  text = replace_all(std::move(text), "&quot;", "\"");
  text = replace_all(std::move(text), "&amp;", "&");
  text = replace_all(std::move(text), "&lt;", "<");
  text = replace_all(std::move(text), "&gt;", ">");

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
  spaced = space_pairs(spaced, [&](char a, char b) { return !is_digit(a) && stop(b); }, "", " ", " ");
  spaced = space_pairs(spaced, [&](char a, char b) { return stop(a) && !is_digit(b); }, " ", " ", "");
  spaced = space_pairs(spaced, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ", " ");

  std::string out;
  for (const std::string& word : split(spaced)) {
    if (!out.empty()) out += ' ';
    out += word;
  }
  return out;
}

std::string BleuScore::format() const {
  std::vector<std::string> percents;
  for (double precision : precisions) percents.push_back(fmt::format("{:.1f}", precision));
  const double ratio = reference_length > 0
                           ? static_cast<double>(hypothesis_length) / static_cast<double>(reference_length)
                           : 0;
  return fmt::format("{:.2f} {} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", score,
                     fmt::join(percents, "/"), brevity_penalty, ratio, hypothesis_length, reference_length);
}

BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references, const BleuOptions& options) {
  check_sizes(hypotheses.size(), references.size(), "corpus_bleu");
  const auto orders = static_cast<size_t>(options.max_order);
  BleuScore bleu;
  bleu.correct.assign(orders, 0);
  bleu.total.assign(orders, 0);
  bleu.precisions.assign(orders, 0);
  std::set<size_t> reference_counts;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    if (references[i].empty()) {
      throw std::invalid_argument(fmt::format("corpus_bleu: sentence {} has no reference", i + 1));
    }
    reference_counts.insert(references[i].size());
    add_sentence(bleu, hypotheses[i], references[i], options);
  }
  finish(bleu, options);
  const bool same = reference_counts.size() == 1;
  bleu.signature = bleu_signature(options, same ? static_cast<int64_t>(*reference_counts.begin()) : 0);
  return bleu;
}

BleuScore corpus_bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
                      const BleuOptions& options) {
  return corpus_bleu(hypotheses, one_each(references), options);
}

BleuScore sentence_bleu(const std::string& hypothesis, const std::vector<std::string>& references,
                        BleuOptions options) {
  options.effective_order = true;
  return corpus_bleu({hypothesis}, std::vector<std::vector<std::string>>{references}, options);
}

std::string bleu_signature(const BleuOptions& options, int64_t references) {
  std::string smoothing;
  switch (options.smoothing) {
    case Smoothing::exp:
      smoothing = "exp";
      break;
    case Smoothing::floor:
      smoothing = fmt::format("floor[{:.2f}]", smoothing_value(options));
      break;
    case Smoothing::add_k:
      smoothing = fmt::format("add-k[{:.2f}]", smoothing_value(options));
      break;
    case Smoothing::none:
      smoothing = "none";
      break;
  }
  return fmt::format("nrefs:{}|case:{}|eff:{}|tok:{}|smooth:{}|version:{}",
                     references > 0 ? std::to_string(references) : "var", options.lowercase ? "lc" : "mixed",
                     options.effective_order ? "yes" : "no", options.tokenize_13a ? "13a" : "none", smoothing,
                     kVersion);
}

double exact_match(const std::vector<std::string>& hypotheses,
                   const std::vector<std::vector<std::string>>& references) {
  check_sizes(hypotheses.size(), references.size(), "exact_match");
  if (hypotheses.empty()) return 0;
  int64_t matches = 0;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const auto& accepted = references[i];
    matches += std::find(accepted.begin(), accepted.end(), hypotheses[i]) != accepted.end() ? 1 : 0;
  }
  return static_cast<double>(matches) / static_cast<double>(hypotheses.size());
}

double exact_match(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references) {
  return exact_match(hypotheses, one_each(references));
}

}  // namespace translator
