#include <gradus/nn/scheduled_sampling.h>
#include <gradus/nn/search.h>
#include <gradus/ops.h>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"

using namespace gradus;
using namespace gradus::testing;

namespace scheduled_sampling_test {
namespace {

nn::Seq2Seq model_for(const std::string& attention) {
  nn::Seq2SeqConfig c;
  c.source_vocabulary = 9;
  c.target_vocabulary = 12;
  c.embedding_dim = 4;
  c.hidden_size = 6;
  c.attention = attention;
  Rng rng(5);
  nn::Seq2Seq model(c, rng);
  model.output.weight.update([](const Tensor& w) {
    for (int64_t i = 0; i < w.numel(); ++i) w.set(i, 6 * w.at(i));
  });
  return model;
}

nn::Seq2SeqBatch batch() {
  Tensor in = Tensor::from_ids({6, 3}, {2, 2, 2, 4, 5, 6, 7, 8, 9, 10, 11, 4, 5, 1, 6, 7, 1, 8});
  Tensor out = Tensor::from_ids({6, 3}, {4, 5, 6, 7, 8, 9, 10, 11, 4, 5, 3, 6, 7, 1, 8, 3, 1, 3});
  return {Tensor::from_ids({4, 3}, {5, 4, 8, 6, 3, 4, 5, 1, 3, 3, 1, 1}), Tensor::from_ids({3}, {4, 2, 3}),
          in, out, 16};
}

// The most probable word behind each of the words that the decoder is fed, under teacher forcing.
Tensor next_words(const nn::Seq2Seq& model, const nn::Seq2SeqBatch& b) {
  NoGrad guard;
  Var readout = model.decoder->teacher_forced(b.target_in, model.encoder(b.source, b.source_lengths)).readout;
  Tensor logits = model.output(readout).value().clone();
  for (int64_t i = 0; i < logits.numel(); i += 12)
    for (int64_t never : {nn::kPad, nn::kBos}) logits.set(i + never, -1e30);
  return argmax(logits);
}

}  // namespace

TEST_CASE("scheduled sampling feeds the reference, or the model's own words, or a mixture") {
  for (const char* attention : {"bahdanau", "general", "none"}) {
    CAPTURE(attention);
    nn::Seq2Seq model = model_for(attention);
    auto generator = model.generator();
    nn::Seq2SeqBatch b = batch();
    Rng rng(1);
    CHECK(nn::scheduled_sampling(*generator, b, 0, rng).to_vector() == b.target_in.to_vector());
    int64_t replaced = 0, places = 0;
    for (double probability : {0.3, 0.7, 1.0}) {
      nn::Seq2SeqBatch mixed = b;
      mixed.target_in = nn::scheduled_sampling(*generator, b, probability, rng);
      Tensor own = next_words(model, mixed);
      for (int64_t i = 0; i < 18; ++i) {
        int32_t given = b.target_in.i32()[i], fed = mixed.target_in.i32()[i];
        if (i < 3 || given == nn::kPad) {
          CHECK(fed == given);  // <s> and padding stay
          continue;
        }
        // A word that is not the reference's is what the model says after the mixed words before it.
        if (fed != given || probability == 1) CHECK(fed == own.i32()[i - 3]);
        if (probability < 1) {
          ++places;
          replaced += fed != given;
        }
      }
    }
    CHECK(replaced > places / 4);
    CHECK(replaced < places * 3 / 4);
  }
}

TEST_CASE("with probability 1 the decoder hears its own greedy translation") {
  nn::Seq2Seq model = model_for("bahdanau");
  nn::Seq2SeqBatch b = batch();
  Rng rng(1);
  Tensor fed = nn::scheduled_sampling(*model.generator(), b, 1, rng);
  auto found = nn::translate(model, b.source, b.source_lengths, {.max_length = 5});
  for (int64_t s = 0; s < 3; ++s)
    for (size_t t = 0; t < found[static_cast<size_t>(s)][0].tokens.size(); ++t) {
      int64_t at = static_cast<int64_t>(t + 1) * 3 + s;
      if (b.target_in.i32()[at] != nn::kPad)
        CHECK(fed.i32()[at] == found[static_cast<size_t>(s)][0].tokens[t]);
    }
  CHECK(error_of([&] { nn::scheduled_sampling(*model.generator(), b, 1.5, rng); }) ==
        "[scheduled_sampling] the probability must be in [0, 1]: 1.5");
}

}  // namespace scheduled_sampling_test
