#include <translator/text/chrf.h>

#include <translator/text/python_text.h>
#include <common/utf8.h>

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string_view>

namespace translator {
namespace {

using std::string_view;

constexpr size_t kCharOrder = 6;
constexpr double kBeta = 2;  // recall counts so many times as much as precision

// Words with the punctuation at their end, or else at their beginning, apart: one character of it (sacreBLEU's
// issue 124 keeps it so).
std::vector<std::string> words_apart(string_view text) {
  std::vector<std::string> out;
  for (const std::string& word : python_text::split(text)) {
    const bool single = utf8::decode_lossy(word).size() == 1;
    if (!single && python_text::is_punctuation(word.back())) {
      out.push_back(word.substr(0, word.size() - 1));
      out.push_back(word.substr(word.size() - 1));
    } else if (!single && python_text::is_punctuation(word.front())) {
      out.push_back(word.substr(0, 1));
      out.push_back(word.substr(1));
    } else {
      out.push_back(word);
    }
  }
  return out;
}

// The n-grams of a sentence, order by order, each order sorted.
class NGrams {
 public:
  NGrams(const std::string& sentence, const ChrfOptions& options) {
    const std::string text = options.lowercase ? python_text::lower(sentence) : sentence;
    std::vector<size_t> ends = {0};
    for (char32_t c : utf8::decode_lossy(text)) {
      if (python_text::is_space(c)) continue;
      utf8::append(characters_, c);
      ends.push_back(characters_.size());
    }
    for (size_t n = 1; n <= kCharOrder; ++n) add(characters_, ends, n, 0);
    std::vector<size_t> begins = {0};
    for (const std::string& word : words_apart(text)) begins.push_back((words_ += word + " ").size());
    for (size_t n = 1; n <= static_cast<size_t>(options.word_order); ++n) add(words_, begins, n, 1);
  }
  NGrams(const NGrams&) = delete;  // they point into its text

  // Of each order how many this has, the reference has, and both.
  Counts counts(const NGrams& reference) const {
    Counts out;
    for (size_t n = 0; n < orders_.size(); ++n) {
      const std::vector<string_view>&a = orders_[n], &b = reference.orders_[n];
      int64_t both = 0;
      for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
        const int order = i->compare(*j);
        both += order == 0;
        i += order <= 0;
        j += order >= 0;
      }
      // None of an order that the reference is too short for: it counts on neither side.
      out.push_back(b.empty() ? 0 : static_cast<int64_t>(a.size()));
      out.push_back(static_cast<int64_t>(b.size()));
      out.push_back(both);
    }
    return out;
  }

 private:
  // Unit i of the text is [bounds[i], bounds[i + 1]), the last `between` bytes of which join it to the next.
  void add(const std::string& text, const std::vector<size_t>& bounds, size_t n, size_t between) {
    std::vector<string_view>& out = orders_.emplace_back();
    for (size_t i = 0; i + n < bounds.size(); ++i)
      out.push_back(string_view(text).substr(bounds[i], bounds[i + n] - bounds[i] - between));
    std::sort(out.begin(), out.end());
  }

  std::string characters_, words_;
  std::vector<std::vector<string_view>> orders_;
};

double f_score(const Counts& counts) {
  double precision = 0, recall = 0, orders = 0;
  for (size_t i = 0; i + 2 < counts.size(); i += 3) {
    if (counts[i] == 0 || counts[i + 1] == 0) continue;
    precision += static_cast<double>(counts[i + 2]) / static_cast<double>(counts[i]);
    recall += static_cast<double>(counts[i + 2]) / static_cast<double>(counts[i + 1]);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  return 100 * (1 + kBeta * kBeta) * precision * recall / (kBeta * kBeta * precision + recall);
}

Counts chrf_counts(const std::string& hypothesis, const std::vector<std::string>& references,
                   const ChrfOptions& options) {
  const NGrams own(hypothesis, options);
  Counts best;
  for (const std::string& reference : references) {
    Counts found = own.counts(NGrams(reference, options));
    if (best.empty() || f_score(found) > f_score(best)) best = std::move(found);
  }
  return best;
}

std::vector<double> chrf_pairwise(const std::vector<std::string>& texts, const ChrfOptions& options) {
  std::deque<NGrams> all;
  for (const std::string& text : texts) all.emplace_back(text, options);
  std::vector<double> out;
  for (const NGrams& own : all)
    for (const NGrams& reference : all) out.push_back(f_score(own.counts(reference)));
  return out;
}

}  // namespace

Metric chrf_metric(const ChrfOptions& options) {
  return {.name = fmt::format("chrF{}{}", kBeta, std::string(static_cast<size_t>(options.word_order), '+')),
          .settings = fmt::format("case:{}|eff:yes|nc:{}|nw:{}|space:no", options.lowercase ? "lc" : "mixed",
                                  kCharOrder, options.word_order),
          .count =
              [options](const std::string& hypothesis, const std::vector<std::string>& references) {
                return chrf_counts(hypothesis, references, options);
              },
          .score = f_score,
          .pairwise = [options](auto& texts) { return chrf_pairwise(texts, options); }};
}

}  // namespace translator
