#include <translator/text/word_picture.h>

#include <numeric>

namespace translator {
namespace {

// A view of `flat`, which is filled.
Weights flattened(const WordPicture& words, std::vector<float>& flat) {
  for (const std::vector<float>& row : words.weights) flat.insert(flat.end(), row.begin(), row.end());
  return {static_cast<int64_t>(words.weights.size()), static_cast<int64_t>(words.source.size()), flat};
}

}  // namespace

std::vector<std::vector<float>> weights_of_words(const std::vector<std::vector<float>>& weights,
                                                 const std::vector<int32_t>& target_word_of,
                                                 const std::vector<int32_t>& source_word_of) {
  const auto word = [](const std::vector<int32_t>& word_of, size_t piece) {
    const size_t words = word_of.empty() ? 0 : static_cast<size_t>(word_of.back()) + 1;
    return piece < word_of.size() ? static_cast<size_t>(word_of[piece]) : words + piece - word_of.size();
  };
  std::vector<std::vector<float>> out;
  std::vector<float> pieces;  // of each row
  for (size_t t = 0; t < weights.size(); ++t) {
    const size_t row = word(target_word_of, t);
    if (row == out.size()) {
      out.emplace_back(weights[t].empty() ? 0 : word(source_word_of, weights[t].size() - 1) + 1);
      pieces.push_back(0);
    }
    for (size_t s = 0; s < weights[t].size(); ++s) out[row][word(source_word_of, s)] += weights[t][s];
    ++pieces[row];
  }
  for (size_t row = 0; row < out.size(); ++row)
    for (float& w : out[row]) w /= pieces[row];
  return out;
}

WordPicture picture_of(const Segmented& source, const Segmented& target,
                       const std::vector<std::vector<float>>& weights) {
  WordPicture out{source.words, target.words, {}};
  if (weights.size() >= target.pieces.size())
    out.weights = weights_of_words(weights, target.word_of, source.word_of);
  out.source.push_back("</s>");
  out.ended = weights.size() > target.pieces.size();
  if (out.ended) out.target.push_back("</s>");
  return out;
}

WordPicture picture_of_pieces(const Segmented& source, const Segmented& target,
                              const std::vector<std::vector<float>>& weights) {
  auto each = [](const Segmented& s) {
    Segmented out{.pieces = s.pieces, .word_of = s.word_of, .words = s.pieces};
    std::iota(out.word_of.begin(), out.word_of.end(), 0);
    return out;
  };
  return picture_of(each(source), each(target), weights);
}

Links links_of(const WordPicture& words) {
  std::vector<float> flat;
  const Weights weights = flattened(words, flat);
  return links_from_attention(weights, weights.columns - 1, weights.rows - (words.ended ? 1 : 0));
}

std::string draw_heat_map(const WordPicture& words, const HeatMapOptions& options) {
  std::vector<float> flat;
  const Weights weights = flattened(words, flat);
  return words.weights.empty() ? "" : draw_heat_map(weights, words.source, words.target, options);
}

}  // namespace translator
