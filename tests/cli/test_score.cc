// `translator score` and `translator diff`.

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include <translator/text/metric.h>

#include "../about.h"
#include "../quick_doctest.h"
#include <common/json_text.h>
#include "program.h"

using namespace cli;

namespace {

// Two hundred test pairs, in order, and the sources and targets of them.
const std::string& held_out() {
  static const std::string name = [] {
    REQUIRE(run({"corpus", "--split", "test", "-n", "200", "--max-length", "7", "-o", "held.tsv"}).code == 0);
    return std::string("held.tsv");
  }();
  return name;
}

}  // namespace

TEST_CASE("score: a line for each pair, which together are the loss that evaluate tells") {
  Result r = run({"score", trained_model(), held_out()});
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  const auto lines = lines_of(r.out), pairs = lines_of(read_file(held_out()));
  REQUIRE(lines.size() == 200);
  double sum = 0, tokens = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto columns = columns_of(lines[i]);
    REQUIRE(columns.size() == 5);
    const double log_probability = std::stod(columns[0]), n = std::stod(columns[1]);
    CHECK(std::stod(columns[2]) == about(std::exp(-log_probability / n), 1e-3));
    CHECK(columns[3] + "\t" + columns[4] == pairs[i]);
    sum += log_probability;
    tokens += n;
  }
  auto j = json_text::parse(run({"evaluate", trained_model(), held_out(), "--json"}).out);
  CHECK(tokens == j.at("tokens").get<double>());
  CHECK(-sum / tokens == about(j.at("loss").get<double>(), 1e-5));
  // Standard input, two files, threads: the same.
  CHECK(run({"score", trained_model(), "-"}, {.input = read_file(held_out())}).out == r.out);
  CHECK(run({"score", trained_model(), held_out(), "--threads", "3"}).out == r.out);
  std::string sources, targets;
  for (const std::string& pair : pairs) {
    sources += columns_of(pair)[0] + "\n";
    targets += columns_of(pair)[1] + "\n";
  }
  write_file("held.en", sources);
  write_file("held.fr", targets);
  CHECK(run({"score", trained_model(), "held.en", "--target", "held.fr"}).out == r.out);
  // A tab within a side, as two files may have it, begins no column.
  write_file("tab.en", "the cat\tsleeps\n");
  write_file("tab.fr", "le chat\tdort\n");
  const Result tabs = run({"score", trained_model(), "tab.en", "--target", "tab.fr"});
  CHECK(tabs.out.ends_with("\tthe cat sleeps\tle chat dort\n"));
}

TEST_CASE("score --words and --json: each word's log probability, which add up") {
  write_file("few.tsv", "She eats\tElle mange.\nhe sings\til chante\n");
  Result words = run({"score", trained_model(), "few.tsv", "--words"});
  Result json = run({"score", trained_model(), "few.tsv", "--json"});
  CHECK(words.code == 0);
  REQUIRE(lines_of(json.out).size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    const auto j = json_text::parse(lines_of(json.out)[i]);
    double sum = 0;
    std::string column;
    for (const auto& word : j.at("words")) {
      sum += word.at("log_probability").get<double>();
      column += fmt::format("{}{}:{:.4f}", column.empty() ? "" : " ", word.at("word").get<std::string>(),
                            word.at("log_probability").get<double>());
    }
    CHECK(j.at("log_probability").get<double>() == about(sum, 1e-9));
    CHECK(j.at("tokens") == j.at("words").size());
    const auto columns = columns_of(lines_of(words.out)[i]);
    REQUIRE(columns.size() == 6);
    CHECK(columns[5] == column);
    CHECK(columns[3] == j.at("source").get<std::string>());
  }
  CHECK(json_text::parse(lines_of(json.out)[0]).at("target") == "Elle mange.");
  CHECK(count(words.out, " .:-") == 1);
  CHECK(count(words.out, "</s>:-") == 2);
}

