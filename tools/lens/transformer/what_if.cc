// What a page needs to compute a Transformer anew when the scores, temperature or mask of a head change, or the
// head is switched off: all matrices from there on. And a few changes with what the engine makes of them, which
// the page's own numbers are held against.

#include <gradus/ops.h>

#include "output.h"

namespace lens::transformer {
namespace {

using namespace gradus;

constexpr int64_t kMostWeights = 120000;  // a page stays under 2 MB
const Numbers kNumbers{11};

json matrix(const nn::Linear& linear) {
  return {{"weight", base64_f32(linear.weight.value())}, {"bias", base64_f32(linear.bias.value())}};
}

json norm_json(const nn::LayerNorm* norm) {
  if (!norm) return nullptr;
  return {{"weight", base64_f32(norm->weight.value())},
          {"bias", base64_f32(norm->bias.value())},
          {"eps", norm->eps}};
}

// Weights of one head of a part, changed: switched "off", or of one row "temperature" 2, "mask" of a column, or
// a score "raise"d by 1.
struct Change {
  const char* what;
  int64_t row, column;
};

// The part's weights with one head changed; the page does the same by itself.
Tensor changed(const Dissection& d, const Sublayer& s, int64_t head, const Change& change) {
  const Tensor& e = s[kScores].value();
  const int64_t R = e.size(2), C = e.size(3);
  const Tensor allowed = d.mask(s);
  Tensor scores = e.clone(), mask = Tensor::zeros({1, e.size(1), R, C}, DType::u8);
  const std::string what = change.what;
  for (int64_t k = 0; k < e.numel(); ++k) {
    const int64_t h = k / (R * C), i = k / C % R, j = k % C;
    mask.u8()[k] = !allowed.defined() || allowed.u8()[i * C + j];
    if (h != head) continue;
    if (what == "off") mask.u8()[k] = 0;
    if (i != change.row) continue;
    if (what == "temperature") scores.f64()[k] /= 2;
    if (what == "mask" && j == change.column) mask.u8()[k] = 0;
    if (what == "raise" && j == change.column) scores.f64()[k] += 1;
  }
  NoGrad guard;
  return softmax(scores, {.mask = mask}).value();
}

}  // namespace

json what_if_json(const Explained& x) {
  const nn::TransformerSeq2Seq& network = x.d.network();
  const Run& run = x.trace.run;
  int64_t weights = 0;
  for (const nn::TransformerEncoderLayer& l : network.encoder.layers)
    weights += l.self_attn.in_proj_weight.value().numel() * 4 / 3 +
               2 * l.feed_forward.linear1.weight.value().numel();
  for (const nn::TransformerDecoderLayer& l : network.decoder.layers)
    weights += l.self_attn.in_proj_weight.value().numel() * 8 / 3 +
               2 * l.feed_forward.linear1.weight.value().numel();
  if (weights > kMostWeights)
    return {{"unavailable", "A page that computes this model anew would carry its " +
                                std::to_string(weights) + " weights; up to " + std::to_string(kMostWeights) +
                                " are taken along."}};
  auto attention = [](const nn::MultiheadAttention& a) -> json {
    return {
        {"in",
         {{"weight", base64_f32(a.in_proj_weight.value())}, {"bias", base64_f32(a.in_proj_bias.value())}}},
        {"out", matrix(a.out_proj)}};
  };
  json parts = json::array();
  for (const Sublayer& s : run.parts) {
    json part = {{"norm", norm_json(x.d.norm(s))}};
    if (attends(s.part))
      part["attention"] = attention(x.d.attention(s));
    else if (s.part != Part::output)
      part["hidden"] = matrix(x.d.feed_forward(s).linear1), part["out"] = matrix(x.d.feed_forward(s).linear2);
    parts.push_back(part);
  }
  std::vector<Tensor> logits;
  for (int64_t t = 0; t < run.logits.size(0); ++t)
    logits.push_back(run.logits.value().row(t).reshape({run.logits.size(2)}));

  // One change of each kind in each attention.
  json examples = json::array();
  for (size_t p = 0; p < run.parts.size(); ++p) {
    const Sublayer& s = run.parts[p];
    if (!attends(s.part)) continue;
    const int64_t head = p == x.trace.spot.part ? x.trace.spot.head : static_cast<int64_t>(p) % x.d.heads();
    const int64_t row = s[kScores].size(2) - 1;
    for (const Change& change : {Change{"off", 0, 0}, Change{"temperature", row, 0}, Change{"mask", row, 0},
                                 Change{"raise", row, 0}}) {
      const auto losses = x.d.losses(run, p, {kWeights}, changed(x.d, s, head, change), false);
      examples.push_back({{"part", p},
                          {"head", head},
                          {"change", change.what},
                          {"row", change.row},
                          {"column", change.column},
                          {"losses", kNumbers(losses[0])}});
    }
  }
  const Numbers full{.bytes = 5};
  auto rows = [&](const Var& v) { return full.array(v.value().reshape({v.size(0), v.size(2)})); };
  return {{"source", rows(run.source)},
          {"target", rows(run.target)},
          {"memory_norm", norm_json(network.encoder.norm ? &*network.encoder.norm : nullptr)},
          {"parts", parts},
          {"output",
           output_json(x.subject.model, logits, x.d.target(), network.output_weight, network.output_bias)},
          {"examples", examples}};
}

}  // namespace lens::transformer
