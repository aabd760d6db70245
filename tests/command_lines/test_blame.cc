// `lens blame` as a program.

#include <common/utf8.h>

#include "../cli/program.h"
#include "../quick_doctest.h"

using namespace cli;

TEST_CASE("blame: a table, the same as JSON, and what is left out is said") {
  auto blame = [](Arguments more) {
    more.insert(more.begin(), {LENS, "blame", trained_model()});
    return run_program(more);
  };
  std::string good;
  for (size_t i = 0; i < 5; ++i) good += lines_of(read_file(short_pairs()))[i] + "\n";
  write_file("good.tsv", good);
  Result text = blame({"good.tsv"});
  INFO(text.out << text.err);
  CHECK(text.code == 0);
  CHECK(count(text.out, "trained, 5 sentences: ") == 1);
  CHECK(count(text.out, "  weights   left out ") == 1);
  CHECK(count(text.out, "  |dL/dh|   |dL/dx| ") == 1);
  CHECK(count(text.out, "nan") == 0);
  for (const Result& r : {text, run_program({LENS, "report", trained_model(), "--text"})})
    for (const std::string& line : lines_of(r.out)) {
      INFO(line);
      if (count(line, "lens explain ") == 0)  // that one is to be pasted
        CHECK(translator::utf8::display_width(line) <= 80);
    }

  Result made = blame({"good.tsv", "--json"});
  CHECK(made.code == 0);
  const auto found = nlohmann::ordered_json::parse(made.out);
  CHECK(found["sentences"] == 5);
  CHECK(found["target_words"].get<int>() + found["undefined"].get<int>() >= 10);
  REQUIRE(found["agreement"].size() == 6);
  for (const auto& a : found["agreement"]) {
    CHECK(std::abs(a["rank_correlation"].get<double>()) <= 1);
    CHECK(a["same_first"].get<double>() >= 0);
    CHECK(a["same_first"].get<double>() <= 1);
  }
  CHECK(found["agreement"][2]["a"] == "weights");
  CHECK(found["agreement"][2]["b"] == "left_out");

  std::string longer;
  for (int i = 0; i < 61; ++i) longer += "a ";
  write_file("some.tsv", good + longer + "\tb\nno tab\n");
  Result some = blame({"some.tsv"});
  CHECK(some.code == 1);
  CHECK(count(some.out, "trained, 5 sentences: ") == 1);
  CHECK(some.says("lens: some.tsv:6: left out: the source sentence: has 61 "));
  CHECK(some.says("some.tsv:7"));
  write_file("none.tsv", longer + "\tb\n");
  Result none = blame({"none.tsv"});
  CHECK(none.code == 1);
  CHECK(none.out.empty());
  CHECK(none.says("none.tsv: has no pair that can be looked at"));
  REQUIRE(run(small_run("flat", {"--attention", "uniform", "--epochs", "1"})).code == 0);
  Result flat = run_program({LENS, "blame", "flat", "good.tsv"});
  CHECK(flat.code == 1);
  CHECK(flat.out.empty());
  CHECK(flat.says("there is nothing to compare"));
  CHECK(run_program({LENS, "blame", "absent", "good.tsv"}).code == 1);
  CHECK(run_program({LENS, "blame", trained_model()}).code == 2);
}
