#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include <common/json_text.h>
#include <common/progress.h>
#include <common/utf8.h>
#include <translator/commands/commands.h>
#include <translator/inference/evaluation.h>
#include <translator/model/files.h>

namespace translator {
namespace {

// A pair with the losses of its target's tokens, and of its words, </s> behind them.
struct ScoredPair {
  const SentencePair& pair;
  const std::vector<double>& losses;
  std::vector<std::string> words = {};
  std::vector<double> word_losses = {};

  ScoredPair(const SentencePair& p, const Segmented& target, const std::vector<double>& l)
      : pair(p), losses(l) {
    words = target.words;
    words.push_back("</s>");
    word_losses.resize(words.size());
    for (size_t t = 0; t < losses.size(); ++t)
      word_losses[t < target.word_of.size() ? static_cast<size_t>(target.word_of[t]) : words.size() - 1] +=
          losses[t];
  }

  double log_probability() const { return -std::accumulate(losses.begin(), losses.end(), 0.0); }
  double perplexity() const { return std::exp(-log_probability() / static_cast<double>(losses.size())); }

  std::string json() const {
    nlohmann::ordered_json each = nlohmann::ordered_json::array();
    for (size_t w = 0; w < words.size(); ++w)
      each.push_back({{"word", words[w]}, {"log_probability", -word_losses[w]}});
    return json_text::dump({{"log_probability", log_probability()},
                            {"tokens", losses.size()},
                            {"perplexity", perplexity()},
                            {"source", pair.source_text},
                            {"target", pair.target_text},
                            {"words", each}});
  }

  std::string text(bool with_words) const {
    auto column = [](std::string text) {
      std::replace(text.begin(), text.end(), '\t', ' ');
      return text;
    };
    std::string out = fmt::format("{:.4f}\t{}\t{:.3f}\t{}\t{}", log_probability(), losses.size(),
                                  perplexity(), column(pair.source_text), column(pair.target_text));
    for (size_t w = 0; with_words && w < words.size(); ++w)
      out += fmt::format("{}{}:{:.4f}", w == 0 ? '\t' : ' ', words[w], -word_losses[w]);
    return out;
  }
};

}  // namespace

// Block by block, so that who reads the output need not wait for the end.
int run(ScoreCommand& o) {
  constexpr size_t kBlock = 4096;  // pairs: enough for batches of like lengths
  apply(o.common);
  const Model model = Model::load(o.model);
  const GivenPairs given = read_given_pairs(o.given, {&model});
  const bool to_terminal = isatty(1);
  const size_t n = given.pairs.size();
  Progress bar("scoring", static_cast<int64_t>(n),
               {.unit = "sentences/s", .delay_seconds = 2, .quiet = to_terminal});
  int64_t line = 0;
  const std::string none = o.json ? "null\n" : "\n";  // of a line that was left out
  for (size_t begin = 0; begin < n; begin += kBlock) {
    std::vector<SentencePair> some(given.pairs.begin() + static_cast<long>(begin),
                                   given.pairs.begin() + static_cast<long>(std::min(n, begin + kBlock)));
    const Work work{.threads = o.common.threads,
                    .on_progress = [&](int64_t done) { bar.update(static_cast<int64_t>(begin) + done); }};
    const auto losses = token_losses(model, encode(some, model), work);
    if (to_terminal)  // which is not to obey what a file says; another file gets it as it is
      for (SentencePair& p : some) {
        p.source_text = utf8::printable(p.source_text);
        p.target_text = utf8::printable(p.target_text);
      }
    std::string text;
    for (size_t i = 0; i < some.size(); ++i) {
      for (++line; line < some[i].line; ++line) text += none;
      const ScoredPair scored(some[i], model.writes.split(given.pairs[begin + i].target_text), losses[i]);
      text += (o.json ? scored.json() : scored.text(o.words)) + "\n";
    }
    if (begin + kBlock >= n)
      for (; line < given.lines; ++line) text += none;
    print_whole(text);
  }
  bar.finish();
  return given.bad > 0 ? 1 : 0;
}

}  // namespace translator
