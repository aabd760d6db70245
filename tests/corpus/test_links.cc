#include "../quick_doctest.h"
#include "sample.h"

#include <algorithm>
#include <stdexcept>

using namespace translator;

TEST_CASE("links are in range, sorted, without repeats, and leave no token out") {
  int out_of_range = 0, unsorted = 0, unlinked = 0;
  for (const SentencePair& pair : large_sample().train) {
    std::vector<bool> source(pair.source.size()), target(pair.target.size());
    for (size_t k = 0; k < pair.alignment->sure.size(); ++k) {
      const auto [i, j] = pair.alignment->sure[k];
      if (i < 0 || j < 0 || i >= static_cast<int>(source.size()) || j >= static_cast<int>(target.size())) {
        ++out_of_range;
        continue;
      }
      source[i] = target[j] = true;
      unsorted += k > 0 && pair.alignment->sure[k] <= pair.alignment->sure[k - 1];
    }
    const bool complete = std::find(source.begin(), source.end(), false) == source.end() &&
                          std::find(target.begin(), target.end(), false) == target.end();
    if (!complete && ++unlinked < 5)
      MESSAGE((padded(pair.source) + "|" + padded(pair.target) + format_moses(pair.alignment->sure)));
  }
  CHECK(out_of_range == 0);
  CHECK(unsorted == 0);
  CHECK(unlinked == 0);
}

TEST_CASE("links join words with their translation") {
  const auto linked = [](const SentencePair& pair, const std::string& english, const std::string& french) {
    return std::any_of(pair.alignment->sure.begin(), pair.alignment->sure.end(), [&](const Link& link) {
      return pair.source[link.source] == english && pair.target[link.target] == french;
    });
  };
  const auto has = [](const std::vector<std::string>& tokens, const std::string& word) {
    return std::find(tokens.begin(), tokens.end(), word) != tokens.end();
  };
  const std::pair<const char*, const char*> kAlways[] = {
      {"paul", "paul"},     {"doesn't", "pas"},   {"didn't", "pas"},      {"never", "jamais"},
      {"apples", "pommes"}, {"because", "parce"}, {"tomorrow", "demain"}, {"day", "jours"},
      {"hungry", "faim"},   {"water", "eau"},     {"slept", "dormi"},     {"often", "souvent"},
      {"station", "gare"},  {"many", "beaucoup"}};
  for (const auto& [english, french] : kAlways) {
    CAPTURE(english);
    size_t sentences = 0;
    for (size_t n = 0; n < 30000; ++n) {
      const SentencePair& pair = large_sample().train[n];
      if (!has(pair.source, english)) continue;
      ++sentences;
      if (!linked(pair, english, french)) {
        FAIL_CHECK((std::string(english) + " is not linked to " + french + " in" + padded(pair.source)));
        break;
      }
    }
    CHECK(sentences > 10);
  }
}

TEST_CASE("Moses links are written and read") {
  CHECK(format_moses(Links{}) == "");
  CHECK(format_moses(Links{{0, 0}, {1, 2}, {10, 11}}) == "0-0 1-2 10-11");
  CHECK(parse_moses("") == GoldAlignment{});
  CHECK(parse_moses(" 0-0  1-2 10-11\r") == GoldAlignment{.sure = {{0, 0}, {1, 2}, {10, 11}}});
  for (const char* bad :
       {"1", "1-", "-1", "1-2x", "a-b", "1--2", "1-2-3", "0-0,1-1", "99999999999-1", "0-0 1:2"}) {
    CHECK_FALSE(parse_moses(bad));
  }
}
