#include <gradus/nn/data_parallel.h>
#include <gradus/nn/dropout.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/gru.h>
#include <gradus/nn/linear.h>
#include <gradus/ops/cross_entropy.h>
#include <gradus/nn/optimizer.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>

#include <cmath>

#include "../about.h"
#include "helpers.h"

using namespace gradus;
using namespace gradus::test;

namespace {

// Reads a sequence of symbols, answers with the first one: it must be remembered over all the others.
struct Memory {
  nn::Embedding symbols;
  nn::Dropout dropout;
  nn::GRU gru;
  nn::Linear answer;
  Memory(int64_t count, int64_t hidden, Rng& rng, double p = 0)
      : symbols(count, 8, rng), dropout(p), gru(8, hidden, rng), answer(hidden, count, rng) {}
  Var operator()(const Tensor& ids, const Tensor& lengths) const {
    return answer(gru(dropout(symbols(ids)), lengths).forward_final);
  }
  void params(nn::ParamVisitor& visit) {
    visit("symbols", symbols);
    visit("gru", gru);
    visit("answer", answer);
  }
};

struct Batch {
  Tensor ids, lengths, targets;  // [T, B], [B], [B]
};

Batch draw(int64_t T, int64_t B, int64_t symbols, Rng& rng) {
  Batch batch{Tensor({T, B}, DType::i32), Tensor({B}, DType::i32), Tensor({B}, DType::i32)};
  for (int64_t i = 0; i < T * B; ++i) batch.ids.i32()[i] = static_cast<int32_t>(rng.below(symbols));
  for (int64_t b = 0; b < B; ++b) {
    batch.lengths.i32()[b] = static_cast<int32_t>(1 + rng.below(T));
    batch.targets.i32()[b] = batch.ids.i32()[b];
  }
  return batch;
}

// Sequences begin .. end-1 of a batch.
Batch part(const Batch& batch, int64_t begin, int64_t end) {
  int64_t T = batch.ids.size(0), B = batch.ids.size(1);
  Batch out{Tensor({T, end - begin}, DType::i32), batch.lengths.rows(begin, end),
            batch.targets.rows(begin, end)};
  for (int64_t t = 0; t < T; ++t)
    for (int64_t b = begin; b < end; ++b) out.ids.set(t * (end - begin) + b - begin, batch.ids.at(t * B + b));
  return out;
}

// A few Adam steps on two shards; the parameters afterwards.
nn::StateDict train(int threads, int shards, double p) {
  ThreadPool pool(threads);
  Rng rng(1), data(2);
  Memory model(6, 12, rng, p);
  nn::Adam adam({.lr = 0.01});
  for (uint64_t step = 0; step < 5; ++step) {
    Batch batch = draw(5, 16, 6, data);
    Training mode(100 + step);
    auto f = [&](int shard) {
      Batch mine = part(batch, 16 * shard / shards, 16 * (shard + 1) / shards);
      return cross_entropy(model(mine.ids, mine.lengths), mine.targets).loss * (1.0 / shards);
    };
    nn::ParallelGradients result = nn::parallel_gradients(pool, shards, f);
    adam.step(model, result.gradients, nn::clip_factor(nn::grad_norm(result.gradients), 1));
  }
  nn::StateDict out;
  for (auto& [name, value] : nn::state_dict(model)) out.emplace_back(name, value.clone());
  return out;
}

bool same(const nn::StateDict& a, const nn::StateDict& b) {
  bool equal = a.size() == b.size();
  for (size_t i = 0; equal && i < a.size(); ++i) equal = same_bits(a[i].second, b[i].second);
  return equal;
}

}  // namespace

TEST_CASE("shards add up to the whole batch") {
  Rng rng(1), data(3);
  Memory model(6, 12, rng);
  Batch batch = draw(5, 12, 6, data);
  Var whole = cross_entropy(model(batch.ids, batch.lengths), batch.targets).loss;
  Gradients expected = backward(whole);
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    auto f = [&](int shard) {
      if (shard == 3) return Var();  // nothing left for the last one
      Batch mine = part(batch, 4 * shard, 4 * (shard + 1));
      return cross_entropy(model(mine.ids, mine.lengths), mine.targets).loss * (1.0 / 3);
    };
    nn::ParallelGradients result = nn::parallel_gradients(pool, 4, f);
    REQUIRE(result.losses.size() == 4);
    CHECK(result.losses[3] == 0);
    CHECK(result.losses[0] + result.losses[1] + result.losses[2] ==
          about(whole.item(), 1e-6));
    for (const NamedParameter& p : nn::named_parameters(model)) {
      CAPTURE(p.name);
      CHECK(all_close(result.gradients[*p.parameter], expected[*p.parameter], 1e-5, 1e-6));
    }
  }
}

