#include <translator/text/bleu.h>

#include <common/utf8.h>
#include <translator/text/tokenizer.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
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
  std::pair closest{std::numeric_limits<int64_t>::max(), int64_t{0}};  // distance, length
  for (const std::string& reference : references) {
    const auto reference_words = words_of(reference, options);
    const auto candidate = static_cast<int64_t>(reference_words.size());
    closest = std::min(closest, {std::abs(candidate - length), candidate});
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
  sums.reference_length += closest.second;
}

double smoothing_value(const BleuOptions& options) {
  if (options.smoothing_value >= 0) return options.smoothing_value;
  return options.smoothing == Smoothing::floor ? 0.1 : 1.0;
}

// score = BP exp(mean over n of log p_n), from the counts.
void finish(BleuScore& bleu, const BleuOptions& options) {
  const auto hypothesis = static_cast<double>(bleu.hypothesis_length);
  const auto reference = static_cast<double>(bleu.reference_length);
  if (hypothesis < reference)
    bleu.brevity_penalty = hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0;
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
  spaced = space_pairs(spaced, [&](char a, char b) { return !is_digit(a) && stop(b); }, "", " ", " ");
  spaced = space_pairs(spaced, [&](char a, char b) { return stop(a) && !is_digit(b); }, " ", " ", "");
  spaced = space_pairs(spaced, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ", " ");
  return join_tokens(split(spaced));
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
  if (hypotheses.size() != references.size()) {
    throw std::invalid_argument(fmt::format("corpus_bleu: as many hypotheses as references: {} and {}",
                                            hypotheses.size(), references.size()));
  }
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
  std::vector<std::vector<std::string>> one_each;
  for (const std::string& reference : references) one_each.push_back({reference});
  return corpus_bleu(hypotheses, one_each, options);
}

std::string bleu_signature(const BleuOptions& options, int64_t references) {
  static constexpr const char* kNames[] = {"exp", "floor", "add-k", "none"};
  std::string smoothing = kNames[static_cast<int>(options.smoothing)];
  if (options.smoothing == Smoothing::floor || options.smoothing == Smoothing::add_k)
    smoothing += fmt::format("[{:.2f}]", smoothing_value(options));
  return fmt::format("nrefs:{}|case:{}|eff:{}|tok:{}|smooth:{}|version:{}",
                     references > 0 ? std::to_string(references) : "var", options.lowercase ? "lc" : "mixed",
                     options.effective_order ? "yes" : "no", options.tokenize_13a ? "13a" : "none", smoothing,
                     kVersion);
}

}  // namespace translator