TEST_CASE("score: lines stay in their places whatever is wrong with some") {
  const std::string bad = "no tab\nshe eats\telle mange\n\nna\xEFve\tx\nhe sings\til chante\nx\t\n";
  write_file("bad.tsv", bad);
  Result r = run({"score", trained_model(), "bad.tsv"});
  CHECK(r.code == 1);
  CHECK(r.err ==
        "bad.tsv: 2 of 6 lines read, 1 blank, 3 bad\n  bad.tsv:1: no tab between source and target\n"
        "  bad.tsv:4: byte 3 (0xef) is not valid UTF-8\n  bad.tsv:6: the target side is empty\n");
  const auto lines = lines_of(r.out);
  REQUIRE(lines.size() == 6);
  CHECK(columns_of(lines[1]).at(4) == "elle mange");
  CHECK(columns_of(lines[4]).at(4) == "il chante");
  CHECK(lines[0] + lines[2] + lines[3] + lines[5] == "");
  const auto json = lines_of(run({"score", trained_model(), "bad.tsv", "--json"}).out);
  REQUIRE(json.size() == 6);
  CHECK(json[0] == "null");
  CHECK(json[5] == "null");
  CHECK(run({"score", trained_model(), "bad.tsv", "--strict"}).code == 1);
  std::string endless = "she";
  for (int i = 0; i < 5001; ++i) endless += " eats";
  write_file("endless.tsv", "he sings\til chante\n" + endless + "\telle mange\n");
  CHECK(lines_of(run({"score", trained_model(), "endless.tsv"}).out).size() == 2);
  const Result strict = run({"score", trained_model(), "endless.tsv", "--strict"});
  CHECK(strict.err.starts_with("translator: endless.tsv:2: the source side has "));
  CHECK(strict.out.empty());
  CHECK(run({"score", trained_model(), "bad.tsv", "--words", "--json"}).code == 2);
  CHECK(run({"score", trained_model()}).code == 2);
  if (std::filesystem::exists("/dev/full")) {
    write_file("good.tsv", "she eats\telle mange\n");
    write_file("good.fr", "elle mange\n");
    for (const char* command : {"score", "diff good.fr"}) {
      Result full = shell("\"$T\" " + std::string(command) + " " + trained_model() + " good.tsv > /dev/full");
      CHECK(full.code == 1);
      CHECK(full.says("translator: standard output cannot be written: "));
    }
  }
  Result none = run({"score", trained_model(), "-"}, {.input = "nothing\n"});
  CHECK(none.code == 1);
  CHECK(none.says("translator: standard input: has no usable sentence pairs\n"));
}

TEST_CASE("diff: scores as evaluate has them, and as of files of the same translations") {
  REQUIRE(run(small_run("other", {"--epochs", "1", "-q"})).code == 0);
  auto told = [](const Arguments& more) {
    return json_text::parse(run_well(Arguments{"diff"} + more).out);
  };
  auto models = told({trained_model(), "other", held_out(), "--json"});
  CHECK(models.at("sentences") == 200);
  for (const char* side : {"a", "b"}) {
    const std::string model = *side == 'a' ? trained_model() : "other";
    CHECK(models.at(side) == model);
    auto own = json_text::parse(
        run({"evaluate", model, held_out(), "--json", "--hypotheses", std::string("said.") + side}).out);
    for (const auto& score : models.at("scores")) {
      const std::string key = score.at("name") == "BLEU"    ? "bleu"
                              : score.at("name") == "chrF2" ? "chrf2"
                                                            : "chrf2++";
      CHECK(score.at(side).at("score") == own.at(key));
      if (own.at("confidence").contains(key))
        CHECK(score.at(side).at("confidence") == own.at("confidence").at(key));
      CHECK(score.at("signature") == own.at("signatures").at(key));
    }
  }
  // A better model is no accident, and the other way round the same.
  CHECK(models.at("scores").at(1).at("p") < 0.05);
  CHECK(models.at("lost") > models.at("won"));
  auto files = told({"said.a", "said.b", held_out(), "--json", "--lowercase"});
  for (const char* same : {"scores", "by_length", "by_frequency", "by_sentence", "won", "lost", "tied"})
    CHECK(files.at(same) == models.at(same));
  auto turned = told({"said.b", "said.a", held_out(), "--json", "--lowercase"});
  CHECK(turned.at("won") == models.at("lost"));
  CHECK(turned.at("scores").at(1).at("p") == models.at("scores").at(1).at("p"));
  auto seeded = told({"said.a", "said.b", held_out(), "--json", "--lowercase", "--seed", "5"});
  CHECK(seeded.at("scores").at(1).at("a").at("confidence") !=
        files.at("scores").at(1).at("a").at("confidence"));
  // Every sentence is won, lost or tied, and in one range but for the last.
  int64_t won = 0, sentences = 0;
  for (const auto& s : files.at("by_sentence")) won += s.at("chrf2_b") > s.at("chrf2_a");
  CHECK(files.at("won") == won);
  CHECK(files.at("won").get<int64_t>() + files.at("lost").get<int64_t>() + files.at("tied").get<int64_t>() ==
        200);
  for (const auto& row : files.at("by_length"))
    if (row.at("source_words") != "all > 20") sentences += row.at("sentences").get<int64_t>();
  CHECK(sentences == 200);
}

