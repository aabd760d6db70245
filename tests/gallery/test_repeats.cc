// Letters with a repeated one: what is drawn, the gradients, and that no annotation knows where it stands.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gradus/nn/module.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "../skip.h"
#include "run_gallery.h"

#define main repeats_main
#include "../../examples/gallery/repeats.cc"
#undef main

namespace {

// Logits of the first letter that is written, for one sequence that is given by its letters.
Tensor first_logits(const Writer& model, const std::vector<int32_t>& letters) {
  const int64_t T = std::ssize(letters);
  Sequences x{Tensor({T, 1}, DType::i32), Tensor::from_ids({T, 1}, letters),
              Tensor::zeros({T, 1}, DType::u8)};
  for (int64_t t = 0; t < T; ++t) x.before.i32()[t] = t == 0 ? kEdge : letters[t - 1];
  NoGrad no_tape;
  return model(x).first.value().row(0);
}

}  // namespace

TEST_CASE("repeats: one letter stands so often, each time before another one, and the others once") {
  Rng rng(1);
  for (int64_t repeated : {1, 2, 5, 10}) {
    CAPTURE(repeated);
    const Sequences x = draw(20, repeated, 50, rng);
    REQUIRE(x.letters.shape() == Shape{21, 50});
    for (int64_t b = 0; b < 50; ++b) {
      std::map<int32_t, int64_t> count;
      std::map<int32_t, int64_t> marked;  // by the letter before
      for (int64_t t = 0; t < 21; ++t) {
        const int32_t letter = x.letters.i32()[t * 50 + b], before = x.before.i32()[t * 50 + b];
        CHECK(before == (t == 0 ? kEdge : x.letters.i32()[(t - 1) * 50 + b]));
        CHECK(letter != before);
        CHECK((letter == kEdge) == (t == 20));
        ++count[letter];
        if (x.after_repeated.u8()[t * 50 + b]) ++marked[before];
      }
      REQUIRE(marked.size() == 1);
      const auto [letter, times] = *marked.begin();
      CHECK(letter != kEdge);
      CHECK(times == repeated);
      for (const auto& [other, n] : count) CHECK(n == (other == letter ? repeated : 1));
    }
  }
}

TEST_CASE("repeats: gradients of all parameters, with both scores") {
  for (const std::string& score : kScores) {
    CAPTURE(score);
    Rng rng(2);
    Writer model(score, rng);
    const Sequences x = draw(4, 2, 2, rng);
    CHECK_GRADIENTS(nn::gradcheck(model, [&] { return cross_entropy(model(x).first, x.letters).loss; }));
  }
}

TEST_CASE("repeats: content does not see where a letter stands, location does") {
  // ABCADEA and ADEABCA: the same pairs of letters, in another order.
  const std::vector<int32_t> one = {0, 1, 2, 0, 3, 4, 0, kEdge}, other = {0, 3, 4, 0, 1, 2, 0, kEdge};
  for (const std::string& score : kScores) {
    CAPTURE(score);
    Rng rng(3);
    Writer model(score, rng);
    const Tensor a = first_logits(model, one), b = first_logits(model, other);
    double apart = 0;
    for (int64_t i = 0; i < a.numel(); ++i) apart = worse(apart, std::abs(a.at(i) - b.at(i)));
    // Before the first step all places count the same, but those at the ends have neighbours on one side only.
    CHECK((score == "bahdanau" ? apart < 1e-5 : apart > 1e-5));
  }
}

TEST_CASE("repeats: what it learns, a sequence with its weights, and what is wrong with a command line") {
  const cli::Result run = cli::run_gallery("repeats", {"--quick"});
  CHECK(run.code == 0);
  for (const char* said : {"parameters", "wrong after it", "places of the sequence across"})
    CHECK(run.out.find(said) != std::string::npos);
  cli::check_gallery_refuses("repeats", {"--score", "dot"}, "--score");
}

TEST_CASE("gallery: help, or what comes of a run, that cannot be written is said") {
  if (!std::filesystem::exists("/dev/full")) return gradus::testing::skipped("no /dev/full here");
  for (const std::string option : {"--help", "--quick"}) {
    const cli::Result r = cli::run_program({"/bin/sh", "-c", "\"$G\" " + option + " >/dev/full"},
                                           {.environment = {{"G", GALLERY "/gallery-repeats"}}});
    CHECK(r.code == 1);
    CHECK(r.says("gallery-repeats: standard output cannot be written: "));
  }
}

TEST_CASE("repeats: wrong letters are counted behind the repeated one, and named in the picture") {
  Rng rng(5);
  const Writer model("bahdanau", rng);
  const Sequences x = draw(12, 4, 20, rng);
  const Tensor said = argmax(model(x).first);
  double asked = 0, wrong = 0;
  for (int64_t i = 0; i < said.numel(); ++i)
    if (x.after_repeated.u8()[i]) ++asked, wrong += said.i32()[i] != x.letters.i32()[i];
  CHECK(errors_of(model, x).after_repeated == about(wrong / asked));
  CHECK(picture(model, draw(12, 4, 1, rng)).find(", not ") != std::string::npos);
}
