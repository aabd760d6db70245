// One model, several threads: each differentiates its own part; the sum is the same bits every time.

#include <atomic>
#include <stdexcept>

#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>
#include <gradus/parallel.h>
#include <gradus/random.h>

#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

struct Model {
  Parameter table, weight, bias;
  explicit Model(Rng rng)
      : table(Tensor::uniform({20, 16}, -1, 1, rng), "table"),
        weight(Tensor::uniform({16}, -1, 1, rng), "weight"),
        bias(Tensor::uniform({16}, -1, 1, rng), "bias") {}

  Var loss(const Tensor& ids) const {
    Var h = gather_rows(table, ids);
    for (int t = 0; t < 20; ++t) h = tanh(h * weight + bias);
    return mean(h * h);
  }
};

Tensor shard(int worker) {
  std::vector<int32_t> ids;
  for (int i = 0; i < 8; ++i) ids.push_back((worker * 5 + i * 3) % 20);
  return Tensor::from_ids({8}, ids);
}

std::vector<Numbers> numbers(const Gradients& grads, const Model& m) {
  return {grads[m.table].to_vector(), grads[m.weight].to_vector(), grads[m.bias].to_vector()};
}

}  // namespace

TEST_CASE("threads that share a model find the gradients that one thread finds, bit by bit, every time") {
  Model model(Rng(11));
  Gradients alone;
  for (int worker = 0; worker < 2; ++worker) {
    Gradients part = backward(model.loss(shard(worker)));
    if (worker == 0) alone = part;
    else alone.add(part);
  }
  const auto expected = numbers(alone, model);

  ThreadPool pool(2);
  for (int round = 0; round < 50; ++round) {
    std::vector<Gradients> parts(2);
    pool.run([&](int worker) { parts[static_cast<size_t>(worker)] = backward(model.loss(shard(worker))); });
    parts[0].add(parts[1]);
    REQUIRE(numbers(parts[0], model) == expected);
  }
}

TEST_CASE("a pool runs every worker once") {
  ThreadPool pool(4);
  CHECK(pool.size() == 4);
  for (int round = 0; round < 100; ++round) {
    std::vector<int> calls(4);
    pool.run([&](int worker) { ++calls[static_cast<size_t>(worker)]; });
    REQUIRE(calls == std::vector<int>{1, 1, 1, 1});
  }
  ThreadPool one(1);
  int calls = 0;
  one.run([&](int worker) { calls += worker + 1; });
  CHECK(calls == 1);
  CHECK(error_of([] { ThreadPool none(0); }) == "[ThreadPool] needs at least one thread: 0");
  CHECK(available_threads() >= 1);
}

TEST_CASE("a job that runs another one on its own pool is refused: it would wait for itself") {
  ThreadPool pool(2), other(2);
  for (int round = 0; round < 10; ++round)
    CHECK(error_of([&] { pool.run([&](int) { pool.run([](int) {}); }); }) ==
          "[ThreadPool] a job cannot run another on its own pool: it would wait for itself");
  std::atomic<int> calls{0};
  pool.run([&](int worker) {
    if (worker == 0) other.run([&](int) { ++calls; });
  });
  CHECK(calls == 2);
  pool.run([&](int) { ++calls; });
  CHECK(calls == 4);
}

TEST_CASE("the exception of the lowest worker comes back, and the pool lives on") {
  ThreadPool pool(3);
  for (int round = 0; round < 10; ++round) {
    std::string text = error_of([&] {
      pool.run([](int worker) {
        if (worker > 0) fail("worker", std::to_string(worker));
      });
    });
    CHECK(text == "[worker] 1");
  }
  int done = 0;
  pool.run([&](int worker) {
    if (worker == 0) ++done;
  });
  CHECK(done == 1);
}

TEST_CASE("a graph may be freed by several threads at once") {
  Var x = variable(f64({}, {1}));
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    Var shared = x * 2;
    for (int i = 0; i < 2000; ++i) shared = shared + 1;
    std::vector<Var> ends;
    for (int worker = 0; worker < 2; ++worker) ends.push_back(shared * 3);
    shared = Var();
    pool.run([&](int worker) { ends[static_cast<size_t>(worker)] = Var(); });
  }
  CHECK(x.node().use_count() == 1);
}
