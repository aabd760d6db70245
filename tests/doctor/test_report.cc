// What is told of findings: text, JSON, and the lines that are kept.

#include <common/json_text.h>
#include <translator/commands/doctor_report.h>

#include <nlohmann/json.hpp>

#include "../quick_doctest.h"

using namespace translator;
using namespace translator::doctor;

namespace {

struct Case {
  std::vector<SentencePair> pairs;
  std::vector<BadLine> bad = {{2, "no tab between source and target"}};
  Examination examination = {};

  Case() {
    for (int64_t line : {1, 3, 4}) {
      SentencePair p;
      p.source_text = "source " + std::to_string(line);
      p.target_text = "target \x1B[31m";
      p.line = line;
      pairs.push_back(p);
    }
    examination.findings = {{Kind::markup, 1, "<b> in the source only"},
                            {Kind::duplicate, 1, "the same as line 1"},
                            {Kind::normalisation, 2, "the target"}};
    examination.by_words = true;
  }
  Report report() const {
    return {.name = "a.tsv", .lines = 5, .blank = 1, .pairs = pairs, .bad = bad, .examination = examination};
  }
};

}  // namespace

TEST_CASE("text: escaped, cut to the width, the first reason of each line counted once") {
  const Case c;
  CHECK(c.report().left_out() == 2);
  CHECK(c.report().text(78) ==
        "a.tsv: 3 pairs in 5 lines, 1 blank\n"
        "Worth leaving out: 2 of 5 lines\n"
        "  unreadable           1   20.00 %  a line that is no pair\n"
        "    line 2: no tab between source and target\n"
        "  markup               1   20.00 %  markup on one side only\n"
        "    line 3, <b> in the source only: source 3 | target \uFFFD[31m\n"
        "  duplicate            1   20.00 %  the pair was there before\n"
        "    line 3, the same as line 1: source 3 | target \uFFFD[31m\n"
        "Worth knowing, and kept\n"
        "  normalisation        1   20.00 %  characters are spelt in parts (not NFC); …\n"
        "    line 4, the target: source 4 | target \uFFFD[31m\n");
}

TEST_CASE("text of a file without faults, and of one that does not go together") {
  Case c;
  c.bad.clear();
  c.examination.findings.clear();
  CHECK(c.report().text(200) == "a.tsv: 3 pairs in 5 lines, 1 blank\nNothing that should be left out.\n");
  c.examination.by_words = false;
  CHECK(c.report().text(200) ==
        "a.tsv: 3 pairs in 5 lines, 1 blank\n"
        "Too few pairs to learn which words translate which: wrong pairs are told by their lengths only.\n"
        "Nothing that should be left out.\n");
  CHECK(c.report().text(60).find("which words translate which: wrong\npairs are told by their lengths "
                                 "only.\n") != std::string::npos);
  c.examination.hopeless = true;
  CHECK(c.report().text(200) ==
        "a.tsv: 3 pairs in 5 lines, 1 blank\n"
        "The two sides look as if thrown together: their words hardly tell that one translates the other.\n");
  c.examination.displaced = -2;
  CHECK(c.report().text(200) ==
        "a.tsv: 3 pairs in 5 lines, 1 blank\n"
        "The targets of all lines, or nearly all, stand 2 lines further up than their sources.\n");
}

TEST_CASE("shifted blocks, and what a model believes least") {
  Case c;
  c.bad.clear();
  c.examination.findings = {{Kind::shifted, 0, "x"}, {Kind::shifted, 1, "x"}};
  c.examination.blocks = {{0, 1, 1}};
  Report report = c.report();
  report.doubted = {{2, 123.456}};
  CHECK(report.text(200) ==
        "a.tsv: 3 pairs in 5 lines, 1 blank\n"
        "Worth leaving out: 2 of 5 lines\n"
        "  shifted              2   40.00 %  the targets stand some lines further up or down\n"
        "    lines 1 to 3: their targets stand 1 line further down\n"
        "What the model believes least (perplexity of the target)\n"
        "    line 4, 123.5: source 4 | target \uFFFD[31m\n");
  const auto json = json_text::parse(report.json());
  CHECK(json_text::dump(json.at("shifted")) == R"([{"first":1,"last":3,"shift":1}])");
  CHECK(json.at("least_believed").at(0).at("line") == 4);
}

TEST_CASE("JSON has all lines of every finding") {
  const auto json = json_text::parse(Case().report().json());
  CHECK(json.at("pairs") == 3);
  CHECK(json.at("left_out") == 2);
  CHECK(json_text::dump(json.at("findings").at(1)) ==
        R"({"kind":"markup","says":"markup on one side only","left_out":true,"count":1,"lines":[3],)"
        R"("details":["<b> in the source only"]})");
  CHECK(json.at("findings").size() == 4);
  CHECK_FALSE(json.contains("training"));
}

TEST_CASE("clean: lines byte for byte, and each of the others with its reason") {
  const Case c;
  const Cleaned one = clean(c.report(), {"s1\tt1\tmore \r\nnonsense\n s3\tt3\ns4\tt4\n\n"});
  CHECK(one.kept == "s1\tt1\tmore \r\ns4\tt4\n");
  CHECK(
      one.rejected ==
      "2\tunreadable: no tab between source and target\tnonsense\n3\tmarkup: <b> in the source only\t "
      "s3\tt3\n");
  const Cleaned two = clean(c.report(), {"s1\r\ns2\ns3\ns\t4\n\n", "t1\nt2\nt3\nt4\n\n"});
  CHECK(two.kept == "s1\tt1\ns 4\tt4\n");
}

TEST_CASE("clean: of what is no pair behind the last one, too; a mark of UTF-8 is no part of a side") {
  Case c;
  c.bad.push_back({5, "no tab"});
  const Cleaned one = clean(c.report(), {"s1\tt1\nnonsense\ns3\tt3\ns4\tt4\nlast\n"});
  CHECK(one.rejected.ends_with("5\tunreadable: no tab\tlast\n"));
  const Cleaned two =
      clean(c.report(), {"\xEF\xBB\xBFs1\ns2\ns3\ns4\ns5\n", "\xEF\xBB\xBFt1\nt2\nt3\nt4\nt5\n"});
  CHECK(two.kept == "s1\tt1\ns4\tt4\n");
}

TEST_CASE("text: examples are spread over all that was found") {
  Case c;
  c.bad.clear();
  c.examination.findings.clear();
  for (int64_t line = 5; c.pairs.size() < 6; ++line) {
    c.pairs.push_back(c.pairs[0]);
    c.pairs.back().line = line;
  }
  for (size_t i = 0; i < 6; ++i) c.examination.findings.push_back({Kind::duplicate, i, "x"});
  const std::string text = c.report().text(78);
  for (const char* line : {"line 1,", "line 4,", "line 6,"}) CHECK(text.find(line) != std::string::npos);
}
