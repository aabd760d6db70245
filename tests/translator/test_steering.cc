#include <algorithm>

#include <translator/inference/steering.h>

#include "tiny.h"
#include "../quick_doctest.h"

using namespace translator;

TEST_CASE("a forbidden word does not come as a copy either, and something else is said in its place") {
  Model model = tiny::model();
  tiny::set(model, "output.bias", gradus::nn::kUnk, 10);  // it copies what it looks at
  const std::vector<Segmented> sources = {model.reads.split("maison")};
  auto said = [&](const SteeringOptions& asked) {
    const Steering steering(asked, model);
    gradus::nn::SearchOptions search;
    search.max_length = 5;
    search.sentences = {steering.of(0)};
    return steering.translate(*model.generator(), sources, search, {})[0];
  };
  const auto copies = [](const Translation& t) {
    return std::count(t.tokens.begin(), t.tokens.end(), "maison");
  };
  SteeringOptions options;
  const std::vector<Translation> free = said(options);
  options.forbid = {"maison"};
  const std::vector<Translation> told = said(options);
  REQUIRE(free.size() == 1);
  CHECK(copies(free[0]) > 0);
  REQUIRE(told.size() == 1);
  CHECK(copies(told[0]) == 0);
}
