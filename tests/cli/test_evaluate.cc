// `translator evaluate`.

#include <cmath>

#include <translator/text/bleu.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "json_text.h"
#include "program.h"

using namespace cli;

namespace {

void test_pairs() {
  if (exists("test.tsv")) return;
  REQUIRE(run({"corpus", "--split", "test", "-n", "200", "--max-length", "7", "-o", "test.tsv",
               "--alignments", "test.links"})
              .code == 0);
}

}  // namespace

TEST_CASE("from corpus to BLEU: evaluate prints loss, BLEU, exact match, and AER where links are given") {
  test_pairs();
  Result r = run({"evaluate", trained_model(), "test.tsv", "--alignments", "test.links", "--hypotheses",
                  "hypotheses", "--references", "references", "--by-length"});
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(count(r.out, "sentences    200\n") == 1);
  CHECK(count(r.out, "AER          0.") == 1);
  CHECK(count(r.out, "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp") == 1);
  CHECK(count(r.out, "1 .. 5") == 1);
  auto hypotheses = lines_of(read_file("hypotheses")), references = lines_of(read_file("references"));
  REQUIRE(hypotheses.size() == 200);
  REQUIRE(references.size() == 200);
  translator::BleuScore bleu = translator::corpus_bleu(hypotheses, references);
  CHECK(count(r.out, "BLEU         " + bleu.format() + "\n") == 1);
  CHECK(bleu.score > 1);
  // The same sentences through translate.
  std::string sources;
  for (const std::string& line : lines_of(read_file("test.tsv")))
    sources += line.substr(0, line.find('\t')) + "\n";
  CHECK(lines_of(run({"translate", trained_model()}, {.input = sources}).out) == hypotheses);
  // The embedded corpus is written as the model writes: its targets are the references.
  std::string targets;
  for (const std::string& line : lines_of(read_file("test.tsv")))
    targets += line.substr(line.find('\t') + 1) + "\n";
  CHECK(read_file("references") == targets);
}

TEST_CASE("evaluate --json is one object with the table's figures") {
  test_pairs();
  Result r = run({"evaluate", trained_model(), "test.tsv", "--json", "--alignments", "test.links", "--hypotheses",
                  "its.hypotheses", "--references", "its.references"});
  CHECK(r.code == 0);
  REQUIRE(lines_of(r.out).size() == 1);
  auto j = json_text::parse(r.out);
  CHECK(j.at("sentences") == 200);
  CHECK(j.at("perplexity").get<double>() == about(std::exp(j.at("loss").get<double>())));
  CHECK(j.at("aer").get<double>() > 0);
  CHECK(j.at("aer").get<double>() < 1);
  const auto hypotheses = lines_of(read_file("its.hypotheses")), references = lines_of(read_file("its.references"));
  const double exact = translator::exact_match(hypotheses, references);
  CHECK(j.at("exact_match").get<double>() == about(exact, 1e-12));
  CHECK(j.at("bleu").get<double>() == about(translator::corpus_bleu(hypotheses, references).score, 1e-12));
  // With the model's own translations as every second reference.
  std::string own;
  const auto pairs = lines_of(read_file("test.tsv"));
  for (size_t i = 0; i < pairs.size(); ++i)
    own += pairs[i].substr(0, pairs[i].find('\t')) + "\t" + (i % 2 ? hypotheses[i] : "nothing like it") + "\n";
  write_file("own.tsv", own);
  auto half = json_text::parse(run({"evaluate", trained_model(), "own.tsv", "--json"}).out);
  CHECK(half.at("exact_match").get<double>() == about(0.5, 1e-12));
  CHECK(j.at("tokens").get<int>() > 800);
  // Links as the third column are as good as a file of them; without any there is no AER.
  write_file("linked.tsv",
             run({"corpus", "--split", "test", "-n", "200", "--max-length", "7", "--links"}).out);
  auto linked = json_text::parse(run({"evaluate", trained_model(), "linked.tsv", "--json"}).out);
  CHECK(linked.at("aer") == j.at("aer"));
  CHECK(linked.at("bleu") == j.at("bleu"));
  auto bare = json_text::parse(
      run({"evaluate", trained_model(), "test.tsv", "--json", "--beam-size", "3", "--threads", "2"}).out);
  CHECK_FALSE(bare.contains("aer"));
  CHECK(bare.at("loss").get<double>() == about(j.at("loss").get<double>(), 1e-6));
}

TEST_CASE("evaluate takes two files, swaps columns with their links, and counts bad lines") {
  test_pairs();
  std::string sources, targets, swapped;
  for (const std::string& line : lines_of(read_file("test.tsv"))) {
    size_t tab = line.find('\t');
    sources += line.substr(0, tab) + "\n";
    targets += line.substr(tab + 1) + "\n";
    swapped += line.substr(tab + 1) + "\t" + line.substr(0, tab) + "\n";
  }
  write_file("test.en", sources);
  write_file("test.fr", targets);
  write_file("swapped.tsv", swapped + "no tab here\n");
  std::string links;
  for (const std::string& line : lines_of(read_file("test.links"))) {
    std::string turned;
    for (size_t at = 0; at < line.size();) {
      size_t end = std::min(line.find(' ', at), line.size()), dash = line.find('-', at);
      turned += (turned.empty() ? "" : " ") + line.substr(dash + 1, end - dash - 1) + "-" +
                line.substr(at, dash - at);
      at = end + 1;
    }
    links += turned + "\n";
  }
  write_file("swapped.links", links);
  auto figures = [](Result r) {
    CHECK(r.code == 0);
    auto j = json_text::parse(r.out);
    j.erase("seconds");
    return j;
  };
  auto expected =
      figures(run({"evaluate", trained_model(), "test.tsv", "--json", "--alignments", "test.links"}));
  CHECK(figures(run({"evaluate", trained_model(), "test.en", "--target", "test.fr", "--json", "--alignments",
                     "test.links"})) == expected);
  Result turned =
      run({"evaluate", trained_model(), "swapped.tsv", "--swap", "--json", "--alignments", "swapped.links"});
  CHECK(turned.err ==
        "swapped.tsv: 200 of 201 lines read, 1 bad\n  swapped.tsv:201: no tab between source and target\n");
  CHECK(figures(turned) == expected);
  Result strict = run({"evaluate", trained_model(), "swapped.tsv", "--swap", "--strict"});
  CHECK(strict.code == 1);
  CHECK(strict.err == "translator: swapped.tsv:201: no tab between source and target\n");
}

TEST_CASE("evaluate says what is wrong with alignments") {
  write_file("two.tsv", "she eats\telle mange\nhe sings\til chante\n");
  auto with = [](const std::string& links) {
    write_file("links", links);
    return run({"evaluate", trained_model(), "two.tsv", "--alignments", "links"});
  };
  CHECK(with("0-0 1-1\n").err == "translator: links: has fewer lines than the pairs\n");
  CHECK(with("0-0 1-1\n0-0 one\n").err == "translator: links:2: is not a list of links like 0-0 1-2\n");
  CHECK(with("0-0 1-1\n0-0 2-1\n").err ==
        "translator: links:2: has links outside a sentence of 2 and 2 tokens\n");
  CHECK(with("0-0 1-1\r\n0-0 1-1\r\n").code == 0);
  Result none = run({"evaluate", trained_model(), "two.tsv", "--alignments", "absent"});
  CHECK(none.code == 1);
  CHECK(none.err == "translator: absent: cannot be opened: No such file or directory\n");
}
