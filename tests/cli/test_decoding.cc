// Decoding from the command line: a vocabulary shortlist, a mean of one, and memory that does not grow with the
// lines.

#include <algorithm>
#include <filesystem>
#include <set>

#include <common/json_text.h>
#include <gradus/io/safetensors.h>

#include "../same_tensors.h"
#include "../skip.h"
#include "program.h"

using namespace cli;

namespace {

Result translated(const Arguments& more, const std::string& input,
                  const std::string& model = trained_model()) {
  return run(Arguments{"translate", model, "--threads", "1", "--scores"} + more, {.input = input});
}

// So many source lines, the first of the pairs over and over.
std::string sources(size_t count) {
  const std::vector<std::string> pairs = lines_of(read_file(short_pairs()));
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    const std::string& line = pairs[i % pairs.size()];
    out += line.substr(0, line.find('\t')) + "\n";
  }
  return out;
}

// Without the column of scores.
std::vector<std::string> texts_of(const std::string& out) {
  std::vector<std::string> texts = lines_of(out);
  for (std::string& line : texts) line = line.substr(0, line.find('\t'));
  return texts;
}

}  // namespace

TEST_CASE("--shortlist: which words are scored depends on the sentence alone, and all are where those miss") {
  REQUIRE(exists(trained_model() + "/shortlist.safetensors"));
  const std::string input = sources(60);
  for (const char* beam : {"1", "4"}) {
    const Result all = translated({"-k", beam}, input);
    // Where other words have any of the probability, the sentence is made anew.
    CHECK(texts_of(translated({"-k", beam, "--shortlist", "1"}, input).out) == texts_of(all.out));
    const Result listed = translated({"-k", beam, "--shortlist", "0"}, input);
    REQUIRE(listed.code == 0);
    CHECK(listed.out != all.out);  // log probabilities are of fewer words
    CHECK(translated({"-k", beam, "--shortlist", "0", "--threads", "3"}, input).out == listed.out);
    const Result some = translated({"-k", beam, "--shortlist", "0.6"}, input);
    for (size_t i = 0; i < 60; i += 7) {
      const std::string line = lines_of(input)[i] + "\n";
      CHECK(lines_of(translated({"-k", beam, "--shortlist", "0"}, line).out) ==
            std::vector<std::string>{lines_of(listed.out)[i]});
      CHECK(lines_of(translated({"-k", beam, "--shortlist", "0.6"}, line).out) ==
            std::vector<std::string>{lines_of(some.out)[i]});
    }
  }
  // What it is told to say it can say.
  const Result told = translated(
      {"--shortlist", "0", "--prefix", "les chats", "--require", "pomme", "-k", "6"}, "he sings\n");
  CHECK(told.code == 0);
  CHECK(told.out.find("les chats") == 0);
  CHECK(told.out.find("pomme") != std::string::npos);
}

TEST_CASE("evaluate --shortlist says how many sentences were made anew") {
  auto evaluated = [](const char* mass) {
    const Result r = run_well({"evaluate", trained_model(), short_pairs(), "--json", "--shortlist", mass});
    return json_text::parse(r.out)["searched_anew"].get<double>();
  };
  CHECK(evaluated("0") == 0);
  const double some = evaluated("0.2");
  CHECK(some > 0);
  CHECK(evaluated("1") > some);
}

TEST_CASE("a shortlist goes with its model, and what has none says so") {
  const std::string model = trained_model();
  REQUIRE(run({"quantize", model, "listed-int8"}).code == 0);
  CHECK(read_file("listed-int8/shortlist.safetensors") == read_file(model + "/shortlist.safetensors"));
  CHECK(translated({"--shortlist", "0.5"}, "he sings\n", "listed-int8").code == 0);
  auto fails = [&](const Arguments& more, int code, const std::string& text, const std::string& with) {
    const Result r = translated(more, "he sings\n", with);
    CHECK(r.code == code);
    CHECK(r.says(text));
  };
  fails({"--shortlist", "0.5"}, 1, "--shortlist: is for one model", model + "," + model);
  fails({"--shortlist", "0.5", "--sample"}, 2, "--sample draws from all words: it goes without --shortlist",
        model);
  fails({"--shortlist", "2"}, 2, "--shortlist", model);
  const std::filesystem::path list = in_scratch("listed-int8/shortlist.safetensors");
  gradus::save_safetensors(list.string(), {{{"linked", gradus::Tensor({3, 2}, gradus::DType::i32)},
                                            {"usual", gradus::Tensor({1}, gradus::DType::i32)}},
                                           {}});
  fails({}, 1, "is no shortlist of", "listed-int8");
  std::filesystem::remove(list);
  fails({}, 0, "", "listed-int8");
  fails({"--shortlist", "0.5"}, 1, "this model's directory has no shortlist.safetensors", "listed-int8");
  // Few target words have none unless it is asked for; a run that goes on learns one late.
  REQUIRE(run(small_run("unlisted", {"--epochs", "1"})).code == 0);
  CHECK_FALSE(exists("unlisted/shortlist.safetensors"));
  REQUIRE(run({"train", "--resume", "--out", "unlisted", "--epochs", "2", "--shortlist"}).code == 0);
  CHECK(read_file("unlisted/shortlist.safetensors") == read_file(model + "/shortlist.safetensors"));
}

