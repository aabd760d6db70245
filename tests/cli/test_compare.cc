// `translator compare`: one table over attentions and seeds, what is finished stays finished.

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "../about.h"
#include "../quick_doctest.h"
#include <common/json_text.h>
#include "program.h"

using namespace cli;

namespace {

Arguments race(const std::string& work, const Arguments& more = {}) {
  return Arguments{"compare", "--corpus-size", "600", "--hidden", "16", "--embedding", "16", "--epochs", "1",
                   "--threads", "1", "--work", work} +
         more;
}

nlohmann::ordered_json result(const std::string& directory) {
  return json_text::parse(read_file(directory + "/race.json"));
}

}  // namespace

TEST_CASE("compare trains every attention with every seed on the same data, and says what it found") {
  Result r =
      run(race("race", {"--attention", "none,uniform,general,oracle", "--seeds", "2", "--out", "race.md"}));
  INFO(r.err);
  REQUIRE(r.code == 0);
  std::vector<std::string> rows = lines_of(r.out);
  REQUIRE(rows.size() > 5);
  CHECK(rows[0].starts_with("attention  runs  parameters"));
  const char* names[] = {"none", "uniform", "general", "oracle"};
  std::string page = read_file("race.md"), picture = read_file("race.svg");
  CHECK(page.find("minutes") == std::string::npos);  // nobody gave any
  for (size_t i = 0; i < 4; ++i) {
    std::string name = names[i];
    CAPTURE(name);
    CHECK(rows[i + 1].starts_with(name + " "));
    auto a = result("race/" + name + "-42"), b = result("race/" + name + "-43");
    CHECK(a.at("parameters") == b.at("parameters"));
    CHECK(a.at("loss") != b.at("loss"));
    double x = a.at("loss"), y = b.at("loss");
    // Mean and sample standard deviation of two numbers.
    std::string loss = fmt::format("{:.4f} ± {:.4f}", (x + y) / 2, std::abs(x - y) / std::sqrt(2.0));
    CHECK(rows[i + 1].find(loss) != std::string::npos);
    CHECK(page.find("| " + name + " | 2 | ") != std::string::npos);
    CHECK(page.find(loss) != std::string::npos);
    bool attends = name != "none";
    CHECK(a.at("aer").is_null() != attends);
    CHECK(a.at("weights").empty() != attends);
    CHECK((picture.find("class=\"name\">" + name + "<") != std::string::npos) == attends);
    if (name == "uniform")  // the mean of log(words + 1) over target words
      CHECK(a.at("entropy").get<double>() > std::log(3.0));
    if (name == "oracle") CHECK(a.at("aer").get<double>() < 0.1);
  }
  CHECK(page.find("![Weights of one sentence, by attention](race.svg)") != std::string::npos);
  CHECK(page.find("loss: ") != std::string::npos);
  CHECK(page.find("\n\nEach run had 1 pass over the data on 1 thread. Mean ") != std::string::npos);
  CHECK(r.says("Written to race.md and race.svg.\n"));
  CHECK(picture.starts_with("<svg "));
  CHECK(picture.ends_with("</svg>\n"));
  CHECK(count(picture, "<g ") == 3);
  CHECK(count(picture, "<rect ") ==
        1 + 3 * 5 * 7);  // background; he doesn't like apples </s>, seven words of French

  SUBCASE("a second time nothing is trained again, and the result is the same") {
    Result again = run(race("race", {"--attention", "none,uniform,general,oracle", "--seeds", "2", "-q"}));
    CHECK(again.code == 0);
    CHECK(again.err == "");
    CHECK(again.out == r.out);
    Result more = run(race("race", {"--attention", "none,dot", "--seeds", "2"}));
    CHECK(more.code == 0);
    CHECK(count(more.err, "(as before)") == 2);
    CHECK(more.err.find("general") == std::string::npos);
  }
  SUBCASE("other settings do not mix") {
    for (const Arguments& more : {Arguments{"--lr", "0.01"},
                                  {"--verb-final"},
                                  {"--max-length", "12"},
                                  {"--case", "keep"},
                                  {"--min-count", "2"},
                                  {"--max-vocabulary", "50"}}) {
      CAPTURE(more[0]);
      Result other = run(race("race", Arguments{"--attention", "none", "--seeds", "1"} + more));
      CHECK(other.code == 1);
      CHECK(other.says(
          "race/none-42: was made with other settings: --force races anew, --work names another place"));
    }
    CHECK(run(race("race", {"--attention", "none", "--seeds", "1", "--lr", "0.01", "--force"})).code == 0);
    CHECK(run(race("race", {"--attention", "none", "--seeds", "1", "--force"})).code == 0);
  }
}