TEST_CASE("diff: words by frequency, worked out by hand") {
  write_file("ref.tsv", "one\tle chat dort ici ici\ntwo\tle chien dort\n");
  write_file("a.txt", "le chat ici\nle chien dort dort\n");
  write_file("b.txt", "le chat dort ici ici\nun loup\n");
  auto rows = [](const Arguments& more) {
    Result r = run_well(Arguments{"diff", "a.txt", "b.txt", "ref.tsv", "--json"} + more);
    return json_text::parse(r.out).at("by_frequency");
  };
  // Seen twice: le, dort, ici. a says le ici | le dort dort, of which one dort is too many; b le dort ici ici.
  auto own = rows({});
  REQUIRE(own.size() == 2);
  CHECK(own[0].at("frequency") == "1");
  CHECK(own[0].at("words") == 2);  // chat, chien
  CHECK(own[0].at("a").get<double>() == about(100.0));
  CHECK(own[0].at("b").get<double>() == about(100 * 2 * 1 / (2 + 1.0)));
  CHECK(own[1].at("frequency") == "2");
  CHECK(own[1].at("words") == 6);
  CHECK(own[1].at("a").get<double>() == about(100 * 2 * 4 / (6 + 5.0)));
  CHECK(own[1].at("b").get<double>() == about(100 * 2 * 4 / (6 + 4.0)));
  // By a training file: le four times, the others never.
  write_file("train.tsv", "x\tle le\ny\tle le\n");
  auto trained = rows({"--train", "train.tsv"});
  REQUIRE(trained.size() == 2);
  CHECK(trained[0].at("frequency") == "0");
  CHECK(trained[0].at("words") == 6);
  CHECK(trained[1].at("frequency") == "4");
  CHECK(trained[1].at("words") == 2);
  CHECK(trained[1].at("b").get<double>() == about(100 * 2 * 1 / (2 + 1.0)));
  write_file("train.tsv", "x\tle le\ny\tle le\nno tab\n");
  CHECK(rows({"--train", "train.tsv", "--strict"}) == trained);  // which is of the pairs

  Result text = run({"diff", "a.txt", "b.txt", "ref.tsv"});
  CHECK(text.code == 0);
  CHECK(count(text.out,
              "B translates 1 sentences better than A, 1 worse, 0 equally well (chrF2 of each).") == 1);
  CHECK(count(text.out, "nrefs:1|bs:1000|seed:12345|case:mixed|") == 3);
  CHECK(count(text.out, "two\n       =  le chien dort\n       A  le chien dort dort\n       B  un loup\n") ==
        1);
  // Two lines of one table: as wide as each other, and no wider than a terminal.
  const size_t head = text.out.find("source words"), row = text.out.find('\n', head) + 1;
  CHECK(text.out.find('\n', row) - row == row - 1 - head);
  CHECK(row - 1 - head <= 80);
  CHECK(text.out.find("Where B loses most") < text.out.find("two\n"));
  CHECK(text.out.find("Where B wins most") < text.out.find("one\n"));
  Result same = run({"diff", "a.txt", "a.txt", "ref.tsv"});
  CHECK(count(same.out, "   equal\n") == 3);
  CHECK(count(same.out, "Where B") == 0);
}

TEST_CASE("diff: files that do not fit the pairs are refused, and what was left out shifts no line") {
  write_file("holes.tsv", "no tab\none\tun\n\ntwo\tdeux\n");
  write_file("said", "x\nun\n\ndeux\r\n");
  write_file("short", "x\nun\n");
  Result r = run({"diff", "said", "said", "holes.tsv", "--json"});
  CHECK(r.code == 1);
  CHECK(r.says("holes.tsv:1: no tab between source and target\n"));
  auto sentences = json_text::parse(r.out).at("by_sentence");
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0].at("line") == 2);
  CHECK(sentences[0].at("chrf2_a") == 100.0);
  CHECK(sentences[1].at("b") == "deux");
  CHECK(run({"diff", "said", "short", "holes.tsv"})
            .err.ends_with(
                "translator: short: has 2 lines, the pairs have 4: a translation of each is needed, or an "
                "empty line\n"));
  write_file("first.tsv", "one\tx\ntwo\tun\nthree\tder\nfour\tdeux\n");
  write_file("without", "x\nun\nder\ndeux\n");
  write_file("marked", "\xEF\xBB\xBFx\nun\nder\ndeux\n");
  CHECK(run({"diff", "marked", "without", "first.tsv"}).out.substr(std::strlen("A: marked")) ==
        run({"diff", "without", "without", "first.tsv"}).out.substr(std::strlen("A: without")));
  write_file("latin", "x\nun\n\nna\xEFve\n");
  CHECK(run({"diff", "latin", "said", "holes.tsv"})
            .says("translator: latin:4: byte 3 (0xef) is not valid UTF-8\n"));
  CHECK(
      run({"diff", "said", "absent", "holes.tsv"}).says("translator: absent: cannot be read: No such file"));
  CHECK(run({"diff", "said", "said"}).code == 2);
  for (const Arguments& how : std::vector<Arguments>{{"-k", "7"},
                                                     {"--length-penalty", "1"},
                                                     {"--coverage-penalty", "1"},
                                                     {"--min-length", "2"},
                                                     {"--no-repeat-ngram", "2"},
                                                     {"--exact-stop"}}) {
    const Result refused = run(Arguments{"diff", "said", "said", "holes.tsv"} + how);
    CHECK(refused.code == 2);
    CHECK(refused.says("diff: both are files of translations: how to search is asked of models"));
  }
}
