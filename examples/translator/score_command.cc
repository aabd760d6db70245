#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include <common/json_text.h>
#include <common/progress.h>
#include <common/utf8.h>
#include <translator/commands.h>
#include <translator/evaluation.h>
#include <translator/files.h>

namespace translator {
namespace {

// A pair with the losses of its target's tokens.
struct ScoredPair {
  const SentencePair& pair;
  const std::vector<double>& losses;

  double log_probability() const { return -std::accumulate(losses.begin(), losses.end(), 0.0); }
  double perplexity() const { return std::exp(-log_probability() / static_cast<double>(losses.size())); }
  const std::string& word(size_t t) const {
    static const std::string kEnd = "</s>";
    return t < pair.target.size() ? pair.target[t] : kEnd;
  }

  std::string json() const {
    nlohmann::ordered_json words = nlohmann::ordered_json::array();
    for (size_t t = 0; t < losses.size(); ++t)
      words.push_back({{"word", word(t)}, {"log_probability", -losses[t]}});
    return json_text::dump({{"log_probability", log_probability()},
                            {"tokens", losses.size()},
                            {"perplexity", perplexity()},
                            {"source", pair.source_text},
                            {"target", pair.target_text},
                            {"words", words}});
  }

  std::string text(bool with_words) const {
    std::string out = fmt::format("{:.4f}\t{}\t{:.3f}\t{}\t{}", log_probability(), losses.size(),
                                  perplexity(), pair.source_text, pair.target_text);
    for (size_t t = 0; with_words && t < losses.size(); ++t)
      out += fmt::format("{}{}:{:.4f}", t == 0 ? '\t' : ' ', word(t), -losses[t]);
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
      const ScoredPair scored{some[i], losses[i]};
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