TEST_CASE("compare races a Transformer beside the attentions, on the same data and budget") {
  Result r = run(race("kinds", {"--attention", "general,transformer", "--seeds", "2", "--out", "kinds.md"}));
  INFO(r.err);
  REQUIRE(r.code == 0);
  auto recurrent = result("kinds/general-42"), own = result("kinds/transformer-42");
  auto config = json_text::parse(read_file("kinds/transformer-42/config.json"));
  CHECK(config.at("model") == "transformer");
  CHECK(config.at("network").at("d_model") == 16);
  CHECK(own.at("attention") == "transformer");
  CHECK(own.at("epochs") == recurrent.at("epochs"));
  CHECK(own.at("source") == recurrent.at("source"));
  for (auto& row : own.at("weights")) {
    CHECK(sum_of(row) == about(1, 1e-4));
  }
  CHECK(own.at("aer").is_number());
  CHECK(own.at("entropy").get<double>() > 0);
  // One budget, but the learning rate of each kind.
  std::string general = recurrent.at("settings"), transformer = own.at("settings");
  CHECK(general.find("; batch 32, lr 0.003, epochs 1, ") != std::string::npos);
  CHECK(transformer.find("; batch 32, lr 0.002, epochs 1, ") != std::string::npos);
  std::string page = read_file("kinds.md"), picture = read_file("kinds.svg");
  CHECK(lines_of(r.out)[2].starts_with("transformer  "));
  CHECK(page.find("| transformer | 2 | ") != std::string::npos);
  for (std::string* settings : {&general, &transformer})  // what has no limit is not on the page
    settings->erase(settings->find(", minutes 0"), 11);
  CHECK(page.find("Settings: " + general + ". The Transformer's: " + transformer + ".") != std::string::npos);
  CHECK(count(picture, "class=\"name\">transformer<") == 1);
  Result again = run(race("kinds", {"--attention", "transformer,general,transformer", "--seeds", "2"}));
  CHECK(again.code == 0);
  CHECK(count(again.err, "(as before)") == 4);  // a name twice is one competitor
  CHECK(run(race("kinds", {"--attention", "general,luong", "--seeds", "2"})).says("; 2 runs"));  // as its alias
}

TEST_CASE("compare on own data is measured on pairs that neither trained a run nor chose its weights") {
  // Every source is a name for itself, so that it is found again wherever it went.
  auto name = [](int i) {
    std::string word;
    for (; i > 0; i /= 20) word += "bcdfghjklmnpqrstvwxz"[i % 20];
    return word;
  };
  std::string pairs;
  for (int i = 1; i <= 2000; ++i) pairs += "w" + name(i) + " b\tv" + name(i) + " c\n";
  write_file("own.tsv", pairs);
  const Arguments arguments = {
      "compare", "--data",     "own.tsv", "--hidden", "8",   "--embedding", "8",     "--epochs",
      "1",       "--threads",  "1",       "--seeds",  "1",   "--attention", "none",  "--min-count",
      "1",       "--subwords", "none",    "--work",   "own", "--out",       "own.md"};
  Result r = run_well(arguments);
  // 100 of 2000 choose the weights, 95 of the 1900 left are what is measured on, the rest is trained on.
  CHECK(r.says("no validation data given: 100 pairs held out of the training data"));
  CHECK(r.says("1.80k pairs, 95 test sentences; 1 run"));
  CHECK(read_file("own.md").find("95 sentence pairs that neither trained a run nor chose its weights") !=
        std::string::npos);
  auto settings = result("own/none-42").at("settings").get<std::string>();
  CHECK(settings.find(", 1805 pairs;") != std::string::npos);
  // A word of its own for each pair: the vocabulary has exactly those that were trained on.
  CHECK(lines_of(read_file("own/none-42/source.vocab")).size() == 4 + 1 + 1805);
  auto worst = events("own/none-42", "validation").at(0).at("worst");
  CHECK(worst.size() == 5);
  // As many pairs in a file of the same name, but one of them is another.
  write_file("own.tsv", pairs.replace(pairs.find(" c\n"), 3, " d\n"));
  r = run(arguments);
  CHECK(r.code == 1);
  CHECK(r.says("own/none-42: was made with other settings"));
  // Nothing is left to be measured on where all pairs choose the weights.
  r = run(arguments + Arguments{"--valid", "own.tsv"});
  CHECK(r.code == 1);
  CHECK(r.says("own.tsv: has too few pairs to hold some out for validation and others for the test"));
}

