#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gradus::nn {

/// Tokens, in their order
using Phrase = std::vector<int32_t>;

/// The phrases that a translation must have, and how far one hypothesis is with them. A bit of `said` for each
/// that is there, and the one that is being said.
class RequiredPhrases {
 public:
  static constexpr size_t kMost = 64;

  struct State {
    uint64_t said = 0;
    /// A phrase whose first `place` tokens were the last to be said; -1: none
    int32_t current = -1;
    int32_t place = 0;
  };

  /// @throws Error "[translate] a phrase must have at least one token", "[translate] at most 64 phrases can be
  /// required: 65".
  explicit RequiredPhrases(std::vector<Phrase> phrases);

  /// The state after one more token. Who leaves a phrase in its middle has said nothing of it but what could
  /// begin it anew.
  State after(State state, int32_t token) const;
  /// Adds the tokens that bring a phrase on.
  void add_next(const State& state, std::vector<int32_t>& tokens) const;
  int64_t tokens_said(const State& state) const;
  int64_t tokens() const { return tokens_; }
  bool complete(const State& state) const { return tokens_said(state) == tokens_; }

 private:
  std::vector<Phrase> phrases_;
  int64_t tokens_ = 0;
};

/// Adds the tokens with which `said` would end in one of the phrases.
void add_forbidden(const std::vector<Phrase>& phrases, const std::vector<int32_t>& said,
                   std::vector<int32_t>& tokens);
/// Adds the tokens with which `said` would have the same n tokens in a row twice.
void add_repeating(int64_t n, const std::vector<int32_t>& said, std::vector<int32_t>& tokens);

}  // namespace gradus::nn
