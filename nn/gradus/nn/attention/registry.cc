#include <fmt/core.h>

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

constexpr bool luong_order = true, equal_sizes = true;

// The library's own, of which a new one is a line here, and those that were registered.
std::vector<AttentionKind>& kinds() {
  static std::vector<AttentionKind> all = {
      attention_kind_of<AdditiveAttention>("bahdanau", "v . tanh(W1 query + W2 annotation)",
                                           {"additive", "mlp"}),
      attention_kind_of<DotAttention>("dot", "query . annotation", {}, luong_order, equal_sizes),
      attention_kind_of<ScaledDotAttention>("scaled-dot", "query . annotation / sqrt(D)", {"scaled_dot"},
                                            luong_order, equal_sizes),
      attention_kind_of<GeneralAttention>("general", "query . W annotation", {"luong"}, luong_order),
      attention_kind_of<ConcatAttention>("concat", "v . tanh(W [query ; annotation])", {}, luong_order),
      attention_kind_of<ConcatIdentityAttention>("concat-identity", "v . tanh(W query + annotation)", {},
                                                 luong_order),
      attention_kind_of<LocationAttention>("location", "W query, whatever stands at the positions", {},
                                           luong_order),
      attention_kind_of<LocationAwareAttention>(
          "location-aware", "additive, with the previous weights convolved into the score", {"chorowski"}),
      attention_kind_of<LocalMonotonicAttention>(
          "local-m", "general, in a window around the target's position", {}, luong_order),
      attention_kind_of<LocalPredictiveAttention>(
          "local-p", "general, in a Gaussian window around a predicted position", {}, luong_order),
      attention_kind_of<CoverageAttention>("coverage",
                                           "additive, with the sum of all previous weights in the score"),
      attention_kind_of<MultiheadSourceAttention>(
          "multihead", "scaled dot products of several heads, on projections of both sides", {"multi-head"},
          luong_order),
      attention_kind_of<HardAttention>("hard",
                                       "one word at a time, drawn by additive scores, learned by REINFORCE"),
      attention_kind_of<UniformAttention>("uniform", "all words equally: nothing to learn"),
      attention_kind_of<OracleAttention>("oracle",
                                         "where the gold alignments of the data point: nothing to learn"),
  };
  return all;
}

const AttentionKind* find(std::string_view name) {
  for (const AttentionKind& kind : kinds())
    if (kind.name == name || std::count(kind.aliases.begin(), kind.aliases.end(), name)) return &kind;
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
