#include "workload.h"

#include <common/split.h>
#include <gradus/io/safetensors.h>
#include <gradus/names.h>
#include <gradus/nn/attention/attention.h>
#include <gradus/ops/shape.h>

#include <algorithm>
#include <numeric>

#include "measure.h"

namespace bench {
namespace {

using gradus::DType;
using gradus::Tensor;
namespace nn = gradus::nn;

// The one place that knows how the peer calls what: beginnings of names, of one variant or of both.
struct Renaming {
  const char *peer, *ours, *variant = "";
};
constexpr Renaming kNames[] = {{"src.weight", "encoder.embedding.weight"},
                               {"enc.", "encoder.rnn."},
                               {"tgt.weight", "decoder.embedding.weight"},
                               {"dec.bridge.", "decoder.bridge."},
                               {"out.", "output."},
                               {"dec.w1.weight", "decoder.attention.query.weight", "bahdanau"},
                               {"dec.w2.weight", "decoder.attention.key.weight", "bahdanau"},
                               {"dec.v", "decoder.attention.v", "bahdanau"},
                               {"dec.cell.", "decoder.cell.", "bahdanau"},
                               {"dec.wc.", "decoder.readout.", "bahdanau"},
                               {"dec.wa.weight", "decoder.attention.key.weight", "luong"},
                               {"dec.gru.weight_ih_l0", "decoder.cell.weight_ih", "luong"},
                               {"dec.gru.weight_hh_l0", "decoder.cell.weight_hh", "luong"},
                               {"dec.gru.bias_ih_l0", "decoder.cell.bias_ih", "luong"},
                               {"dec.gru.bias_hh_l0", "decoder.cell.bias_hh", "luong"},
                               {"dec.wc.", "decoder.attention_vector.", "luong"}};

// A name that no rule knows stays as it is: load_state_dict then names it as unexpected.
std::string renamed(const std::string& name, const std::string& variant, const char* Renaming::*from,
                    const char* Renaming::*to) {
  for (const Renaming& r : kNames)
    if ((!*r.variant || r.variant == variant) && name.starts_with(r.*from))
      return r.*to + name.substr(std::string(r.*from).size());
  return name;
}

std::vector<std::string> list(const std::string& names, const std::vector<std::string>& all,
                              const char* what) {
  if (names == "all") return all;
  std::string known;
  for (const std::string& name : all) known += (known.empty() ? "" : ", ") + name;
  std::vector<std::string> out;
  for (const std::string& name : translator::split(names, ',')) {
    if (std::find(all.begin(), all.end(), name) == all.end()) {
      const std::string nearest = gradus::nearest_name(name, all);
      gradus::fail("workload", std::string("unknown ") + what + ": " + name + " (known: " + known + ")",
                   nearest.empty() ? "" : nearest + "?");
    }
    out.push_back(name);
  }
  return out;
}

// Everything that follows from the three tensors that are drawn or read.
Batch complete(Tensor source, Tensor lengths, Tensor target) {
  int64_t T = target.size(0), B = target.size(1);
  Batch b{source, lengths, Tensor({T, B}, DType::i32), target, 0, 0};
  for (int64_t k = 0; k < B; ++k) b.target_in.i32()[k] = kBos;
  std::copy_n(target.i32(), (T - 1) * B, b.target_in.i32() + B);
  for (int64_t i = 0; i < T * B; ++i) {
    b.target_tokens += target.i32()[i] != kPad;
    b.source_tokens += source.i32()[i] != kPad;
  }
  return b;
}

Tensor random_words(const Size& size, const std::vector<int32_t>& lengths, gradus::Rng& rng) {
  int64_t B = static_cast<int64_t>(lengths.size());
  Tensor ids({size.T, B}, DType::i32);
  for (int64_t t = 0; t < size.T; ++t)
    for (int64_t b = 0; b < B; ++b)
      ids.i32()[t * B + b] = t < lengths[static_cast<size_t>(b)]
                                 ? kFirstWord + static_cast<int32_t>(rng.below(size.V - kFirstWord))
                                 : kPad;
  return ids;
}

Tensor columns(const Tensor& x, const std::vector<int64_t>& chosen) {
  int64_t rows = x.dims() == 2 ? x.size(0) : 1, width = x.size(-1), n = static_cast<int64_t>(chosen.size());
  Tensor out(x.dims() == 2 ? gradus::Shape{rows, n} : gradus::Shape{n}, DType::i32);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < n; ++k)
      out.i32()[r * n + k] = x.i32()[r * width + chosen[static_cast<size_t>(k)]];
  return out;
}

std::unique_ptr<nn::Decoder> make_decoder(const Size& s, const std::string& variant, gradus::Rng& rng) {
  bool before = variant == "bahdanau";
  auto attention = nn::make_attention(before ? "bahdanau" : "general", {s.H, 2 * s.H, s.H}, rng);
  nn::DecoderOptions options{.padding_idx = kPad,
                             .order = before ? nn::Order::before_cell : nn::Order::after_cell};
  return std::make_unique<nn::RecurrentDecoder>(nn::DecoderSizes{s.V, s.E, s.H, 2 * s.H, s.H},
                                                std::move(attention), rng, options);
}

}  // namespace

