#include <translator/text/alignment.h>
#include <translator/text/word_picture.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <limits>

#include "../about.h"
#include "../quick_doctest.h"
#include <common/json_text.h>

using namespace translator;

namespace {

Links links_of(const nlohmann::ordered_json& list) {
  Links out;
  for (const auto& link : list) out.push_back({link[0].get<int32_t>(), link[1].get<int32_t>()});
  return out;
}

}  // namespace

TEST_CASE("alignment: Moses links") {
  const auto parsed = parse_moses("1-2 0-0 0-0 3?4");
  REQUIRE(parsed.has_value());
  CHECK(parsed->sure == Links{{0, 0}, {1, 2}});
  CHECK(parsed->possible == Links{{3, 4}});
  CHECK(format_moses(*parsed) == "0-0 1-2 3?4");
  CHECK(format_moses(Links{{0, 0}, {10, 2}}) == "0-0 10-2");
  CHECK(parse_moses("1?1 1-1")->possible.empty());  // sure already
  CHECK(parse_moses("")->sure.empty());
  CHECK(parse_moses(" 0-0 \r")->sure == Links{{0, 0}});
  for (const char* wrong :
       {"0", "0-", "-0", "0-0-0", "a-b", "0-0,1-1", "CC-BY 2.0", "99999999999-0", "0--1", "0--0",
        "0 - 1"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_moses(wrong).has_value());
  }
}

TEST_CASE("alignment: exchange of sides, bounds") {
  const GoldAlignment gold{.sure = {{0, 3}, {2, 1}}, .possible = {{1, 0}}};
  CHECK(swapped(gold) == GoldAlignment{.sure = {{1, 2}, {3, 0}}, .possible = {{0, 1}}});
  CHECK(fits(gold, 3, 4));
  CHECK_FALSE(fits(gold, 2, 4));
  CHECK_FALSE(fits(gold, 3, 3));
}

TEST_CASE("alignment: links are the largest weight of each row") {
  const std::vector<float> w = {0.7f, 0.2f, 0.1f,   //
                                0.1f, 0.3f, 0.6f,   // points at the last column
                                0.4f, 0.4f, 0.2f,   // the first of equals
                                0.0f, 0.0f, 0.0f};  // a row without any weight
  const Weights weights{4, 3, w};
  CHECK(links_from_attention(weights) == Links{{0, 0}, {0, 2}, {2, 1}});
  CHECK(links_from_attention(weights, 2) == Links{{0, 0}, {0, 2}});      // column 2 is </s>
  CHECK(links_from_attention(weights, -1, 2) == Links{{0, 0}, {2, 1}});  // row 2 predicts </s>
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> broken = {nan, 0.5f};
  CHECK(links_from_attention({1, 2, broken}) == Links{{1, 0}});
  CHECK_THROWS_WITH_AS(links_from_attention({2, 2, broken}),
                       "links_from_attention: rows x columns must be the number of weights",
                       std::invalid_argument);
}

TEST_CASE("alignment: error rate, golden") {
  std::ifstream file(TRANSLATOR_GOLDEN_DIR "/scalar_formulas.json");
  REQUIRE(file);
  const auto golden = json_text::parse(file);
  AlignmentScore score;
  score.add(links_of(golden["config"]["aer_system_links"]),
            {.sure = links_of(golden["config"]["aer_sure_links"]),
             .possible = links_of(golden["config"]["aer_possible_links"])});
  CHECK(score.error_rate() ==
        about(golden["outputs"]["aer"]["data"][0].get<double>(), 1e-12));
}

TEST_CASE("alignment: error rate over a corpus, words that come from nowhere") {
  // il n' aime pas les pommes . : `les` comes from no word.
  const GoldAlignment gold{.sure = {{0, 0}, {1, 1}, {2, 2}, {1, 3}, {3, 5}, {4, 6}}, .possible = {}};
  const Links system = {{0, 0}, {1, 1}, {2, 2}, {1, 3}, {3, 4}, {3, 5}, {4, 6}};
  AlignmentScore all;
  all.add(system, gold);
  CHECK(all.error_rate() == about(1.0 - 12.0 / 13.0));
  AlignmentScore aligned;
  aligned.add(system, gold, {.ignore_unaligned_targets = true});
  CHECK(aligned.error_rate() == 0.0);
  aligned.add({{5, 5}}, {.sure = {{0, 5}}, .possible = {{5, 5}}});  // possible, but not sure
  CHECK(aligned.system == 7);
  CHECK(aligned.error_rate() == about(1.0 - (6.0 + 7.0) / (7.0 + 7.0)));
  CHECK(AlignmentScore{}.error_rate() == 0.0);
}

TEST_CASE("alignment: the links of a picture are of words, and </s> is none on either side") {
  const WordPicture words{
      {"a", "b", "</s>"}, {"x", "y", "</s>"}, {{0.1f, 0.7f, 0.2f}, {0.1f, 0.1f, 0.8f}, {0.6f, 0, 0.4f}}, true};
  CHECK(links_of(words) == Links{{1, 0}});
}
