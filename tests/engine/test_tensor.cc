// Shapes and tensors: construction, views, conversions, errors.

#include <cmath>
#include <limits>

#include <gradus/numeric.h>

#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

TEST_CASE("shapes") {
  Shape s{2, 3, 4};
  CHECK(s.dims() == 3);
  CHECK(s.numel() == 24);
  CHECK(s[-1] == 4);
  CHECK(s.stride(0) == 12);
  CHECK(s.stride(-1) == 1);
  CHECK(s.without(1) == Shape{2, 4});
  CHECK(s.str() == "[2, 3, 4]");
  CHECK(Shape{}.str() == "[]");
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{2, 0}.numel() == 0);
  CHECK(s != Shape{2, 3});
  CHECK(error_of([&] { s[3]; }) == "[shape] axis 3 does not exist: shape [2, 3, 4]");
  CHECK(error_of([] { Shape{1, 1, 1, 1, 1, 1, 1}; }) == "[shape] a tensor has at most 6 axes");
  CHECK(error_of([] { Shape{2, -1}; }) == "[shape] an axis cannot have the negative size -1");
}

TEST_CASE("shapes broadcast as NumPy's") {
  CHECK(broadcast({2, 1}, {3}, "op") == Shape{2, 3});
  CHECK(broadcast({}, {3}, "op") == Shape{3});
  CHECK(broadcast({5, 1, 2}, {4, 1}, "op") == Shape{5, 4, 2});
  CHECK(broadcast({0, 3}, {1, 3}, "op") == Shape{0, 3});
  CHECK(broadcast({1}, {0}, "op") == Shape{0});
  CHECK(error_of([] {
          broadcast({2, 3}, {4, 3}, "op");
        }) == "[op] shapes do not broadcast: [2, 3] and [4, 3]");
  CHECK(error_of([] { broadcast({2}, {0}, "op"); }) == "[op] shapes do not broadcast: [2] and [0]");
  CHECK(broadcasts_to({3}, {2, 3}));
  CHECK_FALSE(broadcasts_to({2, 3}, {3}));
  CHECK_FALSE(broadcasts_to({2}, {2, 3}));
}

TEST_CASE("tensors hold what they were made of") {
  CHECK(Tensor::zeros({2}).to_vector() == Numbers{0, 0});
  CHECK(Tensor::ones({2}, DType::u8).to_vector() == Numbers{1, 1});
  CHECK(Tensor::full({}, 2.5, DType::f64).item() == 2.5);
  CHECK(Tensor::from_ids({2}, {-1, 7}).to_vector() == Numbers{-1, 7});
  CHECK(f32({2, 2}, {1, 2, 3, 4}).size(-1) == 2);
  CHECK(f32({2}, {1, 2}).bytes() == 8);
  CHECK(error_of([] { f32({2, 2}, {1, 2, 3}); }) == "[tensor] 3 numbers do not fill the shape [2, 2]");
  CHECK(error_of([] { f32({2}, {1, 2}).f64(); }) == "[tensor] f64 numbers were asked of a [2] f32 tensor");
  CHECK(error_of([] { Tensor().f32(); }) ==
        "[tensor] f32 numbers were asked of an undefined tensor; hint: moved from, or never made?");
  CHECK(error_of([] { Tensor().item(); }) == "[item] the tensor is undefined");
  CHECK(error_of([] { f32({2}, {1, 2}).item(); }) == "[item] the tensor must have one element: shape [2]");
  CHECK(error_of([] { f32({2}, {1, 2}).at(2); }) == "[tensor] position 2 is outside: shape [2]");
  CHECK_FALSE(Tensor().defined());
  CHECK_FALSE(Tensor().clone().defined());
}

TEST_CASE("views share their numbers, clones do not") {
  Tensor t = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor rows = t.rows(1, 3), row = t.row(0), flat = t.reshape({-1}), copy = t.clone();
  CHECK_FALSE(t.sole_owner());
  t.set(2, 30);
  CHECK(rows.to_vector() == Numbers{30, 4, 5, 6});
  CHECK(rows.shape() == Shape{2, 2});
  CHECK(row.shape() == Shape{2});
  CHECK(flat.at(2) == 30);
  CHECK(copy.at(2) == 3);
  CHECK(copy.sole_owner());
  CHECK(rows.rows(1, 2).to_vector() == Numbers{5, 6});
  CHECK(rows.reshape({4}).at(0) == 30);
  CHECK(t.rows(3, 3).numel() == 0);
  CHECK(rows.clone().to_vector() == Numbers{30, 4, 5, 6});
  t = Tensor();
  CHECK(rows.at(0) == 30);  // the storage lives as long as anyone looks at it
  CHECK(error_of([&] { rows.rows(1, 3); }) == "[rows] entries 1 to 3 are outside: shape [2, 2]");
  CHECK(error_of([&] { Tensor::scalar(1).row(0); }) == "[rows] entries 0 to 1 are outside: shape []");
}

