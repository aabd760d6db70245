// Several files of training pairs: how often an epoch has them, and tags in front of their sources.

#include <algorithm>

#include "../pieces.h"
#include "../quick_doctest.h"
#include <common/json_text.h>
#include "program.h"

using namespace cli;

namespace {

// Three files, of 240, 60 and 30 pairs.
void write_files() {
  static const bool once = [] {
    return shell("head -240 " + short_pairs() +
                 " > a.tsv; sed -n 301,360p short.tsv > b.tsv; "
                 "sed -n 401,430p short.tsv > bt.tsv; sed -n 501,540p short.tsv > v.tsv")
               .code == 0;
  }();
  REQUIRE(once);
}

Arguments with(const std::string& data, const std::string& out, const Arguments& more = {}) {
  write_files();
  return small_run(out, {"--data", data, "--valid", "v.tsv", "--epochs", "1", "-q"}) + more;
}

}  // namespace

TEST_CASE("an epoch goes through each file as often as its weight says") {
  run_well(with("a.tsv,b.tsv=3,bt.tsv=0.5", "weighted", {"--epochs", "2", "--batch-size", "5"}));
  CHECK(events("weighted", "start")[0].at("pairs") == 330);
  CHECK(events("weighted", "end")[0].at("step") == 2 * (240 + 3 * 60 + 15) / 5);
  CHECK(json_text::parse(read_file("weighted/training.json")).at("data") ==
        in_scratch("a.tsv") + "," + in_scratch("b.tsv") + "=3," + in_scratch("bt.tsv") + "=0.5");
  REQUIRE(run({"train", "--config", "weighted/training.json", "--out", "weighted2", "-q"}).code == 0);
  CHECK(read_file("weighted/model.safetensors") == read_file("weighted2/model.safetensors"));
  CHECK(run({"train", "--resume", "--out", "weighted", "--epochs", "3", "-q"}).code == 0);
  CHECK(run({"train", "--resume", "--out", "weighted", "-q", "--data", "a.tsv,b.tsv=2,bt.tsv=0.5"}).err ==
        "translator: weighted/last.safetensors: was made with other training data: the run cannot go on from "
        "it\n");
  CHECK(run(with("-,a.tsv,-", "twice")).err ==
        "translator: --data -,a.tsv,-: names standard input twice: it can be read once\n");
  // A comma in the name of a directory divides nothing.
  REQUIRE(shell("mkdir -p 'my,own,pairs' && cp a.tsv b.tsv 'my,own,pairs/'").code == 0);
  const std::string there = in_scratch("my,own,pairs/");
  REQUIRE(run(with(there + "a.tsv=2," + there + "b.tsv,a.tsv", "commas")).code == 0);
  CHECK(events("commas", "start")[0].at("pairs") == 540);
  CHECK(run({"train", "--resume", "--out", "commas", "--epochs", "2", "-q"}).code == 0);
  CHECK(run(with("my,own,b.tsv", "no-commas")).err == "translator: my: cannot be opened: No such file or "
                                                      "directory\n");
  // One file, and a weight of 1, are what they were.
  REQUIRE(run(with("a.tsv", "one")).code == 0);
  REQUIRE(run(with("a.tsv=1", "one-too")).code == 0);
  CHECK(read_file("one/model.safetensors") == read_file("one-too/model.safetensors"));
}

TEST_CASE("a tag is a word of the sources' vocabulary, and translating is as usual without it") {
  REQUIRE(run(with("a.tsv,bt.tsv=2:<bt>", "tagged")).code == 0);
  const std::vector<std::string> words = lines_of(read_file("tagged/source.vocab"));
  CHECK(words.back() == "<bt>");
  CHECK(count(read_file("tagged/target.vocab"), "<bt>") == 0);
  REQUIRE(run(with("a.tsv,bt.tsv=2", "untagged")).code == 0);
  CHECK(read_file("untagged/source.vocab") + "<bt>\n" == read_file("tagged/source.vocab"));
  CHECK(read_file("untagged/model.safetensors") != read_file("tagged/model.safetensors"));
  // Whoever types the tag types three words.
  Result r = run({"translate", "tagged", "<bt> she eats", "--json"});
  CHECK(r.code == 0);
  CHECK(run({"translate", "tagged", "she eats"}).code == 0);
  CHECK(run({"train", "--resume", "--out", "tagged", "--epochs", "2", "-q"}).code == 0);
  // A trained model gets a row for a tag, and keeps its words.
  Result tuned = run({"train", "--from", "untagged", "--data", "a.tsv,bt.tsv=1:<new>", "--valid", "v.tsv",
                      "--out", "retagged", "--epochs", "1", "-q"});
  INFO(tuned.err);
  CHECK(tuned.code == 0);
  CHECK(read_file("retagged/source.vocab") == read_file("untagged/source.vocab") + "<new>\n");
}

