// One to eight threads: training, decoding, parallel gradients, memory that changes hands. What comes out has
// the same bits, and under -Db_sanitize=thread nothing races (suite "threads").

#include <cmath>
#include <memory>

#include <gradus/memory.h>
#include <gradus/nn/data_parallel.h>
#include <gradus/nn/optimizer.h>
#include <gradus/nn/search.h>
#include <gradus/nn/seq2seq.h>
#include <gradus/nn/transformer_seq2seq.h>

#include "helpers.h"

using namespace gradus;
using namespace gradus::test;

namespace {

constexpr int kThreads = 8;

nn::Seq2SeqBatch batch_of(int64_t T, int64_t B, uint64_t seed) {
  Rng rng(seed);
  nn::Seq2SeqBatch b{Tensor({T, B}, DType::i32), Tensor({B}, DType::i32), Tensor({T, B}, DType::i32),
                     Tensor({T, B}, DType::i32)};
  for (Tensor* ids : {&b.source, &b.target_in, &b.target_out})
    for (int64_t i = 0; i < T * B; ++i) ids->i32()[i] = static_cast<int32_t>(4 + rng.below(30));
  for (int64_t i = 0; i < B; ++i) {
    int64_t length = 1 + rng.below(T);
    b.source_lengths.i32()[i] = static_cast<int32_t>(length);
    for (int64_t t = length; t < T; ++t)
      for (Tensor* ids : {&b.source, &b.target_in, &b.target_out}) ids->i32()[t * B + i] = nn::kPad;
    b.target_tokens += length;
  }
  return b;
}

nn::Seq2Seq bahdanau() {
  Rng rng(1);
  return nn::Seq2Seq({.source_vocabulary = 34, .target_vocabulary = 34, .embedding_dim = 12, .hidden_size = 16,
                      .rnn = {.dropout = 0.2}},
                     rng);
}

nn::TransformerSeq2Seq transformer() {
  Rng rng(1);
  return nn::TransformerSeq2Seq({.source_vocabulary = 34,
                                 .target_vocabulary = 34,
                                 .d_model = 16,
                                 .num_heads = 2,
                                 .num_layers = 1,
                                 .dropout = 0.1},
                                rng);
}

// The parameters after some steps on eight shards.
template <class Model>
nn::StateDict trained(Model model, int threads) {
  ThreadPool pool(threads);
  REQUIRE(pool.size() == threads);
  nn::Adam adam({.lr = 0.01});
  std::vector<nn::Seq2SeqBatch> shards;
  for (uint64_t k = 0; k < 8; ++k) shards.push_back(batch_of(5, 3, 10 + k));
  for (uint64_t step = 0; step < 3; ++step) {
    Training mode(step);
    nn::OutputGradients found = nn::parallel_output_gradients(
        pool, 8, [&](int k) { return model.hidden_states(shards[static_cast<size_t>(k)]); },
        model.output_layer());
    const double norm = nn::grad_norm(found.gradients, &pool);
    adam.step(nn::named_parameters(model), found.gradients, nn::clip_factor(norm, 1), &pool);
  }
  nn::StateDict out;
  for (auto& [name, value] : nn::state_dict(model)) out.emplace_back(name, value.clone());
  return out;
}

template <class Model>
void check_training(Model (*make)()) {
  const nn::StateDict one = trained(make(), 1);
  for (int threads = 2; threads <= kThreads; ++threads) {
    CAPTURE(threads);
    const nn::StateDict many = trained(make(), threads);
    REQUIRE(many.size() == one.size());
    for (size_t i = 0; i < one.size(); ++i) {
      CAPTURE(one[i].first);
      CHECK(same_bits(many[i].second, one[i].second));
    }
  }
}

// A Transformer's encoder reads the sentences that a thread has together: other neighbours, other rounding.
void check_decoding(const nn::Generative& model, double tolerance) {
  const nn::Seq2SeqBatch in = batch_of(6, 9, 3);
  for (int64_t beam : {1, 3, 6}) {  // at 36 rows weights are laid out for many
    auto generator = model.generator();
    const auto alone = nn::translate(*generator, in.source, in.source_lengths, {.beam_size = beam});
    for (int threads = 2; threads <= kThreads; ++threads) {
      CAPTURE(threads);
      ThreadPool pool(threads);
      const auto shared = nn::translate(*generator, in.source, in.source_lengths,
                                        {.beam_size = beam, .weights = true, .pool = &pool});
      REQUIRE(shared.size() == alone.size());
      for (size_t i = 0; i < alone.size(); ++i) {
        REQUIRE(shared[i].size() == alone[i].size());
        for (size_t k = 0; k < alone[i].size(); ++k) {
          CHECK(shared[i][k].tokens == alone[i][k].tokens);
          CHECK(std::abs(shared[i][k].log_probability - alone[i][k].log_probability) <= tolerance);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("threads: training has the same bits with one to eight of them") {
  SUBCASE("attention over recurrent layers") { check_training(bahdanau); }
  SUBCASE("Transformer") { check_training(transformer); }
}

TEST_CASE("threads: translations are the same with one to eight of them") {
  SUBCASE("attention over recurrent layers") { check_decoding(bahdanau(), 0); }
  SUBCASE("Transformer") { check_decoding(transformer(), 1e-4); }
}

TEST_CASE("threads: memory that one takes and another gives back keeps its numbers and is all returned") {
  const int64_t before = memory_stats().in_use;
  for (int threads = 2; threads <= kThreads; ++threads) {
    CAPTURE(threads);
    ThreadPool pool(threads);
    std::vector<std::vector<Tensor>> held(static_cast<size_t>(threads));
    std::vector<int> wrong(static_cast<size_t>(threads), 0);
    for (int round = 0; round < 6; ++round) {
      pool.run([&](int worker) {
        for (int64_t n : {3, 70, 900, 20000, 70000})
          held[static_cast<size_t>(worker)].push_back(Tensor::full({n}, worker * 1000.0 + round));
      });
      pool.run([&](int worker) {  // the next one's
        auto& next = held[static_cast<size_t>((worker + 1) % threads)];
        for (const Tensor& t : next)
          for (int64_t i : {int64_t{0}, t.numel() / 2, t.numel() - 1})
            wrong[static_cast<size_t>(worker)] += t.at(i) != ((worker + 1) % threads) * 1000.0 + round;
        next.clear();
      });
    }
    CHECK(wrong == std::vector<int>(static_cast<size_t>(threads), 0));
  }
  CHECK(memory_stats().in_use == before);
  release_cached_memory();
}