TEST_CASE("threads share lines out: answers and remarks are the same, and in the lines' order") {
  std::string input;
  for (const std::string& line : lines_of(sources(180)))
    input += line + "\n" +
             (line.size() % 3 == 0   ? "\n"
              : line.size() % 3 == 1 ? "na\xEFve\n"
                                     : "a Zork" + line + "\n");
  for (const Arguments& how : {Arguments{}, Arguments{"-k", "3", "--n-best", "2", "--json", "--alignments"}}) {
    auto with = [&](const char* threads) {
      return translated(how + Arguments{"--batch-size", "16", "--threads", threads}, input);
    };
    const Result one = with("1");
    CHECK(one.code == 1);
    CHECK(one.says("unknown: Zork"));
    CHECK(one.says("standard input:" + std::to_string(lines_of(input).size())));
    for (const char* threads : {"2", "5"}) {
      const Result r = with(threads);
      CHECK(r.out == one.out);
      CHECK(r.err == one.err);
    }
  }
}

TEST_CASE("evaluate and diff search as translate does, whatever they are told") {
  const std::string input = sources(60);
  std::string pairs;
  for (size_t i = 0; i < 60; ++i) pairs += lines_of(read_file(short_pairs())).at(i) + "\n";
  write_file("sixty.tsv", pairs);
  auto with = [](const Arguments& command, const Arguments& more, const std::string& lines = "") {
    const Result r = run_well(command + more, {.input = lines});
    return r.out;
  };
  std::set<std::string> different;
  const std::vector<Arguments> ways = {{},
                                       {"-k", "4"},
                                       {"-k", "4", "--length-penalty", "3"},
                                       {"-k", "4", "--coverage-penalty", "3"},
                                       {"--min-length", "9"},
                                       {"--min-length", "9", "--no-repeat-ngram", "1"}};
  for (const Arguments& how : ways) {
    CAPTURE(how.empty() ? std::string("greedily") : how.back());
    const std::string said = with({"translate", trained_model()}, how, input);
    different.insert(said);
    with({"evaluate", trained_model(), "sixty.tsv", "--hypotheses", "sixty.said"}, how);
    CHECK(read_file("sixty.said") == said);
    auto of_model = json_text::parse(
        with({"diff", trained_model(), trained_model(), "sixty.tsv", "--json", "--lowercase"}, how));
    auto of_file = json_text::parse(
        with({"diff", "sixty.said", "sixty.said", "sixty.tsv", "--json", "--lowercase"}, {}));
    CHECK(of_model.at("by_sentence") == of_file.at("by_sentence"));
  }
  CHECK(different.size() == ways.size());
}

TEST_CASE("the average of one checkpoint is it, to the bit") {
  REQUIRE(run({"average", trained_model(), "-o", "mean-of-one", "--force"}).code == 0);
  check_same_tensors(in_scratch(trained_model() + "/model.safetensors"),
                     in_scratch("mean-of-one/model.safetensors"));
}

TEST_CASE("translating twenty times the lines takes no more memory") {
  if (!gradus::testing::memory_can_be_limited()) return;
  if (!std::filesystem::exists("/proc/self/status")) return gradus::testing::skipped("no /proc here");
  // At its end, when the last line is answered and more may come.
  auto peak = [](const std::string& text, size_t lines, int code = 0) {
    write_file("many-lines", text);
    const Result r = shell(
        "rm -f pipe answers; mkfifo pipe; $T translate " + trained_model() +
        " --threads 1 < pipe > answers & p=$!; exec 3> pipe; cat many-lines >&3; until [ \"$(wc -l < "
        "answers)\" -ge " +
        std::to_string(lines) +
        " ]; do kill -0 $p || exit 1; sleep 0.05; done; grep VmHWM /proc/$p/status; exec 3>&-; wait $p");
    REQUIRE(r.code == code);
    return std::stoll(r.out.substr(r.out.find(':') + 1));  // kB
  };
  const long long few = peak(sources(2000), 2000);
  CHECK(peak(sources(40000), 40000) < few + 4000);
  // Nor does a line that is longer than any that is taken.
  CHECK(peak(std::string(40'000'000, 'x') + "\n", 1, 1) < few + 4000);
}