std::vector<Size> sizes_named(const std::string& names) {
  const std::vector<Size> known = {
      {"toy", 2000, 64, 128, 32, 10}, {"small", 8000, 256, 256, 64, 16}, {"base", 16000, 512, 512, 64, 24}};
  std::vector<Size> out;
  for (const std::string& name : list(names, {"toy", "small", "base"}, "size"))
    for (const Size& size : known)
      if (size.name == name) out.push_back(size);
  return out;
}

std::vector<std::string> variants_named(const std::string& names) {
  return list(names, {"bahdanau", "luong"}, "variant");
}

std::vector<Batch> random_batches(const Size& size, int count, uint64_t seed) {
  gradus::Rng rng(seed, 1);
  auto draw_lengths = [&] {
    std::vector<int32_t> lengths(static_cast<size_t>(size.B));
    for (int32_t& n : lengths) n = static_cast<int32_t>(size.T / 2 + rng.below(size.T - size.T / 2 + 1));
    return lengths;
  };
  std::vector<Batch> out;
  for (int i = 0; i < count; ++i) {
    std::vector<int32_t> source = draw_lengths(), target = draw_lengths();
    std::sort(source.rbegin(), source.rend());
    Tensor source_ids = random_words(size, source, rng);
    out.push_back(complete(source_ids, Tensor::from_ids({size.B}, source), random_words(size, target, rng)));
  }
  return out;
}

std::vector<Batch> load_batches(const std::string& path, const Size& size) {
  std::map<std::string, Tensor> given;
  for (auto& [name, tensor] : gradus::load_safetensors(path).tensors) given[name] = tensor;
  auto take = [&](const std::string& name, const gradus::Shape& shape) {
    auto at = given.find(name);
    if (at == given.end()) gradus::fail("workload", path + " has no " + name);
    if (at->second.dtype() != DType::i32 || at->second.shape() != shape)
      gradus::fail("workload",
                   path + ": " + name + " must be integers " + shape.str() + ": " + at->second.shape().str());
    return at->second;
  };
  std::vector<Batch> out;
  for (int k = 0; k == 0 || given.count(std::to_string(k) + ".source"); ++k) {
    const std::string name = std::to_string(k);
    out.push_back(complete(take(name + ".source", {size.T, size.B}), take(name + ".source_lengths", {size.B}),
                           take(name + ".target", {size.T, size.B})));
  }
  return out;
}

Batch random_sources(const Size& size, int64_t B, uint64_t seed) {
  gradus::Rng rng(seed, 2);
  std::vector<int32_t> lengths(static_cast<size_t>(B), static_cast<int32_t>(size.T));
  Tensor ids = random_words(size, lengths, rng);
  return complete(ids, Tensor::from_ids({B}, lengths), ids);
}

