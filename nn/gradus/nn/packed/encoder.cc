#include <gradus/nn/packed/encoder.h>

#include <algorithm>
#include <string>

#include <gradus/kernels/inference.h>
#include <gradus/nn/check.h>

namespace gradus::nn::packed {

bool PackedEncoder::fits(const Encoder& e) {
  const RecurrentShape& shape = e.rnn.shape;
  return shape.cell.is_plain_gru() && !shape.residual && !shape.reference &&
         e.embedding.weight.value().dtype() == DType::f32 &&
         e.rnn.weights[0].weight_hh.value().dtype() == DType::f32;
}

PackedEncoder::PackedEncoder(const Encoder& e) : encoder_(e), H_(e.rnn.shape.hidden_size) {
  size_t directions = static_cast<size_t>(e.rnn.directions());
  const auto& weights = e.rnn.weights;
  for (size_t first = 0; first < weights.size(); first += directions) {
    std::vector<Block> of_input;
    std::vector<Direction> each;
    for (size_t d = first; d < first + directions; ++d) {
      const RecurrentWeights& w = weights[d];
      of_input.push_back({w.weight_ih, 0, 3 * H_, 0, w.weight_ih.shape()[1]});
      each.push_back({Matrix({{w.weight_hh, 0, 3 * H_, 0, H_}}), numbers(w.bias_ih), numbers(w.bias_hh)});
    }
    layers_.push_back({Matrix(of_input), std::move(each)});
  }
}

// One layer. x [S, B, I] -> states [S, B, directions H], carried over at padding (active u8 [S, B], or undefined).
Tensor PackedEncoder::read(const Layer& layer, const Tensor& x, const Tensor& active, Team& team) const {
  int64_t S = x.size(0), B = x.size(1), I = x.size(2), n = static_cast<int64_t>(layer.directions.size());
  int64_t D = n * H_, G = n * 3 * H_;
  Tensor gi({S, B, G}, DType::f32), gh({n, B, 3 * H_}, DType::f32), states({S, B, D}, DType::f32);
  Tensor zero = Tensor::zeros({B, H_});
  team.run([&](int member) {
    layer.ih.product(S * B, x.f32(), I, gi.f32(), member, team.size());
    team.wait();
    for (int64_t d = member; d < n; d += team.size()) {
      const Direction& w = layer.directions[static_cast<size_t>(d)];
      float* gh_d = gh.f32() + d * B * 3 * H_;
      const float* before = zero.f32();
      int64_t before_stride = H_;
      std::fill_n(gh_d, B * 3 * H_, 0.0f);  // W_hh 0
      for (int64_t k = 0; k < S; ++k) {
        int64_t t = d ? S - 1 - k : k;
        float* state = states.f32() + t * B * D + d * H_;
        if (k > 0) w.hh.product(B, before, before_stride, gh_d);
        kernels::gru_state(B, H_,
                           {gi.f32() + t * B * G + d * 3 * H_, G, nullptr, 0, gh_d, 3 * H_, w.b_ih, w.b_hh,
                            before, before_stride, active.defined() ? active.u8() + t * B : nullptr},
                           state, D);
        before = state;
        before_stride = D;
      }
    }
  });
  return states;
}

Annotations PackedEncoder::operator()(const Tensor& ids, const Tensor& lengths, Team& team) const {
  if (ids.dims() != 2 || ids.dtype() != DType::i32)
    fail("encoder", "ids must be i32 [S, B]: " + ids.shape().str());
  int64_t S = ids.size(0), B = ids.size(1);
  must_be_lengths("encoder", lengths, B, S);
  Annotations out;
  out.begin = {0};
  int64_t shortest = S;
  for (int64_t b = 0; b < B; ++b) {
    int64_t length = lengths.defined() ? lengths.i32()[b] : S;
    shortest = std::min(shortest, length);
    out.begin.push_back(out.begin.back() + length);
  }
  auto length = [&](int64_t b) {
    return out.begin[static_cast<size_t>(b + 1)] - out.begin[static_cast<size_t>(b)];
  };
  Tensor active;
  if (shortest < S) {
    active = Tensor({S, B}, DType::u8);
    for (int64_t t = 0; t < S; ++t)
      for (int64_t b = 0; b < B; ++b) active.u8()[t * B + b] = t < length(b);
  }
  int64_t E = encoder_.embedding.weight.shape()[1];
  Tensor x({S, B, E}, DType::f32);
  look_up(encoder_.embedding, ids.i32(), S * B, x.f32(), E);
  for (const Layer& layer : layers_) x = read(layer, x, active, team);

  int64_t D = x.size(2);
  out.rows = Tensor({out.begin.back(), D}, DType::f32);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < length(b); ++t)
      std::copy_n(x.f32() + (t * B + b) * D, D, out.rows.f32() + (out.begin[static_cast<size_t>(b)] + t) * D);
  auto finals = [&](int64_t t, int64_t column) {  // padding carries the state over, so the end holds it
    Tensor f({B, H_}, DType::f32);
    for (int64_t b = 0; b < B; ++b) std::copy_n(x.f32() + (t * B + b) * D + column, H_, f.f32() + b * H_);
    return f;
  };
  out.forward_final = finals(S - 1, 0);
  if (D > H_) out.backward_final = finals(0, H_);
  return out;
}

void look_up(const Embedding& embedding, const int32_t* ids, int64_t n, float* out, int64_t stride) {
  int64_t V = embedding.weight.shape()[0], E = embedding.weight.shape()[1];
  const float* table = embedding.weight.value().f32();
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] < 0 || ids[i] >= V)
      fail("embedding", "ids are 0 .. " + std::to_string(V - 1) + ": " + std::to_string(ids[i]));
    std::copy_n(table + ids[i] * E, E, out + i * stride);
  }
}

}  // namespace gradus::nn::packed