TEST_CASE("conversions and copies") {
  Tensor t = f32({3}, {1.5, -2.7, 0});
  CHECK(t.to(DType::f32).raw() == t.raw());
  CHECK(t.to(DType::i32).to_vector() == Numbers{1, -2, 0});
  const Tensor edge = Tensor::from({3}, {-2147483648.9, 2147483647.9, -0.9}, DType::f64);
  CHECK(edge.to(DType::i32).to_vector() == Numbers{-2147483648.0, 2147483647.0, 0});
  CHECK(error_of([] { Tensor::full({1}, NAN).to(DType::i32); }) == "[tensor] nan does not fit in i32");
  CHECK(error_of([] { Tensor::full({1}, 2147483648.0, DType::i32); }) ==
        "[tensor] 2147483648 does not fit in i32");
  CHECK(error_of([] { Tensor::from({2}, {0, -2147483649.0}, DType::i32); }) ==
        "[tensor] -2147483649 does not fit in i32");
  CHECK(error_of([] { Tensor::zeros({1}, DType::i32).set(0, INFINITY); }) ==
        "[tensor] inf does not fit in i32");
  CHECK(error_of([] { Tensor::full({1}, 256, DType::u8); }) == "[tensor] 256 does not fit in u8");
  CHECK(t.to(DType::f64).dtype() == DType::f64);
  Tensor into = Tensor::zeros({3});
  into.copy_from(t);
  CHECK(into.to_vector() == t.to_vector());
  CHECK(error_of([&] { into.copy_from(Tensor::zeros({2})); }) ==
        "[copy] shapes and types must agree: [3] f32 and [2] f32");
}

TEST_CASE("comparisons") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  CHECK(max_abs_difference(f64({2}, {1, 2}), f64({2}, {1.5, 2})) == 0.5);
  CHECK(std::isnan(max_abs_difference(f64({1}, {nan}), f64({1}, {1}))));
  CHECK(error_of([] { max_abs_difference(Tensor::zeros({1}), Tensor::zeros({2})); }) ==
        "[max_abs_difference] shapes must agree: [1] and [2]");
  Tensor one = Tensor::zeros({1}), two = Tensor::zeros({2});
  CHECK(error_of([&] { zip(one, two, [](auto x, auto y) { return x + y; }); }) ==
        "[zip] shapes must agree: [1] and [2]");
  CHECK(error_of([&] { zip(one, one, two, [](auto x, auto y, auto z) { return x + y + z; }); }) ==
        "[zip] shapes must agree: [1] and [1] and [2]");
  CHECK(error_of([&] { zip(one, one.to(DType::f64), [](auto x, auto y) { return x + y; }); }) ==
        "[zip] element types must agree: f32 and f64");
  CHECK(all_close(f64({2}, {1, inf}), f64({2}, {1 + 1e-9, inf})));
  CHECK_FALSE(all_close(f64({1}, {1}), f64({1}, {1.1})));
  CHECK_FALSE(all_close(f64({1}, {nan}), f64({1}, {nan})));
  for (double x : {0.0, -inf, nan}) {
    CHECK_FALSE(all_close(f64({1}, {x}), f64({1}, {inf})));
    CHECK_FALSE(all_close(f64({1}, {inf}), f64({1}, {x})));
  }
  CHECK_FALSE(all_close(Tensor::zeros({1}), Tensor::zeros({2})));
  CHECK(all_finite(f64({2}, {1, 2})));
  CHECK_FALSE(all_finite(f64({2}, {1, inf})));
  CHECK_FALSE(all_finite(f32({2}, {1, nan})));
  CHECK(all_finite(Tensor::zeros({2}, DType::i32)));
}

TEST_CASE("broadcast_to and sum_to are each other's transpose") {
  struct {
    Shape small, large;
  } pairs[] = {
      {{3}, {2, 3}},       {{2, 1}, {2, 3}},       {{}, {2, 2}},     {{1}, {4}}, {{2, 1, 2}, {2, 3, 2}},
      {{3, 1}, {2, 3, 4}}, {{1, 3, 1}, {2, 3, 4}}, {{2}, {3, 1, 2}}, {{1}, {0}}};
  for (auto& [small, large] : pairs) {
    CAPTURE(small.str());
    CAPTURE(large.str());
    Tensor x(small, DType::f64), y(large, DType::f64);
    for (int64_t i = 0; i < x.numel(); ++i) x.set(i, static_cast<double>(i + 1));
    for (int64_t i = 0; i < y.numel(); ++i) y.set(i, static_cast<double>(i * i + 1));
    // <stretch x, y> = <x, sum y>
    Tensor wide = broadcast_to(x, large, "test"), narrow = sum_to(y, small);
    double left = 0, right = 0;
    for (int64_t i = 0; i < y.numel(); ++i) left += wide.at(i) * y.at(i);
    for (int64_t i = 0; i < x.numel(); ++i) right += x.at(i) * narrow.at(i);
    CHECK(left == right);
  }
  CHECK(error_of([] { broadcast_to(Tensor::zeros({2}), {3}, "op"); }) ==
        "[op] shape does not stretch: [2] to [3]");
  CHECK(error_of([] {
          sum_to(Tensor::zeros({2, 3}), {2});
        }) == "[sum_to] shape does not stretch: [2] to [2, 3]");
}

TEST_CASE("a tensor that was moved from has no numbers left, nor has one that was never made") {
  Tensor a = Tensor::ones({64});
  const Tensor b = std::move(a);
  const Tensor other = Tensor::zeros({64});
  a.fill(5);
  CHECK(a.numel() == 0);
  CHECK_FALSE(a.defined());
  CHECK(b.to_vector() == Numbers(64, 1));
  CHECK(other.to_vector() == Numbers(64, 0));
  CHECK_THROWS_AS(a.at(0), Error);
  a = b;
  CHECK(a.to_vector() == Numbers(64, 1));
  CHECK_FALSE(Tensor().to(DType::f64).defined());
  CHECK_THROWS_AS(Tensor::scalar(1).copy_from(Tensor()), Error);
  CHECK_FALSE(all_close(Tensor(), Tensor::scalar(5)));
  CHECK_THROWS_AS(max_abs_difference(Tensor(), Tensor::scalar(5)), Error);
  Shape s{2, 3};
  s.set(-1, 4);
  CHECK(s == Shape{2, 4});
  CHECK_THROWS_AS(s.set(9, 4), Error);
}
