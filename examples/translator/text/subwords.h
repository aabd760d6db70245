#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <translator/text/vocabulary.h>

namespace translator {

struct SubwordOptions {
  /// bpe: pairs of pieces that stand together most often are joined (Sennrich et al. 2016, 1508.07909);
  /// unigram: the pieces under which the text is likeliest (Kudo 2018, 1804.10959); char: characters.
  std::string type = "bpe";
  /// pieces at most: characters, 256 bytes and 4 specials among them
  int64_t size = 8000;
  /// no progress on stderr
  bool quiet = false;
};

/// Pieces of words, learnt from text by SentencePiece (Kudo and Richardson 2018, 1808.06226). A piece begins
/// with U+2581 where a space precedes it in the text. What is in no piece is spelt in bytes, <0xF0><0x9F>
/// ..., so that nothing is unknown. Ids 0 to 3 are the specials of a Vocabulary, and the others stand in its
/// order.
///
/// In a build without the library `learn` and `load` throw an InputError that says so.
class Subwords {
 public:
  /// False in a build without SentencePiece.
  static bool available();

  /// Learns from words and how often each was seen; a word begins with a space where one precedes it. The same
  /// counts give the same pieces. Of a text with more kinds of characters than there is room for, the rare ones
  /// are spelt in bytes.
  /// @throws InputError when there are no words, or the size has no room.
  static Subwords learn(const TokenCounts& words, const SubwordOptions& options);
  /// @throws InputError naming the file: missing, damaged, of other conventions than learn()'s.
  static Subwords load(const std::string& path);

  /// What load() reads.
  const std::string& bytes() const { return bytes_; }
  /// Of bytes(), in 16 digits: another single bit is another checksum.
  std::string checksum() const;
  /// All pieces in their order. @throws InputError naming the file for a piece that can be none of a
  /// vocabulary.
  Vocabulary vocabulary() const;

  /// The pieces of a word; one that stands behind a space begins with it.
  std::vector<std::string> split(const std::string& word) const;
  /// One of many ways to split it: a merge of bpe is left out with this probability (BPE-dropout, Provilkov
  /// et al. 2020, 1910.13267), unigram draws from the best 64 splits, whose scores are smoothed by 1 -
  /// probability. Draws from the generator of seeded().
  std::vector<std::string> sample(const std::string& word, double probability) const;
  /// Calls f where sample() draws the same numbers for the same seed.
  static void seeded(uint64_t seed, const std::function<void()>& f);

 private:
  struct Model;  // SentencePiece's, which is told nowhere else
  Subwords(std::string bytes, const std::string& name);

  std::string bytes_, name_;
  std::shared_ptr<const Model> model_;
};

/// The bytes that a piece stands for, with a space for U+2581: text is what pieces are one behind the other.
std::string text_of_piece(std::string_view piece);

}  // namespace translator