TEST_CASE("pieces and tags: the tag is no piece, and stands behind them") {
  if (gradus::testing::no_pieces()) return;
  for (const char* kind : {"separate", "joint"}) {
    CAPTURE(kind);
    write_files();
    run_well({"train",
              "--data",
              "a.tsv,bt.tsv=1:<bt>",
              "--valid",
              "v.tsv",
              "--subwords",
              "bpe",
              "--subword-size",
              "400",
              "--subword-model",
              kind,
              "--hidden",
              "16",
              "--embedding",
              "16",
              "--epochs",
              "1",
              "--out",
              "pieced",
              "-q",
              "--force"});
    CHECK(lines_of(read_file("pieced/source.vocab")).back() == "<bt>");
    CHECK((lines_of(read_file("pieced/target.vocab")).back() == "<bt>") == (std::string(kind) == "joint"));
    CHECK(run({"translate", "pieced", "she eats"}).code == 0);
    CHECK(run({"evaluate", "pieced", "v.tsv"}).code == 0);
    CHECK(run({"train", "--resume", "--out", "pieced", "--epochs", "2", "-q"}).code == 0);
    // Any other entry behind the pieces is none.
    write_file("pieced/source.vocab", read_file("pieced/source.vocab") + "word\n");
    CHECK(run({"translate", "pieced", "she eats"}).code == 1);
  }
}

TEST_CASE("validation pairs are held out of the first file, and their sources leave the others") {
  write_files();
  REQUIRE(shell("cp a.tsv copy.tsv").code == 0);
  Arguments a = small_run("held", {"--data", "a.tsv,copy.tsv=1:<bt>", "--epochs", "1"});
  Result r = run(a);
  CHECK(r.code == 0);
  CHECK(r.says("no validation data given: 12 pairs held out of the training data\n"));
  CHECK(r.says("456 pairs, "));
  Result tagged = run(small_run("none", {"--data", "bt.tsv=1:<bt>,a.tsv", "-q"}));
  CHECK(tagged.code == 1);
  CHECK(
      tagged.err ==
      "translator: --data: the first file's pairs are held out for validation, which is without tags: put one "
      "without a tag first, or name --valid\n");
}

TEST_CASE("what is behind = must be a weight and a tag; names of files may have anything in them") {
  write_files();
  const std::string
      weight = ": behind = must stand from 0.001 to 1000, how often an epoch goes through the file\n",
      tag = ": behind the weight may stand a tag, a word in angle brackets that is none of the vocabulary's "
            "own: 0.5:<bt>\n";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"bt.tsv=", weight},      {"bt.tsv=0", weight},     {"bt.tsv=-1", weight},   {"bt.tsv=nan", weight},
      {"bt.tsv=1001", weight},  {"bt.tsv=<bt>", weight},  {"bt.tsv=1:", tag},      {"bt.tsv=1:bt", tag},
      {"bt.tsv=1<bt>", tag},    {"bt.tsv=1:<b t>", tag},  {"bt.tsv=1:<unk>", tag}, {"bt.tsv=1:</s>", tag},
      {"bt.tsv=1:<0x41>", tag}, {"bt.tsv=1:<a><b>", tag}, {"bt.tsv=1x", tag},      {"bt.tsv=1:<>", tag}};
  for (const auto& [item, said] : wrong) {
    CAPTURE(item);
    Result r = run(with("a.tsv," + item, "none"));
    CHECK(r.code == 1);
    CHECK(r.err == "translator: --data " + item + said);
  }
  CHECK(run(with("a.tsv,nowhere.tsv=3", "none")).err ==
        "translator: nowhere.tsv: cannot be opened: No such file or directory\n");
  CHECK(run(with("a.tsv,,b.tsv", "none")).err ==
        "translator: --data a.tsv,,b.tsv: has no file between two commas, or at an end\n");
  CHECK(run(with("a.tsv,nowhere=x.tsv", "none")).err ==
        "translator: nowhere=x.tsv: cannot be opened: No such file or directory\n");
  REQUIRE(shell("cp a.tsv 'odd,name=3.tsv'").code == 0);
  CHECK(run(with("odd,name=3.tsv", "odd")).code == 0);
  CHECK(run({"train", "--resume", "--out", "odd", "--epochs", "2", "-q"}).code == 0);
  CHECK_FALSE(exists("none"));
}
