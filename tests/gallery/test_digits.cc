// Digits: drawn within their pictures, cut into patches without a loss, differentiable, and learned.

#include <string>
#include <vector>

#include <gradus/nn/module.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "run_gallery.h"

#define main digits_main
#include "../../examples/gallery/digits.cc"
#undef main

namespace {

cli::Result digits(const cli::Arguments& options) { return cli::run_gallery("digits", options); }

}  // namespace

TEST_CASE("digits: distance from a stroke, its ends included") {
  CHECK(distance({0, 1}, {0, 0}, {4, 0}) == about(1));
  CHECK(distance({2, -3}, {0, 0}, {4, 0}) == about(3));
  CHECK(distance({7, 4}, {0, 0}, {4, 0}) == about(5));
  CHECK(distance({3, 4}, {0, 0}, {0, 0}) == about(5));
}

TEST_CASE("digits: every pixel has a place of its own, and ink from 0 to 1") {
  REQUIRE(kStrokes.size() == static_cast<size_t>(kDigits));
  Rng rng(1);
  const Pictures some(300, rng);
  std::vector<int> drawn_digits(kDigits, 0);
  for (int64_t b = 0; b < 300; ++b) {
    ++drawn_digits[some.digits.i32()[b]];
    double ink = 0;
    for (int64_t y = 0; y < kSide; ++y)
      for (int64_t x = 0; x < kSide; ++x) {
        const float p = some.pixel(b, y, x);
        CHECK((p >= 0 && p <= 1));
        ink += p;
      }
    CHECK(ink > 5);
    CHECK(ink < kSide * kSide / 2);
  }
  for (int count : drawn_digits) CHECK(count > 10);
  Pictures blank(2, rng);
  blank.patches.fill(0);
  for (int64_t y = 0; y < kSide; ++y)
    for (int64_t x = 0; x < kSide; ++x) blank.pixel(1, y, x) += 1;
  CHECK(sum(blank.patches).item() == kSide * kSide);
  for (int64_t s = 0; s < kPatches; ++s) {
    CHECK(sum(blank.patches.row(s).row(0)).item() == 0);
    CHECK(sum(blank.patches.row(s).row(1)).item() == kPixels);
  }
  CHECK(&blank.pixel(0, 4, 9) - blank.patches.f32() == (6 * 2 + 0) * kPixels + 1);  // patch 1, 2; pixel 0, 1
}

TEST_CASE("digits: gradients of all parameters, with layers and without") {
  Rng rng(2);
  const Pictures some(2, rng);
  const Tensor patches = some.patches.to(DType::f64);
  for (int64_t depth : {0, 1}) {
    CAPTURE(depth);
    Model model(depth, rng);
    CHECK_GRADIENTS(nn::gradcheck(model, [&] { return cross_entropy(model(patches), some.digits).loss; }));
  }
}

TEST_CASE("digits: they are learned in seconds, and the end shows one and the weights of its patches") {
  CHECK(cli::gallery_result("digits").at("wrong") < 0.4);
  const cli::Result shown = digits({"--updates", "12", "--layers", "0"});
  CHECK(shown.out.find("██") != std::string::npos);
  CHECK(shown.out.find("weights of its patches") != std::string::npos);
  CHECK(digits({"--layers", "-1"}).code == 2);
}

TEST_CASE("digits: ink and weights stand in the picture where they are") {
  Rng rng(1);
  Pictures one(1, rng);
  one.patches.fill(0);
  one.pixel(0, 0, kSide - 1) = 1;
  Tensor weights = Tensor::zeros({1, kPatches});
  weights.set(1, 1);  // of the upper row the second
  const std::vector<std::string> lines = cli::lines_of(drawn(one, weights));
  REQUIRE(lines.size() == kSide);
  for (size_t y = 0; y < lines.size(); ++y) {
    CHECK((lines[y].find("██") != std::string::npos) == (y == 0));
    CHECK((lines[y].find("100") != std::string::npos) == (y == 1));
  }
}