std::vector<Batch> split(const Batch& batch, int shards) {
  if (shards <= 1) return {batch};
  size_t n = static_cast<size_t>(shards);
  std::vector<int64_t> order(static_cast<size_t>(batch.lengths.numel()));
  std::iota(order.begin(), order.end(), 0);
  const Tensor words = nn::target_lengths(batch.target_out, kPad);  // [B]
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return words.at(a) > words.at(b); });
  // There and back: 0 1 2 2 1 0 0 1 2 ..., so that nobody always gets the longest.
  std::vector<std::vector<int64_t>> parts(n);
  for (size_t i = 0; i < order.size(); ++i) parts[(i / n) % 2 ? n - 1 - i % n : i % n].push_back(order[i]);
  std::vector<Batch> out;
  for (std::vector<int64_t>& part : parts) {
    if (part.empty()) continue;
    std::sort(part.begin(), part.end());  // longest source first, as before
    out.push_back(
        complete(columns(batch.source, part), columns(batch.lengths, part), columns(batch.target_out, part)));
  }
  return out;
}

Network::Network(const Size& s, const std::string& variant, gradus::Rng& rng)
    : encoder(s.V, s.E, s.H, rng, {.padding_idx = kPad}),
      decoder(make_decoder(s, variant, rng)),
      output(s.H, s.V, rng) {}

nn::ShardOutput Network::outputs(const Batch& batch) const {
  Tensor lengths = nn::target_lengths(batch.target_out, kPad);
  nn::DecoderOutputs out =
      decoder->teacher_forced(batch.target_in, encoder(batch.source, batch.lengths), {.lengths = lengths});
  return {out.readout, nn::target_words(batch.target_out, lengths)};
}

void Network::params(nn::ParamVisitor& visit) {
  visit("encoder", encoder);
  visit("decoder", *decoder);
  visit("output", output);
}

void load_from_peer(Network& network, const std::string& variant, const std::string& path) {
  nn::StateDict weights;
  for (auto& [name, tensor] : gradus::load_safetensors(path).tensors)
    weights.emplace_back(renamed(name, variant, &Renaming::peer, &Renaming::ours), tensor);
  nn::load_state_dict(network, weights);
}

void save_for_peer(const Network& network, const std::string& variant, const std::string& path) {
  gradus::SafetensorsFile file;
  for (auto& [name, tensor] : nn::state_dict(network))
    file.tensors.emplace_back(renamed(name, variant, &Renaming::ours, &Renaming::peer), tensor);
  gradus::save_safetensors(path, file);
}

std::vector<Work> prepare(const std::vector<Batch>& batches, int threads) {
  std::vector<Work> out;
  for (const Batch& b : batches) out.push_back({split(b, threads), b.target_tokens, b.source_tokens});
  return out;
}

StepTimes TrainingStep::run(const Work& work) {
  StepTimes times;
  Stopwatch whole, watch;
  size_t count = work.shards.size();
  std::vector<double> forward(count);
  gradus::Training training(1);
  nn::OutputGradients out = nn::parallel_output_gradients(
      pool_, static_cast<int>(count),
      [&](int k) {
        Stopwatch own;
        size_t i = static_cast<size_t>(k);
        nn::ShardOutput shard = network_.outputs(work.shards[i]);
        forward[i] = own.lap();
        return shard;
      },
      {network_.output.weight, network_.output.bias, {.ignore_index = kPad}});
  double both = watch.lap();
  times.forward = *std::max_element(forward.begin(), forward.end());
  times.backward = both - times.forward;
  double norm = nn::grad_norm(out.gradients, &pool_);
  times.clip = watch.lap();
  adam_.step(network_, out.gradients, nn::clip_factor(norm, 1), &pool_);
  times.adam = watch.lap();
  times.loss = out.nll / static_cast<double>(out.tokens);
  out = {};  // the peer's gradients are freed within a step, too
  times.total = whole.lap();
  times.target = static_cast<double>(work.target_tokens) / times.total * 1e3;
  times.words = static_cast<double>(work.target_tokens + work.source_tokens) / times.total * 1e3;
  return times;
}

}  // namespace bench
