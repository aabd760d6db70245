#include <gradus/ops/arithmetic.h>
#include <gradus/ops/embedding.h>
#include <gradus/ops/reduce.h>

#include "../quick_doctest.h"
#include "helpers.h"

using namespace gradus;
using helpers::op_error_of;
using helpers::random;

TEST_CASE("embedding: all registered cases") { CHECK_OP_CASES("embedding", 3); }

TEST_CASE("rows are looked up") {
  Tensor table = Tensor::from({3, 2}, {0, 1, 10, 11, 20, 21});
  Var y = embedding(table, Tensor::from_ids({2, 2}, {2, 0, 1, 2}));
  CHECK(y.shape() == Shape{2, 2, 2});
  CHECK(y.value().to_vector() == std::vector<double>{20, 21, 0, 1, 10, 11, 20, 21});
  CHECK(embedding(table, Tensor::from_ids({}, {1})).shape() == Shape{2});
  CHECK(embedding(table, Tensor::from_ids({0}, {})).shape() == Shape{0, 2});
}

TEST_CASE("the gradient of a leaf is kept as rows; repeated ids add up; padding gets nothing") {
  Var table = variable(random({5, 2}));
  Tensor ids = Tensor::from_ids({2, 3}, {1, 0, 3, 3, 0, 1});
  Var y = embedding(table, ids, {.padding_idx = 0});
  CHECK(y.value().at(2) == table.value().at(0));  // its row is read all the same
  Gradients grads =
      backward(y, {.seed = Tensor::from({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, DType::f64)});
  const Gradients::Entry* entry = grads.find(table);
  REQUIRE(entry != nullptr);
  CHECK_FALSE(entry->dense.defined());
  REQUIRE(entry->rows.size() == 1);
  CHECK(entry->rows[0].ids.to_vector() == std::vector<double>{1, 3, 3, 1});
  CHECK(grads[table].to_vector() == std::vector<double>{0, 0, 12, 14, 0, 0, 12, 14, 0, 0});
}

TEST_CASE("a batch of nothing but padding") {
  Var table = variable(random({3, 2}));
  Gradients grads = backward(sum(embedding(table, Tensor::from_ids({2}, {1, 1}), {.padding_idx = 1})));
  CHECK(grads[table].to_vector() == std::vector<double>(6, 0));
}

TEST_CASE("two look-ups in one table, and a table used densely as well") {
  Var table = variable(random({4, 2}));
  Var a = embedding(table, Tensor::from_ids({2}, {0, 1})), b = embedding(table, Tensor::from_ids({1}, {1}));
  Gradients grads = backward(sum(a) + sum(b) * 10.0);
  CHECK(grads.find(table)->rows.size() == 2);
  CHECK(grads[table].to_vector() == std::vector<double>{1, 1, 11, 11, 0, 0, 0, 0});
  Var c = embedding(table, Tensor::from_ids({2}, {0, 1}));
  CHECK(backward(sum(c) + sum(table))[table].to_vector() == std::vector<double>{2, 2, 2, 2, 1, 1, 1, 1});
}

TEST_CASE("embedding: what is refused") {
  CHECK(op_error_of([] {
          embedding(Tensor::ones({3, 2}), Tensor::from_ids({1}, {0}), {.padding_idx = 3});
        }) == "[embedding] padding_idx must be in 0 .. 2, or -1 for none: 3");
  Tensor table = random({10, 4});
  CHECK(op_error_of([&] { embedding(table, Tensor::from_ids({2}, {3, 12})); }) ==
        "[embedding] ids must be in 0 .. 9: 12");
  CHECK(op_error_of([&] { embedding(table, Tensor::from_ids({1}, {-1})); }) ==
        "[embedding] ids must be in 0 .. 9: -1");
  CHECK(op_error_of([&] { embedding(table, Tensor::ones({2})); }) == "[embedding] ids must be i32: f32");
  CHECK(op_error_of([&] { embedding(random({10}), Tensor::from_ids({1}, {0})); }) ==
        "[embedding] weight must be [V, E]: [10]");
}
