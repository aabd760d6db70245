#include "ablate.h"

#include <cmath>

#include <gradus/error.h>
#include <gradus/nn/optimizer.h>
#include <gradus/ops.h>

#include "norms.h"

namespace lens {
namespace {

using namespace gradus;

constexpr int64_t kDigits = 10;
constexpr int32_t kBegin = 10;  // what the decoder is fed first

AblateEpoch look(const AblateTask& task, const ToyTranslator& model, const Digits& digits, Cut cut) {
  AblateEpoch out;
  out.ways = ways_of(model, digits, cut);
  NoGrad guard;
  ToyTranslator::Result r = model(digits, cut);
  int64_t L = task.length, B = digits.source.size(1);
  out.loss = r.loss.item();
  out.accuracy = static_cast<double>(r.right) / static_cast<double>(L * B);
  out.alignment.assign(static_cast<size_t>(L), std::vector<double>(static_cast<size_t>(L), 0));
  for (int64_t t = 0; t < L; ++t)
    for (int64_t b = 0; b < B; ++b) {
      auto weight = [&](int64_t j) { return r.weights.at((t * B + b) * L + j); };
      for (int64_t j = 0; j < L; ++j)
        out.alignment[static_cast<size_t>(t)][static_cast<size_t>(j)] += weight(j) / static_cast<double>(B);
      int64_t place = position_of(task, t);
      out.on_place += weight(place) / static_cast<double>(L * B);
      if (place + 1 < L) out.one_later += weight(place + 1) / static_cast<double>(L * B);
    }
  return out;
}

}  // namespace

std::string name_of(Cut cut) {
  static const char* const names[] = {"none", "value", "score", "recurrent"};
  return names[static_cast<int>(cut)];
}

Cut cut_of(const std::string& name) {
  for (Cut cut : {Cut::none, Cut::value, Cut::score, Cut::recurrent})
    if (name_of(cut) == name) return cut;
  fail("ablate", "unknown cut \"" + name + "\": one of value, score, recurrent, none");
}

int64_t position_of(const AblateTask& task, int64_t t) {
  return task.kind == "copy" ? t : task.length - 1 - t;
}

Digits draw(const AblateTask& task, uint64_t stream, int64_t count) {
  Rng rng(task.seed, stream);
  Digits d{Tensor({task.length, count}, DType::i32), Tensor({task.length, count}, DType::i32)};
  for (int64_t i = 0; i < d.source.numel(); ++i) d.source.i32()[i] = static_cast<int32_t>(rng.below(kDigits));
  for (int64_t t = 0; t < task.length; ++t)
    for (int64_t b = 0; b < count; ++b)
      d.target.i32()[t * count + b] = d.source.i32()[position_of(task, t) * count + b];
  return d;
}

ToyTranslator::ToyTranslator(int64_t hidden, Rng& rng)
    : source_embedding(kDigits, hidden, rng),
      target_embedding(kDigits + 1, hidden, rng),
      encoder(nn::cell_type("gru"), hidden, hidden, rng),
      decoder(nn::cell_type("gru"), 2 * hidden, hidden, rng),
      query(hidden, hidden, rng),
      key(hidden, hidden, rng, {.bias = false}),
      v(hidden, 1, rng, {.bias = false}),
      output(2 * hidden, kDigits, rng) {}

void ToyTranslator::params(nn::ParamVisitor& visit) {
  visit("source_embedding", source_embedding);
  visit("target_embedding", target_embedding);
  visit("encoder", encoder);
  visit("decoder", decoder);
  visit("query", query);
  visit("key", key);
  visit("v", v);
  visit("output", output);
}

ToyTranslator::Result ToyTranslator::operator()(const Digits& digits, Cut cut) const {
  int64_t L = digits.source.size(0), B = digits.source.size(1), H = encoder.hidden_size();
  Result out;
  Var h = Tensor::zeros({B, H}, encoder.weight_hh.value().dtype());
  Var words = source_embedding(digits.source);  // [L, B, H]
  for (int64_t j = 0; j < L; ++j) {
    Var before = h;
    if (j > 0) {
      out.recurrent.push_back(tap(h, "recurrent"));
      before = cut == Cut::recurrent ? stop_gradient(out.recurrent.back()) : out.recurrent.back();
    }
    h = encoder.step(select(words, 0, j), {before, {}}).h;
    out.states.push_back(h);
  }
  Var annotations = stack(out.states, 1);  // [B, L, H]
  out.value = tap(annotations, "value");
  out.score = tap(annotations, "score");
  Var values = cut == Cut::value ? stop_gradient(out.value) : out.value;
  Var keys = key(out.score);
  Tensor previous({L, B}, DType::i32);
  for (int64_t i = 0; i < previous.numel(); ++i)
    previous.i32()[i] = i < B ? kBegin : digits.target.i32()[i - B];
  Var fed = target_embedding(previous);
  Var s = Tensor::zeros({B, H}, encoder.weight_hh.value().dtype());
  std::vector<Var> logits;
  out.weights = Tensor({L, B, L}, s.dtype());
  for (int64_t t = 0; t < L; ++t) {
    Var u = tanh(keys + reshape(query(s), {B, 1, H}));
    Var scores = reshape(v(u), {B, L});  // e_tj = v . tanh(Wa s_{t-1} + Ua h_j)
    if (cut == Cut::score) scores = stop_gradient(scores);
    Var weights = softmax(scores);
    for (int64_t i = 0; i < B * L; ++i) out.weights.set(t * B * L + i, weights.value().at(i));
    Var context = reshape(matmul(reshape(weights, {B, 1, L}), values), {B, H});
    s = decoder.step(concat({select(fed, 0, t), context}, 1), {s, {}}).h;
    logits.push_back(output(concat({s, context}, 1)));
  }
  Var all = stack(logits, 0);  // [T, B, 10]
  out.loss = cross_entropy(all, digits.target).loss;
  Tensor best = argmax(all.value());
  for (int64_t i = 0; i < best.numel(); ++i) out.right += best.i32()[i] == digits.target.i32()[i];
  return out;
}

Ways ways_of(const ToyTranslator& model, const Digits& digits, Cut cut) {
  ToyTranslator::Result r = model(digits, cut);
  std::vector<Var> keep = r.recurrent;
  keep.insert(keep.end(), {r.value, r.score});
  Gradients grads = backward(r.loss, {.keep = keep});
  auto arrived = [&](const Var& x) { return grads.contains(x) ? norm(grads[x]) : 0; };
  double squares = 0;
  for (const Var& h : r.recurrent) squares += std::pow(arrived(h), 2);
  return {arrived(r.value), arrived(r.score), std::sqrt(squares)};
}

Ablation ablate(const AblateTask& task, Cut cut, const std::function<void()>& told) {
  Rng rng(task.seed);
  ToyTranslator model(task.hidden, rng);
  nn::Adam adam({.lr = task.lr});
  Digits unseen = draw(task, 1, 64);
  Ablation out{cut, {look(task, model, unseen, cut)}};
  uint64_t stream = 2;
  for (int64_t epoch = 0; epoch < task.epochs; ++epoch) {
    for (int64_t step = 0; step < task.steps; ++step) {
      Gradients grads = backward(model(draw(task, stream++, task.batch), cut).loss);
      nn::clip_grad_norm(grads, 1);
      adam.step(model, grads);
    }
    out.epochs.push_back(look(task, model, unseen, cut));
    if (told) told();
  }
  return out;
}

}  // namespace lens
