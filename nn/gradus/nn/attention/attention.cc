#include <gradus/nn/attention/attention.h>

#include <fmt/ranges.h>

#include <gradus/nn/attention/additive.h>
#include <gradus/nn/attention/multiplicative.h>

namespace gradus::nn {

std::vector<std::string> attention_names() { return {"bahdanau", "dot", "general", "concat"}; }

std::unique_ptr<Attention> make_attention(std::string_view name, const AttentionSizes& sizes, Rng& rng) {
  if (name == "bahdanau" || name == "additive" || name == "mlp") return std::make_unique<AdditiveAttention>(sizes, rng);
  if (name == "dot") return std::make_unique<DotAttention>(sizes);
  if (name == "general" || name == "luong") return std::make_unique<GeneralAttention>(sizes, rng);
  if (name == "concat") return std::make_unique<ConcatAttention>(sizes, rng);
  fail("make_attention", fmt::format("unknown attention \"{}\": one of {}", name, fmt::join(attention_names(), ", ")));
}

}  // namespace gradus::nn
