// Additive attention, concat and what is derived from them, in whole translators.

#include <gradus/nn/attention/additive.h>
#include <gradus/nn/module.h>
#include <gradus/nn/search.h>
#include <gradus/ops.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "small_models.h"

using namespace gradus;
using nn::Seq2Seq;
using nn::Seq2SeqConfig;
using small_models::batch, small_models::set_fused, small_models::small;

TEST_CASE("a translator with concat, W = [W1 W2], is the one with additive attention, bit for bit") {
  for (auto [order, feeding] : {std::pair{"bahdanau", false}, {"luong", true}, {"luong", false}})
    for (double temperature : {1.0, 0.7}) {
      CAPTURE(order);
      CAPTURE(feeding);
      CAPTURE(temperature);
      Seq2SeqConfig c = small("bahdanau", order, feeding);
      c.attention_options.temperature = temperature;
      Rng rng(5), other(6);
      Seq2Seq additive(c, rng);
      c.attention = "concat";
      Seq2Seq concat(c, other);
      nn::StateDict weights = nn::state_dict(additive);
      auto named = [&](const char* name) -> Tensor {
        for (auto& [key, value] : weights)
          if (key == std::string("decoder.attention.") + name) return value;
        return {};
      };
      Tensor joined = gradus::concat({named("query.weight"), named("key.weight")}, 1).value();
      int64_t Q = named("query.weight").size(1);
      for (auto& p : nn::named_parameters(concat)) {
        if (p.name == "decoder.attention.weight") p.parameter->assign(joined);
        for (auto& [key, value] : weights)
          if (key == p.name) p.parameter->assign(value.clone());
      }
      for (bool fused : {true, false}) {
        set_fused(additive, fused);
        set_fused(concat, fused);
        auto x = additive.loss(batch()), y = concat.loss(batch());
        CHECK(x.loss.item() == y.loss.item());
        CHECK(max_abs_difference(additive.align(batch()), concat.align(batch())) == 0);
        Gradients dx = backward(x.loss), dy = backward(y.loss);
        auto ours = nn::named_parameters(additive);
        for (auto& q : nn::named_parameters(concat)) {
          CAPTURE(q.name);
          Tensor got = dy[*q.parameter];
          if (q.name == "decoder.attention.weight") {
            auto half = [&](const char* name) {
              for (auto& p : ours)
                if (p.name == std::string("decoder.attention.") + name) return dx[*p.parameter];
              return Tensor();
            };
            CHECK(max_abs_difference(slice(got, 1, 0, Q).value(), half("query.weight")) == 0);
            CHECK(max_abs_difference(slice(got, 1, Q, got.size(1)).value(), half("key.weight")) == 0);
          } else {
            for (auto& p : ours)
              if (p.name == q.name) CHECK(max_abs_difference(got, dx[*p.parameter]) == 0);
          }
        }
      }
      auto a = nn::translate(additive, batch().source, batch().source_lengths, {.beam_size = 2}),
           b = nn::translate(concat, batch().source, batch().source_lengths, {.beam_size = 2});
      for (size_t i = 0; i < a.size(); ++i)
        for (size_t k = 0; k < a[i].size(); ++k) {
          CHECK(a[i][k].tokens == b[i][k].tokens);
          CHECK(a[i][k].log_probability == b[i][k].log_probability);
        }
    }
}

namespace {

// One's own around additive attention, which states no form: no decoder may take it for the additive one
// within.
struct Doubled : nn::ScoredAttention {
  nn::AdditiveAttention inner;
  Doubled(const nn::AttentionSizes& s, Rng& rng) : ScoredAttention(s.options), inner(s, rng) {}
  nn::AttentionMemory prepare(const Input& annotations, const Tensor& mask) const override {
    return inner.prepare(annotations, mask);
  }
  Var scores(const Input& asked, const nn::AttentionMemory& memory,
             const nn::AttentionState& state) const override {
    return inner.scores(asked, memory, state);
  }
  nn::Attended step(const Input& asked, const nn::AttentionMemory& memory,
                    const nn::AttentionState& state) const override {
    nn::Attended out = inner.step(asked, memory, state);
    out.context = out.context * 2.0;
    return out;
  }
  void params(nn::ParamVisitor& visit) override { inner.params(visit); }
};

}  // namespace

TEST_CASE("an attention around additive attention takes its own steps in every decoder") {
  Rng rng(3), again(3);
  Seq2Seq plain(small("bahdanau"), rng), own(small("bahdanau"), again);
  auto& decoder = dynamic_cast<nn::RecurrentDecoder&>(*own.decoder);
  Rng unused(1);
  auto doubled = std::make_unique<Doubled>(nn::AttentionSizes{4, 8, 5}, unused);
  nn::load_state_dict(*doubled, nn::state_dict(*decoder.attention));
  decoder.attention = std::move(doubled);
  double fused = own.loss(batch()).loss.item();
  CHECK(fused != plain.loss(batch()).loss.item());
  set_fused(own, false);
  CHECK(own.loss(batch()).loss.item() == about(fused, 1e-6));
  auto fast = nn::translate(own, batch().source, batch().source_lengths),
       slow = nn::translate(*nn::composed_generator(own.encoder, *own.decoder, own.output), batch().source,
                            batch().source_lengths);
  for (size_t i = 0; i < fast.size(); ++i)
    CHECK(fast[i][0].log_probability == about(slow[i][0].log_probability, 1e-5));
}
