// Captions: the scenes, the gradients of all kinds of attention, and what the gaze finds.

#include <set>
#include <string>
#include <vector>

#include <gradus/nn/module.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "run_gallery.h"

#define main captions_main
#include "../../examples/gallery/captions.cc"
#undef main

namespace {

Batch small_batch(DType dtype) {
  Rng rng(5);
  Batch batch = scenes(2, rng);
  batch.patches = batch.patches.to(dtype);
  return batch;
}

}  // namespace

TEST_CASE("captions: a sentence says what is drawn, first what is above or on the left") {
  Rng rng(1);
  const int64_t B = 200;
  const Batch batch = scenes(B, rng);
  std::set<int> said;
  for (int64_t b = 0; b < B; ++b) {
    auto word = [&](int64_t t) { return batch.words.row(t).i32()[b]; };
    const int first = batch.cells.row(0).i32()[b], second = batch.cells.row(1).i32()[b];
    CHECK(word(0) == kA);
    CHECK(word(4) == kA);
    const bool beside = kWords[word(3)] == "beside";
    REQUIRE((beside || kWords[word(3)] == "above"));
    CHECK((beside ? first / kGrid == second / kGrid : first % kGrid == second % kGrid));
    CHECK(first < second);
    for (int cell = 0; cell < kPatches; ++cell) {
      const Tensor pixels = batch.patches.row(cell).row(b);
      const double painted = max(pixels).item();
      if (cell != first && cell != second) {
        CHECK(painted == 0);
        continue;
      }
      CHECK(painted > 0);
      // The colour, whatever its brightness, by what a painted pixel has most of.
      const int colour = word(cell == first ? 1 : 5);
      int64_t i = 0;
      while (pixels.at(i) == 0) ++i;
      REQUIRE(i % 3 == 0);
      for (int c = 0; c < 3; ++c)
        CHECK(pixels.at(i + c) / pixels.at(i) == about(kColours[colour][c] / kColours[colour][0], 1e-5));
    }
    for (int64_t t = 0; t < kSaid; ++t) said.insert(word(t));
  }
  CHECK(said.size() == kWords.size());
}

TEST_CASE("captions: the forms differ in what they cover") {
  std::vector<int64_t> covered;
  for (int shape = 0; shape < kKinds; ++shape) {
    Rng rng(2);  // one place for all
    Tensor pixels = Tensor::zeros({kPixels});
    paint(pixels.f32(), 0, shape, rng);
    int64_t count = 0;
    for (int64_t i = 0; i < kPixels; i += 3) count += pixels.at(i) > 0;
    covered.push_back(count);
  }
  CHECK(covered[1] > covered[0]);  // a square has all that the circle has
  CHECK(covered[0] > covered[2]);
  CHECK(covered[3] < covered[1]);
  for (int64_t count : covered) CHECK(count >= 6);
}

TEST_CASE("captions: gradients of all parameters, the doubly stochastic loss among them") {
  for (const char* attention : {"uniform", "bahdanau"}) {
    CAPTURE(attention);
    Rng rng(2);
    Captioner model(attention, rng);
    const Batch batch = small_batch(DType::f64);
    CHECK_GRADIENTS(nn::gradcheck(model, [&] {
      const Caption said = model(batch);
      return cross_entropy(said.logits, batch.words).loss + sum(pow(1 - sum(stack(said.gaze, 0), 0), 2));
    }));
  }
}

TEST_CASE("captions: weights sum to 1; hard attention looks at one patch, drawn in training") {
  for (const char* attention : {"uniform", "bahdanau", "hard"}) {
    CAPTURE(attention);
    Rng rng(3);
    Captioner model(attention, rng);
    const Batch batch = small_batch(DType::f32);
    const bool hard = attention == std::string("hard");
    const Caption said = model(batch);
    CHECK(said.logits.shape() == Shape{kSaid, 2, static_cast<int64_t>(kWords.size())});
    CHECK_FALSE(said.log_probability.defined());
    for (const Var& weights : said.gaze) {
      CHECK(sum(weights.value().row(1)).item() == about(1, 1e-5));
      CHECK((max(weights.value().row(1)).item() == 1) == hard);
    }
    Training training(7);
    const Var log_probability = model(batch).log_probability;
    REQUIRE(log_probability.defined() == hard);
    if (hard) CHECK(max(log_probability).item() < 0);
  }
}

TEST_CASE("captions: soft attention learns to look in a few hundred batches; a mean cannot look") {
  auto last_of = [](const char* attention) {
    return cli::gallery_result("captions", {"--attention", attention});
  };
  const auto soft = last_of("bahdanau"), mean = last_of("uniform");
  CHECK(mean.at("gaze").get<double>() == about(1.0 / kPatches, 1e-5));
  CHECK(soft.at("gaze") > 0.4);
  CHECK(soft.at("right").get<double>() > mean.at("right").get<double>());
}

TEST_CASE("captions: what it learns, a picture with the gaze on it, and what is wrong with a command line") {
  const cli::Result run =
      cli::run_gallery("captions", {"--quick", "--attention", "hard", "--doubly-stochastic"});
  CHECK(run.code == 0);
  CHECK(run.out.find("update   300") != std::string::npos);
  // Hard attention looks at one patch for each of five words.
  CHECK(cli::count(run.out.substr(run.out.find("The gaze")), "*") == 5);
  cli::check_gallery_refuses("captions", {"--attention", "general"}, "--attention");
}

TEST_CASE("captions: the gaze that counts is on the thing that is named, which the picture draws as it is") {
  Rng rng(7);
  const Captioner model("bahdanau", rng);
  const Batch batch = small_batch(DType::f32), one = scenes(1, rng);
  const Caption said = model(batch);
  double gaze = 0;
  for (int64_t b : {0, 1})
    for (int64_t t : {1, 2, 5, 6})
      gaze += said.gaze[t].value().row(b).at(batch.cells.row(t < 4 ? 0 : 1).i32()[b]) / 8;
  CHECK(score_of(model, batch).second == about(gaze, 1e-6));
  const std::string drawn = picture(model(one), one);
  for (int i : {0, 4}) {
    const int colour = one.words.i32()[i + 1], shape = one.words.i32()[i + 2] - kShape;
    REQUIRE(colour != shape);
    CHECK(drawn.find(kWords[colour][0] + kForms[shape]) != std::string::npos);
  }
}
