#include <algorithm>

#include <translator/inference/mbr.h>
#include <translator/inference/steering.h>
#include <translator/text/chrf.h>

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

TEST_CASE("a sample that came several times counts as often in what is most like all of them") {
  const Model model = tiny::model();
  Translation often, once, alike;
  often.tokens = {"fort"}, once.tokens = {"nous", "voyons", "une"};
  alike.tokens = {"nous", "voyons", "une", "maison"};
  const std::vector<Translation> ranked =
      by_expected_utility(model, chrf_metric({}), {once, often, alike, often, often});
  REQUIRE(ranked.size() == 3);
  CHECK(ranked[0].tokens == often.tokens);
  CHECK(ranked[0].score >= 60);
  CHECK(by_expected_utility(model, chrf_metric({}), {often, alike, once})[2].tokens == often.tokens);
  // Of two that are as like, the more probable one.
  Translation rare;
  rare.tokens = {"nous"}, rare.log_probability = often.log_probability - 1;
  CHECK(by_expected_utility(model, chrf_metric({}), {rare, often})[0].tokens == often.tokens);
}