TEST_CASE("compare: every run has the defaults that were said, those of all pairs") {
  std::string pairs;
  for (int i = 1; i <= 20'400; ++i) pairs += fmt::format("a{0} b\tc{0} d\n", i);
  write_file("a-race-of-many.tsv", pairs);
  const Result r = run_well({"compare", "--data", "a-race-of-many.tsv", "--work", "of-many", "--attention",
                             "none", "--hidden", "8", "--subwords", "none", "--max-vocabulary", "9", "--seeds",
                             "1", "--max-minutes", "0.01"});
  // Validation and test pairs taken out, 18,430 are left, of which batches would be of 32.
  CHECK(r.says("For 20400 pairs: "));
  CHECK(r.says(", batches of 64"));
  CHECK(events("of-many/none-42", "start").at(0).at("batch_size") == 64);
}

TEST_CASE("compare: oracle attention needs links, which is said before anything is trained") {
  std::string pairs;
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'p'; b <= 'z'; ++b) pairs += std::string{a, ' ', b, '\t', b, ' ', a, '\n'};
  write_file("linkless.tsv", pairs);
  const Arguments own = {"compare",  "--data", "linkless.tsv", "--subwords", "none",   "--hidden", "8",
                         "--epochs", "1",      "--seeds",      "1",          "--work", "linkless"};
  const Result asked = run(own + Arguments{"--attention", "dot,oracle"});
  CHECK(asked.code == 2);
  CHECK(asked.says("translator: --attention: oracle needs links in the pairs' third column (0-0 1-2), and they "
                   "have none\n"));
  CHECK_FALSE(exists("linkless"));
  const Result usual = [&] {
    Running program(own);
    for (int i = 0; i < 600 && !exists("linkless/none-42/race.json"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    program.send(SIGINT);
    return program.wait();
  }();
  CHECK(usual.says("oracle is left out: it needs links"));
  CHECK(usual.says("; 11 runs\n"));
}

TEST_CASE("compare: Ctrl-C keeps what is finished; the same command goes on") {
  Arguments command = race("stopped", {"--attention", "dot,general", "--seeds", "20", "--out", "stopped.md"});
  Result r = [&] {
    Running program(command);
    for (int i = 0; i < 600 && !exists("stopped/dot-42/race.json"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    program.send(SIGINT);
    return program.wait();
  }();
  CHECK(r.code == 130);
  CHECK(r.says("Interrupted after "));
  CHECK(r.says(" of 40 runs, which are kept in stopped. The same command goes on.\n"));
  CHECK(r.out.find("\ndot ") != std::string::npos);
  CHECK(read_file("stopped.md").find("| dot | ") != std::string::npos);
  Result on = run(race("stopped", {"--attention", "dot", "--seeds", "2"}));
  CHECK(on.code == 0);
  CHECK(on.says("dot                42 "));
  CHECK(on.says("(as before)"));
}

TEST_CASE("compare: a run that learnt nothing is named, and a finished one with NaN stays finished") {
  const Result lost = run(race("lost-race", {"--attention", "multihead", "--seeds", "1", "--lr", "1e30"}));
  CHECK(lost.code == 1);
  CHECK(lost.says("lost-race/multihead-42: no validation had a finite loss: a lower --lr may help\n"));
  const Arguments again = race("nan-race", {"--attention", "dot", "--seeds", "1"});
  REQUIRE(run(again).code == 0);
  auto diverged = result("nan-race/dot-42");
  diverged["loss"] = diverged["weights"][0][0] = nullptr;
  write_file("nan-race/dot-42/race.json", json_text::dump(diverged));
  const Result as_before = run(again);
  CHECK(as_before.code == 0);
  CHECK(as_before.says("1.0     nan "));
  CHECK(as_before.says("(as before)"));
}

TEST_CASE("compare: wrong usage") {
  Result unknown = run(race("wrong", {"--attention", "dot,foo"}));
  CHECK(unknown.code == 2);
  CHECK(unknown.says("there is no attention \"foo\""));
  Result heads = run(race("wrong", {"--attention", "dot,multihead", "--hidden", "18"}));
  CHECK(heads.code == 1);
  CHECK(heads.says("[MultiheadAttention] embed_dim must be a multiple of num_heads: 18, 4"));
  write_file("one.en", "she sings\n");
  write_file("one.fr", "elle chante\n");
  check_refused({"compare", "--source", "one.en", "--target", "one.fr", "--work", "wrong", "-q"}, 1,
                "one.en: has too few pairs to hold some out for validation and others for the test: it "
                "takes 210");
  CHECK_FALSE(exists("wrong"));  // found out before anything was trained
  Result endless = run(race("wrong", {"--epochs", "0"}));
  CHECK(endless.code == 2);
}

TEST_CASE("compare: the speed of a run is the mean of what its validations measured") {
  REQUIRE(run(race("speed", {"--attention", "none", "--seeds", "1", "--epochs", "3"})).code == 0);
  double sum = 0;
  const auto validations = events("speed/none-42", "validation");
  REQUIRE(validations.size() > 1);
  for (const auto& v : validations) sum += v.at("tokens_per_s").get<double>();
  CHECK(result("speed/none-42").at("tokens_per_second").get<double>() ==
        about(sum / static_cast<double>(validations.size()), 1e-3));
}
