#pragma once

#include <string>
#include <vector>

#include <common/heat_map.h>
#include <translator/text/alignment.h>
#include <translator/text/segmenter.h>

namespace translator {

/// Weights of pieces [target, source] as weights of words: what a word's pieces look at is averaged, what its
/// pieces are looked at is added. Rows and columns beyond the pieces (</s>) stay.
std::vector<std::vector<float>> weights_of_words(const std::vector<std::vector<float>>& weights,
                                                 const std::vector<int32_t>& target_word_of,
                                                 const std::vector<int32_t>& source_word_of);

/// A sentence and its translation as people see them, with </s> where there is one: whole words, and the
/// weights [target words, source words] between them, empty without attention.
struct WordPicture {
  std::vector<std::string> source, target;
  std::vector<std::vector<float>> weights;
  /// the last of the target is </s>
  bool ended = false;
};
/// Of pieces the weights are put together as weights_of_words says.
WordPicture picture_of(const Segmented& source, const Segmented& target,
                       const std::vector<std::vector<float>>& weights);
/// The same as picture_of with a column and a row for each piece.
WordPicture picture_of_pieces(const Segmented& source, const Segmented& target,
                              const std::vector<std::vector<float>>& weights);
/// One link a target word, see links_from_attention.
Links links_of(const WordPicture& words);
/// "" without weights.
std::string draw_heat_map(const WordPicture& words, const HeatMapOptions& options);

}  // namespace translator
