#include <gradus/nn/phrases.h>

#include <algorithm>

#include <gradus/error.h>

namespace gradus::nn {

RequiredPhrases::RequiredPhrases(std::vector<Phrase> phrases) : phrases_(std::move(phrases)) {
  if (phrases_.size() > kMost)
    fail("translate", "at most 64 phrases can be required: " + std::to_string(phrases_.size()));
  for (const Phrase& p : phrases_) {
    if (p.empty()) fail("translate", "a phrase must have at least one token");
    tokens_ += static_cast<int64_t>(p.size());
  }
}

RequiredPhrases::State RequiredPhrases::after(State state, int32_t token) const {
  if (state.current >= 0) {
    // The most of the phrase that the tokens just said, this one among them, begin with.
    const Phrase& p = phrases_[static_cast<size_t>(state.current)];
    Phrase recent(p.begin(), p.begin() + state.place);
    recent.push_back(token);
    size_t n = recent.size();
    while (n > 0 && !std::equal(recent.end() - static_cast<long>(n), recent.end(), p.begin())) --n;
    state.place = static_cast<int32_t>(n);
    if (n == 0) state.current = -1;
  }
  for (size_t i = 0; i < phrases_.size() && state.current < 0; ++i)
    if ((state.said >> i & 1) == 0 && phrases_[i][0] == token) {
      state.current = static_cast<int32_t>(i);
      state.place = 1;
    }
  if (state.current >= 0 && state.place == static_cast<int32_t>(phrases_[state.current].size())) {
    state.said |= uint64_t{1} << state.current;
    state.current = -1;
    state.place = 0;
  }
  return state;
}

void RequiredPhrases::add_next(const State& state, std::vector<int32_t>& tokens) const {
  if (state.current >= 0) tokens.push_back(phrases_[state.current][static_cast<size_t>(state.place)]);
  for (size_t i = 0; i < phrases_.size(); ++i)
    if ((state.said >> i & 1) == 0 && static_cast<int32_t>(i) != state.current)
      tokens.push_back(phrases_[i][0]);
}

int64_t RequiredPhrases::tokens_said(const State& state) const {
  int64_t n = state.current >= 0 ? state.place : 0;
  for (size_t i = 0; i < phrases_.size(); ++i)
    if (state.said >> i & 1) n += static_cast<int64_t>(phrases_[i].size());
  return n;
}

void add_forbidden(const std::vector<Phrase>& phrases, const std::vector<int32_t>& said,
                   std::vector<int32_t>& tokens) {
  for (const Phrase& p : phrases)
    if (!p.empty() && p.size() <= said.size() + 1 &&
        std::equal(p.begin(), p.end() - 1, said.end() - (p.end() - p.begin() - 1)))
      tokens.push_back(p.back());
}

void add_repeating(int64_t n, const std::vector<int32_t>& said, std::vector<int32_t>& tokens) {
  const auto known = static_cast<long>(n) - 1;  // tokens of an n-gram that stand already
  for (auto at = said.begin(); said.end() - at > known; ++at)
    if (std::equal(at, at + known, said.end() - known)) tokens.push_back(at[known]);
}

}  // namespace gradus::nn