TEST_CASE("two parameters whose gradients are one tensor are summed apart") {
  ThreadPool pool(2);
  Parameter a(Tensor::zeros({3}, DType::f64)), b(Tensor::zeros({3}, DType::f64));
  auto f = [&](int shard) { return sum((a.var() + b.var()) * (shard + 1.0)); };
  nn::ParallelGradients result = nn::parallel_gradients(pool, 3, f);
  CHECK(result.gradients[a].to_vector() == std::vector<double>{6, 6, 6});
  CHECK(result.gradients[b].to_vector() == std::vector<double>{6, 6, 6});
}

TEST_CASE("threads: the same shards give the same bits on any number of threads, run after run") {
  nn::StateDict once = train(2, 2, 0.2);
  for (int run = 0; run < 5; ++run) CHECK(same(once, train(2, 2, 0.2)));
  CHECK(same(once, train(1, 2, 0.2)));
  CHECK(same(once, train(3, 2, 0.2)));
  // Another division of the batch rounds differently, and no more than that.
  nn::StateDict two = train(2, 2, 0), one = train(1, 1, 0);
  for (size_t i = 0; i < one.size(); ++i) CHECK(max_abs_difference(one[i].second, two[i].second) < 1e-5);
}

TEST_CASE("shards draw their own dropout masks, from the caller's seed") {
  ThreadPool pool(2);
  Parameter p(Tensor::ones({64}));
  nn::Dropout drop(0.5);
  auto masks = [&](uint64_t seed) {
    Training mode(seed);
    std::vector<Tensor> seen(2);
    nn::parallel_gradients(pool, 2, [&](int shard) {
      Var y = drop(p);
      seen[static_cast<size_t>(shard)] = y.value();
      return sum(y);
    });
    return seen;
  };
  auto a = masks(1), b = masks(1), c = masks(2);
  CHECK(!same_bits(a[0], a[1]));
  CHECK(same_bits(a[0], b[0]));
  CHECK(same_bits(a[1], b[1]));
  CHECK(!same_bits(a[0], c[0]));
  std::vector<double> shares(2, -1);
  {
    Training mode(1, 0.25);
    nn::parallel_gradients(pool, 2, [&](int shard) {
      shares[static_cast<size_t>(shard)] = Training::dropout_share();
      return sum(p);
    });
  }
  CHECK(shares == std::vector<double>{0.25, 0.25});
  std::vector<int> training(2, -1);
  nn::parallel_gradients(pool, 2, [&](int shard) {
    training[static_cast<size_t>(shard)] = Training::active();
    return sum(p);
  });
  CHECK(training == std::vector<int>{0, 0});
}

TEST_CASE("shards that share the output layer add up to the whole batch") {
  Rng rng(1), data(3);
  Memory model(64, 12, rng);
  Batch batch = draw(5, 12, 64, data);
  batch.targets.i32()[4] = 0;  // one that does not count
  CrossEntropyOptions options{.ignore_index = 0, .label_smoothing = 0.1};
  auto hidden = [&](const Batch& b) { return model.gru(model.symbols(b.ids), b.lengths).forward_final; };
  CrossEntropy whole = cross_entropy(model.answer(hidden(batch)), batch.targets, options);
  Gradients expected = backward(whole.loss + 0.1 * sum(hidden(batch)));
  for (int shards : {1, 4}) {
    std::vector<Gradients> found;
    for (int threads : {1, 2, 3}) {
      CAPTURE(threads);
      ThreadPool pool(threads);
      auto f = [&](int shard) -> nn::ShardOutput {
        if (shard == 3) return {};  // nothing left for the last one
        Batch mine = shards == 1 ? batch : part(batch, 4 * shard, 4 * (shard + 1));
        Var h = hidden(mine);
        return {h, mine.targets, 0.1 * sum(h)};
      };
      nn::OutputGradients result = nn::parallel_output_gradients(
          pool, shards, f, {model.answer.weight, model.answer.bias, options});
      CHECK(result.tokens == whole.tokens);
      CHECK(result.nll == about(whole.nll, 1e-6));
      CHECK(result.loss == about(whole.loss.item(), 1e-6));
      CHECK(result.gradients.entries().size() == expected.entries().size());
      for (const NamedParameter& p : nn::named_parameters(model)) {
        CAPTURE(p.name);
        CHECK(all_close(result.gradients[*p.parameter], expected[*p.parameter], 1e-5, 1e-6));
        if (!found.empty()) CHECK(same_bits(result.gradients[*p.parameter], found[0][*p.parameter]));
      }
      found.push_back(std::move(result.gradients));
    }
  }
}

