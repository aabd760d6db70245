// Guided alignment: what it costs is what it says, its gradient is exact, and weights go where links point.

#include <cmath>
#include <memory>

#include <gradus/nn/attention/guided.h>
#include <gradus/nn/module.h>
#include <gradus/nn/optimizer.h>
#include <gradus/ops.h>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "shared_output.h"
#include "small_models.h"

using namespace gradus;
using small_models::batch, small_models::set_fused, small_models::small;
using testing::op_error_of;

namespace {

std::vector<nn::Seq2SeqConfig> guidable() {
  std::vector<nn::Seq2SeqConfig> out;
  for (const std::string& name : nn::attention_names())
    if (name != "hard" && name != "multihead" && name != "uniform" && name != "oracle")
      for (const char* order : {"bahdanau", "luong"}) out.push_back(small(name, order));
  out.push_back(small("general", "luong", false));
  out.push_back(small("bahdanau"));
  out.back().decoder_layers = 2;
  out.push_back(small("general"));
  out.back().decoder_layers = 2;
  return out;
}

// The same batch; its second target word of the first sentence has no link.
nn::Seq2SeqBatch linked() {
  nn::Seq2SeqBatch b = batch();
  for (int64_t s = 0; s < 4; ++s) b.alignment.set((1 * 3 + 0) * 4 + s, 0.25);
  return b;
}

struct Cost {
  double found = 0, least = 0;  // of the weights that the model shows, and of gold itself
};

// -1/N sum A log alpha over the words that have links, but not to all source words.
Cost cost_of(const nn::Seq2Seq& model, const nn::Seq2SeqBatch& b) {
  const Tensor weights = model.align(b);
  Cost out;
  for (int64_t t = 0; t < 4; ++t)
    for (int64_t k = 0; k < 3; ++k) {
      auto gold = [&](int64_t s) { return b.alignment.at((t * 3 + k) * 4 + s); };
      bool alike = true;
      for (int64_t s = 0; s < b.source_lengths.i32()[k]; ++s) alike = alike && gold(s) == gold(0);
      if (b.target_out.i32()[t * 3 + k] == nn::kPad || alike) continue;
      for (int64_t s = 0; s < 4; ++s)
        if (gold(s) > 0) {
          out.found -= gold(s) * std::log(weights.at((t * 3 + k) * 4 + s) + 1e-9) / 9;
          out.least -= gold(s) * std::log(gold(s)) / 9;
        }
    }
  return out;
}

}  // namespace

TEST_CASE(
    "guided alignment adds its weight times what the shown weights cost, in every attention it is for") {
  for (const nn::Seq2SeqConfig& c : guidable()) {
    CAPTURE(c.attention + " " + c.decoder);
    Rng rng(3);
    nn::Seq2Seq model(c, rng);
    nn::to(model, DType::f64);
    const nn::Seq2SeqBatch b = linked();
    for (bool fused : {true, false}) {
      set_fused(model, fused);
      const double plain = model.loss(b).loss.item(),
                   guided = model.loss(b, {.guided_alignment = 0.7}).loss.item();
      CHECK(guided - plain == about(0.7 * cost_of(model, b).found, 1e-10));
      CHECK(cost_of(model, b).found > 0.1);
    }
  }
}

TEST_CASE("the guided loss passes the gradient check") {
  for (const nn::Seq2SeqConfig& c : guidable()) {
    CAPTURE(c.attention + " " + c.decoder);
    Rng rng(4);
    nn::Seq2Seq model(c, rng);
    auto report = nn::gradcheck(model, [&] { return model.loss(linked(), {.guided_alignment = 2}).loss; },
                                {.max_elements = 8});
    CHECK_MESSAGE(report.ok, report.message);
  }
}

TEST_CASE("trained by links alone to look, weights go where they point") {
  Rng rng(5);
  nn::Seq2SeqConfig c = small("bahdanau");
  c.embedding_dim = c.hidden_size = 16;
  nn::Seq2Seq model(c, rng);
  nn::Adam adam({.lr = 0.02});
  const nn::Seq2SeqBatch b = linked();
  const double before = cost_of(model, b).found;
  for (int step = 0; step < 150; ++step)
    adam.step(model, backward(model.loss(b, {.guided_alignment = 1}).loss));
  const Cost after = cost_of(model, b);
  CHECK(after.least < before - 0.2);
  CHECK(after.found < after.least + 0.02);
}

TEST_CASE("an attention that cannot be guided says so, and gold of another shape does") {
  Rng rng(6);
  nn::Seq2Seq heads(small("multihead"), rng), plain(small("bahdanau"), rng);
  nn::Seq2SeqBatch b = batch();
  CHECK(op_error_of([&] {
          heads.loss(b, {.guided_alignment = 1});
        }).find("[guided_alignment] this attention's context is no mean of the annotations") !=
        std::string::npos);
  b.alignment = Tensor::zeros({4, 3, 5});
  CHECK(op_error_of([&] { plain.loss(b, {.guided_alignment = 1}); }) ==
        "(no line) [guided_alignment] gold must be [T, B, S] = [4, 3, 4]: [4, 3, 5]");
}

TEST_CASE("unit annotations: contexts are the weights, and carry their gradient") {
  Rng rng(4);
  std::unique_ptr<nn::Attention> attention = nn::make_attention("bahdanau", {3, 5, 4}, rng);
  nn::to(*attention, DType::f64);
  const Tensor annotations = Tensor::normal({6, 2, 5}, 0, 1, rng, DType::f64);
  const Tensor query = Tensor::normal({2, 3}, 0, 1, rng, DType::f64);
  auto found = [&] {
    nn::AttentionMemory memory = attention->prepare(annotations, {});
    memory.annotations = nn::unit_annotations(6, 2, DType::f64);
    return attention->step(query, memory, attention->start(memory));
  };
  CHECK(all_close(found().context.value(), found().weights));
  const GradcheckReport report = nn::gradcheck(*attention, [&] { return sum(pow(found().context, 2)); });
  INFO(report.message);
  CHECK(report.ok);
}

TEST_CASE("gold that is alike at all real positions costs nothing, though the first position is none") {
  Rng rng(3);
  const auto attention = nn::make_attention("bahdanau", {3, 3, 4}, rng);
  Tensor mask({1, 3}, DType::u8);
  for (int64_t s = 0; s < 3; ++s) mask.set(s, s > 0);
  const nn::AttentionMemory memory = attention->prepare(Tensor::uniform({3, 1, 3}, -1, 1, rng), mask);
  const Tensor queries = Tensor::uniform({1, 1, 3}, -1, 1, rng), lengths = Tensor::from_ids({1}, {1});
  auto cost = [&](const std::vector<double>& gold, const Tensor& of) {
    Tensor g = Tensor::zeros({1, 1, 3});
    for (size_t s = 0; s < 3; ++s) g.set(static_cast<int64_t>(s), gold[s]);
    return nn::guided_alignment(*attention, queries, memory, g, of).item();
  };
  CHECK(cost({0, 0.5, 0.5}, lengths) == 0);
  CHECK(cost({0, 1, 0}, lengths) > 0);
  CHECK_THROWS_AS(cost({0, 1, 0}, Tensor()), Error);
}
