// `translator translate` told what to say and what not, drawing, and with several models; `translator average`.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <gradus/io/safetensors.h>

#include <common/json_text.h>

#include "../about.h"
#include "../quick_doctest.h"
#include "program.h"

using namespace cli;

namespace {

Result steered(const Arguments& more, const Setting& setting = {},
               const std::string& model = trained_model()) {
  return run(Arguments{"translate", model, "--threads", "1"} + more, setting);
}

// A second model of the same sentences: other weights, the same vocabularies.
const std::string& second_model() {
  static const std::string out = [] {
    REQUIRE(run(small_run("another", {"--seed", "9"})).code == 0);
    return std::string("another");
  }();
  return out;
}

std::string words_of(const std::string& text) { return " " + text + " "; }

std::vector<std::string> sentences() {
  std::vector<std::string> out;
  for (const std::string& line : lines_of(read_file(short_pairs())))
    if (out.size() < 40) out.push_back(line.substr(0, line.find('\t')));
  return out;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace

TEST_CASE("translate --sample: a seed draws the same, whatever else is translated") {
  const std::vector<std::string> lines = sentences();
  const Setting all{.input = text_of(lines)};
  const Result once = steered({"--sample", "--n-best", "3", "--temperature", "2"}, all);
  REQUIRE(once.code == 0);
  CHECK(once.err.empty());
  REQUIRE(lines_of(once.out).size() == 3 * lines.size());
  CHECK(steered({"--sample", "--n-best", "3", "--temperature", "2", "--threads", "2"}, all).out == once.out);
  CHECK(steered({"--sample", "--n-best", "3", "--temperature", "2", "--seed", "2"}, all).out != once.out);
  // The first line alone draws what it drew among the others.
  const Result first = steered({lines[0], "--sample", "--temperature", "2"});
  const Result among = steered({"--sample", "--temperature", "2"}, all);
  CHECK(lines_of(first.out)[0] == lines_of(among.out)[0]);
  // A line that comes again draws anew.
  std::string same;
  for (int i = 0; i < 8; ++i) same += lines[0] + "\n";
  const auto drawn = lines_of(steered({"--sample", "--temperature", "2"}, {.input = same}).out);
  CHECK(std::set<std::string>(drawn.begin(), drawn.end()).size() > 1);
  // One word to choose from is the greedy search.
  CHECK(steered({"--sample", "--sample-top-k", "1"}, all).out == steered({}, all).out);
  CHECK(steered({"--sample", "--top-p", "0.000001"}, all).out == steered({}, all).out);
  CHECK(steered({"--sample", "--min-p", "1"}, all).out == steered({}, all).out);
}

TEST_CASE("translate: words that a translation begins with, has, and does not have") {
  const std::string sentence = sentences()[0];
  const std::string free = lines_of(steered({sentence}).out)[0];
  const std::string word = free.substr(0, free.find_first_of(" '"));
  const Result without = steered({sentence, "--forbid", word, "-k", "4", "--n-best", "4"});
  CHECK(without.code == 0);
  REQUIRE(!lines_of(without.out).empty());
  for (const std::string& line : lines_of(without.out))
    CHECK(words_of(line).find(words_of(word)) == std::string::npos);
  const Result with = steered({sentence, "--require", "chante", "--require", "il", "-k", "6"});
  CHECK(with.code == 0);
  CHECK(with.out.find("chante") != std::string::npos);
  CHECK(words_of(with.out).find(" il ") != std::string::npos);
  CHECK(steered({"--require", "chante", "--require", "il", sentence, "-k", "6"}).out == with.out);
  const Result begun = steered({sentence, "--prefix", "il chante"});
  CHECK(begun.out.find("il chante") == 0);
  // What it begins with is said, forbidden or not.
  CHECK(steered({sentence, "--prefix", "il", "--forbid", "il"}).out.find("il") == 0);
  // A column says it for each line.
  const Result column = steered({"--prefix-column"},
                                {.input = sentence + "\til chante\n" + sentence + "\n" + sentence + "\t\n"});
  REQUIRE(lines_of(column.out).size() == 3);
  CHECK(lines_of(column.out)[0] == lines_of(begun.out)[0]);
  CHECK(lines_of(column.out)[1] == free);
  CHECK(lines_of(column.out)[2] == free);
  CHECK(steered({"--prefix-column"}, {.input = sentence + "\t\r\n"}).out == free + "\n");
  // Alternatives begin with different words behind the prefix, best first.
  const Result others = steered({sentence, "--prefix", "il", "--alternatives", "--n-best", "3", "--scores"});
  REQUIRE(lines_of(others.out).size() == 3);
  std::set<std::string> different;
  for (const std::string& line : lines_of(others.out)) {
    CHECK(line.find("0\til ") == 0);
    different.insert(line.substr(2, line.find(' ', 5) - 2));
  }
  CHECK(different.size() == 3);
  // Nor do they have what is forbidden, were it in the word that each is made to begin with.
  const std::string third = lines_of(others.out)[0].substr(5, lines_of(others.out)[0].find(' ', 5) - 5);
  const Result rest =
      steered({sentence, "--prefix", "il", "--alternatives", "--n-best", "3", "--forbid", third});
  CHECK(rest.code == 0);
  CHECK(lines_of(rest.out).size() >= 2);
  CHECK(words_of(rest.out).find(words_of(third)) == std::string::npos);
  const std::string greedy = lines_of(steered({sentence, "--prefix", "il"}).out)[0];
  CHECK(lines_of(others.out)[0].find("0\t" + greedy.substr(0, greedy.find(' ', 3))) == 0);
}

TEST_CASE("translate: how scores are made and what may come twice reaches the search") {
  auto told = [](const Arguments& more) {
    const Result r = steered(Arguments{"she eats apples", "--scores", "--json"} + more);
    REQUIRE_MESSAGE(r.code == 0, r.err);
    return json_text::parse(r.out);
  };
  // The greedy search finds the same whatever a score is, and gives it the score that was asked for.
  const auto usual = told({}), once = told({"--coverage-penalty", "1"}),
             twice = told({"--coverage-penalty", "2"});
  CHECK(once["words"] == usual["words"]);
  const double n = static_cast<double>(usual["words"].size()) + 1, sum = usual["log_probability"];
  CHECK(usual["score"].get<double>() == about(sum / n, 1e-9));
  CHECK(told({"--length-penalty", "0"})["score"].get<double>() == about(sum, 1e-9));
  CHECK(told({"--length-penalty", "2"})["score"].get<double>() == about(sum / std::pow((5 + n) / 6, 2), 1e-9));
  const double lost = usual["score"].get<double>() - once["score"].get<double>();
  CHECK(lost > 0.01);
  CHECK(usual["score"].get<double>() - twice["score"].get<double>() == about(2 * lost, 1e-6));
  // Made to go on, it repeats itself unless it may not.
  auto different = [](const nlohmann::ordered_json& j) {
    return std::set<std::string>(j["words"].begin(), j["words"].end()).size();
  };
  const auto repeats = told({"--min-length", "30"}),
             never = told({"--min-length", "30", "--no-repeat-ngram", "1"});
  CHECK(repeats["words"].size() >= 30);
  CHECK(different(repeats) < repeats["words"].size());
  CHECK(never["words"].size() >= 30);
  CHECK(different(never) == never["words"].size());
}

TEST_CASE("translate: what it cannot be told") {
  auto fails = [](const Arguments& more, int code, const std::string& text, const Setting& setting = {}) {
    const Result r = steered(more, setting);
    CHECK(r.code == code);
    CHECK(r.says(text));
  };
  fails({"x", "--prefix", "xyzzy"}, 1,
        "translator: --prefix: the model cannot write \"xyzzy\": it is not among its words");
  fails({"x", "--require", ""}, 2, "--require: it is empty");
  fails({"x", "--forbid", " "}, 1, "translator: --forbid: is empty");
  fails(
      {"--prefix-column"}, 1,
      "translator: standard input:1: the prefix: the model cannot write \"xyzzy\": it is not among its words; "
      "an empty line stands for it",
      {.input = "she eats apples\txyzzy\n"});
  fails({"x", "--sample", "-k", "3"}, 2, "--sample draws words: it goes without --beam-size");
  fails({"x", "--mbr", "chrf"}, 2, "--mbr needs --sample");
  fails({"--prefix-column"}, 1,
        "translator: standard input:1: the prefix: byte 1 (0xff) is not valid UTF-8; an empty line stands for "
        "it",
        {.input = "she eats apples\t\xff\n"});
  std::string elles;
  for (int i = 0; i < 6000; ++i) elles += "elle ";
  fails({"--prefix-column"}, 1, "the prefix: has 6000 words; 5000 at most are taken",
        {.input = "she eats apples\t" + elles + "\n"});
  fails({"x", "--forbid", "\xff"}, 1, "translator: --forbid: byte 1 (0xff) is not valid UTF-8");
  fails({"x", "--prefix-column"}, 2, "--prefix-column is of lines: a sentence has --prefix");
  fails({"x", "--pieces"}, 2, "--pieces is of --attention-map and --json");
  fails({"x", "--samples", "10"}, 2, "--samples requires --mbr");
  fails({"x", "--top-p", "0.5"}, 2, "--top-p requires --sample");
  fails({"x", "--length-penalty", "much"}, 2, "--length-penalty: must be from 0 to 100, or average");
  fails({"x", "--moses", "--attention-map"}, 2, "--moses has no room for --attention-map");
  fails({"she eats apples", "-k", "3", "--max-length", "1", "--require", "il chante"}, 0,
        "no translation of so many words has all that --require asks for");
}

TEST_CASE("translate --moses and --json say which sentence, and what each word costs") {
  const Setting two{.input = "she eats apples\n\nhe sings\n"};
  const Result moses = steered({"--moses", "-k", "2", "--n-best", "2"}, two);
  REQUIRE(lines_of(moses.out).size() == 4);
  CHECK(lines_of(moses.out)[0].find("0 ||| ") == 0);
  CHECK(lines_of(moses.out)[1].find("0 ||| ") == 0);
  CHECK(lines_of(moses.out)[2].find("2 ||| ") == 0);  // the empty line has none
  CHECK(lines_of(moses.out)[3].find(" ||| LogProbability= -") != std::string::npos);
  const Result json = steered({"--json", "--scores", "--pieces", "-k", "2", "--n-best", "2"}, two);
  REQUIRE(lines_of(json.out).size() == 5);
  for (int i : {0, 1, 3, 4}) {
    const auto j = json_text::parse(lines_of(json.out)[static_cast<size_t>(i)]);
    CHECK(j["sentence"] == (i < 2 ? 0 : 2));
    CHECK(j["rank"] == (i < 2 ? i : i - 3));
    double words = 0, pieces = 0;
    for (const auto& p : j["word_log_probabilities"]) words += p.get<double>();
    for (const auto& p : j["piece_log_probabilities"]) pieces += p.get<double>();
    CHECK(words == about(j["log_probability"].get<double>(), 1e-9));
    CHECK(pieces == about(j["log_probability"].get<double>(), 1e-9));
    CHECK(j["words"].size() + 1 == j["word_log_probabilities"].size());
  }
  CHECK(json_text::parse(lines_of(json.out)[2])["translation"].is_null());
}

TEST_CASE("several models translate as one") {
  const Setting all{.input = text_of(sentences())};
  const std::string one = trained_model(), two = second_model();
  const Result alone = steered({"--scores"}, all);
  CHECK(steered({"--scores"}, all, one + "," + one).out == alone.out);  // to the digits that are printed
  CHECK(steered({"--scores"}, all, one + "=1000," + two + "=0.001").code == 0);
  const Result both = steered({"--scores"}, all, one + "," + two);
  CHECK(both.code == 0);
  CHECK(both.out != alone.out);
  CHECK(steered({"--scores", "--threads", "2"}, all, one + "," + two).out == both.out);
  CHECK(steered({"--scores", "--ensemble", "log-probability"}, all, one + "," + two).out != both.out);
  // The probability of the references is the mean of the models'.
  auto evaluated = [&](const std::string& models, const std::string& space) {
    const Result r =
        run_well({"evaluate", models, short_pairs(), "--json", "--threads", "1", "--ensemble", space});
    return json_text::parse(r.out);
  };
  const double mean = evaluated(one + "," + two, "probability")["loss"],
               first = evaluated(one, "probability")["loss"], second = evaluated(two, "probability")["loss"];
  CHECK(mean < (first + second) / 2);
  CHECK(mean > std::min(first, second) - 0.7);
  CHECK(evaluated(one + "," + one, "probability")["loss"] == about(first, 1e-6));
  CHECK(evaluated(one + "=1000," + two + "=0.001", "probability")["loss"] == about(first, 1e-3));
  CHECK(!evaluated(one + "," + two, "log-probability").contains("loss"));
  // By length too: where one row has all sentences, it has the perplexity of all.
  write_file("alike.tsv", "she eats apples\telle mange des pommes\nhe sings\til chante\n");
  for (const char* space : {"probability", "log-probability"}) {
    const Result r =
        run_well({"evaluate", one + "," + two, "alike.tsv", "--json", "--by-length", "--ensemble", space});
    const auto j = json_text::parse(r.out);
    REQUIRE(j["by_length"].size() == 1);
    CHECK(j["by_length"][0].contains("perplexity") == (space == std::string("probability")));
    if (j.contains("perplexity"))
      CHECK(j["by_length"][0]["perplexity"].get<double>() == about(j["perplexity"].get<double>(), 1e-9));
  }
  auto fails = [&](const std::string& models, const std::string& text) {
    const Result r = steered({"x"}, {}, models);
    CHECK(r.code == 1);
    CHECK(r.says(text));
  };
  fails(one + ",", "has no model directory between two commas, or at an end");
  fails(one + "=0," + two, "behind = must stand from 0.001 to 1000, the weight of the model");
  REQUIRE(run(small_run("others", {"--max-vocabulary", "20", "--epochs", "1"})).code == 0);
  fails(one + ",others", "others: cannot go with the models before it: ");
  copy_model("other-case");
  std::string config = read_file("other-case/config.json");
  write_file("other-case/config.json", config.replace(config.find("\"lower\""), 7, "\"keep\""));
  fails(one + ",other-case", "other-case: cannot go with the models before it: --case is lower and keep. ");
}

TEST_CASE("a model is not written over what it is made of") {
  copy_model("nest");
  copy_model("nest/kept");
  const std::string says = "nest: has nest/kept, which is read, and would be replaced: name another place\n";
  const auto refused = [&](const Arguments& a, const std::string& text) {
    const Result r = run(a);
    CHECK(r.code == 1);
    CHECK(r.says(text));
    CHECK(exists("nest/kept/model.safetensors"));
    CHECK(exists("nest/train.log"));
  };
  refused({"average", "nest/kept", "nest/kept", "--out", "nest", "--force"}, says);
  refused({"average", "nest/./kept", "--out", "nest/", "--force"}, "which is read");
  refused({"quantize", "nest/kept", "nest", "--force"}, says);
  refused({"quantize", "nest", "nest", "--force"}, "nest: has nest, which is read");
  refused({"train", "--from", "nest/kept", "--data", short_pairs(), "--out", "nest", "--force"}, says);
  CHECK(run({"quantize", "nest", "nest/small"}).code == 0);  // beside the others
}

TEST_CASE("average: of one model it, of several their mean, and nothing is lost") {
  const std::string one = trained_model();
  REQUIRE(run({"average", one, "-o", "same"}).code == 0);
  REQUIRE(run({"quantize", one, "bytes"}).code == 0);  // whose tensors stand in another order
  CHECK(run({"average", "bytes", one, "-o", "of-both"}).code == 0);
  CHECK(run({"average", one, "bytes", "-o", "of-both", "--force"}).code == 0);
  const Setting all{.input = text_of(sentences())};
  CHECK(steered({"--scores"}, all, "same").out == steered({"--scores"}, all).out);
  const Result again = run({"average", one, "-o", "same"});
  CHECK(again.code == 1);
  CHECK(again.says("same: holds a model already: --force replaces it, --out names another place"));
  // What a crash kept from its place is a model, too.
  REQUIRE(shell("mkdir crashed && cp -r same crashed/ready").code == 0);
  CHECK(run({"average", one, "-o", "crashed"}).says("crashed: holds a model already"));
  CHECK(run({"average", one, "-o", "crashed", "--force"}).code == 0);
  REQUIRE(run(small_run("kept-run", {"--epochs", "2", "--keep", "2"})).code == 0);
  std::vector<std::string> kept;
  for (const auto& entry : std::filesystem::directory_iterator(in_scratch("kept-run/kept")))
    kept.push_back(entry.path().string());
  REQUIRE(kept.size() == 2);
  REQUIRE(run({"average", kept[0], kept[1], "-o", "same", "--force"}).code == 0);
  CHECK(run({"evaluate", "same", short_pairs()}).code == 0);
  auto weights = [](const std::string& path) {
    return gradus::load_safetensors(path + "/model.safetensors").tensors;
  };
  const auto a = weights(kept[0]), b = weights(kept[1]), mean = weights(in_scratch("same"));
  REQUIRE((mean.size() == a.size() && mean.size() == b.size()));
  for (size_t i = 0; i < mean.size(); ++i) {
    CAPTURE(mean[i].first);
    REQUIRE((a[i].first == mean[i].first && b[i].first == mean[i].first));
    const std::vector<double> x = a[i].second.to_vector(), y = b[i].second.to_vector(),
                              z = mean[i].second.to_vector();
    REQUIRE((x.size() == z.size() && y.size() == z.size()));
    CHECK(x != y);
    for (size_t k = 0; k < z.size(); ++k) {
      if (z[k] == about((x[k] + y[k]) / 2, 1e-6, 1e-8)) continue;
      FAIL_CHECK(k << ": " << z[k] << " is not the mean of " << x[k] << " and " << y[k]);
      break;
    }
  }
  REQUIRE(run(small_run("begun-apart", {"--epochs", "1", "--seed", "7"})).code == 0);
  CHECK(run({"average", one, "begun-apart", "-o", "same", "--force"}).err ==
        "translator: these are of runs with different seeds, 7, 42, and the mean of weights that began apart "
        "translates badly: translate " + one + ",begun-apart takes them as one instead\n");
  // Dropout is of training, and a seed has drawn no weights where others were taken.
  REQUIRE(run({"train", "--from", one, "--data", short_pairs(), "--out", "tuned-on", "--dropout", "0.3",
               "--seed", "9", "--epochs", "1", "-q"})
              .code == 0);
  CHECK(run({"average", one, "tuned-on", "-o", "same", "--force"}).err == "");
  REQUIRE(run(small_run("lstm", {"--cell", "lstm", "--epochs", "1"})).code == 0);
  const Result wrong = run({"average", one, "lstm", "-o", "wrong"});
  CHECK(wrong.code == 1);
  CHECK(wrong.says("lstm: cannot be averaged with " + one + ": cell is lstm, not gru\n"));
  CHECK(!exists("wrong"));
}

TEST_CASE("translate --mbr takes the sample that is most like all of them") {
  const Arguments drawn = {"--sample", "--temperature", "2", "--json", "--scores"};
  for (const char* metric : {"chrf", "bleu"}) {
    const Arguments a =
        drawn + Arguments{"she eats apples", "--mbr", metric, "--samples", "12", "--n-best", "3"};
    const Result r = steered(a);
    REQUIRE(r.code == 0);
    const std::vector<std::string> lines = lines_of(r.out);
    REQUIRE(lines.size() == 3);
    std::set<std::string> texts;
    double before = 100;
    for (const std::string& line : lines) {
      const auto j = json_text::parse(line);
      if (j["translation"].is_null()) continue;
      CHECK(j["score"].get<double>() <= before);
      before = j["score"];
      texts.insert(j["translation"]);
    }
    CHECK(texts.size() >= 2);  // the same text comes once
    CHECK(steered(a, {}).out == r.out);
    // No sample is left out because another is more probable.
    CHECK(steered(a + Arguments{"--exact-stop"}).out == r.out);
  }
}

TEST_CASE("translate --paragraphs translates sentence by sentence, and leaves markup and blank lines") {
  const std::string text = "<p>\nShe eats apples. He sings!  They sleep.\n\n</p>\nshe eats apples\n";
  const Result r = steered({"--paragraphs"}, {.input = text});
  CHECK(r.code == 0);
  auto one = [&](const char* sentence) {
    const std::string out = steered({sentence}).out;
    return out.substr(0, out.size() - 1);
  };
  CHECK(r.out == "<p>\n" + one("She eats apples.") + " " + one("He sings!") + "  " + one("They sleep.") +
                     "\n\n</p>\n" + one("she eats apples") + "\n");
  CHECK(steered({"--paragraphs", "He sings! They sleep."}).out ==
        one("He sings!") + " " + one("They sleep.") + "\n");
  const Result wrong = steered({"--paragraphs", "--json"}, {.input = text});
  CHECK(wrong.code == 2);
  CHECK(wrong.says("--paragraphs writes text alone, one translation of each"));
  const Result bad = steered({"--paragraphs"}, {.input = "He sings.\n\xFF\nThey sleep.\n"});
  CHECK(bad.code == 1);
  CHECK(lines_of(bad.out).size() == 3);
  CHECK(bad.says("; an empty line stands for it\n"));
  std::string endless = "He sings. She";
  for (int i = 0; i < 5001; ++i) endless += " eats";
  const Result part = steered({"--paragraphs"}, {.input = endless + ". They sleep.\n"});
  CHECK(part.code == 1);
  CHECK(part.says("; it is left out of its paragraph\n"));
  CHECK(part.out == one("He sings.") + "  " + one("They sleep.") + "\n");
  CHECK(steered({"--paragraphs"}, {.input = endless + ".\n"}).says("; it is left out of its paragraph\n"));
  CHECK(steered({"--paragraphs", "He sings.", "--max-length", "1", "--require", "il chante"})
            .says("the sentence: no translation of so many words has all that --require asks for\n"));
}

TEST_CASE("quantize: a quarter of the size, and the translations of --int8 to the bit") {
  const std::string model = trained_model();
  const Result r = run_well({"quantize", model, "eighth"});
  CHECK(r.out.find(" MB of weights are ") != std::string::npos);
  const auto before = std::filesystem::file_size(in_scratch(model) + "/model.safetensors"),
             after = std::filesystem::file_size(in_scratch("eighth/model.safetensors"));
  CHECK(after < before / 2);  // small matrices have many scales and names
  // What the model that is replaced had besides goes with it.
  write_file("eighth/training.json", "{}");
  std::filesystem::copy_file(in_scratch(model) + "/shortlist.safetensors",
                             in_scratch("eighth/shortlist.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  REQUIRE(run(small_run("few", {"--max-vocabulary", "20", "--epochs", "1", "--no-shortlist"})).code == 0);
  REQUIRE(run({"quantize", "few", "eighth", "--force"}).code == 0);
  CHECK(!exists("eighth/shortlist.safetensors"));
  CHECK(!exists("eighth/training.json"));
  CHECK(run({"translate", "eighth", "she eats apples"}).code == 0);
  REQUIRE(run({"quantize", model, "eighth", "--force"}).code == 0);
  CHECK(exists("eighth/shortlist.safetensors"));
  const Setting all{.input = text_of(sentences())};
  const Result rounded = steered({"--scores", "--int8"}, all);
  CHECK(rounded.code == 0);
  CHECK(steered({"--scores"}, all, "eighth").out == rounded.out);
  CHECK(steered({"--scores", "--int8", "--threads", "3"}, all).out == rounded.out);
  CHECK(steered({"--scores"}, all).out != rounded.out);
  REQUIRE(run({"quantize", "eighth", "twice"}).code == 0);
  CHECK(read_file("twice/model.safetensors") == read_file("eighth/model.safetensors"));
  const Result again = run({"quantize", model, "eighth"});
  CHECK(again.code == 1);
  CHECK(again.says("eighth: holds a model already: --force replaces it; or name another place"));
  // A damaged file.
  std::string bytes = read_file("eighth/model.safetensors");
  const size_t at = bytes.find(".scale\"");
  REQUIRE(at != std::string::npos);
  bytes.replace(at, 6, ".scald");
  REQUIRE(run({"quantize", model, "small-damaged"}).code == 0);
  write_file("small-damaged/model.safetensors", bytes);
  const Result damaged = steered({"x"}, {}, "small-damaged");
  CHECK(damaged.code == 1);
  CHECK(damaged.says("damaged/model.safetensors: "));
}
