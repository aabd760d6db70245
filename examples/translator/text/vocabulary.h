#pragma once

#include <cstdint>
#include <istream>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace translator {

/// How often each token was seen.
class TokenCounts {
 public:
  void add(const std::string& token, int64_t times = 1) { counts_[token] += times; }
  void add(const std::vector<std::string>& sentence) {
    for (const std::string& token : sentence) add(token);
  }
  const std::unordered_map<std::string, int64_t>& all() const { return counts_; }

 private:
  std::unordered_map<std::string, int64_t> counts_;
};

struct VocabularyOptions {
  /// tokens seen less often are left out
  int64_t min_count = 1;
  /// entries at most, the four specials included; 0 is no limit
  int64_t max_size = 0;
};

/// Tokens and their ids. Ids 0 to 3 are the specials, then come the tokens, most frequent first and equally
/// frequent ones by their bytes, so that equal counts give equal ids.
///
/// The specials are no words: id("<s>") of a token in the data is kUnknown, and build() leaves such a token
/// out.
class Vocabulary {
 public:
  /// <unk>
  static constexpr int32_t kUnknown = 0;
  /// <pad>
  static constexpr int32_t kPadding = 1;
  /// <s>
  static constexpr int32_t kBegin = 2;
  /// </s>
  static constexpr int32_t kEnd = 3;
  /// the number of specials
  static constexpr int32_t kSpecials = 4;

  /// The specials alone.
  Vocabulary();

  /// Throws std::invalid_argument when a token is empty, has a line break or a control character in it or is
  /// not UTF-8, or when max_size is set below kSpecials.
  static Vocabulary build(const TokenCounts& counts, const VocabularyOptions& options = {});

  /// Whether a token can be a tag of sources: a word in angle brackets, which no text has as a token, and none
  /// of the specials and bytes.
  static bool is_tag(std::string_view token);
  /// Whether these are the others, and tags behind them.
  bool is_with_tags(const Vocabulary& others) const;
  /// These tokens, and behind them those of the others that are none of these.
  Vocabulary extended(const Vocabulary& others) const;

  /// Reads one token a line. Throws InputError with file and line: missing specials, an empty or repeated
  /// token, invalid UTF-8, a control character.
  static Vocabulary load(const std::string& path);
  static Vocabulary load(std::istream& in, const std::string& name);

  /// What load() reads: one token a line.
  std::string text() const;

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }

  /// The token's id, kUnknown when it is not in the vocabulary or is spelt like a special.
  int32_t id(std::string_view token) const;
  bool contains(std::string_view token) const { return id(token) != kUnknown; }

  /// The spelling of an id, specials included. Throws std::out_of_range.
  const std::string& token(int32_t id) const;

  /// One id a token; no <s> or </s> is added.
  std::vector<int32_t> encode(const std::vector<std::string>& tokens) const;

  /// The tokens up to the first </s>, without <s> and <pad>; an unknown comes out as `<unk>`.
  std::vector<std::string> decode(const std::vector<int32_t>& ids) const;

  bool operator==(const Vocabulary& other) const { return tokens_ == other.tokens_; }

 private:
  void append(std::string token);

  std::vector<std::string> tokens_;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;  // a view is found without a copy of it
  };
  // without the specials
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
};

}  // namespace translator
