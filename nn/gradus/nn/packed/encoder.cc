#include <gradus/nn/packed/encoder.h>

#include <algorithm>
#include <numeric>

#include <gradus/kernels/inference.h>
#include <gradus/kernels/layer_norm.h>
#include <gradus/ops/recurrence.h>

namespace gradus::nn::packed {
namespace {

constexpr int64_t kRows = 64;  // rows of words that meet W_ih at once, or a few more

void check_ids(const Embedding& embedding, const int32_t* ids, int64_t n) {
  int64_t V = embedding.weight.shape()[0];
  for (int64_t i = 0; i < n; ++i)
    if (ids[i] < 0 || ids[i] >= V)
      fail("embedding", "ids are 0 .. " + std::to_string(V - 1) + ": " + std::to_string(ids[i]));
}

}  // namespace

GateNorm::GateNorm(const RecurrentParameters& cell, Of of) {
  if (cell.norms.empty()) return;
  const RecurrentParameters::Norm& norm = cell.norms[of];
  gain_ = norm.weight.value();
  offset_ = norm.bias.defined() ? norm.bias.value() : Tensor::zeros(gain_.shape());
}

void GateNorm::operator()(int64_t rows, float* x, int64_t stride) const {
  if (!*this) return;
  static thread_local std::vector<float> stats;  // which nobody asks for
  stats.resize(std::max(stats.size(), static_cast<size_t>(2 * rows)));
  const int64_t H = gain_.numel() / 3;
  for (const auto& [begin, n] : {std::pair{int64_t{0}, 2 * H}, {2 * H, H}})
    kernels::layer_norm(rows, n, x + begin, stride, gain_.f32() + begin, offset_.f32() + begin,
                        static_cast<float>(kLayerNormEps), false, x + begin, stride, stats.data());
}

bool PackedEncoder::fits(const Encoder& e) {
  const RecurrentOptions& options = e.rnn.options;
  return options.cell.is_packed_gru() && !options.residual && !options.reference &&
         e.embedding.weight.value().dtype() == DType::f32 &&
         e.rnn.weights[0].weight_hh.value().dtype() == DType::f32;
}

PackedEncoder::PackedEncoder(const Encoder& e, const Layout& layout) : encoder_(e), H_(e.rnn.hidden_size) {
  for (const RecurrentParameters& w : e.rnn.weights) {
    if (layers_.empty() || std::ssize(layers_.back()) == e.rnn.directions()) layers_.emplace_back();
    layers_.back().push_back({Matrix({w.weight_ih}, layout), Matrix({w.weight_hh}, layout),
                              numbers(w.bias_ih), numbers(w.bias_hh), GateNorm(w, GateNorm::inputs),
                              GateNorm(w, GateNorm::states)});
  }
}

// One direction of a layer. x holds the words of all steps, row after row; the state after row i goes to row
// place[i] of `to`, whose rows are `stride` apart, and the last one of each sentence to buffers.final.
void PackedEncoder::read(const Direction& w, bool backward, const PackedSequence& steps, const Tensor& x,
                         const std::vector<int64_t>& place, float* to, int64_t stride,
                         const Buffers& buffers) const {
  const int64_t I = x.size(1), G = 3 * H_;
  float *gi = buffers.gi.f32(), *gh = buffers.gh.f32(), *state = buffers.state.f32();
  std::fill_n(state, buffers.state.numel(), 0.0f);
  int64_t known = 0;  // rows that have a state which is not 0
  const auto step = [&](int64_t t, const float* of_words) {
    const int64_t n = steps.count(t), old = std::min(known, n), first = steps.offset(t);
    if (old > 0) w.hh.product(old, state, H_, gh);
    std::fill_n(gh + old * G, (n - old) * G, 0.0f);
    w.norm_hh(n, gh, G);
    kernels::gru_state(n, H_, {of_words, G, nullptr, 0, gh, G, w.b_ih, w.b_hh, state, H_}, state, H_);
    for (int64_t i = 0; i < n; ++i)
      std::copy_n(state + i * H_, H_, to + place[static_cast<size_t>(first + i)] * stride);
    known = n;
  };
  // Some steps at a time are multiplied with W_ih: few enough for the cache, and none alone if it has few rows.
  std::vector<int64_t> begins{0};  // of the groups, and the end
  for (int64_t t = 0; steps.offset(t) < steps.total(); ++t) {
    const int64_t end = steps.offset(t + 1);
    if (end == steps.total() || end - steps.offset(begins.back()) >= kRows) begins.push_back(t + 1);
  }
  for (size_t k = 1, last = begins.size() - 1; k <= last; ++k) {
    const size_t group = backward ? last + 1 - k : k;
    const int64_t begin = begins[group - 1], end = begins[group];
    const int64_t first = steps.offset(begin), n = steps.offset(end) - first;
    w.ih.product(n, x.f32() + first * I, I, gi);
    w.norm_ih(n, gi, G);
    for (int64_t i = 0; i < end - begin; ++i) {
      const int64_t t = backward ? end - 1 - i : begin + i;
      step(t, gi + (steps.offset(t) - first) * G);
    }
  }
  for (int64_t i = 0; i < buffers.final.size(0); ++i)
    std::copy_n(state + i * H_, H_, buffers.final.f32() + steps.sequence(i) * H_);
}

Annotations PackedEncoder::operator()(const Tensor& ids, const Tensor& lengths, Team& team) const {
  if (ids.dims() != 2 || ids.dtype() != DType::i32)
    fail("encoder", "ids must be i32 [S, B]: " + ids.shape().str());
  int64_t S = ids.size(0), B = ids.size(1), E = encoder_.embedding.weight.shape()[1];
  check_lengths("encoder", lengths, S, B);
  const PackedSequence steps(lengths, S, B);
  Annotations out;
  out.begin = {0};
  for (int64_t b = 0; b < B; ++b)
    out.begin.push_back(out.begin.back() + (lengths.defined() ? lengths.i32()[b] : S));

  check_ids(encoder_.embedding, ids.i32(), S * B);  // of the padding, too
  Tensor words = steps.pack(ids.reshape({S, B, 1})), x = steps.empty(E, DType::f32);
  look_up(encoder_.embedding, words.i32(), steps.total(), x.f32(), E);
  // States are written step after step for a layer above, and by sentences at last.
  std::vector<int64_t> by_step(static_cast<size_t>(steps.total())), by_sentence(by_step.size());
  std::iota(by_step.begin(), by_step.end(), int64_t{0});
  for (int64_t t = 0; t < S; ++t)
    for (int64_t i = 0; i < steps.count(t); ++i)
      by_sentence[static_cast<size_t>(steps.offset(t) + i)] =
          out.begin[static_cast<size_t>(steps.sequence(i))] + t;

  const size_t n = layers_[0].size();
  std::vector<Buffers> buffers;
  for (size_t d = 0; d < n; ++d)
    buffers.push_back({Tensor({std::min(S * B, B + kRows), 3 * H_}, DType::f32),
                       Tensor({B, 3 * H_}, DType::f32), Tensor({B, H_}, DType::f32),
                       Tensor({B, H_}, DType::f32)});
  for (const auto& layer : layers_) {
    const bool last = &layer == &layers_.back();
    Tensor to = steps.empty(static_cast<int64_t>(n) * H_, DType::f32);
    team.run([&](int member) {
      for (size_t d = static_cast<size_t>(member); d < n; d += static_cast<size_t>(team.size()))
        read(layer[d], encoder_.rnn.in_reverse(static_cast<int64_t>(d)), steps, x,
             last ? by_sentence : by_step, to.f32() + static_cast<int64_t>(d) * H_, to.size(1), buffers[d]);
    });
    x = to;
  }
  out.annotations = x;
  out.forward_final = buffers[0].final;
  if (n > 1) out.backward_final = buffers[1].final;
  return out;
}

void look_up(const Embedding& embedding, const int32_t* ids, int64_t n, float* out, int64_t stride) {
  int64_t E = embedding.weight.shape()[1];
  const float* table = embedding.weight.value().f32();
  check_ids(embedding, ids, n);
  for (int64_t i = 0; i < n; ++i) std::copy_n(table + ids[i] * E, E, out + i * stride);
}

}  // namespace gradus::nn::packed
