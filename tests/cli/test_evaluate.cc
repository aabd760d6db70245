// `translator evaluate`.

#include <cmath>

#include <fmt/format.h>

#include <translator/text/bleu.h>

#include "../about.h"
#include "../quick_doctest.h"
#include <common/json_text.h>
#include <common/utf8.h>
#include "program.h"

using namespace cli;

namespace {

void test_pairs() {
  if (exists("test.tsv")) return;
  REQUIRE(run({"corpus", "--split", "test", "-n", "200", "--max-length", "7", "-o", "test.tsv",
               "--alignments", "test.links"})
              .code == 0);
}

std::vector<std::vector<std::string>> one_each(const std::vector<std::string>& references) {
  std::vector<std::vector<std::string>> out;
  for (const std::string& r : references) out.push_back({r});
  return out;
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
  CHECK(count(r.out, "nrefs:1|bs:1000|seed:12345|case:lc|eff:no|tok:13a|smooth:exp|") == 1);
  CHECK(count(r.out, "nrefs:1|bs:1000|seed:12345|case:lc|eff:yes|nc:6|nw:2|space:no|") == 1);
  CHECK(count(r.out, "1 .. 5") == 1);
  auto hypotheses = lines_of(read_file("hypotheses")), references = lines_of(read_file("references"));
  REQUIRE(hypotheses.size() == 200);
  REQUIRE(references.size() == 200);
  for (const translator::Metric& metric : translator::usual_metrics(true)) {
    const auto counts = translator::count(metric, hypotheses, one_each(references));
    const translator::Score score = translator::score_of(metric, counts, translator::Resampling());
    CHECK(count(r.out, fmt::format("{:<12} {}\n", metric.name, score.format())) == 1);
    CHECK(score.value > 1);
    REQUIRE(score.interval);
    CHECK(score.interval->half_width > 0.1);
    CHECK(std::abs(score.interval->mean - score.value) < 1);
  }
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
  CHECK(count(r.out, "in the model's spelling") == 0);
}

TEST_CASE("evaluate writes over nothing that it reads, and ends with 1 where lines are bad") {
  write_file("over.tsv", "she sings\telle chante\nno tab\n");
  for (const char* option : {"--hypotheses", "--references"}) {
    check_refused({"evaluate", trained_model(), "over.tsv", option, "./over.tsv"}, 2,
                  std::string(option) + ": ./over.tsv is what is read: name another file");
    CHECK(run({"evaluate", trained_model(), "over.tsv", option, "-"}).err ==
          "translator: " + std::string(option) + " names a file: standard output has what else is said\n");
  }
  CHECK(!exists("-"));
  const Result twice =
      run({"evaluate", trained_model(), "over.tsv", "--hypotheses", "./both", "--references", "both"});
  CHECK(twice.code == 2);
  CHECK(!exists("both"));
  CHECK(read_file("over.tsv") == "she sings\telle chante\nno tab\n");
  CHECK(run({"evaluate", trained_model(), "over.tsv"}).code == 1);
  CHECK(run({"diff", trained_model(), trained_model(), "over.tsv"}).code == 1);
}

TEST_CASE("evaluate --json is one object with the table's figures") {
  test_pairs();
  Result r = run({"evaluate", trained_model(), "test.tsv", "--json", "--alignments", "test.links",
                  "--hypotheses", "its.hypotheses", "--references", "its.references"});
  CHECK(r.code == 0);
  REQUIRE(lines_of(r.out).size() == 1);
  auto j = json_text::parse(r.out);
  CHECK(j.at("sentences") == 200);
  CHECK(j.at("perplexity").get<double>() == about(std::exp(j.at("loss").get<double>())));
  CHECK(j.at("aer").get<double>() > 0);
  CHECK(j.at("aer").get<double>() < 1);
  const auto hypotheses = lines_of(read_file("its.hypotheses")),
             references = lines_of(read_file("its.references"));
  double exact = 0;
  for (size_t i = 0; i < hypotheses.size(); ++i) exact += hypotheses[i] == references[i];
  CHECK(j.at("exact_match").get<double>() == about(exact / 200, 1e-12));
  CHECK(j.at("bleu").get<double>() == about(translator::corpus_bleu(hypotheses, references).score, 1e-12));
  // With the model's own translations as every second reference.
  std::string own;
  const auto pairs = lines_of(read_file("test.tsv"));
  for (size_t i = 0; i < pairs.size(); ++i)
    own +=
        pairs[i].substr(0, pairs[i].find('\t')) + "\t" + (i % 2 ? hypotheses[i] : "nothing like it") + "\n";
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
    CHECK(r.code == (r.says("no tab") ? 1 : 0));
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
  check_refused({"evaluate", trained_model(), "swapped.tsv", "--swap", "--strict"}, 1,
                "swapped.tsv:201: no tab between source and target");
}

TEST_CASE(
    "evaluate: references are what the file says; case:lc is asked of a model that writes no capitals") {
  // Capitals, the file's own spaces and apostrophes: nothing of it is respelled.
  const std::string targets = "Elle mange  des pommes\u00A0!\nL\u2019homme n'est pas là...\n";
  std::string pairs;
  for (const std::string& line : lines_of(targets)) pairs += "She eats apples\t " + line + " \n";
  write_file("capitals.tsv", pairs);
  auto found = [](const std::string& model) {
    Result r = run_well({"evaluate", model, "capitals.tsv", "--json", "--references", "capitals"});
    return json_text::parse(r.out);
  };
  auto signatures = [](const nlohmann::ordered_json& j) {
    std::string all;
    for (const auto& signature : j.at("signatures")) all += signature.get<std::string>();
    return all;
  };
  CHECK(count(signatures(found(trained_model())), "|case:lc|") == 3);
  CHECK(read_file("capitals") == targets);
  REQUIRE(run(small_run("mixed", {"--epochs", "1", "--case", "keep", "-q"})).code == 0);
  CHECK(count(signatures(found("mixed")), "|case:mixed|") == 3);
  CHECK(read_file("capitals") == targets);
}

TEST_CASE("evaluate: exact is on text, and a second line says it in the model's spelling") {
  // The model's own translations, in capitals and with other spaces in half of the lines.
  const std::string said = lines_of(run({"translate", trained_model()}, {.input = "she eats\n"}).out).at(0);
  REQUIRE_FALSE(said.empty());
  std::string capitals = said;
  capitals[0] = static_cast<char>(std::toupper(capitals[0]));
  write_file("spelt.tsv",
             "she eats\t" + capitals + "\nshe eats\t " + said + " .\n" + "she eats\t" + said + "\u200B\n");
  Result r = run({"evaluate", trained_model(), "spelt.tsv"});
  CHECK(count(r.out, "exact match  33.33 %\n             66.67 % in the model's spelling") == 1);
  auto j = json_text::parse(run({"evaluate", trained_model(), "spelt.tsv", "--json"}).out);
  CHECK(j.at("exact_match").get<double>() == about(1 / 3.0));
  CHECK(j.at("exact_match_own_spelling").get<double>() == about(2 / 3.0));
}

TEST_CASE("evaluate --multi-reference: columns behind the second are references, as many as there are") {
  const std::string said = lines_of(run({"translate", trained_model()}, {.input = "she eats\n"}).out).at(0);
  write_file("many.tsv", "she eats\tone of them\t" + said + "\t\tanother\nhe sings\tonly one\n");
  Result r =
      run({"evaluate", trained_model(), "many.tsv", "--multi-reference", "--json", "--references", "many"});
  REQUIRE_MESSAGE(r.code == 0, r.err);
  auto j = json_text::parse(r.out);
  CHECK(j.at("exact_match").get<double>() == about(0.5));
  CHECK(j.at("signatures").at("bleu").get<std::string>().starts_with("nrefs:var|"));
  CHECK(read_file("many") == "one of them\t" + said + "\tanother\nonly one\n");
  // Without the option the columns are left alone.
  auto one = json_text::parse(run({"evaluate", trained_model(), "many.tsv", "--json"}).out);
  CHECK(one.at("exact_match") == 0.0);
  CHECK(one.at("chrf2") < j.at("chrf2"));
  CHECK(run({"evaluate", trained_model(), "many.tsv", "--multi-reference", "--swap"}).code == 2);
  write_file("bad.tsv", "she eats\tone\tna\xEFve\nhe sings\ttwo\tthree\n");
  CHECK(run({"evaluate", trained_model(), "bad.tsv", "--multi-reference"}).says("bad.tsv:1: byte 16 (0xef)"));
}

TEST_CASE("evaluate: lines that are left out shift no other") {
  // Bad in each way, between good ones: no tab, invalid UTF-8, an empty side, blank, too long for any model.
  std::string longest;
  for (int i = 0; i < 5001; ++i) longest += "a ";
  write_file("holes.tsv", "no tab\nshe eats\telle mange\nna\xEFve\tx\n\the\n\n" + longest +
                              "\tb\nhe sings\til chante\nb\t" + longest + "\n");
  Result r = run({"evaluate", trained_model(), "holes.tsv", "--hypotheses", "h", "--references", "r"});
  CHECK(r.code == 1);
  CHECK(r.err ==
        "holes.tsv: 2 of 8 lines read, 1 blank, 5 bad\n"
        "  holes.tsv:1: no tab between source and target\n"
        "  holes.tsv:3: byte 3 (0xef) is not valid UTF-8\n"
        "  holes.tsv:4: the source side is empty\n"
        "  holes.tsv:6: the source side has 5001 words; 5000 at most are taken\n"
        "  holes.tsv:8: the target side has 5001 words; 5000 at most are taken\n");
  auto hypotheses = lines_of(read_file("h")), references = lines_of(read_file("r"));
  CHECK(references == std::vector<std::string>{"", "elle mange", "", "", "", "", "il chante", ""});
  REQUIRE(hypotheses.size() == 8);
  auto said = lines_of(run({"translate", trained_model()}, {.input = "she eats\nhe sings\n"}).out);
  CHECK(hypotheses[1] == said.at(0));
  CHECK(hypotheses[6] == said.at(1));
  CHECK(hypotheses[0] + hypotheses[2] + hypotheses[7] == "");
  Result strict = run({"evaluate", trained_model(), "holes.tsv", "--strict"});
  CHECK(strict.code == 1);
  // Gold links stand on the lines of the pairs; more of them than pairs are links of other pairs.
  write_file("holes.links", "\n0-0 1-1\n\n\n\n\n0-0\n\n");
  CHECK(run({"evaluate", trained_model(), "holes.tsv", "--alignments", "holes.links"}).code == 1);
  CHECK(run({"evaluate", trained_model(), "holes.tsv", "--alignments", "holes.links"}).out.find("AER") !=
        std::string::npos);
  write_file("holes.links", "\n0-0 1-1\n\n\n\n\n0-0\n\n0-0\n");
  Result more = run({"evaluate", trained_model(), "holes.tsv", "--alignments", "holes.links"});
  CHECK(more.code == 1);
  CHECK(more.says("translator: holes.links: has 9 lines, the pairs have 8\n"));
}

TEST_CASE(
    "evaluate --by-length: rows of the table and of --json are the same, and every sentence is in one") {
  test_pairs();
  std::string longer;
  for (int i = 0; i < 1200; ++i) longer += "she ";
  write_file("lengths.tsv", read_file("test.tsv") + longer + "\telle\n");
  Result table = run({"evaluate", trained_model(), "lengths.tsv", "--by-length"});
  Result object = run({"evaluate", trained_model(), "lengths.tsv", "--by-length", "--json"});
  CHECK(object.code == 0);
  auto rows = json_text::parse(object.out).at("by_length");
  int64_t sum = 0;
  for (const auto& row : rows) {
    std::string name = row.at("source_words");
    if (name != "all > 20") sum += row.at("sentences").get<int64_t>();
    CHECK(count(table.out, "\n" + name + " ") == 1);
    CHECK(row.at("perplexity") > 1);
    for (const char* metric : {"bleu", "chrf2", "chrf2++"}) CHECK(row.at(metric) >= 0);
    if (row.at("sentences") > 20) CHECK(row.at("confidence").at("chrf2").at("half_width") > 0);
  }
  for (size_t at = table.out.find("source words"), end; at < table.out.size(); at = end + 1) {
    end = table.out.find('\n', at);
    CHECK(translator::utf8::display_width(table.out.substr(at, end - at)) == 80);
  }
  CHECK(sum == 201);
  CHECK(rows.back().at("sentences") == 1);  // all > 20
}

TEST_CASE("evaluate --top-k and --last-only: loss and translations are those of what is looked at") {
  write_file("few.tsv", "she eats apples\telle mange des pommes\nhe sings\til chante\n");
  auto loss = [](const Arguments& more) {
    const Result r = run_well(Arguments{"evaluate", trained_model(), "few.tsv", "--json"} + more);
    return json_text::parse(r.out).at("loss").get<double>();
  };
  const double all = loss({});
  CHECK(loss({"--top-k", "100"}) == about(all, 1e-5));
  CHECK(std::abs(loss({"--top-k", "1"}) - all) > 1e-3);
  CHECK(std::abs(loss({"--last-only"}) - all) > 1e-3);
  CHECK(std::abs(loss({"--last-only"}) - loss({"--top-k", "1"})) > 1e-3);
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
  CHECK(with("\uFEFF0-0 1-1\r\n0-0 1-1\r\n").code == 0);
  const std::string two = trained_model() + "," + trained_model();
  CHECK(run({"evaluate", two, "two.tsv", "--alignments", "links"}).says("--alignments is of one model, "));
  CHECK(run({"evaluate", trained_model(), "two.tsv", "--alignments", "."}).err ==
        "translator: .: is a directory\n");
  check_refused({"evaluate", trained_model(), "two.tsv", "--alignments", "absent"}, 1,
                "absent: cannot be opened: No such file or directory");
}
