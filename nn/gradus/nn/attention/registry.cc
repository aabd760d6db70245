#include <fmt/ranges.h>

#include <algorithm>

#include <gradus/nn/attention/additive.h>
#include <gradus/nn/attention/given.h>
#include <gradus/nn/attention/hard.h>
#include <gradus/nn/attention/history.h>
#include <gradus/nn/attention/location.h>
#include <gradus/nn/attention/multihead.h>
#include <gradus/nn/attention/multiplicative.h>
#include <gradus/nn/check.h>

namespace gradus::nn {
namespace {

template <class T>
AttentionKind bahdanau_order(std::string name, std::vector<std::string> aliases, std::string description) {
  return {
      std::move(name),
      std::move(aliases),
      std::move(description),
      false,
      false,
      [](const AttentionSizes& sizes, Rng& rng) { return std::unique_ptr<Attention>(new T(sizes, rng)); }};
}

template <class T>
AttentionKind luong_order(std::string name, std::vector<std::string> aliases, std::string description,
                          bool equal_sizes = false) {
  AttentionKind kind = bahdanau_order<T>(std::move(name), std::move(aliases), std::move(description));
  kind.luong_order = true;
  kind.equal_sizes = equal_sizes;
  return kind;
}

// The library's own. A new one is a line here.
std::vector<AttentionKind> own() {
  return {
      bahdanau_order<AdditiveAttention>("bahdanau", {"additive", "mlp"},
                                        "v . tanh(W1 query + W2 annotation)"),
      luong_order<DotAttention>("dot", {}, "query . annotation", true),
      luong_order<ScaledDotAttention>("scaled-dot", {"scaled_dot"}, "query . annotation / sqrt(D)", true),
      luong_order<GeneralAttention>("general", {"luong"}, "query . W annotation"),
      luong_order<ConcatAttention>("concat", {}, "v . tanh(W [query ; annotation])"),
      luong_order<ConcatIdentityAttention>("concat-identity", {}, "v . tanh(W query + annotation)"),
      luong_order<LocationAttention>("location", {}, "W query, whatever stands at the positions"),
      bahdanau_order<LocationAwareAttention>("location-aware", {"chorowski"},
                                             "additive, with the previous weights convolved into the score"),
      luong_order<LocalMonotonicAttention>("local-m", {},
                                           "general, in a window around the target's position"),
      luong_order<LocalPredictiveAttention>("local-p", {},
                                            "general, in a Gaussian window around a predicted position"),
      bahdanau_order<CoverageAttention>("coverage", {},
                                        "additive, with the sum of all previous weights in the score"),
      luong_order<MultiheadSourceAttention>(
          "multihead", {"multi-head"}, "scaled dot products of several heads, on projections of both sides"),
      bahdanau_order<HardAttention>("hard", {},
                                    "one word at a time, drawn by additive scores, learned by REINFORCE"),
      bahdanau_order<UniformAttention>("uniform", {}, "all words equally: nothing to learn"),
      bahdanau_order<OracleAttention>("oracle", {},
                                      "where the gold alignments of the data point: nothing to learn"),
  };
}

std::vector<AttentionKind>& kinds() {
  static std::vector<AttentionKind> all = own();
  return all;
}

bool is_called(const AttentionKind& kind, std::string_view name) {
  return kind.name == name || std::find(kind.aliases.begin(), kind.aliases.end(), name) != kind.aliases.end();
}

const AttentionKind* find(std::string_view name) {
  for (const AttentionKind& kind : kinds())
    if (is_called(kind, name)) return &kind;
  return nullptr;
}

}  // namespace

const std::vector<AttentionKind>& attention_kinds() { return kinds(); }

std::vector<std::string> attention_names() {
  std::vector<std::string> out;
  for (const AttentionKind& kind : kinds()) out.push_back(kind.name);
  return out;
}

const AttentionKind& attention_kind(std::string_view name) {
  if (const AttentionKind* kind = find(name)) return *kind;
  unknown_name("make_attention", "attention", name, attention_names());
}

std::unique_ptr<Attention> make_attention(std::string_view name, const AttentionSizes& sizes,
                                          const RngInput& rng) {
  At at(rng.caller());
  return attention_kind(name).make(sizes, rng);
}

std::unique_ptr<ScoredAttention> make_score(const AttentionSizes& sizes, std::string_view otherwise,
                                            const RngInput& rng) {
  At at(rng.caller());
  std::string_view name = sizes.options.score.empty() ? otherwise : std::string_view(sizes.options.score);
  AttentionSizes plain = sizes;
  plain.options.score.clear();
  std::unique_ptr<Attention> made = make_attention(name, plain, rng);
  // The registry makes attentions of any kind; only those with a score can be built on.
  auto* scored = dynamic_cast<ScoredAttention*>(made.get());
  if (!scored) fail("make_score", fmt::format("{} has no scores of its own to build on", name));
  static_cast<void>(made.release());  // it is `scored`
  return std::unique_ptr<ScoredAttention>(scored);
}

void register_attention(AttentionKind kind) {
  std::vector<std::string> names = kind.aliases;
  names.push_back(kind.name);
  for (const std::string& name : names)
    if (name.empty() || name == "none" || find(name))
      fail("register_attention", fmt::format("the name \"{}\" is taken", name));
  kinds().push_back(std::move(kind));
}

}  // namespace gradus::nn