TEST_CASE("shards that share the output layer: what is refused, and nothing to do") {
  ThreadPool pool(2);
  Parameter weight(Tensor::zeros({5, 3}));
  Tensor two = Tensor::from_ids({2}, {1, 2});
  auto text = [&](const Tensor& first, const Tensor& second, const Tensor& targets) {
    return error_of([&] {
      nn::parallel_output_gradients(
          pool, 2, [&](int k) { return nn::ShardOutput{k ? second : first, targets}; }, {weight});
    });
  };
  Tensor h = Tensor::zeros({2, 3});
  CHECK(text(h, h, Tensor::from_ids({1}, {1})) ==
        "[parallel_output_gradients] targets must have hidden's shape without the last axis: hidden [2, 3], "
        "targets [1]");
  CHECK(text(h, Tensor::zeros({2, 4}), two) ==
        "[parallel_output_gradients] the shards must agree in hidden's last dimension and element type: 3 f32 "
        "and 4 f32");
  CHECK(text(Tensor::zeros({2, 4}), Tensor::zeros({2, 4}), two) ==
        "[linear_cross_entropy] hidden's last dimension must be weight's: hidden [4, 4], weight [5, 3]");
  nn::OutputGradients none =
      nn::parallel_output_gradients(pool, 2, [](int) { return nn::ShardOutput(); }, {weight});
  CHECK(none.gradients.entries().empty());
  CHECK(none.tokens == 0);
  // Constants before the layer: it alone learns.
  nn::OutputGradients alone =
      nn::parallel_output_gradients(pool, 2, [&](int) { return nn::ShardOutput{h, two}; }, {weight});
  CHECK(alone.gradients.entries().size() == 1);
  CHECK(alone.gradients.contains(weight));
}

TEST_CASE("what a shard throws arrives at the caller") {
  ThreadPool pool(2);
  auto f = [](int shard) -> Var { fail("test", "shard " + std::to_string(shard)); };
  CHECK(error_of([&] { nn::parallel_gradients(pool, 2, f); }) == "[test] shard 0");
  CHECK(error_of([&] { nn::parallel_gradients(pool, 0, f); }) ==
        "[parallel_gradients] needs at least one shard: 0");
}

TEST_CASE("a perceptron with one hidden layer learns XOR") {
  Rng rng(3);
  nn::Linear up(2, 8, rng), down(8, 1, rng);
  struct Mlp {
    nn::Linear &up, &down;
    void params(nn::ParamVisitor& visit) {
      visit("up", up);
      visit("down", down);
    }
  } model{up, down};
  Tensor x = Tensor::from({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1}), y = Tensor::from({4, 1}, {0, 1, 1, 0});
  auto predict = [&] { return sigmoid(down(tanh(up(x)))); };
  nn::Adam adam({.lr = 0.05});
  for (int step = 0; step < 400; ++step) {
    Var p = predict();
    adam.step(model, backward(mean(-(Var(y) * log(p) + (1.0 - Var(y)) * log(1.0 - p)))));
  }
  Tensor p = predict().value();
  for (int64_t i = 0; i < 4; ++i) CHECK(std::abs(p.at(i) - y.at(i)) < 0.1);
}

TEST_CASE("a GRU learns to remember the first symbol") {
  Rng rng(4), data(5);
  Memory model(6, 24, rng);
  nn::Adam adam({.lr = 0.02});
  for (int step = 0; step < 200; ++step) {
    Batch batch = draw(8, 32, 6, data);
    Gradients grads = backward(cross_entropy(model(batch.ids, batch.lengths), batch.targets).loss);
    nn::clip_grad_norm(grads, 1);
    adam.step(model, grads);
  }
  NoGrad guard;
  Batch batch = draw(8, 200, 6, data);
  Tensor answers = argmax(model(batch.ids, batch.lengths).value());
  int right = 0;
  for (int64_t b = 0; b < 200; ++b) right += answers.at(b) == batch.targets.at(b);
  CHECK(right >= 195);
}
