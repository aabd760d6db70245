// Sums and dates: the questions have the right answers, characters are ids and back, and it learns.

#include <chrono>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "../about.h"
#include "../quick_doctest.h"
#include "run_gallery.h"

#define main sums_and_dates_main
#include "../../examples/gallery/sums_and_dates.cc"
#undef main

namespace {

cli::Result sums_and_dates(const cli::Arguments& options) {
  return cli::run_gallery("sums_and_dates", options);
}

// The numbers of a text, and the number of the month that it names, from 1; 0: none.
std::vector<int> numbers_in(const std::string& text) {
  std::vector<int> out;
  static const std::regex kNumber("[0-9]+");
  for (std::sregex_iterator i(text.begin(), text.end(), kNumber), end; i != end; ++i)
    out.push_back(std::stoi(i->str()));
  return out;
}
int month_in(const std::string& text) {
  for (size_t i = 0; i < kMonths.size(); ++i)
    if (text.find(std::string(kMonths[i]).substr(0, 3)) != std::string::npos) return static_cast<int>(i) + 1;
  return 0;
}

}  // namespace

TEST_CASE("sums: the answer is the sum, and the two numbers in either order are one question of the test") {
  Rng rng(1);
  std::set<size_t> lengths;
  for (int i = 0; i < 500; ++i) {
    const Pair pair = sum_of(rng);
    const std::vector<int> parts = numbers_in(pair.question);
    REQUIRE(parts.size() == 2);
    CHECK(pair.answer == std::to_string(parts[0] + parts[1]));
    const std::vector<int> held = numbers_in(pair.held);
    CHECK(held[0] <= held[1]);
    CHECK(std::multiset<int>(held.begin(), held.end()) == std::multiset<int>(parts.begin(), parts.end()));
    lengths.insert(pair.question.size());
  }
  CHECK(lengths == std::set<size_t>{3, 4, 5, 6, 7});
}

TEST_CASE("dates: every form says the day that the answer has, and every day exists") {
  CHECK(ordinal(1) == "1st");
  CHECK(ordinal(22) == "22nd");
  CHECK(ordinal(3) == "3rd");
  for (int day : {4, 11, 12, 13, 20, 30}) CHECK(ordinal(day) == std::to_string(day) + "th");
  for (int year : {1900, 1999, 2000, 2004})
    for (unsigned month = 1; month <= 12; ++month) {
      const auto last = (std::chrono::year(year) / static_cast<int>(month) / std::chrono::last).day();
      CHECK(days_of(year, month) == static_cast<int64_t>(static_cast<unsigned>(last)));
    }
  Rng rng(2);
  int with_names = 0;
  for (int i = 0; i < 500; ++i) {
    const Pair pair = date(rng);
    std::vector<int> said = numbers_in(pair.question);
    const std::vector<int> wanted = {std::stoi(pair.answer.substr(0, 4)), std::stoi(pair.answer.substr(5, 2)),
                                     std::stoi(pair.answer.substr(8, 2))};
    CHECK(pair.answer.size() == 10);
    CHECK(pair.held == pair.answer);
    const int month = month_in(pair.question);
    if (month > 0) said.push_back(month);
    with_names += month > 0;
    CHECK(std::multiset<int>(said.begin(), said.end()) == std::multiset<int>(wanted.begin(), wanted.end()));
    if (month > 0) CHECK(month == wanted[1]);
    if (month == 0) CHECK(said[1] == wanted[1]);  // day.month.year
  }
  CHECK(with_names > 350);
  CHECK(with_names < 480);
}

TEST_CASE("sums and dates: characters become ids and come back; answers have the first of them") {
  const std::string text = "the 3rd of May 1998";
  CHECK(text_of(ids_of(text)) == text);
  for (int32_t id : ids_of("0123456789-")) {
    CHECK(id >= kSpecial);
    CHECK(id < kAnswers);
  }
  CHECK(text_of({nn::kUnk, kSpecial}) == "?0");
  const nn::Seq2SeqBatch batch = batch_of({{"1+2", "3", ""}, {"12+345", "357", ""}});
  CHECK(batch.source.shape() == Shape{7, 2});
  CHECK(batch.source_lengths.to_vector() == std::vector<double>{4, 7});
  CHECK(batch.target_tokens == 6);
}

TEST_CASE("sums and dates: a picture has a row a character, and one for the end where there is one") {
  nn::Hypothesis said{.tokens = ids_of("3"), .weights = {{0.9f, 0.1f, 0, 0}, {0, 0, 0, 1}}};
  const std::string whole = picture("1+2", said);
  CHECK(whole.find("3") != std::string::npos);
  said.weights.pop_back();  // cut off
  CHECK(cli::count(picture("1+2", said), "\n") == cli::count(whole, "\n") - 1);
}

TEST_CASE("sums and dates: dates are learned in seconds, and the end shows where it looked") {
  CHECK(cli::gallery_result("sums_and_dates", {"--task", "dates"}).at("right") > 0.9);
  const cli::Result sums = sums_and_dates({"--updates", "24"}),
                    none = sums_and_dates({"--updates", "12", "--attention", "none"});
  CHECK(cli::count(sums.out, " is ") == 12);
  CHECK(sums.out.find("*") != std::string::npos);
  CHECK(none.out.find("*") == std::string::npos);
  const cli::Result bad = sums_and_dates({"--attention", "nowhere"});
  CHECK(bad.code == 2);
}
